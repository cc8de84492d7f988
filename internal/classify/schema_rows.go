package classify

// SchemaRows is what a database's catalog tells of what it does by itself when a
// relation is read or written. The reader fills it in; [NewSchema] makes of it what
// a text is looked up in. Names are as the catalog has them, without quotes.
type SchemaRows struct {
	// Relations are all relations that a text can name: tables, views, materialized
	// views, foreign tables, sequences. One that is not among them is not known.
	Relations []SchemaName
	// Links are relations that are touched along with others.
	Links []SchemaLink
	// Runs are the functions that run when a relation is touched.
	Runs []SchemaRun
	// Views are the texts of views of which the Links do not tell.
	Views []SchemaView
	// ReadsAll and WritesAll are relations of which reading, or writing, may read
	// or write anything: their content is elsewhere, or code runs.
	ReadsAll, WritesAll []SchemaName
	// Symbols are the operators that are not built in and whose functions may look
	// at relations.
	Symbols []string
	// Opaque: code of the database runs where no name in a text shows it, such as
	// in casts and in the checks of domains.
	Opaque bool
}

// SchemaName is a relation's name in the catalog.
type SchemaName struct{ Schema, Name string }

// SchemaLink says that touching a relation touches another one.
type SchemaLink struct {
	From, To SchemaName
	// Read: reading From reads To, as it does for a view and what it is made of,
	// and a parent and its partitions. Write: writing From may write To, too; so
	// do the latter, and so does a referenced table with cascading foreign keys.
	Read, Write bool
}

// SchemaRun is a function that a relation runs.
type SchemaRun struct {
	Relation SchemaName
	// Function is the function's name. Trusted has the meaning it has in
	// [CatalogFunction].
	Function string
	Trusted  bool
	// Write: when the relation is written; otherwise also when it is read.
	Write bool
}

// SchemaView is a view with its query. Without a text nothing is known of it.
type SchemaView struct {
	SchemaName
	Text string
}
