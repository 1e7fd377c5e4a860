// Package partition is a network that can fail, for tests. Each host is a network
// namespace of the kernel with a TUN device. A router in the test process carries the
// packets between the hosts. It can lose and delay them, separately for each direction
// between two hosts.
//
// The namespaces have no names. The kernel removes them when the test and the processes
// in them have ended, in whatever way.
package partition
