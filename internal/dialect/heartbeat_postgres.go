package dialect

import (
	"context"
	"database/sql/driver"
)

var postgresBeats = &beats{
	quote: `"`,
	most:  63, // NAMEDATALEN-1; a longer one would be cut
	ddl: []string{
		`CREATE TABLE IF NOT EXISTS @table@ (id smallint PRIMARY KEY CHECK (id = 1), epoch bigint NOT NULL, counter bigint NOT NULL)`,
		`INSERT INTO @table@ (id, epoch, counter) VALUES (1, @epoch@, 0) ON CONFLICT (id) DO NOTHING`,
	},
	update:  `UPDATE @table@ SET counter = counter + 1 WHERE id = 1 RETURNING epoch, counter, true`,
	read:    `SELECT epoch, counter, true FROM @table@ WHERE id = 1`,
	inOrder: inOrderPostgres,
}

// inOrderPostgres: a standby replays the log. A subscription applies transactions
// in the order of their commits, also those that it streams to several workers,
// but two subscriptions do not wait for each other, nor for a table that is still
// being copied. pg_subscription lets everybody read these columns.
func inOrderPostgres(ctx context.Context, conn driver.Conn) (ok bool, why string, err error) {
	row, err := queryRow(ctx, conn, `SELECT pg_catalog.pg_is_in_recovery()::pg_catalog.text,
	(SELECT pg_catalog.count(*) FROM pg_catalog.pg_subscription s JOIN pg_catalog.pg_database d ON d.oid = s.subdbid
		WHERE s.subenabled AND d.datname = pg_catalog.current_database())::pg_catalog.text,
	(SELECT pg_catalog.count(*) FROM pg_catalog.pg_subscription_rel WHERE srsubstate <> 'r')::pg_catalog.text`, 3)
	if class, known := postgresCode(err); known && class == Missing {
		return false, "the server does not tell whether it has one subscription", nil
	}
	if err != nil {
		return false, "", err
	}
	switch {
	case row[0].on():
		return true, "", nil
	case row[1].text == "0":
		return false, "the server is neither in recovery nor has it an enabled subscription in this database", nil
	case row[1].text != "1":
		return false, "the database has several subscriptions, which do not wait for each other: make them one", nil
	case row[2].text != "0":
		return false, "the subscription is still copying tables", nil
	}
	return true, "", nil
}
