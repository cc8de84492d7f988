package dialect

import (
	"context"
	"database/sql/driver"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// Relations reads what the database does by itself when a relation is read or
// written, with what the connection's user may see; what that user may not see
// counts as everything. It takes a few queries, which take no lock on a relation
// of the user's and need no privilege, but are no single snapshot.
func (d *Dialect) Relations(ctx context.Context, conn driver.Conn) (*classify.SchemaRows, error) {
	if d.relations == nil {
		return nil, ErrNoCatalog
	}
	r := relationsReader{catalogReader: catalogReader{ctx: ctx, conn: conn}, into: new(classify.SchemaRows)}
	if err := d.relations(&r); err != nil {
		return nil, err
	}
	return r.into, nil
}

// relationsReader is a catalogReader that gathers relations.
type relationsReader struct {
	catalogReader
	into *classify.SchemaRows
}

func schemaName(row []cell) classify.SchemaName {
	return classify.SchemaName{Schema: row[0].text, Name: row[1].text}
}
