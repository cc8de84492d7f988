package route

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sqlreplicated/replicated"
)

// recordReport is what both forms of a report on records show.
type recordReport struct {
	Source    string
	Processes int64
	From, To  string
	Total     callerRow
	Moving    fateReport
	Fates     []fateReport // stale, breaks, refused, undecided, stays; those that occur
	Callers   []callerRow
	MoreRows  int
	Get       []getRow
	MoreGet   int
	Notes     []string
}

// callerRow is a line of the table of callers.
type callerRow struct {
	Name       string
	Statements int64
	Counts     [fates]int64
	Advice     string // in words
	Why        string
	kind       advice
}

// fateReport is one fate, with the reasons for it.
type fateReport struct {
	Fate  fate
	Title string
	N     int64
	Whys  []counted
}

// getRow is a GET or HEAD request that writes.
type getRow struct {
	Name  string
	Wrote []counted
}

// adviceWords are those of reports.
var adviceWords = [advices]string{"opt in first", "then", "change first", "seen too rarely", "not known", "nothing to gain"}

// fateTitles are those of reports.
var fateTitles = [fates]string{
	"stay on the primary, as behind any router",
	"to the replicas",
	"could be stale behind a plain split; stay on the primary here",
	"fail or do harm on a replica behind a plain split; stay on the primary here",
	"would fail with ErrReadOnly; change them first",
	"reads of which nothing is known",
}

func newRecordReport(source string, s *recordSummary, top int) *recordReport {
	r := &recordReport{Source: source, Processes: s.processes, Total: rowOf(&s.total), Notes: s.notes()}
	if !s.from.IsZero() {
		r.From, r.To = s.from.UTC().Format(time.DateTime), s.to.UTC().Format(time.DateTime)
	}
	for _, f := range []fate{fateMoves, fateStale, fateBreaks, fateRefused, fateUndecided, fateStays} {
		fr := fateReport{Fate: f, Title: fateTitles[f], N: s.total.by[f], Whys: s.total.why(f)}
		if f == fateMoves {
			r.Moving = fr
		} else if fr.N > 0 {
			r.Fates = append(r.Fates, fr)
		}
	}
	callers := s.sorted()
	for _, c := range callers {
		r.Callers = append(r.Callers, rowOf(c))
		if c.writesInGet() {
			r.Get = append(r.Get, getRow{c.name, c.written()})
		}
	}
	// By advice, so that a list of whom to opt in stands at the top.
	slices.SortStableFunc(r.Callers, func(a, b callerRow) int { return int(a.kind) - int(b.kind) })
	r.Callers, r.MoreRows = firstOf(r.Callers, 4*top)
	r.Get, r.MoreGet = firstOf(r.Get, 2*top)
	return r
}

func firstOf[T any](list []T, n int) ([]T, int) {
	n = min(n, len(list))
	return list[:n], len(list) - n
}

func rowOf(c *caller) callerRow {
	row := callerRow{Name: c.name, Statements: c.statements, Counts: c.by}
	if row.Name == "" {
		row.Name = "(no caller)"
	}
	row.kind, row.Why = c.advise()
	row.Advice = adviceWords[row.kind]
	return row
}

// Share is the part of the caller's statements with a fate.
func (r *callerRow) Share(f fate) float64 { return part(float64(r.Counts[f]), float64(r.Statements)) }

// notes says what the numbers do not.
func (s *recordSummary) notes() []string {
	var notes []string
	add := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	ran := func(reasons ...replicated.Reason) bool {
		return slices.ContainsFunc(reasons, func(r replicated.Reason) bool { return s.reasons[r.String()] })
	}
	if ran(replicated.ReasonShadow, replicated.ReasonShadowRefused) {
		add("Under reads=shadow no replica is asked: what only a replica can tell (a table that it lacks, a read that recovery cancels) is not in these numbers.")
	}
	if s.total.writes > 0 && !ran(replicated.ReasonToken) {
		add("No read carried a token. One that follows a write of another process (the next request of the same user, say) is not known to, unless package httpsticky or WithToken says so.")
	}
	if s.total.by[fateStale]+s.total.by[fateBreaks] > 0 {
		add("A plain split is a router that sends to a replica what begins like a read (SELECT, WITH, SHOW …). Whether a read of it would have been stale depends on the moment; here are those for which no replica was known to have what they had to see.")
	}
	if s.total.by[fateBreaks] > 0 {
		add("Many splits keep whole transactions on the primary. What would fail inside of them counts as such all the same.")
	}
	if ran(replicated.ReasonReadsOff) {
		add("Part of the record was made with reads=off, which tells nothing of replicas: use reads=shadow.")
	}
	if ran(replicated.ReasonNotOptedIn) {
		add("Under reads=opt-in nothing is told of callers that have not opted in: leave a process under reads=shadow for these.")
	}
	if c := s.callers[""]; c != nil && c.statements > 0 {
		add("%s statements have no caller: see replicated.WithCaller.", thousands(c.statements))
	}
	for _, n := range byCount(mapCounts(s.notices)) {
		if why, ok := noticeNotes[n.what]; ok {
			add("%s", why)
		}
	}
	if s.total.failed > 0 {
		add("%s statements, or attempts on a replica, ended in an error.", thousands(s.total.failed))
	}
	if s.overflow {
		add("There are more than %s callers: there may be values in their names. Further ones are counted together.", thousands(maxCallers))
	}
	if s.dropped > 0 {
		add("%s statements are missing: they had too many different callers, or the record could not be written.", thousands(s.dropped))
	}
	if s.skipped > 0 {
		add("%s lines are none of a record and were left out.", thousands(s.skipped))
	}
	return notes
}

func mapCounts(m map[string]int64) []counted {
	list := make([]counted, 0, len(m))
	for what, n := range m {
		list = append(list, counted{what, n})
	}
	return list
}

// noticeNotes are what notices mean for the numbers.
var noticeNotes = map[string]string{
	replicated.NoticeLagUnmeasured.String(): "Freshness could not be measured (notice lag-unmeasured): what is stale is guessed by replicated.sticky.",
	replicated.NoticePooler.String():        "There is a pooler before a node (notice pooler): freshness cannot be proven through it.",
	replicated.NoticeMultiplexed.String():   "A node is several servers behind a pooler (notice multiplexed), and serves no reads.",
	replicated.NoticeCatalogUnread.String(): "The catalog could not be read (notice catalog-unread): statements that call functions of the application stay on the primary for that.",
	replicated.NoticeDiverged.String():      "A replica has what the primary lacks (notice diverged), and serves no reads.",
	replicated.NoticeOtherLineage.String():  "A replica's history could not be shown to be the primary's (notice other-lineage), and it serves no reads.",
	replicated.NoticeTurnedAway.String():    "A node has refused the login, or had no connection left (notice turned-away).",
}

// inALine writes counts in a line.
func inALine(list []counted) string {
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = fmt.Sprintf("%s %s", thousands(c.n), c.what)
	}
	return strings.Join(parts, ", ")
}
