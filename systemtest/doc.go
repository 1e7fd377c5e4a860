// Package systemtest proves with real processes what users are promised: it starts the
// program with its databases, a simulated authority and clients, kills processes, cuts
// connections and the power of disks, and compares what was acknowledged with what is there.
package systemtest
