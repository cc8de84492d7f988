package dialect

import (
	"context"
	"database/sql/driver"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// The count and the reading of it are two statements in autocommit: what the
// second one shows is committed, and is at least the first one's.
var mysqlBeats = &beats{
	quote: "`",
	most:  64,
	ddl: []string{
		"CREATE TABLE IF NOT EXISTS @table@ (id SMALLINT NOT NULL PRIMARY KEY, epoch BIGINT NOT NULL, counter BIGINT NOT NULL) ENGINE=InnoDB",
		"INSERT IGNORE INTO @table@ (id, epoch, counter) VALUES (1, @epoch@, 0)",
	},
	beat:    "UPDATE @table@ SET counter = counter + 1 WHERE id = 1",
	read:    "SELECT epoch, counter, @@session.autocommit FROM @table@ WHERE id = 1",
	inOrder: inOrderMySQL,
}

// inOrderMySQL asks for the number of appliers and for what keeps their commits
// in order, in the words of the version.
func inOrderMySQL(ctx context.Context, conn driver.Conn) (ok bool, why string, err error) {
	row, err := queryRow(ctx, conn, "SELECT @@version, @@version_comment", 2)
	if err != nil {
		return false, "", err
	}
	version, flavor := mysqlVersion(row[0].text), mysqlFlavor(row[0].text, row[1].text)
	workers, preserve := "slave_parallel_workers", ""
	switch {
	case flavor == classify.MariaDB:
		// Commits keep their order within a domain, in every mode; the domains do
		// not wait for each other.
		workers, preserve = "slave_parallel_threads", "@@global.gtid_slave_pos"
	case version >= 80026:
		workers, preserve = "replica_parallel_workers", "@@global.replica_preserve_commit_order"
	case version >= 50705:
		preserve = "@@global.slave_preserve_commit_order"
	}
	text := "SELECT @@global." + workers
	columns := 1
	if preserve != "" {
		text, columns = text+", "+preserve, 2
	}
	row, err = queryRow(ctx, conn, text, columns)
	if unknownVariable(err) {
		return false, "the server does not tell how many appliers it has (" + workers + ")", nil
	}
	if err != nil {
		return false, "", err
	}
	switch {
	case row[0].integer() <= 1 && row[0].text != "":
		return true, "", nil
	case flavor == classify.MariaDB && !severalDomains(row[1].text):
		return true, "", nil
	case flavor == classify.MariaDB:
		return false, "slave_parallel_threads > 1 with several GTID domains, which do not wait for each other", nil
	case preserve == "":
		return false, "slave_parallel_workers > 1, and before MySQL 5.7 nothing keeps their order: set it to 0", nil
	case !row[1].on():
		return false, workers + " > 1 without " + strings.TrimPrefix(preserve, "@@global.") + "=ON", nil
	}
	return true, "", nil
}

// severalDomains reports whether a list of MariaDB's GTIDs has more than one
// domain.
func severalDomains(list string) bool {
	first := ""
	for gtid := range strings.SplitSeq(list, ",") {
		domain, _, _ := strings.Cut(strings.TrimSpace(gtid), "-")
		if first == "" {
			first = domain
		}
		if domain != first {
			return true
		}
	}
	return false
}
