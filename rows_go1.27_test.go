//go:build go1.27

package replicated

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/sqlreplicated/replicated/internal/fakedb"
)

// database/sql decides by the presence of RowsColumnScanner, so the wrapper has
// it exactly where the node's Rows do.
func TestColumnScannerIsWhereTheNodeHasIt(t *testing.T) {
	for _, shape := range fakedb.Shapes() {
		for _, wrap := range []func(driver.Rows) (driver.Rows, error){lazily(nil, nil), eagerly(nil, nil)} {
			_, want := queryFake(t, fakedb.New("node"), shape, nil).(driver.RowsColumnScanner)
			_, got := queryFake(t, fakedb.New("node"), shape, wrap).(driver.RowsColumnScanner)
			if got != want || want != (shape == fakedb.PgxLike) {
				t.Errorf("%v: wrapper %v, node %v", shape, got, want)
			}
		}
	}
}

func TestColumnScannerErrorsAreMapped(t *testing.T) {
	failure := errors.New("failure")
	server := fakedb.New("node")
	server.Reply("q", twoSets())
	h := &rowHooks{}
	rows := queryFake(t, server, fakedb.PgxLike, lazily(h.onError, h.onClose)).(driver.RowsColumnScanner)
	server.Fail(fakedb.OpNext, 1, failure)
	if err := rows.NextRow(); err == nil || err.Error() != "mapped failure" {
		t.Errorf("NextRow = %v", err)
	}
	rows.Close()
	if !slices.Equal(h.closed, []error{failure}) {
		t.Errorf("onClose got %v", h.closed)
	}
	var id int64
	if err := rows.NextRow(); err != io.EOF {
		t.Errorf("NextRow after Close = %v", err)
	}
	if err := rows.ScanColumn(driver.ScanContext{}, 0, &id); err == nil {
		t.Error("ScanColumn after Close succeeds")
	}
}

// A row read ahead by NextRow is the current one when it is handed out, by
// NextRow and by Next.
func TestColumnScannerAfterFetchFirst(t *testing.T) {
	server := fakedb.New("node")
	server.Reply("q", twoSets())
	rows := queryFake(t, server, fakedb.PgxLike, eagerly(nil, nil)).(driver.RowsColumnScanner)
	for want := int64(1); want <= 3; want++ {
		var id int64
		if err := rows.NextRow(); err != nil {
			t.Fatal(err)
		}
		if err := rows.ScanColumn(driver.ScanContext{}, 0, &id); err != nil || id != want {
			t.Errorf("id %d %v, want %d", id, err, want)
		}
	}
	if err := rows.NextRow(); err != io.EOF {
		t.Errorf("end: %v", err)
	}
	rows.Close()

	older := queryFake(t, server, fakedb.PgxLike, eagerly(nil, nil))
	dest := make([]driver.Value, 3)
	for want := int64(1); want <= 3; want++ {
		if err := older.Next(dest); err != nil || dest[0] != want {
			t.Errorf("row %v %v, want %d", dest, err, want)
		}
		if want == 1 && string(dest[1].([]byte)) != "one" {
			t.Errorf("first row %v", dest)
		}
	}
	older.Close()
}

// RawBytes reach through the scan context of database/sql.
func TestColumnScannerPassesTheScanContext(t *testing.T) {
	server := fakedb.New("node")
	server.Reply("q", fakedb.Reply{Columns: []string{"a"}, Rows: [][]driver.Value{{int64(42)}}})
	db := sql.OpenDB(passConnector{server.Connector(fakedb.PgxLike), lazily(nil, nil)})
	defer db.Close()
	rows, err := db.Query("q")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var raw sql.RawBytes
	if !rows.Next() || rows.Scan(&raw) != nil || string(raw) != "42" {
		t.Errorf("raw %q, %v", raw, rows.Err())
	}
}
