package replicated_test

import (
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/sqlreplicated/replicated"
)

// FuzzDSN: what ParseDSN accepts can be written and read back, and no key of ours
// and no host list is left in what a node gets. What it refuses never panics.
func FuzzDSN(f *testing.F) {
	for _, tt := range parseTests {
		f.Add(tt.dsn)
	}
	for _, c := range malformed(f) {
		f.Add(c[0])
	}
	f.Add("([[::%0,0],0]:1)/") // a zone with a comma in it
	f.Fuzz(func(t *testing.T, dsn string) {
		if len(dsn) > 1000 {
			t.Skip("too long to be worth it")
		}
		cfg, err := replicated.ParseDSN(dsn)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "replicated: ") {
				t.Fatalf("%q: %v", dsn, err)
			}
			return
		}
		roundTrip(t, dsn)
		if cfg.Driver != "mysql" {
			return
		}
		for _, n := range cfg.Nodes {
			native, err := mysql.ParseDSN(n.DSN)
			if err != nil {
				t.Fatalf("%q: node %q: %v", dsn, n.DSN, err)
			}
			if native.Addr != n.Address {
				t.Errorf("%q: the driver reads the address %q, not %q", dsn, native.Addr, n.Address)
			}
			for name := range native.Params {
				if strings.HasPrefix(strings.ToLower(name), "replicated.") {
					t.Errorf("%q: a node gets %q", dsn, name)
				}
			}
		}
	})
}

// passwordTemplates have a password where PW stands. Raw, it may make them malformed.
var passwordTemplates = []string{
	"app:PW@tcp(db1:3306,db2:3306)/shop?replicated.max_lag=2",
	"app:PW@tcp(db1:bad)/shop",
	"app:PW@db1/shop",
	"app:PW@tcp(db1/shop",
	"postgres://app:PW@db1:5432,db2:bad/shop",
	"postgres://app:PW@db1/shop?sslmode=never",
	"postgres://db1/shop?user=app&password=PW&sslmode=never",
	"host=db1 password=PW sslmode=never",
	"host=db1 password='PW' replicated.reads=never",
	"replicated://mysql?primary=app:PW@tcp(db1:bad)/shop",
	"replicated://postgres?primary=host%3Ddb1%20password%3DPW%20sslmode%3Dnever",
}

// FuzzPassword: whatever a password has in it, and whatever single byte of the DSN is
// missing, no error shows it.
func FuzzPassword(f *testing.F) {
	for _, pw := range []string{"p@ssw0rd", "pa/ssw0rd", "p:ssw0rd", "p%ssw0rd", "p%40ssw0rd", "p?ss#w0rd", "p ssw0rd", "p'ss\\w0rd", "p=ss&w0rd", "p(ss)w0rd", "p,ss[w0rd]"} {
		for i := range passwordTemplates {
			f.Add(pw, uint8(i), uint8(0))
			f.Add(pw, uint8(i), uint8(3+len(pw)))
		}
	}
	f.Fuzz(func(t *testing.T, pw string, template, missing uint8) {
		text := passwordTemplates[int(template)%len(passwordTemplates)]
		if len(pw) < 6 || len(pw) > 50 || strings.Contains(text, pw) {
			t.Skip("a password that other words may have in them")
		}
		dsn := strings.Replace(text, "PW", pw, 1)
		if i := int(missing); i > 0 && i < len(dsn) {
			at := strings.Index(dsn, pw)
			if i >= at && i < at+len(pw) {
				t.Skip("the password itself is cut")
			}
			dsn = dsn[:i] + dsn[i+1:]
		}
		_, err := replicated.ParseDSN(dsn)
		if err != nil && strings.Contains(err.Error(), pw) {
			t.Errorf("%q: %v", dsn, err)
		}
	})
}
