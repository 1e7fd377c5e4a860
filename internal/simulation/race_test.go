//go:build race

package simulation

// newSeeds is how many new seeds a run of the tests draws. The race detector makes each
// run several times slower.
const newSeeds = 5
