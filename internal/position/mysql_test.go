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

// untagged drops the tags, which MySQL before 8.3 does not know.
func (m model) untagged() model {
	out := model{}
	for tx := range m {
		out[transaction{uuid: tx.uuid, number: tx.number}] = true
	}
	return out
}

// messy puts blanks, line breaks and capitals into a set where they do no harm.
func messy(rnd *rand.Rand, text string) string {
	if rnd.IntN(2) == 0 {
		text = strings.ToUpper(text)
	}
	return strings.ReplaceAll(text, ",", []string{",", ", ", ",\n", " ,", "\n,\t"}[rnd.IntN(5)])
}

// TestMySQLComparesGTIDSetsAlike asks the server for subsets and differences of
// random sets.
func TestMySQLComparesGTIDSetsAlike(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.MySQL, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	ctx, conn := session(t, cluster.Primary().DB(t))
	statement, err := conn.PrepareContext(ctx, "SELECT GTID_SUBSET(?, ?), GTID_SUBTRACT(?, ?), GTID_SUBTRACT(?, '')")
	if err != nil {
		t.Fatal(err)
	}
	defer statement.Close()
	// server compares p with q: is q a subset, what is missing in q, p rewritten.
	server := func(p, q string) (subset bool, difference, printed string) {
		if err := statement.QueryRowContext(ctx, q, p, p, q, p).Scan(&subset, &difference, &printed); err != nil {
			t.Fatalf("%q and %q: %v", p, q, err)
		}
		return subset, difference, printed
	}

	rnd := rand.New(rand.NewPCG(7, 7))
	contained := 0
	for range 3000 {
		a, b := randomSet(rnd).untagged(), randomSet(rnd).untagged()
		if rnd.IntN(2) == 0 {
			a = a.union(b)
		}
		pt, qt := messy(rnd, a.text(rnd)), messy(rnd, b.text(rnd))
		p, q := gtidSet(pt), gtidSet(qt)
		subset, difference, printed := server(pt, qt)
		if p.Contains(q) != subset {
			t.Fatalf("%q contains %q: %t, the server says %t", p, q, p.Contains(q), subset)
		}
		if got := strings.ReplaceAll(printed, "\n", ""); got != p.String() {
			t.Fatalf("%q is printed as %q, by the server as %q", pt, p, got)
		}
		// Exceeds is about the servers that q knows.
		exceeds := false
		for part := range strings.SplitSeq(strings.ReplaceAll(difference, "\n", ""), ",") {
			uuid, _, _ := strings.Cut(part, ":")
			exceeds = exceeds || uuid != "" && strings.Contains(q.String(), uuid)
		}
		if p.Exceeds(q) != exceeds {
			t.Fatalf("%q exceeds %q: %t, the difference is %q", p, q, p.Exceeds(q), difference)
		}
		// A union of the server's making is one that adds nothing.
		union := p.Merge(q).String()
		for _, part := range []string{pt, qt} {
			if subset, _, _ := server(union, part); !subset {
				t.Fatalf("%q is no union of %q and %q", union, pt, qt)
			}
		}
		_, difference, _ = server(union, pt)
		if subset, _, _ := server(qt, difference); !subset {
			t.Fatalf("%q has more than %q and %q", union, pt, qt)
		}
		if p.Contains(q) {
			contained++
		}
	}
	if contained < 500 || contained > 2500 {
		t.Errorf("the random sets show little: %d contained", contained)
	}
}

// TestMySQLReadsGTIDSetsAlike: what we read, the server reads as the same. It
// reads some more that it never prints.
func TestMySQLReadsGTIDSetsAlike(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.MySQL, replicatedtest.Options{Replicas: -1, NoStatementLog: true})
	ctx, conn := session(t, cluster.Primary().DB(t))
	server := func(text string) (string, error) {
		var printed string
		err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT GTID_SUBTRACT('%s', '')", text)).Scan(&printed)
		return strings.ReplaceAll(printed, "\n", ""), err
	}
	for _, text := range []string{
		"", " ", "\n", uuidA + ":1", uuidA + ":5-5", uuidA + ":1-9223372036854775806", uuidA + ":9223372036854775806",
		uuidA + ":1 - 5 : 7", uuidA + " :1", uuidA + ": 1", uuidA + ":4-5:1-3:6", strings.ToUpper(uuidC) + ":1", uuidB + ":1," + uuidA + ":1", uuidA + ":1,\n" + uuidA + ":2",
	} {
		p, err := position.ParseGTIDSet(text)
		printed, serverErr := server(text)
		if err != nil || serverErr != nil || p.String() != printed {
			t.Errorf("%q is read as %q, %v; the server has %q, %v", text, p, err, printed, serverErr)
		}
	}
	for _, text := range []string{
		"x", uuidA + ":0", uuidA + ":1:", uuidA + ":9223372036854775807", uuidA + ":1-9223372036854775807", uuidA + ":99999999999999999999999",
		uuidA[:35] + ":1", uuidA + "0:1", uuidA + ":1;" + uuidB + ":1", uuidA + ":1 2",
	} {
		p, err := position.ParseGTIDSet(text)
		if printed, serverErr := server(text); err == nil || serverErr == nil {
			t.Errorf("%q is read as %q; the server has %q, %v", text, p, printed, serverErr)
		}
	} // Some texts mean to the server what nobody would guess.
	for text, want := range map[string]string{
		uuidA: "", ",": "", uuidA + ":5-4": "", uuidA + ":1-": "", uuidA + ":1,,": uuidA + ":1",
		uuidA + ":010": uuidA + ":8", uuidA + ":0x10": uuidA + ":16",
	} {
		p, err := position.ParseGTIDSet(text)
		if printed, serverErr := server(text); err == nil || serverErr != nil || printed != want {
			t.Errorf("%q is read as %q; the server has %q, %v", text, p, printed, serverErr)
		}
	}
}

// TestMySQLReplicaContainsWhatItShows uses file and offset: gtid_executed of
// MySQL before 5.7 runs ahead of what a reader sees.
func TestMySQLReplicaContainsWhatItShows(t *testing.T) {
	cluster := replicatedtest.Start(t, replicatedtest.MySQL, replicatedtest.Options{Replicas: 1, NoStatementLog: true})
	if !strings.HasPrefix(cluster.Version(), "MySQL 5.") {
		t.Skipf("%s has other words for the status of replication", cluster.Version())
	}
	ctx, conn := session(t, cluster.Primary().AdminDB(t))
	run(t, ctx, conn, "CREATE TABLE counter (n bigint)", "INSERT INTO counter VALUES (0)")
	var uuid string
	ask(t, ctx, conn, "SELECT @@server_uuid", &uuid)
	samples := 0
	watch(t, cluster, watched{
		write: "UPDATE counter SET n = n + 1",
		read:  "SELECT n FROM counter",
		primary: func(ctx context.Context, conn *sql.Conn) (position.Position, error) {
			if samples++; samples%50 == 0 {
				if _, err := conn.ExecContext(ctx, "FLUSH BINARY LOGS"); err != nil {
					return position.Position{}, err
				}
			}
			return filePosition(ctx, conn, "SHOW MASTER STATUS", uuid, "File", "Position")
		},
		replica: func(ctx context.Context, conn *sql.Conn) (position.Position, error) {
			return filePosition(ctx, conn, "SHOW SLAVE STATUS", "", "Relay_Master_Log_File", "Exec_Master_Log_Pos")
		},
	})
}

// filePosition reads a status row. Without a uuid it has a Master_UUID.
func filePosition(ctx context.Context, conn *sql.Conn, query, uuid, file, offset string) (position.Position, error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return position.Position{}, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil || !rows.Next() {
		return position.Position{}, fmt.Errorf("%s: no row: %w", query, err)
	}
	row := map[string]*sql.RawBytes{}
	targets := make([]any, len(columns))
	for i, name := range columns {
		row[name] = new(sql.RawBytes)
		targets[i] = row[name]
	}
	if err := rows.Scan(targets...); err != nil {
		return position.Position{}, err
	}
	if uuid == "" {
		uuid = string(*row["Master_UUID"])
	}
	var at uint64
	if _, err := fmt.Sscan(string(*row[offset]), &at); err != nil {
		return position.Position{}, err
	}
	return position.FilePosition(uuid, string(*row[file]), at), nil
}
