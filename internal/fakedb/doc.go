// Package fakedb is a scripted database driver for tests of what a real server
// cannot be made to do at a given moment: fail between two rows, hang inside a
// commit, lose an answer after the statement ran, lack half of the optional
// methods of database/sql/driver.
//
// A [Server] is one node. It answers every query with one row that holds its
// own name, so that a test sees where a statement went, and remembers what it
// was asked ([Server.Calls], [Server.Texts], [Server.Stats]). What it answers
// is scripted by [Server.Reply], [Server.ReplyContaining], [Server.OnQuery] and
// [Server.OnExec]; failures and hangs by [Server.Fail], [Server.Hold],
// [Server.Kill] and [Server.Down].
//
// A connection comes in one of several shapes ([Shape]) that differ in the
// optional methods of its Conn, Stmt and Rows, as real drivers do.
//
// Connections write to a plain field on each call, as fakeConn.line of
// database/sql does: under -race two goroutines inside one connection are
// reported. Calls on something closed, a second Close and statements sent while
// rows are open are recorded ([Server.Misuse]).
package fakedb
