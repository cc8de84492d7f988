// Package compat runs one program through several libraries that stand on
// database/sql, on real clusters, and asks the servers where each of its steps
// ran: GORM, ent, sqlx and bun, and sqlx over otelsql and over pgx.
//
// The program is in program_test.go, and each library's way to write it in a
// file of its own. A library is added with one more file and one more row in
// the table of libraries.
package compat
