package fakedb

import (
	"context"
	"database/sql/driver"
	"io"
	"reflect"
)

// rows is what all shapes of Rows share.
//
// The []byte values it hands out live in buffers that are overwritten by the
// next Next and by Close, as the contract of driver.Rows allows: what keeps
// them longer reads rubbish.
type rows struct {
	c      *core
	text   string
	sets   []Reply // the current result set first
	reply  *Reply  // the whole, for CloseErr and Break
	row    int     // rows handed out of the current set
	lent   [][]byte
	closed bool
}

func (c *core) newRows(text string, reply *Reply) driver.Rows {
	r := &rows{c: c, text: text, reply: reply}
	r.sets = append(append(r.sets, *reply), reply.More...)
	c.open++
	c.server.mu.Lock()
	c.server.rows[r] = struct{}{}
	c.server.mu.Unlock()
	return c.shape.rows(r)
}

// Columns is a mandatory method of driver.Rows.
func (r *rows) Columns() []string {
	r.c.touch()
	return r.sets[0].Columns
}

// Next is a mandatory method of driver.Rows.
func (r *rows) Next(dest []driver.Value) error {
	if len(dest) != len(r.sets[0].Columns) {
		r.c.server.misused("row of %q read into %d values, it has %d", r.text, len(dest), len(r.sets[0].Columns))
	}
	row, err := r.advance()
	if err != nil {
		return err
	}
	for i := range dest {
		dest[i] = r.lend(row[i])
	}
	return nil
}

// advance moves to the next row.
func (r *rows) advance() ([]driver.Value, error) {
	if err := r.step(OpNext); err != nil {
		return nil, err
	}
	set := &r.sets[0]
	if r.row >= len(set.Rows) {
		if set.NextErr != nil {
			r.breakIfSo()
			return nil, set.NextErr
		}
		return nil, io.EOF
	}
	r.row++
	return set.Rows[r.row-1], nil
}

// step admits a call on open rows.
func (r *rows) step(op Op) error {
	r.c.touch()
	r.spoil()
	if r.closed {
		r.c.server.misused("%s of %q after Close", op, r.text)
		return ErrClosed
	}
	if r.c.closed || r.c.broken.Load() {
		return driver.ErrBadConn
	}
	call := &Call{Op: op, Text: r.text, Conn: r.c.id, Tx: r.c.tx}
	err := r.c.server.admit(context.Background(), call)
	r.c.server.outcome(call, err)
	return err
}

func (r *rows) breakIfSo() {
	if r.reply.Break {
		r.c.broken.Store(true)
	}
}

// lend copies a []byte into a buffer that spoil overwrites.
func (r *rows) lend(v driver.Value) driver.Value {
	b, ok := v.([]byte)
	if !ok || b == nil {
		return v
	}
	lent := append(make([]byte, 0, len(b)), b...)
	r.lent = append(r.lent, lent)
	return lent
}

func (r *rows) spoil() {
	for _, b := range r.lent {
		for i := range b {
			b[i] = '#'
		}
	}
	r.lent = r.lent[:0]
}

// Close is a mandatory method of driver.Rows.
func (r *rows) Close() error {
	r.c.touch()
	r.spoil()
	if r.closed {
		r.c.server.misused("rows of %q closed twice", r.text)
		return ErrClosed
	}
	r.closed = true
	r.c.open--
	r.c.server.mu.Lock()
	delete(r.c.server.rows, r)
	r.c.server.mu.Unlock()
	if r.c.closed || r.c.broken.Load() {
		if r.c.shape == PQLike {
			return driver.ErrBadConn // lib/pq passes on what it met while draining
		}
		return nil
	}
	call := &Call{Op: OpRowsClose, Text: r.text, Conn: r.c.id, Tx: r.c.tx}
	err := r.c.server.admit(context.Background(), call)
	if err == nil && r.reply.CloseErr != nil {
		r.breakIfSo()
		err = r.reply.CloseErr
	}
	r.c.server.outcome(call, err)
	return err
}

func (r *rows) hasNextResultSet() bool {
	r.c.touch()
	return !r.closed && len(r.sets) > 1
}

func (r *rows) nextResultSet() error {
	if err := r.step(OpNextResultSet); err != nil {
		return err
	}
	if len(r.sets) < 2 {
		return io.EOF
	}
	r.sets, r.row = r.sets[1:], 0
	return nil
}

func (r *rows) columnType(index int) ColumnType {
	r.c.touch()
	if types := r.sets[0].Types; index < len(types) {
		t := types[index]
		if t.ScanType == nil {
			t.ScanType = reflect.TypeFor[any]()
		}
		return t
	}
	return ColumnType{ScanType: reflect.TypeFor[any]()}
}
