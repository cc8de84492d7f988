package wiretest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"testing"
)

// Postgres starts a server for lib/pq, to be used with sslmode=disable, or with
// sslmode=prefer, since it refuses TLS.
func Postgres(tb testing.TB, h Handler) *Server {
	tb.Helper()
	return start(tb, h, servePostgres)
}

// Terminate does what pg_terminate_backend makes an idle backend do: it leaves a
// FATAL message and closes.
func (s *Session) Terminate() error {
	if _, err := s.Write(pgError("FATAL", "57P01")); err != nil {
		return err
	}
	return s.Close()
}

// Notify sends a NotificationResponse and leaves the session open.
func (s *Session) Notify() error {
	_, err := s.Write(pgMessage('A', "\x00\x00\x00\x01channel\x00payload\x00"))
	return err
}

const (
	pgSSLRequest    = 80877103
	pgCancelRequest = 80877102
)

func servePostgres(s *Session, h Handler) {
	r := bufio.NewReader(s)
	for {
		body, err := pgBody(r)
		if err != nil || len(body) < 4 {
			return
		}
		switch code := binary.BigEndian.Uint32(body); code {
		case pgSSLRequest:
			_, _ = s.Write([]byte("N"))
			continue
		case pgCancelRequest:
			s.Cancels = true
			s.server.arrived <- s
			if reply := s.ask(h, "cancel"); reply.Hang {
				_, _ = io.Copy(io.Discard, r)
			}
			return
		}
		break
	}
	pid := binary.BigEndian.AppendUint32(nil, uint32(s.PID))
	_, err := s.Write(bytes.Join([][]byte{
		pgMessage('R', "\x00\x00\x00\x00"),
		pgMessage('K', string(pid)+"\x00\x00\x00\x07"),
		pgMessage('Z', "I"),
	}, nil))
	if err != nil {
		return
	}
	s.server.arrived <- s
	for {
		kind, err := r.ReadByte()
		if err != nil {
			return
		}
		body, err := pgBody(r)
		if err != nil {
			return
		}
		message, answer := "", []byte(nil)
		switch kind {
		case 'Q':
			message = "Q " + string(bytes.TrimRight(body, "\x00"))
			answer = pgMessage('C', "SELECT 0\x00")
		case 'P':
			parts := bytes.SplitN(body, []byte{0}, 3)
			message = "P " + string(parts[1])
			// No parameter has a type that matters: two of text.
			answer = bytes.Join([][]byte{
				pgMessage('1', ""), pgMessage('t', "\x00\x01\x00\x00\x00\x19"), pgMessage('n', ""),
			}, nil)
		case 'B':
			message = "B"
			answer = append(pgMessage('2', ""), pgMessage('C', "INSERT 0 1\x00")...)
		case 'C':
			message = "C"
			answer = pgMessage('3', "")
		case 'X':
			return
		default: // Describe, Execute and Sync belong to what came before
			continue
		}
		reply := s.ask(h, message)
		if reply.Status == 0 {
			reply.Status = 'I'
		}
		switch {
		case reply.Drop:
			return
		case reply.Hang:
			_, _ = io.Copy(io.Discard, r)
			return
		case reply.Code != "":
			answer = pgError("ERROR", reply.Code)
		}
		if _, err := s.Write(append(answer, pgMessage('Z', string(rune(reply.Status)))...)); err != nil {
			return
		}
	}
}

// pgBody reads a length and what it counts.
func pgBody(r io.Reader) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	body := make([]byte, binary.BigEndian.Uint32(head[:])-4)
	_, err := io.ReadFull(r, body)
	return body, err
}

func pgMessage(kind byte, body string) []byte {
	m := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))
	return append(m, body...)
}

func pgError(severity, code string) []byte {
	return pgMessage('E', "S"+severity+"\x00V"+severity+"\x00C"+code+"\x00Mscripted\x00\x00")
}
