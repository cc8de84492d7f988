package wiretest

import (
	"bufio"
	"encoding/binary"
	"io"
	"strconv"
	"testing"
)

// MySQL starts a server for go-sql-driver, which takes any user and password. It
// logs in with the status flags that the handler gives for "login".
func MySQL(tb testing.TB, h Handler) *Server {
	tb.Helper()
	return start(tb, h, serveMySQL)
}

// Evict does what a MySQL server does with a session that has been idle too
// long: it leaves an error packet and closes.
func (s *Session) Evict() error {
	if _, err := s.Write(myPacket(0, myError("4031"))); err != nil {
		return err
	}
	return s.Close()
}

func serveMySQL(s *Session, h Handler) {
	r := bufio.NewReader(s)
	if _, err := s.Write(myPacket(0, myGreeting(s.PID))); err != nil {
		return
	}
	if _, _, err := myRead(r); err != nil {
		return
	}
	if _, err := s.Write(myPacket(2, myOK(s.ask(h, "login").Status))); err != nil {
		return
	}
	s.server.arrived <- s
	for {
		_, body, err := myRead(r)
		if err != nil || len(body) == 0 {
			return
		}
		message := ""
		switch body[0] {
		case 1: // COM_QUIT
			return
		case 3: // COM_QUERY
			message = "Q " + string(body[1:])
		case 14: // COM_PING
			message = "ping"
		default:
			message = "command " + strconv.Itoa(int(body[0]))
		}
		reply := s.ask(h, message)
		switch {
		case reply.Drop:
			return
		case reply.Hang:
			_, _ = io.Copy(io.Discard, r)
			return
		}
		answer := myOK(reply.Status)
		if reply.Code != "" {
			answer = myError(reply.Code)
		}
		if _, err := s.Write(myPacket(1, answer)); err != nil {
			return
		}
	}
}

func myRead(r io.Reader) (sequence byte, body []byte, err error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, err
	}
	body = make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err = io.ReadFull(r, body)
	return head[3], body, err
}

func myPacket(sequence byte, body []byte) []byte {
	n := len(body)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), sequence}, body...)
}

// myGreeting is a Protocol::HandshakeV10 packet of a 4.1 server with
// mysql_native_password.
func myGreeting(id int) []byte {
	const capabilities = 0x00000200 | 0x00008000 | 0x00080000 | 0x00000001 | 0x00000008 | 0x00002000
	b := append([]byte{10}, "5.7.0-wiretest\x00"...)
	b = binary.LittleEndian.AppendUint32(b, uint32(id))
	b = append(b, "12345678\x00"...)
	b = binary.LittleEndian.AppendUint16(b, capabilities&0xffff)
	b = append(b, 45)   // utf8mb4_general_ci
	b = append(b, 2, 0) // autocommit
	b = binary.LittleEndian.AppendUint16(b, capabilities>>16)
	b = append(b, 21)
	b = append(b, make([]byte, 10)...)
	b = append(b, "123456789012\x00"...)
	return append(b, "mysql_native_password\x00"...)
}

func myOK(status uint16) []byte {
	b := binary.LittleEndian.AppendUint16([]byte{0, 0, 0}, status)
	return append(b, 0, 0)
}

func myError(code string) []byte {
	n, _ := strconv.Atoi(code)
	b := binary.LittleEndian.AppendUint16([]byte{0xff}, uint16(n))
	return append(b, "#HY000scripted"...)
}
