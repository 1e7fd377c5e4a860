package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// clientAddress returns the address of the client of a request. It reads
// X-Forwarded-For only as far as the addresses are those of configured proxies. It
// returns false when the address is not known: when a proxy has sent something
// else than an address. The address is then that of the last known hop.
func clientAddress(r *http.Request, proxies []netip.Prefix) (netip.Addr, bool) {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}, false
	}
	hops := r.Header.Values("X-Forwarded-For")
	if len(hops) > 0 {
		hops = strings.Split(strings.Join(hops, ","), ",")
	}
	for i := len(hops) - 1; i >= 0 && isProxy(address, proxies); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			return address.Unmap().WithZone(""), false
		}
		address = hop
	}
	return address.Unmap().WithZone(""), true
}

// clientNetwork identifies the client of a request by its IPv4 address or its
// IPv6 /64 network.
func clientNetwork(r *http.Request, proxies []netip.Prefix) string {
	address, _ := clientAddress(r, proxies)
	if !address.IsValid() {
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			return host
		}
		return r.RemoteAddr
	}
	if address.Is6() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}

func isProxy(address netip.Addr, proxies []netip.Prefix) bool {
	for _, p := range proxies {
		if p.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}
