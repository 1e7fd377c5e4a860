package netguard

import (
	"net/netip"
	"slices"
)

// specialV4 and specialV6 are the special-purpose address registries of IANA and the
// deprecated ranges. IANA assigns public IPv6 addresses only from 2000::/3 (globalV6),
// so specialV6 does not list ranges outside it: unspecified, loopback, unique local,
// link and site local, multicast, discard-only, segment routing, and the NAT64 prefix
// for local use (64:ff9b:1::/48), in which each network chooses the position of the
// IPv4 address.
var (
	specialV4 = prefixes("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
		"192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16",
		"192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4")
	specialV6 = prefixes("2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20")
	globalV6  = netip.MustParsePrefix("2000::/3")
	sixToFour = netip.MustParsePrefix("2002::/16")
	nat64     = netip.MustParsePrefix("64:ff9b::/96")

	// private are the private networks and loopback.
	private = prefixes("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, s := range list {
		out[i] = netip.MustParsePrefix(s)
	}
	return out
}

// embedded returns the IPv4 address inside a translated IPv6 address (NAT64, 6to4),
// and any other address unchanged.
func embedded(a netip.Addr) netip.Addr {
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return a
}

// isPublic reports whether an address belongs to the public Internet.
func isPublic(a netip.Addr) bool {
	if a.Is4() {
		return !within(a, specialV4)
	}
	return globalV6.Contains(a) && !within(a, specialV6)
}

func isPrivate(a netip.Addr) bool { return within(a, private) }

func within(a netip.Addr, list []netip.Prefix) bool {
	return slices.ContainsFunc(list, func(p netip.Prefix) bool { return p.Contains(a) })
}

// unmapped returns an IPv4-mapped IPv6 prefix as an IPv4 prefix, and any other prefix
// unchanged.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}
