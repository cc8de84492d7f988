package fakedb

import (
	"database/sql/driver"
	"reflect"
	"strconv"
	"strings"
)

// Reply is what a server answers to one statement. The zero value is a result
// without columns, rows or effect.
type Reply struct {
	// Columns are the names of the columns; Rows holds one slice per row,
	// each as long as Columns.
	Columns []string
	Rows    [][]driver.Value

	// Types describes the columns; may be shorter than Columns.
	Types []ColumnType

	// More are further result sets. Only their Columns, Rows, Types, NextErr
	// and More of the first level count.
	More []Reply

	// Affected and LastID are the result of Exec.
	Affected int64
	LastID   int64

	// Err is the statement's error, reported by Query or Exec.
	Err error

	// NextErr is returned by Next in place of io.EOF, after Rows.
	NextErr error

	// CloseErr is returned by Rows.Close.
	CloseErr error

	// Break closes the connection from the server's side once Err, NextErr or
	// CloseErr has been handed out.
	Break bool
}

// ColumnType is what the ColumnType methods of Rows tell about a column.
type ColumnType struct {
	DatabaseType      string
	ScanType          reflect.Type // nil counts as any
	Length            int64
	HasLength         bool
	Nullable          bool
	HasNullable       bool
	Precision, Scale  int64
	HasPrecisionScale bool
}

// Row returns a reply of one row with columns named c1, c2, …
func Row(values ...driver.Value) Reply {
	columns := make([]string, len(values))
	for i := range values {
		columns[i] = "c" + strconv.Itoa(i+1)
	}
	return Reply{Columns: columns, Rows: [][]driver.Value{values}, Affected: 1}
}

// Error returns a reply that is a statement error.
func Error(err error) Reply { return Reply{Err: err} }

// effect of a text on the transaction state.
type txEffect uint8

const (
	txNone txEffect = iota
	txBegin
	txCommit
	txRollback
	txRollbackTo // ROLLBACK TO SAVEPOINT: revives a failed transaction
)

// effectOf understands the transaction statements of SQL by their leading
// words. It is no lexer: comments before them are not seen through.
func effectOf(text string) txEffect {
	words := strings.Fields(strings.ToUpper(strings.TrimRight(strings.TrimSpace(text), ";")))
	if len(words) == 0 {
		return txNone
	}
	switch words[0] {
	case "BEGIN":
		return txBegin
	case "START":
		if len(words) > 1 && words[1] == "TRANSACTION" {
			return txBegin
		}
	case "COMMIT", "END":
		return txCommit
	case "ROLLBACK", "ABORT":
		for _, w := range words[1:] {
			if w == "TO" {
				return txRollbackTo
			}
		}
		return txRollback
	}
	return txNone
}

// isWrite reports whether RefuseWrites refuses text: everything but a plain
// read and the ends of a transaction.
func isWrite(text string) bool {
	words := strings.Fields(strings.ToUpper(text))
	if len(words) == 0 {
		return false
	}
	switch words[0] {
	case "SELECT", "SHOW", "WITH", "VALUES", "SET", "BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE":
		return false
	}
	return true
}

// numInput counts the placeholders of text: the highest $n, or the number of
// question marks. Quoted text is skipped.
func numInput(text string) int {
	marks, highest := 0, 0
	for i := 0; i < len(text); i++ {
		switch ch := text[i]; ch {
		case '\'', '"', '`':
			end := strings.IndexByte(text[i+1:], ch)
			if end < 0 {
				return max(marks, highest)
			}
			i += end + 1
		case '?':
			marks++
		case '$':
			j := i + 1
			for j < len(text) && text[j] >= '0' && text[j] <= '9' {
				j++
			}
			if n, err := strconv.Atoi(text[i+1 : j]); err == nil {
				highest = max(highest, n)
			}
			i = j - 1
		}
	}
	return max(marks, highest)
}
