// Package replicatedtest starts real database clusters for tests: one primary
// and any number of replicas, on loopback, from the server programs that the
// machine has, and hands out what it takes to break them on purpose.
//
//	func TestShop(t *testing.T) {
//		c := replicatedtest.Start(t, replicatedtest.Postgres, replicatedtest.Options{})
//		db, err := sql.Open("replicated", c.DSN("replicated.max_lag=1s"))
//		…
//		c.Replicas()[0].Kill()
//	}
//
// The package imports nothing of the driver that it was written for, so that
// it can test any driver, proxy or application.
//
// # Servers
//
// [Postgres] needs initdb, postgres and pg_basebackup (12 or newer), [MariaDB]
// needs mariadbd and mariadb-install-db (10.5 or newer), [MySQL] needs mysqld
// (5.6 or newer). They are looked for in PATH and in the usual install
// directories, newest version first; three variables name them outright:
//
//	REPLICATED_TEST_POSTGRES=/usr/lib/postgresql/15/bin   a directory
//	REPLICATED_TEST_MARIADBD=/usr/sbin/mariadbd           a program
//	REPLICATED_TEST_MYSQLD=/opt/mysql/bin/mysqld          a program
//
// scripts/setup of this repository installs what is missing, a MySQL 5.6
// included, which is found in the cache directory without a variable.
//
// A test on a machine without a server is skipped, and says what is missing.
// REPLICATED_TEST_REQUIRE=postgres,mariadb,mysql turns such a skip into a
// failure, so that a green run in CI means that the test ran. [StartPgBouncer]
// does the same under the name pgbouncer, and REPLICATED_TEST_PGBOUNCER names
// its program. [StartRedis] and [StartRedisCluster] do it under the name
// redis, and REPLICATED_TEST_REDIS names its program.
//
// # What a cluster is like
//
// PostgreSQL replicas are streaming standbys, MariaDB and MySQL replicas
// follow by GTID and are read_only unless [Options.WritableReplicas] says
// otherwise. Every server listens on 127.0.0.1 alone, on a port that no other
// cluster on the machine uses, has its own data directory, and runs as an
// unprivileged user when the tests run as root. The database is called
// [Database] and belongs to [AppUser], who may do everything inside it and
// nothing outside: no superuser, no bypass of read_only. [Node.AdminDSN] gives
// a superuser.
//
// Acknowledged rows survive [Node.Kill], which ends processes and not the
// machine: PostgreSQL runs with fsync=off, MariaDB and MySQL with
// innodb_flush_log_at_trx_commit=2, never 0.
//
// Initialised data directories are kept in the user's cache directory, by
// server version, and copied from there; PostgreSQL clusters get a system
// identifier of their own all the same.
//
// # What can go wrong
//
// A server dies or hangs: [Node.Kill], [Node.Hang], [Node.CrashBackend]. It is
// there and does not serve: [Node.Occupy] takes all its connections,
// [Node.RefuseLogin] turns the application away, [Cluster.Vacuum] cancels what
// runs on standbys. A replica falls behind: [Node.Delay],
// [Node.PauseReplication] (receives, does not apply), [Node.StopReceiving]
// (applies, does not receive). Something stands between: [Node.Proxy], which may
// be a [Proxy.Blackhole], [Cluster.Balancer], [StartPgBouncer].
//
// A [Redis], which is no part of a cluster, can be killed, hung, paused, restarted
// with its data or without, and follow another one.
//
// Roles change: [Cluster.Switchover] in order, [Cluster.Failover] after a loss,
// which loses no acknowledged write with [Options.Synchronous]. Step by step they
// are [Cluster.MostAdvanced], [Node.Demote], [Node.Promote], [Node.Follow], which
// sees to it that the node can follow, and [Node.Repoint], which does not.
// Histories part: [Node.Snapshot] and [Node.Restore], [Node.ResetBinaryLog],
// writes by [Node.AdminDB] on a replica; [Node.Rebuild] heals.
//
// # What the servers say
//
// [Node.Statements] tells from the server's own statement log what it was
// asked to run, so that a test can assert by the server's word where a
// statement went.
//
// # Cleaning up
//
// A cluster started with [Start] ends with its test. However the process ends
// (panic, timeout, interrupt, SIGKILL), a watchdog process stops the servers,
// by their process numbers, and removes their files.
//
// # Concurrency
//
// All methods may be called from any goroutine. Methods that change one node
// (Kill, Start, Promote, …) wait for each other.
package replicatedtest
