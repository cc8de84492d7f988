//go:build !race

package classify_test

const slowdown = 1
