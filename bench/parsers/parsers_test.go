package parsers_test

import (
	"testing"

	tidb "github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	_ "github.com/pingcap/tidb/pkg/parser/test_driver" // the values in TiDB's trees
	xwb1989 "github.com/xwb1989/sqlparser"
	vitess "vitess.io/vitess/go/vt/sqlparser"

	"github.com/sqlreplicated/replicated/internal/classify"
)

// competitor is a parser that takes part.
type competitor struct {
	name    string
	dialect classify.Dialect
	// open returns the parser for use by one goroutine: what can be kept from one
	// text to the next is kept.
	open func(testing.TB) sqlParser
}

// sqlParser is a parser, used in the fastest way that it offers.
type sqlParser interface {
	// parse is what is measured: the tree is made, and not looked at.
	parse(sql string) error
	// reads tells from the tree whether a router would take the text to a replica:
	// a query that neither locks rows nor writes its result. It is less than the
	// classifier looks for, which asks of functions and views too.
	reads(sql string) (bool, error)
}

// competitors are in the order in which they are measured. PostgreSQL's parser
// joins under the build tag pgquery.
var competitors = []competitor{
	{"vitess", classify.MySQL, func(tb testing.TB) sqlParser {
		p, err := vitess.New(vitess.Options{})
		if err != nil {
			tb.Fatal(err)
		}
		return vitessParser{p}
	}},
	{"tidb", classify.MySQL, func(testing.TB) sqlParser { return tidbParser{tidb.New()} }},
	{"xwb1989", classify.MySQL, func(testing.TB) sqlParser { return xwb1989Parser{} }},
}

type vitessParser struct{ p *vitess.Parser }

func (v vitessParser) parse(sql string) error {
	_, err := v.p.Parse(sql)
	return err
}

func (v vitessParser) reads(sql string) (bool, error) {
	tree, err := v.p.Parse(sql)
	s, ok := tree.(*vitess.Select)
	return ok && s.Lock == vitess.NoLock && s.Into == nil, err
}

type tidbParser struct{ p *tidb.Parser }

func (t tidbParser) parse(sql string) error {
	_, err := t.p.ParseOneStmt(sql, "", "")
	return err
}

func (t tidbParser) reads(sql string) (bool, error) {
	tree, err := t.p.ParseOneStmt(sql, "", "")
	return err == nil && ast.IsReadOnly(tree, true), err
}

type xwb1989Parser struct{}

func (xwb1989Parser) parse(sql string) error {
	_, err := xwb1989.Parse(sql)
	return err
}

func (xwb1989Parser) reads(sql string) (bool, error) {
	tree, err := xwb1989.Parse(sql)
	s, ok := tree.(*xwb1989.Select)
	return ok && s.Lock == "", err
}
