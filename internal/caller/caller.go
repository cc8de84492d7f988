// Package caller names who runs a statement: the context key that package
// replicated reads, and that middleware answers.
package caller

// Key is the key of a context's caller. Its value is a [fmt.Stringer], which is
// asked only when somebody is told of the statement.
type Key struct{}

// Name is a caller that is known beforehand.
type Name string

// String returns the name.
func (n Name) String() string { return string(n) }
