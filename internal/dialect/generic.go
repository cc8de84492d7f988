package dialect

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// generic is what holds for a database that is not known: nothing is asked of
// it, nothing set, and its errors are understood only as far as they are the
// drivers' and the network's, or carry the codes of a database that is known.
var generic = Dialect{
	Kind: classify.Generic,
	identify: func(context.Context, driver.Conn) (Identity, error) {
		return Identity{}.without("nothing is known of this database's replication"), nil
	},
	fence: func(context.Context, driver.Conn, Identity) error { return nil },
	apply: func(context.Context, driver.Conn, []assignment) error {
		return errors.ErrUnsupported
	},
	codes: func(err error) (ErrorClass, bool) {
		if c, ok := postgresCode(err); ok {
			return c, true
		}
		return mysqlCode(classify.Generic, err)
	},
}
