//go:build race

package simulation

// fixedSeeds is how many seeds each run of the tests has. The race detector makes each run
// several times slower.
const fixedSeeds = 3
