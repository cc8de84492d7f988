//go:build !go1.27

package fakedb

// rowsScanner has no methods before Go 1.27.
type rowsScanner struct{}

func newRowsScanner(*rows) *rowsScanner { return nil }
