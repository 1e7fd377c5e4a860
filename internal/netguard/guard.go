// Package netguard protects calls to addresses that come from outside, such as webhook
// URLs (server-side request forgery). It decides which addresses may be called, makes
// the connections, and classifies failures for integrators.
package netguard

import (
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// ErrAddress means that an address must not be called, because it does not belong to a
// public server.
var ErrAddress = lang.Errorf("the address does not belong to a public server", "la dirección no pertenece a un servidor público")

// A Guard refuses calls to addresses that are not public. It checks an address twice:
// the text of the URL, and the IP address when the connection is made. A name that
// resolves to another IP address the second time (DNS rebinding) is therefore refused
// too.
type Guard struct {
	// Refuse lists further addresses that must not be called, such as the public
	// addresses of this service.
	Refuse []netip.Prefix
	// Private also allows loopback and private networks, http, and any port. It is
	// meant for development. Other special addresses, such as the metadata service
	// of cloud providers, are still refused.
	Private bool
}

// Control checks an IP address and port before the connection is made. Use it as the
// Control function of a net.Dialer. It fails with ErrAddress.
func (g Guard) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: %s", ErrAddress, network)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: it cannot be parsed", ErrAddress)
	}
	if at.Port() != 443 && !g.Private {
		return fmt.Errorf("%w: port %d", ErrAddress, at.Port())
	}
	return g.Addr(at.Addr())
}

// Addr fails with ErrAddress when an IP address must not be called.
func (g Guard) Addr(a netip.Addr) error {
	if !a.IsValid() || a.Zone() != "" {
		return ErrAddress
	}
	a = a.Unmap()
	inner := embedded(a)
	if allowed := isPublic(inner) || g.Private && isPrivate(a); !allowed {
		return ErrAddress
	}
	for _, p := range g.Refuse {
		if p = unmapped(p); p.Contains(a) || p.Contains(inner) {
			return ErrAddress
		}
	}
	return nil
}

// Dialer returns a dialer that skips the addresses of a name that the guard refuses. A
// nil resolver means that of the system.
func (g Guard) Dialer(timeout time.Duration, resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{Timeout: timeout, Resolver: resolver, Control: g.Control}
}
