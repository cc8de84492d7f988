package dialect

import (
	"context"
	"database/sql/driver"
	"strconv"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/position"
)

// postgresIdentity is the identity query's text, for PostgreSQL 10 and later.
//
// Names are qualified, for a search_path may put other functions in front.
// Whether the server is in recovery is asked once, in a subquery that is not
// pulled up because its function is volatile: a promotion in between turns it
// from true to false only, and the functions for a standby still answer then.
// Those for a primary fail on a standby, so CASE keeps them from being called.
// The control file functions need no privilege; what the WAL receiver tells is
// NULL without pg_read_all_stats, and is asked of the function because a new
// session takes 0.4 ms to learn the view pg_stat_wal_receiver. The start time is
// written in UTC, for sessions differ in TimeZone and DateStyle. With the insert
// LSN come the sizes that it takes to read it.
const postgresIdentity = `SELECT r.standby::pg_catalog.text,
	s.system_identifier::pg_catalog.text,
	CASE WHEN r.standby THEN NULL ELSE pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8) END,
	(SELECT w.received_tli FROM pg_catalog.pg_stat_get_wal_receiver() w)::pg_catalog.text,
	c.timeline_id::pg_catalog.text,
	CASE WHEN r.aurora THEN 'aurora' WHEN r.standby THEN NULL ELSE pg_catalog.pg_current_wal_flush_lsn()::pg_catalog.text END,
	CASE WHEN r.standby OR r.aurora THEN NULL ELSE pg_catalog.concat_ws(' ', pg_catalog.pg_current_wal_insert_lsn()::pg_catalog.text,
		pg_catalog.current_setting('wal_block_size'), pg_catalog.current_setting('wal_segment_size'),
		pg_catalog.current_setting('wal_writer_delay')) END,
	CASE WHEN r.standby AND NOT r.aurora THEN pg_catalog.pg_last_wal_replay_lsn()::pg_catalog.text END,
	` + postgresSession + `
FROM (SELECT pg_catalog.pg_is_in_recovery() AS standby, ` + postgresAurora + ` AS aurora) r,
	pg_catalog.pg_control_system() s, pg_catalog.pg_control_checkpoint() c`

// postgresAurora recognises Aurora, some versions of which answer all the
// functions, with positions that are not a replica's. Not all versions have
// aurora_version() in the catalog; the extensions that the service offers tell in
// any case.
const postgresAurora = `(pg_catalog.to_regproc('pg_catalog.aurora_version') IS NOT NULL
	OR COALESCE(pg_catalog.current_setting('rds.extensions', true), '') LIKE '%aurora_stat_utils%')`

// postgresMinimal asks a server that has not all of these functions, or does not
// let everybody call them (Aurora, forks), the rest.
const postgresMinimal = `SELECT r.standby::pg_catalog.text, NULL, NULL, NULL, NULL, CASE WHEN r.aurora THEN 'aurora' END, NULL, NULL,
	` + postgresSession + `
FROM (SELECT pg_catalog.pg_is_in_recovery() AS standby, ` + postgresAurora + ` AS aurora) r`

const postgresSession = `pg_catalog.to_char(pg_catalog.timezone('UTC', pg_catalog.pg_postmaster_start_time()), 'YYYYMMDDHH24MISSUS'),
	pg_catalog.current_setting('port'),
	pg_catalog.pg_backend_pid()::pg_catalog.text,
	pg_catalog.current_setting('server_version'),
	pg_catalog.current_setting('server_version_num'),
	pg_catalog.current_setting('default_transaction_isolation'),
	pg_catalog.current_setting('synchronous_commit'),
	pg_catalog.current_setting('default_transaction_read_only')`

const postgresColumns = 16

func identifyPostgres(ctx context.Context, conn driver.Conn) (Identity, error) {
	row, err := queryRow(ctx, conn, postgresIdentity, postgresColumns)
	refused := ""
	if class, known := postgresCode(err); known && class == Missing {
		refused = err.Error()
		row, err = queryRow(ctx, conn, postgresMinimal, postgresColumns)
	}
	if err != nil {
		return Identity{}, err
	}
	return scanPostgres(row, refused), nil
}

// scanPostgres reads the columns of an identity query. refused is why the larger
// one was, "" if it was not.
func scanPostgres(row []cell, refused string) Identity {
	id := Identity{
		Flavor:       classify.Postgres,
		ReadOnly:     row[0].on(),
		Cluster:      row[1].text,
		Server:       row[1].text + "/" + row[8].text + "/" + row[9].text,
		BackendPID:   row[10].integer(),
		Version:      row[11].text,
		VersionNum:   int(row[12].integer()),
		Serializable: row[13].text == "serializable",
		AsyncCommit:  row[14].text == "off",
		Fenced:       row[15].on(),
	}
	timeline, exact := postgresTimeline(row[2], row[3], row[4])
	if id.Cluster != "" && timeline > 0 {
		id.Lineage = id.Cluster + "/" + strconv.FormatInt(timeline, 10)
		id.LineageExact = exact
	}
	written, inserted, applied := row[5], row[6], row[7]
	switch {
	case written.text == "aurora":
		return id.without(noAurora)
	case refused != "":
		return id.without("control functions not callable (" + refused + "): GRANT EXECUTE ON FUNCTION pg_control_system(), " +
			"pg_control_checkpoint() to the user, and the same for any other function that the message names")
	case id.ReadOnly:
		return id.standby(applied)
	}
	return id.primary(written, inserted)
}

// standby fills in the position of a server in recovery.
func (id Identity) standby(applied cell) Identity {
	id.noWritten = "the server is in recovery"
	var err error
	if id.Applied, err = position.ParseLSN(applied.text); err != nil {
		return id.without("pg_last_wal_replay_lsn: " + err.Error())
	}
	return id
}

// primary fills in the positions of a server that is not in recovery. The replay
// LSN of a standby that was promoted stays what it was, and is not read.
func (id Identity) primary(written, inserted cell) Identity {
	id.noApplied = "the server is not in recovery: no physical standby, but a primary or a subscriber of logical replication"
	var err error
	if id.Written, err = position.ParseLSN(written.text); err != nil {
		return id.without("pg_current_wal_flush_lsn: " + err.Error())
	}
	lsn, sizes, _ := strings.Cut(inserted.text, " ")
	block, sizes, _ := strings.Cut(sizes, " ")
	segment, delay, _ := strings.Cut(sizes, " ")
	id.Settles = walWriterDelays * postgresDuration(delay)
	if id.Inserted, err = position.InsertLSN(lsn, postgresBytes(block), postgresBytes(segment)); err != nil {
		return id.without("pg_current_wal_insert_lsn: " + err.Error())
	}
	return id
}

// walWriterDelays is how many times wal_writer_delay an asynchronous commit takes
// at most to become durable ("Asynchronous Commit" in the manual's chapter on
// reliability and the write-ahead log).
const walWriterDelays = 3

// postgresDuration reads a time in a setting's notation, "200ms" or "10s"; 0 if it
// cannot. The unit "min" is the only one that Go does not share.
func postgresDuration(s string) time.Duration {
	d, err := time.ParseDuration(strings.TrimSuffix(s, "in"))
	if err != nil {
		return 0
	}
	return d
}

// postgresBytes reads a size in a setting's notation, "8192" or "16MB", in bytes;
// 0 if it cannot (utils/misc/guc.c, memory_unit_conversion_table).
func postgresBytes(s string) uint64 {
	digits := strings.TrimRight(s, "kMGTB")
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0
	}
	switch s[len(digits):] {
	case "", "B":
		return n
	case "kB":
		return n << 10
	case "MB":
		return n << 20
	case "GB":
		return n << 30
	}
	return 0
}

// postgresTimeline chooses among the sources: the name of the WAL file that a
// primary writes to (hexadecimal), what a standby's receiver is receiving, the
// control file. It is 0 if there is none.
func postgresTimeline(file, received, control cell) (timeline int64, exact bool) {
	if !file.null {
		if n, err := strconv.ParseUint(file.text, 16, 32); err == nil {
			return int64(n), true
		}
	}
	if n := received.integer(); n > 0 {
		return n, true
	}
	return control.integer(), false
}
