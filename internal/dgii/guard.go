package dgii

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
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
	// Refuse are further addresses that must not be called.
	Refuse []netip.Prefix
}

// Control is the Control of a net.Dialer.
func (g Guard) Control(network, address string, _ syscall.RawConn) error {
	if network != "tcp4" && network != "tcp6" {
		return fmt.Errorf("%w: %s", ErrAddress, network)
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: it cannot be read", ErrAddress)
	}
	if at.Port() != 443 {
		return fmt.Errorf("%w: port %d", ErrAddress, at.Port())
	}
	return g.Addr(at.Addr())
}

// Addr tells whether an address may be called.
func (g Guard) Addr(a netip.Addr) error {
	if !isPublic(a) {
		return ErrAddress
	}
	a = a.Unmap()
	for _, p := range g.Refuse {
		if p.Contains(a) {
			return ErrAddress
		}
	}
	return nil
}

// specialV4 and specialV6 are the special-purpose registries of IANA, and what
// is deprecated. Of IPv6 only 2000::/3 is given out at all.
var (
	specialV4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")
	specialV6 = prefixes("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20")
	globalV6  = netip.MustParsePrefix("2000::/3")
	sixToFour = netip.MustParsePrefix("2002::/16")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// isPublic tells whether an address is one of the public Internet. An IPv4
// address that is written inside one of IPv6 counts as itself.
func isPublic(a netip.Addr) bool {
	a = a.Unmap()
	special := specialV4
	switch b := a.As16(); {
	case !a.IsValid() || a.Zone() != "":
		return false
	case a.Is4():
	case nat64.Contains(a):
		return isPublic(netip.AddrFrom4([4]byte(b[12:16])))
	case sixToFour.Contains(a):
		return isPublic(netip.AddrFrom4([4]byte(b[2:6])))
	case !globalV6.Contains(a):
		return false
	default:
		special = specialV6
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// maxURL is how long an address may be.
const maxURL = 2048

// URL tells whether an address may be called as far as its text shows: https
// at port 443, and a name in the public name space, not a number in any of the
// spellings that resolvers take for one.
func (g Guard) URL(raw string) (*url.URL, error) {
	if len(raw) > maxURL {
		return nil, fmt.Errorf("%w: it is too long", ErrAddress)
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read", ErrAddress) // the error would repeat all of it
	}
	switch {
	case u.Scheme != "https":
		return nil, fmt.Errorf("%w: it is not https", ErrAddress)
	case u.Opaque != "" || u.User != nil || u.Fragment != "" || u.RawQuery != "":
		return nil, fmt.Errorf("%w: it has more than a host and a path", ErrAddress)
	case u.Port() != "" && u.Port() != "443":
		return nil, fmt.Errorf("%w: its port is not 443", ErrAddress)
	}
	host := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	if !isPublicName(host) {
		return nil, fmt.Errorf("%w: its host is no public name", ErrAddress)
	}
	u.Host = host
	return u, nil
}

func isPublicName(host string) bool {
	labels := strings.Split(host, ".")
	if len(host) > 253 || len(labels) < 2 || net.ParseIP(host) != nil {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			return false
		}
	}
	last := labels[len(labels)-1]
	switch last {
	case "local", "internal", "localhost", "arpa", "onion", "test", "invalid", "lan", "home", "corp":
		return false
	}
	return last[0] > '9' // a name that ends in a number is an address: 127.1, 0x7f.1
}
