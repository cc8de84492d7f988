package replicatedtest

// Internals that can be tested without a server.
var (
	Cached            = cached
	CountTransactions = countTransactions
	LastTransactions  = lastTransactions
)

// NewPostgresLog and NewMySQLLog return the function that takes a log file in
// pieces.
func NewPostgresLog() func([]byte, []Statement) []Statement { return (&pgLog{}).add }
func NewMySQLLog() func([]byte, []Statement) []Statement    { return (&mysqlLog{}).add }

// LeasePort returns a port and what gives it back.
func LeasePort() (int, func(), error) {
	p, err := leasePort()
	if err != nil {
		return 0, nil, err
	}
	return p.number, p.release, nil
}
