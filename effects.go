package replicated

import (
	"slices"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

// This file keeps account of what statements have done to a Conn's primary
// connection, and for whom.

// heldEffects are what keeps a Conn pinned for as long as its primary connection
// lives: a read must never run with more rights, or for another tenant, than it
// would without us.
const heldEffects = classify.PinsRole | classify.PinsAuth | classify.PinsCustom

// ran takes note of what a statement has done to the primary connection. It has
// returned, with or without an error: either way it may have had its effect.
func (c *Conn) ran(v *classify.Verdict, w *wishes, t *touch, err error) {
	c.doubt(err, v.Effect&classify.OpensTx != 0)
	// A function that is not known may set what policies depend on (set_tenant(5)).
	if v.Effect&(classify.Pins|classify.TempObject) != 0 || v.Class == classify.Unknown && v.Effect != 0 {
		c.pinned = true
	}
	c.hold(v, err)
	if v.Vars != 0 {
		known := dialect.For(c.cluster.dialect()).Replays()
		c.vars |= v.Vars & known
		c.unread = c.unread || v.Vars&known != 0
		c.pinned = c.pinned || v.Vars&^known != 0
	}
	if c.primary != nil && (v.Keyword == "DISCARD" || v.Keyword == "DEALLOCATE") {
		c.primary.closeAllStmts() // gone on the server, all or some: prepared again when needed
	}
	c.trackText(v, err)
	if v.Effect&classify.Stamps != 0 && v.Class != classify.Transaction {
		c.wrote(w, t)
	}
	c.settle(v, w, err)
}

// hold keeps account of roles and custom settings. Alone, a SET that has failed has
// set nothing. A RESET counts only where it can't be undone: inside a transaction,
// or in a text that may hold one, a rollback would bring back what it has reset.
func (c *Conn) hold(v *classify.Verdict, err error) {
	alone := v.Class != classify.Multi
	if err == nil || !alone {
		c.held |= v.Effect & heldEffects
	}
	if err != nil || !alone || c.inTx() {
		return
	}
	if v.Effect&classify.UnpinsRole != 0 {
		c.held &^= classify.PinsRole
	}
	if v.Effect&classify.UnpinsAuth != 0 {
		c.held &^= classify.PinsAuth
	}
	if v.Effect&classify.UnpinsCustom != 0 {
		c.held &^= classify.PinsCustom
	}
}

// wrote raises the floors for a statement that may have written to what t touches,
// and remembers for whom the transaction that it stands in has to raise them again.
func (c *Conn) wrote(w *wishes, t *touch) {
	if w.untracked {
		c.untracked = c.untracked || c.inTx()
		return
	}
	c.raise(w.session, t)
	if !c.inTx() {
		return
	}
	if c.dirty {
		t = t.and(c.dirtied)
	}
	c.dirty, c.dirtied = true, t
	if !slices.Contains(c.writers, w.session) {
		c.writers = append(c.writers, w.session)
	}
}

// raise raises the floors for a write that was made for a session.
func (c *Conn) raise(s *Session, t *touch) {
	c.written.raise(c.cluster.floors.raise(s, c.async(), t), t)
	c.cluster.sampler.wrote()
}

// settle raises the floors again when a transaction that has written is over, or
// may be: where the next one begins at once (COMMIT AND CHAIN, a second BEGIN on
// MySQL, all without autocommit), that one is over does not show. Transaction
// control that stands for itself (COMMIT PREPARED, XA COMMIT) may publish what
// another connection wrote.
func (c *Conn) settle(v *classify.Verdict, w *wishes, err error) {
	over := c.broken || !c.inTx() // what a lost connection ran last may have ended it
	c.untracked = c.untracked && !over
	switch ends := v.Effect & (classify.EndsTx | classify.OpensTx); {
	case !c.dirty || !over && ends == 0:
	case over, err == nil && v.Class == classify.Transaction && ends&classify.EndsTx != 0:
		c.ended(w.session)
		return
	default:
		c.published(w.session)
	}
	released := over && v.Keyword == "RELEASE" // SQLite's ends what SAVEPOINT has begun
	if v.Class == classify.Transaction && (v.Effect&classify.Stamps != 0 || released) && !w.untracked {
		c.raise(w.session, nil)
	}
}

// ended is published, for a transaction that is over.
func (c *Conn) ended(by *Session) {
	c.published(by)
	c.dirty, c.dirtied, c.writers = false, nil, nil
}

// forgetTx forgets what an open transaction has run, where there is none any more and
// nothing has become of it that was not published.
func (c *Conn) forgetTx() {
	c.dirty, c.untracked, c.dirtied, c.writers = false, false, nil, nil
	c.definesNoMore()
}

// published raises the floors of all who wrote in the transaction that may be over,
// and of the session that ended it.
func (c *Conn) published(by *Session) {
	for _, s := range c.writers {
		c.raise(s, c.dirtied)
	}
	if !slices.Contains(c.writers, by) {
		c.raise(by, c.dirtied)
	}
}
