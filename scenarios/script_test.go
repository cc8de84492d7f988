package scenarios_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/replicatedtest"
	"github.com/sqlreplicated/replicated/scenarios"
)

func TestParse(t *testing.T) {
	s, err := scenarios.Parse("x.txt", `
# What it is about.
engines postgres mariadb   # not mysql
cluster replicas=3 connections=60 synchronous=true max_standby_streaming_delay=0

open max_lag=5s proxied=yes
load readers=4 writers=1
repeat 2
  kill replica1
  repeat 3
    run 10ms
  end
end
every 1s kill connections of node2
expect failed reads = 0
expect worst read < 8s
expect reads on replica1 = 0
expect reads on replicas > 50%
expect notices writes-lost >= 1
`)
	if err != nil {
		t.Fatal(err)
	}
	if want := []replicatedtest.Engine{replicatedtest.Postgres, replicatedtest.MariaDB}; !reflect.DeepEqual(s.Engines, want) {
		t.Errorf("engines %v, want %v", s.Engines, want)
	}
	want := replicatedtest.Options{
		Replicas: 3, MaxConnections: 60, Synchronous: true,
		Settings: map[string]string{"max_standby_streaming_delay": "0"},
	}
	if !reflect.DeepEqual(s.Options, want) {
		t.Errorf("options %+v, want %+v", s.Options, want)
	}
	if s.Name != "x.txt" {
		t.Errorf("name %q", s.Name)
	}
}

// What cannot be read is an error with the number of its line, and never done in part.
func TestParseErrors(t *testing.T) {
	for _, tt := range []struct {
		name, text string
		want       string // in the error
	}{
		{"no engines", "open", "x.txt: no line says for which engines"},
		{"unknown engine", "engines oracle", `x.txt:1: engines: "oracle" is none of`},
		{"engines twice", "engines mysql\nengines mariadb", "x.txt:2: engines"},
		{"unknown command", "engines mysql\n\ndestroy node1", `x.txt:3: there is no command "destroy"`},
		{"too little", "engines mysql\nkill", `x.txt:2: "kill" is not of the form "kill <node>"`},
		{"too much", "engines mysql\nstart node1 now", `"start node1 now" is not of the form`},
		{"no node", "engines mysql\nkill standby", `x.txt:2: "standby" is not a node`},
		{"no duration", "engines mysql\nrun 5", `x.txt:2: "5" is not a duration`},
		{"negative duration", "engines mysql\nrun -5s", "is not a duration"},
		{"cluster behind commands", "engines mysql\nopen\ncluster replicas=2", "x.txt:3: cluster"},
		{"cluster twice", "engines mysql\ncluster\ncluster", "x.txt:3: cluster"},
		{"no replicas", "engines mysql\ncluster replicas=0", "replicas=0 is not a number above 0"},
		{"no boolean", "engines mysql\ncluster synchronous=often", "neither true nor false"},
		{"no setting", "engines mysql\nopen max_lag", `"max_lag" is not of the form key=value`},
		{"no end", "engines mysql\nrepeat 2\nrun 1s", `x.txt:2: no end of "repeat 2"`},
		{"end of nothing", "engines mysql\nend", "x.txt:2: end of nothing"},
		{"end with more", "engines mysql\nrepeat 2\nend it", `x.txt:3: "it" after end`},
		{"repeat nothing", "engines mysql\nrepeat 0\nend", `x.txt:2: "0" is not a number above 0`},
		{"every what", "engines mysql\nevery 1s", "x.txt:2: every what"},
		{"every unknown", "engines mysql\nevery 1s dance", `there is no command "dance"`},
		{"no figure", "engines mysql\nexpect happy users = 9", `"happy users" is no figure`},
		{"no comparison", "engines mysql\nexpect failed reads is 0", `"is" is none of`},
		{"no number", "engines mysql\nexpect failed reads = none", `"none" is not a number`},
		{"number for a time", "engines mysql\nexpect worst read < 8", `"8" is not a duration`},
		{"number for a part", "engines mysql\nexpect reads on replicas > 50", "is not a percentage"},
		{"reads on nobody", "engines mysql\nexpect reads on standby = 0", "is no figure"},
		{"short expectation", "engines mysql\nexpect failed", "an expectation is of the form"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, err := scenarios.Parse("x.txt", tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if err != nil && s != nil {
				t.Error("there is a script all the same")
			}
		})
	}
}
