package status

// form says how a driver's number is to be understood.
type form uint8

const (
	none          form = iota // there is no number
	readyForQuery             // PostgreSQL
	serverStatus              // MySQL
)

// fromPostgres decodes the byte of ReadyForQuery (PostgreSQL documentation,
// "Message Formats").
func fromPostgres(b byte) Status {
	switch b {
	case 'I':
		return Status{Tx: Idle}
	case 'T':
		return Status{Tx: Active}
	case 'E':
		return Status{Tx: Failed}
	}
	return Status{} // before the first answer; pgx also has 'A' while it reads one
}

// Server status flags (MySQL Source Code Documentation, "SERVER_STATUS_flags_enum";
// MariaDB has the same ones).
const (
	serverStatusInTrans         = 1 << 0
	serverStatusAutocommit      = 1 << 1
	serverStatusInTransReadonly = 1 << 13 // MySQL ≥ 5.6 and MariaDB, along with InTrans
)

// fromMySQL decodes the flags of an OK or EOF packet.
func fromMySQL(flags uint16) Status {
	s := Status{Tx: Idle, AutocommitOff: flags&serverStatusAutocommit == 0}
	if s.AutocommitOff || flags&(serverStatusInTrans|serverStatusInTransReadonly) != 0 {
		s.Tx = Active
	}
	return s
}
