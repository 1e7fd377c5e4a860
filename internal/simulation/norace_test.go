//go:build !race

package simulation

// newSeeds is how many new seeds a run of the tests draws.
const newSeeds = 100
