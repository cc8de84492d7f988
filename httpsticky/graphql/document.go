package graphql

import (
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"
	"github.com/vektah/gqlparser/v2/parser"
)

// maxName bounds Verdict.Name.
const maxName = 64

// budget is how many tokens may still be parsed. Limits of the parser hold for one
// document; a request may bring many.
type budget struct {
	bounded bool
	left    int
	// unpaid was parsed, and is not yet subtracted from left: that costs a pass of
	// the lexer, which the usual request, with one document, does without.
	unpaid string
}

func budgetOf(maxTokens int) budget { return budget{bounded: maxTokens > 0, left: maxTokens} }

// parse parses a document. The parser recurses no deeper than
// [parser.MaxNestingDepth].
func (b *budget) parse(document string) (*ast.QueryDocument, Reason) {
	if b.bounded {
		if b.left -= countTokens(b.unpaid, b.left); b.left <= 0 {
			return nil, TooLarge
		}
		b.unpaid = document
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: document}, b.left)
	switch {
	case err == nil && disputed(document):
		return nil, Ambiguous
	case err == nil:
		return doc, None
	case b.bounded && countTokens(document, b.left+1) > b.left:
		return nil, TooLarge
	}
	return nil, Malformed
}

// disputed tells whether a document has quotes inside a block string. Where such a
// string ends is not the same everywhere: of """" this parser takes the last three
// quotes for the end and the specification the first three; a lexer that knows no
// block strings, as graph-gophers' for values, sees three strings in one. What is code
// to one is text to the other.
func disputed(document string) bool {
	if !strings.Contains(document, `"""`) {
		return false
	}
	l := lexer.New(&ast.Source{Input: document})
	for {
		switch tok, err := l.ReadToken(); {
		case err != nil || tok.Kind == lexer.EOF:
			return false
		case tok.Kind == lexer.BlockString && strings.Contains(tok.Value, `"`):
			return true
		}
	}
}

// countTokens counts the tokens of a document, comments included, up to most, and up
// to the first that is none.
func countTokens(document string, most int) int {
	l := lexer.New(&ast.Source{Input: document})
	for n := 0; n < most; n++ {
		if tok, err := l.ReadToken(); err != nil || tok.Kind == lexer.EOF {
			return n
		}
	}
	return most
}

// operation tells which operation of a document runs. Where the name chooses none of
// several, a server runs none of them; one that is less strict may run any, so that
// all count. Names that are there twice (not valid either) all count, too.
func operation(doc *ast.QueryDocument, name string) Verdict {
	if len(doc.Operations) == 0 {
		return unknown(NoOperation, nil)
	}
	var all, named Verdict
	found := false
	for i, op := range doc.Operations {
		v := Verdict{Kind: KindOf(string(op.Operation)), Name: op.Name}
		if len(v.Name) > maxName {
			v.Name = ""
		}
		if i == 0 {
			all = v
		} else {
			all = all.and(v)
		}
		if name == "" || op.Name != name {
			continue
		}
		if !found {
			named, found = v, true
		} else {
			named = named.and(v)
		}
	}
	if found {
		return named
	}
	return all
}
