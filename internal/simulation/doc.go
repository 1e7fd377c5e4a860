// Package simulation runs several nodes of the service, the simulator of the authority,
// buyers, receivers of webhooks and clients in one process on virtual time. One seed
// decides a run: which worker acts next, and which fault occurs at which commit, message
// or instant. After each run the package oracle compares what everybody has seen.
//
// The package has tests alone. See docs/proof.md for the commands and what the
// simulation cannot show.
package simulation
