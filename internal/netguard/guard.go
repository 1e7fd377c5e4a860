// Package netguard owns where this service may be led to by others: which
// addresses that somebody else has named may be called, how they are called,
// and what may be said of it when that fails.
package netguard

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// ErrAddress is an address that must not be called: it is not that of a public
// server. Who names an address for us to call is never trusted with where it
// leads.
var ErrAddress = errors.New("the address is not that of a public server")

// A Guard keeps calls to addresses that others have named away from what is not
// public. It is checked twice: the text of the address, and what its name turned
// out to be at the moment of the connection, so that a name that resolves
// differently the second time gains nothing.
type Guard struct {
	// Refuse are further addresses that must not be called, such as our own
	// public ones.
	Refuse []netip.Prefix
	// Private also allows loopback and the private networks, http, and any
	// port: for development. What is special in another way, such as the
	// addresses where clouds give out credentials, stays refused.
	Private bool
}

// Control is the Control of a net.Dialer: it sees every address that is about to
// be dialled, whatever name led there.
func (g Guard) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: %s", ErrAddress, network)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: it cannot be read", ErrAddress)
	}
	if at.Port() != 443 && !g.Private {
		return fmt.Errorf("%w: port %d", ErrAddress, at.Port())
	}
	return g.Addr(at.Addr())
}

// Addr tells whether an address may be called.
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

// Dialer returns a dialer that connects to no address that the guard refuses: it
// goes on to the next that the name has. A nil resolver is the system's.
func (g Guard) Dialer(timeout time.Duration, resolver *net.Resolver) *net.Dialer {
	return &net.Dialer{Timeout: timeout, Resolver: resolver, Control: g.Control}
}
