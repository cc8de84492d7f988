package replicated

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sqlreplicated/replicated/internal/classify"
	"github.com/sqlreplicated/replicated/internal/dialect"
)

// This file decides who is the primary, by what the nodes have said. Everything in
// it is a function of that.

// claim is what is known of one node's role.
type claim struct {
	name  string
	asked moment // when it was last asked; never: not yet
	heard bool   // it has answered then
	known bool   // it has ever answered; what follows is its last answer

	server   string // its identity
	serverID uint32 // on MySQL and MariaDB
	writable bool
	lineage  string // on PostgreSQL: system and timeline

	sources []dialect.Source // on MySQL and MariaDB: whom it replicates from
	told    bool             // that is known
	unasked bool             // it is still to be asked for that

	// turned: it was read-only when it was met, or since it was last the primary, so
	// that it has been made writable on purpose.
	turned bool
	// reigned: it has been the primary, and not been seen read-only since; deposed:
	// likewise, and another node has been elected over it. It may have come back as what
	// it was, and know nothing of its successor.
	reigned, deposed bool
}

// claims is what is known of all nodes, in the order of the configuration.
type claims []claim

// nobody stands for no node.
const nobody = -1

// elect returns the index of the primary, or nobody and why that is so. current is
// the present one, or nobody; it stays the primary while it does not answer, unless
// another has taken its place.
//
// Of several claimants one of PostgreSQL with a higher timeline wins at once: it was
// promoted later ("Timelines", in the manual's chapter on continuous archiving). On
// MySQL and MariaDB the one wins that most of the other nodes replicate from. What
// can't be decided is not guessed: a write on the wrong server is lost.
//
// Where nobody is known to be the primary, all nodes are asked before one is believed:
// a former primary that is back as it was may be the first to answer.
func (c claims) elect(d classify.Dialect, current int) (primary int, why string) {
	if i := c.unasked(d); i >= 0 && current == nobody {
		return nobody, c[i].name + " has not been asked yet"
	}
	if d == classify.Postgres {
		return c.byTimeline(current)
	}
	return c.byFollowers(current)
}

// unasked returns the first node that is still to be asked for what decides, or -1.
func (c claims) unasked(d classify.Dialect) int {
	return slices.IndexFunc(c, func(x claim) bool {
		return x.asked == never || x.unasked && x.heard && d != classify.Postgres
	})
}

// claimants returns the nodes that have said, when they were last asked, that they
// take writes, each server once: one may be listed under two names.
func (c claims) claimants(current int) []int {
	var all []int
	for i := range c {
		if !c[i].heard || !c[i].writable {
			continue
		}
		if j := c.same(all, i); j >= 0 {
			if i == current {
				all[j] = i
			}
			continue
		}
		all = append(all, i)
	}
	return all
}

// same returns the place in list of a node that is the same server as i, or -1.
func (c claims) same(list []int, i int) int {
	for j, k := range list {
		if c[k].server != "" && c[k].server == c[i].server {
			return j
		}
	}
	return -1
}

// otherwise is the outcome where nobody is elected: the present primary stays if it
// merely does not answer.
func (c claims) otherwise(current int, why string) (int, string) {
	if current != nobody && !c[current].heard {
		return current, ""
	}
	return nobody, why
}

const noClaimant = "no node says that it takes writes"

// byTimeline elects a server of PostgreSQL. One is no primary if another node of its
// system has ever been seen on a later timeline, unless that node has come back from
// there: what it would acknowledge is given up.
func (c claims) byTimeline(current int) (int, string) {
	all := c.claimants(current)
	if len(all) == 0 {
		return c.otherwise(current, noClaimant)
	}
	system, mixed := "", false
	if current != nobody {
		system, _ = cutLineage(c[current].lineage)
	}
	for _, i := range all {
		s, _ := cutLineage(c[i].lineage)
		if system == "" {
			system = s
		}
		mixed = mixed || s != system
	}
	if mixed && current == nobody {
		return nobody, "several nodes take writes that do not belong to one cluster (their system identifiers differ, or cannot be read): " + c.names(all)
	}
	var newest int64
	var newestBy int
	for i := range c {
		if s, timeline := cutLineage(c[i].lineage); s == system && timeline > newest {
			newest, newestBy = timeline, i
		}
	}
	var last []int
	for _, i := range all {
		if s, timeline := cutLineage(c[i].lineage); s == system && timeline == newest {
			last = append(last, i)
		}
	}
	switch len(last) {
	case 0:
		if current != nobody && !c[current].heard && newestBy == current {
			return current, ""
		}
		return c.otherwiseNot(current, all, fmt.Sprintf("%s takes writes, but %s has been seen on a later timeline (%d)", c.names(all), c[newestBy].name, newest))
	case 1:
		return last[0], ""
	default:
		return nobody, "several nodes take writes on the same timeline: " + c.names(last)
	}
}

// otherwiseNot is otherwise for a primary that must not be one of these.
func (c claims) otherwiseNot(current int, obsolete []int, why string) (int, string) {
	for _, i := range obsolete {
		if i == current {
			return nobody, why
		}
	}
	return c.otherwise(current, why)
}

// cutLineage takes a lineage of PostgreSQL apart, see dialect.Identity.
func cutLineage(lineage string) (system string, timeline int64) {
	system, number, _ := strings.Cut(lineage, "/")
	timeline, _ = strconv.ParseInt(number, 10, 64) // 0: not known
	return system, timeline
}

// byFollowers elects a server of MySQL or MariaDB.
func (c claims) byFollowers(current int) (int, string) {
	all := c.claimants(current)
	votes := c.votes()
	var candidates []int
	why := noClaimant
	for _, i := range all {
		if doubt := c.doubt(i, current, votes); doubt != "" {
			why = doubt
			continue
		}
		candidates = append(candidates, i)
	}
	// A node that others are receiving from lives, though it may not answer us.
	unheard := nobody
	for i := range c {
		if c[i].known && !c[i].heard && votes[i] > 0 && (unheard == nobody || votes[i] > votes[unheard]) {
			unheard = i
		}
	}
	best, tied := nobody, false
	for _, i := range candidates {
		switch {
		case best == nobody || votes[i] > votes[best]:
			best, tied = i, false
		case votes[i] == votes[best]:
			tied = true
		}
	}
	switch {
	case best == nobody:
		return c.otherwise(current, why)
	case tied:
		return nobody, "several nodes take writes, and it can't be told which of them the others replicate from: " + c.names(candidates)
	case unheard != nobody && votes[unheard] > votes[best] && !(c[best].turned && len(candidates) == 1):
		return c.otherwise(current, fmt.Sprintf("%s takes writes, but other nodes replicate from %s, which does not answer", c[best].name, c[unheard].name))
	default:
		return best, ""
	}
}

// doubt returns why a node that takes writes is not the primary all the same, or "".
func (c claims) doubt(i, current int, votes []int) string {
	x := &c[i]
	if x.deposed && votes[i] == 0 {
		return fmt.Sprintf("%s takes writes, but was the primary before another was: it is one again once it has been read-only meanwhile, or others replicate from it", x.name)
	}
	if x.told {
		for _, s := range x.sources {
			switch j := c.find(s); {
			case s.Stopped:
			case j == nobody: // outside the cluster, or a node that has not answered yet
				if k := slices.IndexFunc(c, func(y claim) bool { return !y.known }); k >= 0 && i != current {
					return fmt.Sprintf("%s takes writes, but replicates from a server that may be %s, which has not answered yet", x.name, c[k].name)
				}
			case !c[j].heard || c[j].writable:
				return fmt.Sprintf("%s takes writes, but replicates from %s", x.name, c[j].name)
			}
		}
		return ""
	}
	if i == current {
		return ""
	}
	if x.turned {
		// It may have been made writable by mistake, while the primary was the primary.
		for j := range c {
			if y := &c[j]; current == nobody && y.heard && y.writable && y.reigned && !y.deposed && y.server != x.server {
				return fmt.Sprintf("%s and %s take writes, and whether one replicates from the other is not known: GRANT REPLICATION CLIENT (MariaDB: REPLICA MONITOR) to the user", x.name, y.name)
			}
		}
		return ""
	}
	for j := range c {
		if j != i && !(c[j].heard && (!c[j].writable || c[j].server == x.server)) {
			return fmt.Sprintf("%s takes writes, but whether it replicates from another node is not known: GRANT REPLICATION CLIENT (MariaDB: REPLICA MONITOR) to the user", x.name)
		}
	}
	return ""
}

// votes counts, for each node, the others that are receiving from it.
func (c claims) votes() []int {
	votes := make([]int, len(c))
	for i := range c {
		if !c[i].heard || c.firstOf(i) != i {
			continue
		}
		for _, s := range c[i].sources {
			if j := c.find(s); j != nobody && j != i && s.Live {
				votes[j]++
			}
		}
	}
	// All names of one server have the same votes.
	for i := range c {
		votes[i] = votes[c.firstOf(i)]
	}
	return votes
}

// firstOf returns the first name of a node's server.
func (c claims) firstOf(i int) int {
	for j := range i {
		if c[j].server != "" && c[j].server == c[i].server {
			return j
		}
	}
	return i
}

// find returns the node that is a source of another, or nobody.
func (c claims) find(s dialect.Source) int {
	for i := range c {
		switch {
		case !c[i].known:
		case s.Server != "":
			if s.Server == c[i].server {
				return i
			}
		case s.ServerID != 0 && s.ServerID == c[i].serverID:
			return i
		}
	}
	return nobody
}

// reads tells whether a node that is not the primary may serve reads, if it is fresh.
// One that takes writes and follows nobody is not a replica, whatever it was.
func (x *claim) reads(d classify.Dialect) bool {
	switch {
	case !x.known || !x.writable:
		return true
	case d == classify.Postgres:
		return false
	default:
		return len(x.sources) > 0
	}
}

func (c claims) names(list []int) string {
	names := make([]string, len(list))
	for i, k := range list {
		names[i] = c[k].name
	}
	return strings.Join(names, ", ")
}
