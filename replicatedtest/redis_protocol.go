package replicatedtest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Do sends one command to the server, on a connection of its own, and returns
// the answer: a string, an int64, nil, or a []any of such. An error that the
// server answers is an error. It gives up after some 30 seconds.
func (r *Redis) Do(command ...string) (any, error) {
	conn, err := net.DialTimeout("tcp", r.Addr(), opTimeout)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(opTimeout)); err != nil {
		return nil, err
	}
	// The protocol, version 2: https://redis.io/docs/latest/develop/reference/protocol-spec/
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", len(command))
	for _, word := range command {
		fmt.Fprintf(&text, "$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(conn, text.String()); err != nil {
		return nil, err
	}
	return readRedis(bufio.NewReader(conn))
}

func readRedis(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	kind, text := line[0], strings.TrimRight(line[1:], "\r\n")
	switch kind {
	case '+':
		return text, nil
	case '-':
		return nil, errors.New(text)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, err
	}
	switch {
	case kind == ':':
		return n, nil
	case n < 0:
		return nil, nil
	case kind == '$':
		data := make([]byte, n+2)
		if _, err := io.ReadFull(in, data); err != nil {
			return nil, err
		}
		return string(data[:n]), nil
	case kind == '*':
		list := make([]any, n)
		for i := range list {
			if list[i], err = readRedis(in); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("an answer of unknown kind %q", kind)
}
