package replicated

import (
	"strings"
	"testing"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

// The nodes of these tests are a, b, c … A word says what is known of one:
//
//	"w"        takes writes, by its last answer
//	"r"        is read-only
//	"."        has never answered
//	"!"        does not answer now
//	"7/2"      PostgreSQL: system 7, timeline 2
//	"<a" "~a" "=a"  receives from a; tries to; has been stopped
//	"?"        does not say whom it replicates from
//	"turned", "deposed", "alias-a" (the same server as a)
func claimsOf(t *testing.T, words ...string) claims {
	t.Helper()
	var all claims
	for i, text := range words {
		x := claim{name: string(rune('a' + i)), heard: true, known: true, told: true, asked: 1}
		x.server, x.serverID = "server "+x.name, uint32(i+1)
		for word := range strings.FieldsSeq(text) {
			switch {
			case word == "w":
				x.writable = true
			case word == "r":
			case word == ".":
				x = claim{name: x.name, asked: 1}
			case word == "!":
				x.heard = false
			case word == "?":
				x.told = false
			case word == "turned":
				x.turned = true
			case word == "deposed":
				x.reigned, x.deposed = true, true
			case strings.HasPrefix(word, "alias-"):
				x.server = "server " + word[len("alias-"):]
			case strings.Contains(word, "/"):
				x.lineage = word
			case strings.ContainsAny(word[:1], "<~="):
				s := dialect.Source{ServerID: uint32(word[1]-'a') + 1, Live: word[0] == '<', Stopped: word[0] == '='}
				x.sources = append(x.sources, s)
			default:
				t.Fatalf("word %q", word)
			}
		}
		all = append(all, x)
	}
	return all
}

type electionTest struct {
	name    string
	claims  []string
	current string // "" for nobody
	want    string
	why     string // part of it
}

func testElections(t *testing.T, d classify.Dialect, tests []electionTest) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			index := func(name string) int {
				if name == "" {
					return nobody
				}
				return int(name[0] - 'a')
			}
			got, why := claimsOf(t, tt.claims...).elect(d, index(tt.current))
			if got != index(tt.want) {
				t.Errorf("elected %d (%s), want %q", got, why, tt.want)
			}
			if got == nobody && (why == "" || !strings.Contains(why, tt.why)) {
				t.Errorf("nobody, since %q; want %q in it", why, tt.why)
			}
		})
	}
}

func TestElectionByTimeline(t *testing.T) {
	testElections(t, classify.Postgres, []electionTest{
		{"one takes writes", []string{"r 7/1", "w 7/1", "r 7/1"}, "", "b", ""},
		{"hosts in any order", []string{"r 7/1", "r 7/1", "w 7/1"}, "", "c", ""},
		{"none takes writes", []string{"r 7/1", "r 7/1"}, "", "", noClaimant},
		{"nothing known", []string{".", "."}, "", "", noClaimant},
		{"the primary is silent", []string{"! w 7/1", "r 7/1"}, "a", "a", ""},
		{"the primary has stepped down", []string{"r 7/1", "r 7/1"}, "a", "", noClaimant},
		{"a standby was promoted after the primary's death", []string{"! w 7/1", "w 7/2", "r 7/1"}, "a", "b", ""},
		{"the later timeline wins at once", []string{"w 7/1", "w 7/2", "r 7/1"}, "a", "b", ""},
		{"… also where nobody was the primary", []string{"w 7/3", "w 7/2"}, "", "a", ""},
		{"a timeline of two digits", []string{"w 7/9", "w 7/10"}, "", "b", ""},
		{"the former primary comes back while the new one is silent", []string{"w 7/1", "! w 7/2"}, "b", "b", ""},
		{"… to a process that knew neither as such", []string{"w 7/1", "! w 7/2"}, "", "", "has been seen on a later timeline (2)"},
		{"a standby tells of a later timeline", []string{"w 7/1", "r 7/2", "."}, "a", "", "a takes writes, but b has been seen on a later timeline"},
		{"a standby that was promoted by mistake has been made anew", []string{"w 7/1", "r 7/1"}, "", "a", ""},
		{"two on one timeline", []string{"w 7/1", "w 7/1"}, "a", "", "several nodes take writes on the same timeline: a, b"},
		{"one server under two names", []string{"w 7/1 alias-b", "w 7/1"}, "b", "b", ""},
		{"a host of another cluster", []string{"w 7/1", "w 8/5"}, "a", "a", ""},
		{"two clusters", []string{"w 7/1", "w 8/5"}, "", "", "do not belong to one cluster"},
		{"timelines that cannot be read", []string{"w", "r"}, "", "a", ""},
	})
}

func TestElectionByFollowers(t *testing.T) {
	testElections(t, classify.MySQL, []electionTest{
		{"one takes writes", []string{"r <b", "w", "r <b"}, "", "b", ""},
		{"none takes writes", []string{"r <b", "r"}, "", "", noClaimant},
		{"the primary is silent", []string{"! w", "r ~a", "r ~a"}, "a", "a", ""},
		{"the primary has stepped down", []string{"r", "r <a"}, "a", "", noClaimant},
		{"a replica was promoted after the primary's death", []string{"! w", "w turned", "r ~a"}, "a", "b", ""},
		{"… and the other one has not noticed that it is dead", []string{"! w", "w turned", "r <a"}, "a", "b", ""},
		{"… to a process that begins then", []string{".", "w", "r <b"}, "", "b", ""},
		{"most follow the new one", []string{"w", "w turned", "r <b"}, "a", "b", ""},
		{"most follow the old one", []string{"w", "w turned", "r <a"}, "a", "a", ""},
		{"a replica was made writable by mistake", []string{"w", "w <a turned", "r <a"}, "a", "a", ""},
		{"two, and nobody follows either", []string{"w", "w turned"}, "a", "", "can't be told which of them"},
		{"the former primary comes back as it was", []string{"w deposed", "w", "r ~c"}, "b", "b", ""},
		{"… while the new one is silent", []string{"w deposed", "! w", "r ~b"}, "b", "b", ""},
		{"… to a process that did not know it, with a follower of the new one", []string{"w", "! w", "r <b"}, "", "", "replicate from b, which does not answer"},
		{"… and is taken back", []string{"w turned", "! w", "r ~b"}, "b", "a", ""},
		{"… and others follow it", []string{"w deposed", "! w", "r <a"}, "b", "a", ""},
		{"replicas that are not read-only", []string{"w", "w <a", "w <a"}, "", "a", ""},
		{"… while the primary restarts", []string{"! w", "w ~a", "w ~a"}, "a", "a", ""},
		{"… and a process begins", []string{".", "w <a", "."}, "", "", "may be a, which has not answered yet"},
		{"… one of which was stopped and promoted", []string{"! w", "w =a", "w ~a"}, "a", "b", ""},
		{"two that follow each other, one of them read-only", []string{"w <b", "r <a"}, "", "a", ""},
		{"two that follow each other, both writable", []string{"w <b", "w <a"}, "", "", "replicates from"},
		{"a primary that is a replica of another cluster", []string{"w <z", "r <a"}, "", "a", ""},
		{"… and stays it when a node is gone", []string{"w <z", "."}, "a", "a", ""},
		{"no privilege, all others read-only", []string{"w ?", "r ?", "r ?"}, "", "a", ""},
		{"no privilege, another is silent", []string{"w ?", "."}, "", "", "GRANT REPLICATION CLIENT"},
		{"no privilege, promoted before our eyes", []string{"! w ?", "w ? turned", "r ?"}, "a", "b", ""},
		{"no privilege, two take writes", []string{"w ?", "w ? turned", "r ?"}, "a", "", "can't be told which"},
		{"one server under two names", []string{"w", "w alias-a", "r <a"}, "", "a", ""},
	})
}

// Who takes writes and follows nobody serves no reads, unless it is the primary.
func TestClaimReads(t *testing.T) {
	for _, tt := range []struct {
		dialect classify.Dialect
		words   string
		want    bool
	}{
		{classify.Postgres, ".", true},
		{classify.Postgres, "r 7/1", true},
		{classify.Postgres, "! r 7/1", true},
		{classify.Postgres, "w 7/1", false},
		{classify.MariaDB, "r", true},
		{classify.MariaDB, "w", false},
		{classify.MariaDB, "w <b", true},
		{classify.MariaDB, "w ?", false},
	} {
		if got := claimsOf(t, tt.words)[0].reads(tt.dialect); got != tt.want {
			t.Errorf("%v, %q: %v", tt.dialect, tt.words, got)
		}
	}
}
