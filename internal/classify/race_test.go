//go:build race

package classify_test

// slowdown is what the race detector may cost.
const slowdown = 20
