package history

// integrity checks what does not depend on who reads: that reads show writes, and
// that no write took effect twice.
func (c *checker) integrity(events []*Event) {
	clear(c.values)
	for _, e := range events {
		if e.Kind != Read && c.fateOf(e) == effective {
			c.oneWriter(e)
		}
	}
	for _, e := range events {
		if e.Kind == Read && e.Outcome == Acked && e.Version != 0 {
			c.shows(e)
		}
	}
	if c.o.Dense {
		c.dense(events)
	}
}

// oneWriter reports an effective write whose version another one made too: one of
// them has been lost.
func (c *checker) oneWriter(w *Event) {
	v := c.version(w)
	if v == 0 {
		return
	}
	if other, taken := c.values[v]; taken && (other == 0 || other != w.Value) {
		c.report(Violation{Clause: Integrity, Write: w, detail: "another write made the same version of the key"})
		return
	}
	c.values[v] = w.Value
}

// shows checks the value of a read against those who can have written it.
func (c *checker) shows(r *Event) {
	if r.Value == 0 {
		return
	}
	w := c.byValue[r.Value]
	impossible := func(clause Clause, detail string) {
		c.report(Violation{Clause: clause, Read: r, Write: w, detail: detail})
	}
	switch {
	case w == nil:
		impossible(Integrity, "nobody wrote this value to the key")
	case w.Called >= r.Returned:
		impossible(Integrity, "the write had not been called when the read returned")
	case sameTx(r, w):
		// What a transaction sees of its own is settled when it ends.
	case c.fateOf(w) == undone:
		impossible(Integrity, "the write never took effect")
	case w.Tx != 0 && c.txs[w.Tx].end != nil && c.txs[w.Tx].end.Called >= r.Returned:
		impossible(Integrity, "the transaction of the write had not been told to commit when the read returned")
	case c.version(w) != 0 && c.version(w) != r.Version:
		impossible(AtMostOnce, "the write shows under two versions, as if it had been executed twice")
	default:
		if other, taken := c.values[r.Version]; taken && other != 0 && other != r.Value {
			impossible(Integrity, "the version belongs to another write")
			return
		}
		c.values[r.Version] = r.Value
	}
}

// dense compares how many versions a key has gone through with the writes that
// may have made them.
func (c *checker) dense(events []*Event) {
	var highest, known, doubtful int64
	var last *Event
	counted := make(map[int64]bool)
	for _, e := range events {
		v := e.Version
		if e.Kind != Read {
			v = c.version(e)
			switch f := c.fateOf(e); {
			case f == undone:
				continue
			case f == undecided || v == 0:
				doubtful++
				continue
			case !counted[v]:
				counted[v] = true
				known++
			}
		} else if e.Outcome != Acked || e.Tx != 0 { // a transaction may show what is then rolled back
			continue
		}
		if v > highest {
			highest, last = v, e
		}
	}
	if highest <= known+doubtful {
		return
	}
	v := Violation{Clause: AtMostOnce, counts: [3]int64{highest, known, doubtful}}
	if last.Kind == Read {
		v.Read = last
	} else {
		v.Write = last
	}
	c.report(v)
}
