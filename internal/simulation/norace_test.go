//go:build !race

package simulation

// fixedSeeds is how many seeds each run of the tests has.
const fixedSeeds = 40
