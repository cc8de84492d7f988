package fakedb

import (
	"context"
	"database/sql/driver"
)

// admit receives one call: it counts and logs it, then lets the scripted holds
// and failures have their way.
func (s *Server) admit(ctx context.Context, call *Call) error {
	s.mu.Lock()
	s.counts[call.Op]++
	if call.Op != OpNext {
		s.calls = append(s.calls, call)
	}
	var hold *Hold
	for _, h := range s.holds {
		if h.op == call.Op {
			hold = h
			break
		}
	}
	s.mu.Unlock()

	if hold != nil {
		if err := hold.wait(ctx, call); err != nil {
			return err
		}
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.fails {
		if f.op != call.Op {
			continue
		}
		if f.n > 0 {
			if f.n--; f.n == 0 {
				s.fails = append(s.fails[:i:i], s.fails[i+1:]...)
			}
		}
		return f.err
	}
	return nil
}

// outcome completes the log entry of call.
func (s *Server) outcome(call *Call, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call.Err = err
}

// answer finds the reply to an admitted statement: exact text, part of a text,
// the handler of the kind of call, what the role says, the default.
func (s *Server) answer(ctx context.Context, call *Call) (*Reply, error) {
	s.mu.Lock()
	exact, scripted := s.replies[call.Text]
	refuse := s.refuse
	handlers := make([]Handler, 0, 2)
	for i := len(s.containing) - 1; i >= 0; i-- {
		if contains(call.Text, s.containing[i].part) {
			handlers = append(handlers, s.containing[i].handle)
			break
		}
	}
	general := s.onQuery
	if call.Op == OpExec {
		general = s.onExec
	}
	if general != nil {
		handlers = append(handlers, general)
	}
	role := s.role
	s.mu.Unlock()

	if refuse != nil && isWrite(call.Text) {
		return nil, refuse
	}
	if scripted {
		return &exact, nil
	}
	seen := *call // a handler may keep it; the log entry is written to later
	for _, handle := range handlers {
		if reply, err := handle(ctx, &seen); reply != nil || err != nil {
			return reply, err
		}
	}
	if call.Op == OpExec {
		return &Reply{Affected: 1, LastID: 1}, nil
	}
	if reply := roleReply(call.Text, role); reply != nil {
		return reply, nil
	}
	return &Reply{Columns: []string{"node"}, Rows: [][]driver.Value{{s.name}}}, nil
}

// roleReply answers the questions by which a server's role is told; nil for
// any other text.
func roleReply(text string, role Role) *Reply {
	if contains(text, "pg_is_in_recovery") {
		return &Reply{Columns: []string{"pg_is_in_recovery"}, Rows: [][]driver.Value{{role == Replica}}}
	}
	readOnly := int64(0)
	if role == Replica {
		readOnly = 1
	}
	for _, variable := range []string{"@@super_read_only", "@@innodb_read_only", "@@read_only"} {
		if contains(text, variable) {
			return &Reply{Columns: []string{variable}, Rows: [][]driver.Value{{readOnly}}}
		}
	}
	return nil
}

func (s *Server) busyAllowed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.allowBusy
}

func (s *Server) checker() func(*driver.NamedValue) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.onCheck
}

func (s *Server) columnConverter(index int) driver.ValueConverter {
	s.mu.Lock()
	convert := s.converter
	s.mu.Unlock()
	if convert == nil {
		return driver.DefaultParameterConverter
	}
	return convert(index)
}

func (s *Server) forgetConn(c *core) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	for st := range s.stmts {
		if st.c == c {
			delete(s.stmts, st)
		}
	}
	for r := range s.rows {
		if r.c == c {
			delete(s.rows, r)
		}
	}
}
