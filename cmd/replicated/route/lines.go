package route

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// lineReader reads one statement a line, with the escapes \n \t \r \0 and \\. An
// empty line is an empty statement.
type lineReader struct{}

func (*lineReader) skipped() int64 { return 0 }

func (*lineReader) read(in io.Reader, emit func(*entry) error) error {
	lines := newLineScanner(in)
	for number := int64(1); ; number++ {
		line, err := lines.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		text, err := unescape(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", number, err)
		}
		e := statement(string(text))
		if err := emit(&e); err != nil {
			return err
		}
	}
}

// unescape puts the escapes of a line right, in its own memory.
func unescape(line []byte) ([]byte, error) {
	at := bytes.IndexByte(line, '\\')
	if at < 0 {
		return line, nil
	}
	out := line[:at]
	for i := at; i < len(line); i++ {
		c := line[i]
		if c == '\\' {
			i++
			if i == len(line) {
				return nil, fmt.Errorf(`a backslash ends the line at column %d: write \\ for one`, i)
			}
			switch line[i] {
			case 'n':
				c = '\n'
			case 't':
				c = '\t'
			case 'r':
				c = '\r'
			case '0':
				c = 0
			case '\\':
			default:
				return nil, fmt.Errorf(`\%c at column %d is no escape: want \n, \t, \r, \0 or \\`, line[i], i)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

// lineScanner reads lines of any length. Other than bufio.Scanner it has no limit,
// and it leaves a carriage return where it is.
type lineScanner struct {
	in   *bufio.Reader
	long []byte // a line that did not fit into the buffer
}

func newLineScanner(in io.Reader) *lineScanner {
	return &lineScanner{in: bufio.NewReaderSize(in, pieceSize)}
}

// next returns the next line without its newline, good until the next call, or
// io.EOF behind the last. What stands behind the last newline is a line unless it
// is nothing.
func (s *lineScanner) next() ([]byte, error) {
	line, err := s.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		s.long = append(s.long[:0], line...)
		for errors.Is(err, bufio.ErrBufferFull) {
			line, err = s.in.ReadSlice('\n')
			s.long = append(s.long, line...)
		}
		line = s.long
	}
	if err == io.EOF && len(line) > 0 {
		return line, nil
	}
	if err != nil {
		return nil, err
	}
	return line[:len(line)-1], nil
}
