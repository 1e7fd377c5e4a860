//go:build race

package fiscal_test

// raceMemory is what the race detector adds to the memory of a creation.
const raceMemory = 2 << 20
