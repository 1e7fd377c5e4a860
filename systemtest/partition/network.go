//go:build linux

package partition

import (
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
)

// Prefix is the network of the hosts.
var Prefix = netip.MustParsePrefix("10.77.0.0/24")

// A Network connects hosts.
type Network struct {
	hosts   map[netip.Addr]*Host
	byName  map[string]*Host
	routing sync.WaitGroup

	mu     sync.Mutex
	faults map[direction]Fault
}

// A direction is from one host to another.
type direction struct{ from, to *Host }

// A Fault is what happens to the packets in one direction.
type Fault struct {
	Loss  float64       // of the packets, 1 for all
	Delay time.Duration // of each packet
}

// New creates a network with hosts of these names. They have the addresses 10.77.0.1,
// 10.77.0.2 and so on. It skips the test when this machine does not allow that.
func New(t testing.TB, names ...string) *Network {
	t.Helper()
	if os.Getuid() != 0 {
		needtest.LeftOut(t, "network-namespaces", "they need the user root")
	}
	n := &Network{hosts: map[netip.Addr]*Host{}, byName: map[string]*Host{}, faults: map[direction]Fault{}}
	t.Cleanup(func() {
		for _, h := range n.hosts {
			h.close()
		}
		n.routing.Wait()
	})
	address := Prefix.Addr()
	for _, name := range names {
		address = address.Next()
		h, err := newHost(name, address)
		if err != nil {
			needtest.LeftOut(t, "network-namespaces", err)
		}
		n.hosts[address], n.byName[name] = h, h
	}
	for _, h := range n.hosts {
		n.routing.Go(func() { n.route(h) })
	}
	return n
}

// Host returns the host of a name.
func (n *Network) Host(name string) *Host { return n.byName[name] }

// Break sets what happens to packets from one host to another. Packets in the other
// direction are not affected.
func (n *Network) Break(from, to string, f Fault) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.faults[direction{n.byName[from], n.byName[to]}] = f
}

// Heal ends all faults.
func (n *Network) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.faults)
}

// route carries the packets that a host sends.
func (n *Network) route(from *Host) {
	for buffer := make([]byte, 1<<16); ; {
		size, err := from.device.Read(buffer)
		if err != nil {
			return // the test has ended
		}
		to := n.hosts[destination(buffer[:size])]
		if to == nil {
			continue // for the kernel's own multicasts
		}
		n.mu.Lock()
		f := n.faults[direction{from, to}]
		n.mu.Unlock()
		switch {
		case f.Loss > 0 && rand.Float64() < f.Loss:
		case f.Delay > 0:
			packet := append([]byte(nil), buffer[:size]...)
			time.AfterFunc(f.Delay, func() { _, _ = to.device.Write(packet) }) // fails when the test has ended
		default:
			_, _ = to.device.Write(buffer[:size]) // a lost packet is sent again
		}
	}
}

// destination returns the address that an IPv4 packet is for, and no address for any
// other packet.
func destination(packet []byte) netip.Addr {
	if len(packet) < 20 || packet[0]>>4 != 4 {
		return netip.Addr{}
	}
	return netip.AddrFrom4([4]byte(packet[16:20]))
}
