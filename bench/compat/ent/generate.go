// Package ent is the client that ent generates from package schema. It is
// committed, so that building and testing need no generator; run go generate
// after a change of the schema, or of ent's version in go.mod.
package ent

//go:generate go run entgo.io/ent/cmd/ent@v0.14.5 generate --feature sql/lock,sql/upsert ./schema
