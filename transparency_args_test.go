package replicated_test

import (
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/lib/pq"

	"github.com/sqlreplicated/replicated/replicatedtest"
)

type (
	namedInt    int
	namedString string
	namedBytes  []byte
	valuer      struct{ v any }
	failing     struct{}
	pointed     struct{ s string }
)

func (v valuer) Value() (driver.Value, error) { return v.v, nil }

func (failing) Value() (driver.Value, error) { return nil, errors.New("no value today") }

func (p *pointed) Value() (driver.Value, error) {
	if p == nil {
		return "nil receiver", nil
	}
	return p.s, nil
}

func pointerTo[T any](v T) *T { return &v }

// arguments are values of all kinds that callers hand to database/sql, fit or not.
func arguments() []any {
	at := time.Date(2024, 2, 29, 12, 34, 56, 789012345, time.FixedZone("", 2*60*60))
	return []any{
		nil, 1, int8(-1), int16(2), int32(3), int64(math.MinInt64), uint(4), uint8(5), uint16(6), uint32(math.MaxUint32),
		uint64(7), uint64(math.MaxInt64), uint64(math.MaxInt64 + 1), uint64(math.MaxUint64),
		float32(1.5), 0.1, math.MaxFloat64, true, false, "", "text", "grüß 😀 ' \" \\ % _", "a\x00b", "\xff\xfe",
		[]byte(nil), []byte{}, []byte("bytes"), []byte{0, 0xff, '\'', '\\'}, json.RawMessage(`{"a": 1}`), json.RawMessage(nil), sql.RawBytes("raw"),
		at, time.Time{}, at.UTC(), time.Second,
		sql.NullString{}, sql.NullString{String: "s", Valid: true}, sql.NullInt64{Int64: 8, Valid: true}, sql.NullTime{Time: at, Valid: true},
		sql.Null[uint64]{V: math.MaxUint64, Valid: true}, sql.Null[string]{},
		(*int)(nil), (*string)(nil), (*time.Time)(nil), (*uint64)(nil), (*[]byte)(nil), pointerTo(9), pointerTo("pointer"), pointerTo(uint64(math.MaxUint64)), pointerTo(pointerTo(10)),
		namedInt(11), namedString("named"), namedBytes("named"),
		valuer{nil}, valuer{int64(12)}, valuer{"valuer"}, valuer{uint64(math.MaxUint64)}, valuer{13}, valuer{struct{}{}}, (*valuer)(nil), &valuer{"pointed"},
		failing{}, (*pointed)(nil), &pointed{"p"}, pointed{"p"},
		sql.Named("n", 14), sql.Named("", 15), sql.Named("n", uint64(math.MaxUint64)), sql.Named("n", failing{}), sql.Out{Dest: new(int)},
		struct{}{}, map[string]int{}, make(chan int), func() {}, complex(1, 1), [2]int{1, 2}, []any{1}, []int64{1, 2}, []string{"a", "b"}, []int64(nil), [][]int64{{1}, {2}},
		[]float64{1.5}, []bool{true}, [][]byte{{1}}, []*string{nil, pointerTo("x")},
		pq.Array([]int64{1, 2}), pq.Array([]string{`a"b`, "c,d"}), pq.Array([]sql.NullInt64{{}, {Int64: 1, Valid: true}}), pq.StringArray{"x"}, pq.Int64Array(nil),
	}
}

// An argument is converted as the bare driver would, by the connection, by the
// statement, and in a transaction, with its error if it has one.
func TestTransparencyArguments(t *testing.T) {
	play := func(s *script) {
		text := "SELECT ?"
		if s.c.Engine() == replicatedtest.Postgres {
			text = "SELECT $1::text"
		}
		stmt, err := s.db.PrepareContext(s.ctx(), text)
		s.must(err)
		defer stmt.Close()
		for _, arg := range arguments() {
			s.note("%T", arg)
			s.query(s.db, text, arg)
			s.rows(stmt.QueryContext(s.ctx(), arg))
		}
		tx, err := s.db.BeginTx(s.ctx(), nil)
		s.must(err)
		for _, arg := range []any{1, uint64(math.MaxUint64), sql.Named("n", 1), struct{}{}, "x"} {
			s.query(tx, text, arg)
			s.rows(tx.StmtContext(s.ctx(), stmt).QueryContext(s.ctx(), arg))
		}
		s.fail("commit", tx.Commit())
	}
	postgresAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		for _, keys := range [][]string{nil, {"binary_parameters=yes"}} {
			t.Run(fmt.Sprint(keys), func(t *testing.T) { transparent(t, c, nil, play, keys...) })
		}
	})
	mysqlAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		for _, keys := range [][]string{nil, {"parseTime=true", "timeTruncate=1s", "interpolateParams=true"}} {
			t.Run(fmt.Sprint(keys), func(t *testing.T) { transparent(t, c, nil, play, keys...) })
		}
	})
}

func TestTransparencyArgumentCounts(t *testing.T) {
	eachShared(t, func(t *testing.T, c *replicatedtest.Cluster) {
		play := func(s *script) {
			e := s.c.Engine()
			read := "SELECT name FROM transparent WHERE id = " + placeholder(e, 1) + " AND name = " + placeholder(e, 2)
			write := "INSERT INTO transparent (name, n) VALUES (" + placeholder(e, 1) + ", " + placeholder(e, 2) + ")"
			reading, err := s.db.PrepareContext(s.ctx(), read)
			s.must(err)
			writing, err := s.db.PrepareContext(s.ctx(), write)
			s.must(err)
			for _, args := range [][]any{nil, {1}, {1, "one", 3}, {1, "one"}, {"a", failing{}}} {
				s.query(s.db, read, args...)
				s.rows(reading.QueryContext(s.ctx(), args...))
			}
			for _, args := range [][]any{nil, {"a"}, {"b", 1, 2}, {"c", 3}, {"d", failing{}}} {
				s.exec(s.db, write, args...)
				s.result(writing.ExecContext(s.ctx(), args...))
			}
			s.exec(s.db, "DELETE FROM transparent WHERE name = 'c'", 1)
			s.query(s.db, "SELECT 1", 1)
			s.fail("close", reading.Close())
			s.fail("close", writing.Close())
			s.query(s.db, "SELECT id, name, n FROM transparent ORDER BY id")
		}
		keys := "interpolateParams=true"
		if c.Engine() == replicatedtest.Postgres {
			keys = "binary_parameters=yes"
		}
		t.Run("plain", func(t *testing.T) { transparent(t, c, plain(c.Engine()), play) })
		t.Run(keys, func(t *testing.T) { transparent(t, c, plain(c.Engine()), play, keys) })
	})
}

func TestTransparencyPostgresArrays(t *testing.T) {
	postgresAlone(t, func(t *testing.T, c *replicatedtest.Cluster) {
		setup := append(plain(c.Engine()),
			"DROP TABLE IF EXISTS transparent_arrays",
			"CREATE TABLE transparent_arrays (id int, i bigint[], s text[], b bytea[], f double precision[])")
		play := func(s *script) {
			insert := "INSERT INTO transparent_arrays VALUES ($1, $2, $3, $4, $5)"
			s.exec(s.db, insert, 1, []int64{1, -2}, []string{"a", `"b\`, ""}, [][]byte{{0, 1}, nil}, []float64{1.5, math.Inf(1)})
			s.exec(s.db, insert, 2, pq.Array([]int64{}), pq.Array([]string(nil)), pq.ByteaArray{{1}}, pq.Float64Array{2})
			s.exec(s.db, insert, 3, nil, pq.Array([]sql.NullString{{}, {String: "x", Valid: true}}), nil, []float32{0.5})
			stmt, err := s.db.PrepareContext(s.ctx(), insert)
			s.must(err)
			s.result(stmt.ExecContext(s.ctx(), 4, []int64{4}, pq.StringArray{"four"}, pq.Array([][]byte{{4}}), pq.GenericArray{A: []float64{4}}))
			s.fail("close", stmt.Close())
			s.query(s.db, "SELECT * FROM transparent_arrays ORDER BY id")
			s.query(s.db, "SELECT name FROM transparent WHERE id = ANY($1) ORDER BY id", []int64{1, 3})
			s.query(s.db, "SELECT name FROM transparent WHERE name = ANY($1) ORDER BY id", pq.Array([]string{"two"}))
			s.scan(s.db.QueryRowContext(s.ctx(), "SELECT i, s, f FROM transparent_arrays WHERE id = $1", 1),
				pq.Array(new([]int64)), pq.Array(new([]string)), new(pq.Float64Array))
			s.scan(s.db.QueryRowContext(s.ctx(), "SELECT s FROM transparent_arrays WHERE id = 3"), pq.Array(new([]string)))
		}
		for _, keys := range [][]string{nil, {"binary_parameters=yes"}} {
			t.Run(fmt.Sprint(keys), func(t *testing.T) { transparent(t, c, setup, play, keys...) })
		}
	})
}
