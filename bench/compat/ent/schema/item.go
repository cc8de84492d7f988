// Package schema is what the client in package ent is generated from.
package schema

import (
	"entgo.io/ent"
	"entgo.io/ent/schema/field"
)

// Item is the one entity of the program that every library runs.
type Item struct{ ent.Schema }

// Fields of the Item. The id is the program's own, so that all libraries write
// the same rows.
func (Item) Fields() []ent.Field {
	return []ent.Field{
		field.Int64("id"),
		field.String("name").MaxLen(60).Unique(),
		field.Int("qty"),
		field.String("note").MaxLen(60).Optional().Nillable(),
		field.Time("created"),
	}
}
