package position_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/position"
	"github.com/sqlreplicated/replicated/replicatedtest"
)

// TestPostgresComparesLSNsAlike asks the server to compare.
func TestPostgresComparesLSNsAlike(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	ctx, conn := session(t, cluster.Primary().DB(t))

	rnd := rand.New(rand.NewPCG(6, 6))
	number := func() uint64 {
		n := rnd.Uint64() >> rnd.IntN(64)
		if rnd.IntN(4) == 0 {
			n = []uint64{0, 1, 1<<32 - 1, 1 << 32, 1<<64 - 1}[rnd.IntN(5)]
		}
		return n
	}
	type pair struct{ p, q position.Position }
	var pairs []pair
	var values []string
	for range 2000 {
		a, b := number(), number()
		if rnd.IntN(4) == 0 {
			b = a + uint64(rnd.IntN(3)) - 1
		}
		pairs = append(pairs, pair{position.FromLSN(a), position.FromLSN(b)})
		values = append(values, fmt.Sprintf("(%d, '%v'::pg_lsn, '%v'::pg_lsn)", len(values), position.FromLSN(a), position.FromLSN(b)))
	}
	rows, err := conn.QueryContext(ctx, "SELECT n, p::text, q::text, p >= q, p > q, sign(pg_wal_lsn_diff(p, q)) FROM (VALUES "+strings.Join(values, ", ")+") AS v(n, p, q)")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	count := 0
	for ; rows.Next(); count++ {
		var i, sign int
		var p, q string
		var reached, after bool
		if err := rows.Scan(&i, &p, &q, &reached, &after, &sign); err != nil {
			t.Fatal(err)
		}
		ours := pairs[i]
		if !lsn(p).Equal(ours.p) || !lsn(q).Equal(ours.q) || ours.p.String() != p || ours.q.String() != q {
			t.Errorf("the server prints %s and %s for %v and %v", p, q, ours.p, ours.q)
		}
		if reached != (sign >= 0) || after != (sign > 0) {
			t.Fatalf("the server contradicts itself on %s and %s", p, q)
		}
		empty := ours.p.IsEmpty() || ours.q.IsEmpty()
		if got := ours.p.Contains(ours.q); got != (reached && !empty) {
			t.Errorf("%s contains %s: %t, the server says %t", p, q, got, reached)
		}
		if got := ours.p.Exceeds(ours.q); got != (after && !empty) {
			t.Errorf("%s exceeds %s: %t, the server says %t", p, q, got, after)
		}
	}
	if err := rows.Err(); err != nil || count != len(pairs) {
		t.Errorf("%d of %d pairs: %v", count, len(pairs), err)
	}
}

func TestPostgresReadsLSNsAlike(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	ctx, conn := session(t, cluster.Primary().DB(t))
	for _, text := range []string{
		"0/0", "16/B374D848", "16/b374d848", "FFFFFFFF/FFFFFFFF", "00000016/00000001", "100000000/0", "0/100000000", "", "/", "0", "0/", "/0",
		"0/0/0", "-1/0", "+1/0", "0x1/0", "G/0", "0/0x", " 0/0", "0/0 ",
	} {
		var theirs string
		err := conn.QueryRowContext(ctx, "SELECT $1::text::pg_lsn::text", text).Scan(&theirs)
		ours, ourErr := position.ParseLSN(text)
		if (err == nil) != (ourErr == nil) || err == nil && !lsn(theirs).Equal(ours) {
			t.Errorf("%q is %v, %v; the server reads %s, %v", text, ours, ourErr, theirs, err)
		}
	}
}

// TestPostgresReplicaReachesInsertLSN writes records that end exactly with a page
// and with a segment, and sees where the standby comes to stand.
func TestPostgresReplicaReachesInsertLSN(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{
		Replicas:       1,
		NoStatementLog: true,
		Settings: map[string]string{
			"autovacuum":         "off", // nothing writes but the test
			"checkpoint_timeout": "1h",
			"wal_writer_delay":   "5ms",
		},
	})
	ctx, primary := session(t, cluster.Primary().AdminDB(t))
	_, standby := session(t, cluster.Replicas()[0].DB(t))
	var block, segment uint64
	ask(t, ctx, primary, "SELECT current_setting('wal_block_size')::bigint, pg_size_bytes(current_setting('wal_segment_size'))", &block, &segment)

	raw := func() position.Position {
		var text string
		ask(t, ctx, primary, "SELECT pg_current_wal_insert_lsn()", &text)
		return lsn(text)
	}
	replayed := func() position.Position {
		var text string
		ask(t, ctx, standby, "SELECT pg_last_wal_replay_lsn()", &text)
		return lsn(text)
	}
	emit := func(size uint64) {
		run(t, ctx, primary, fmt.Sprintf("SELECT pg_logical_emit_message(false, 'position', repeat('x', %d))", size))
	}
	// overhead is what a message takes beyond its text, if that is a multiple of 8.
	const long = 1000
	var overhead uint64
	for overhead == 0 || overhead > 200 { // else the record went over a page's end
		before := raw()
		emit(long)
		overhead = raw().LSN() - before.LSN() - long
	}

	var pages, segments int
	for round := 0; round < 120 && (pages < 40 || segments < 4); round++ {
		if segments < 4 && round%10 == 0 {
			emit(long)
			run(t, ctx, primary, "SELECT pg_switch_wal()")
		} else {
			for {
				left := block - raw().LSN()%block
				if size := left - overhead; left > overhead+256 && left < overhead+7*block/8 && size%8 == 0 {
					emit(size)
					break
				}
				emit(long)
			}
		}
		uncorrected := raw()
		want, err := position.InsertLSN(uncorrected.String(), block, segment)
		if err != nil {
			t.Fatal(err)
		}
		if want.Equal(uncorrected) {
			continue // something else was written in between
		}
		p := await(t, ctx, want, replayed)
		if !raw().Equal(uncorrected) {
			continue // likewise
		}
		if !p.Equal(want) || !p.Contains(want) || p.Contains(uncorrected) || p.Exceeds(want) {
			t.Fatalf("the standby is at %v, the primary at %v, which is corrected to %v", p, uncorrected, want)
		}
		if want.LSN()%segment == 0 {
			segments++
		} else {
			pages++
		}
	}
	if pages < 20 || segments < 2 {
		t.Errorf("only %d page ends and %d segment ends were seen", pages, segments)
	}
	t.Logf("%d page ends, %d segment ends", pages, segments)
}

// TestPostgresReplicaContainsWhatItShows compares positions with what a reader
// sees, while the primary is written to.
func TestPostgresReplicaContainsWhatItShows(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	ctx, conn := session(t, cluster.Primary().AdminDB(t))
	run(t, ctx, conn, "CREATE TABLE counter (n bigint)", "INSERT INTO counter VALUES (0)")
	var block, segment uint64
	ask(t, ctx, conn, "SELECT current_setting('wal_block_size')::bigint, pg_size_bytes(current_setting('wal_segment_size'))", &block, &segment)
	watch(t, cluster, watched{
		write: "UPDATE counter SET n = n + 1 RETURNING n",
		primary: func(ctx context.Context, conn *sql.Conn) (position.Position, error) {
			var text string
			if err := conn.QueryRowContext(ctx, "SELECT pg_current_wal_insert_lsn()").Scan(&text); err != nil {
				return position.Position{}, err
			}
			return position.InsertLSN(text, block, segment)
		},
		replica: func(ctx context.Context, conn *sql.Conn) (position.Position, error) {
			var text string
			if err := conn.QueryRowContext(ctx, "SELECT pg_last_wal_replay_lsn()").Scan(&text); err != nil {
				return position.Position{}, err
			}
			return position.ParseLSN(text)
		},
	})
}
