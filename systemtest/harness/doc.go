// Package harness starts the program for tests: it builds it once, runs its commands and
// servers as processes, and speaks to its API.
package harness
