package classify

import "github.com/sqlreplicated/replicated/internal/lex"

const (
	reasonLocal   = "its answer belongs to one server"
	reasonSession = "its answer belongs to the session"

	// InnoDB gives a subquery of a SHOW no consistent read but shared row locks,
	// which a read-only replica grants (seen on MySQL 5.6 and MariaDB 10.11).
	reasonShowLocks = "a subquery in SHOW locks what it reads"
)

// show takes MySQL's SHOW: metadata is replicated, most of the rest belongs to one
// server, and some to the statement before.
func (w *walker) show(ru *rule) result {
	w.next()
	for {
		switch w.kw {
		case lex.KwFull, lex.KwExtended, lex.KwGlobal, lex.KwSession, lex.KwLocal, lex.KwAll:
			w.next()
			continue
		}
		break
	}
	kw := w.kw
	_, second := w.peek()
	w.selects = false
	w.body(0)
	if w.selects {
		return result{class: Lock, effect: Silent, reason: reasonShowLocks}
	}
	w.facts &^= factUserVar // the @ of account names
	switch kw {
	case lex.KwTables, lex.KwColumns, lex.KwFields, lex.KwIndex, lex.KwIndexes, lex.KwKeys,
		lex.KwCreate, lex.KwDatabases, lex.KwSchemas, lex.KwTriggers, lex.KwGrants, lex.KwEvents,
		lex.KwCharacter, lex.KwCharset, lex.KwCollation, lex.KwPrivileges:
		return metadata(w.facts)
	case lex.KwTable, lex.KwProcedure, lex.KwFunction, lex.KwPackage,
		lex.KwReplica, lex.KwSlave, lex.KwSlaves:
		if second == lex.KwStatus || second == lex.NoKeyword && kw == lex.KwPackage {
			return metadata(w.facts)
		}
	case lex.KwWarnings, lex.KwErrors, lex.KwCount, lex.KwProfile, lex.KwProfiles:
		return result{class: Session, reason: reasonSession}
	}
	return w.fixed(ru)
}

// metadata is a SHOW of replicated metadata, unless its condition calls something.
func metadata(f fact) result {
	r := query(f)
	if r.proven() {
		r.class = Show
	}
	return r
}
