package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// clientNetwork identifies the client of a request by its IPv4 address or its
// IPv6 /64 network. It reads X-Forwarded-For only as far as the addresses are
// those of configured proxies.
func clientNetwork(r *http.Request, proxies []netip.Prefix) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for i := len(hops) - 1; i >= 0 && isProxy(address, proxies); i-- {
		hop, err := netip.ParseAddr(strings.TrimSpace(hops[i]))
		if err != nil {
			break
		}
		address = hop
	}
	address = address.Unmap().WithZone("")
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
