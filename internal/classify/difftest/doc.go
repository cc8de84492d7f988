// Package difftest holds the classifier against real servers. A generator makes
// statements by grammar, odd ones on purpose; what the classifier calls a read is
// run on a writable server and on a read-only replica, and afterwards nothing may
// have changed on the first and nothing have been refused by the second.
//
// REPLICATED_DIFF is the number of reads to run per engine (50,000 with CI=true,
// else 3,000), REPLICATED_DIFF_SEED the seed (1). The same seed makes the same
// statements: statement i of a seed depends on the two numbers alone. What matches the regular
// expression REPLICATED_DIFF_SKIP is left out.
package difftest
