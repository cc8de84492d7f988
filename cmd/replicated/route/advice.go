package route

import "fmt"

// advice is where a caller stands in a roll-out.
type advice uint8

const (
	adviceFirst   advice = iota // opt it in first: nothing about it depends on this driver
	adviceThen                  // it depends on what this driver keeps on the primary
	adviceFix                   // it would fail: change it first
	adviceFew                   // too few statements to tell
	adviceUnknown               // the record does not tell
	adviceNothing               // it has nothing to gain
	advices
)

// adviceNames are those of -format json.
var adviceNames = [advices]string{"first", "then", "fix", "few", "unknown", "nothing"}

// enough is how many statements of a caller say something of the next ones. What
// happens in one of a hundred statements is missed among so many in one of 150 cases.
const enough = 500

// advise says where the caller stands, and why.
func (c *caller) advise() (advice, string) {
	switch {
	case c.by[fateRefused] > 0:
		return adviceFix, fmt.Sprintf("%s statements in read-only transactions would fail with ErrReadOnly", thousands(c.by[fateRefused]))
	case c.statements < enough:
		return adviceFew, fmt.Sprintf("only %s statements seen", thousands(c.statements))
	case c.by[fateMoves] == 0 && c.by[fateUndecided] > 0:
		return adviceUnknown, "its reads ran on the primary for other reasons: record it under reads=shadow"
	case c.by[fateMoves] == 0:
		return adviceNothing, "nothing of it would go to replicas"
	case c.by[fateStale]+c.by[fateBreaks] > 0 || c.writes > 0:
		return adviceThen, "writes, or depends on writes: its other reads stay on the primary"
	default:
		return adviceFirst, "reads only, and nothing it reads had to be newer than a replica"
	}
}
