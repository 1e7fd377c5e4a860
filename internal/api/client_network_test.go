package api

import (
	"net/http"
	"net/netip"
	"testing"
)

func TestClientNetwork(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	tests := []struct {
		name, peer string
		forwarded  []string
		want       string
	}{
		{"an address", "192.0.2.7:1234", nil, "192.0.2.7"},
		{"IPv6 counts by its network", "[2001:db8:1:2:3:4:5:6]:1234", nil, "2001:db8:1:2::/64"},
		{"another address of the same network", "[2001:db8:1:2:ffff::1]:9", nil, "2001:db8:1:2::/64"},
		{"IPv4-mapped IPv6", "[::ffff:192.0.2.7]:1234", nil, "192.0.2.7"},
		{"the zone is ignored", "[fe80::1%eth0]:1234", nil, "fe80::/64"},
		{"X-Forwarded-For of another client is ignored", "192.0.2.7:1234", []string{"203.0.113.9"}, "192.0.2.7"},
		{"a proxy is trusted", "10.1.1.1:1234", []string{"203.0.113.9"}, "203.0.113.9"},
		{"a proxy on IPv6 is trusted", "[fd00::1]:1234", []string{"2001:db8:9::1"}, "2001:db8:9::/64"},
		{"an IPv4-mapped proxy is trusted", "[::ffff:10.1.1.1]:1234", []string{"203.0.113.9"}, "203.0.113.9"},
		{"the entry of the client is ignored", "10.1.1.1:1234", []string{"198.51.100.1, 203.0.113.9"}, "203.0.113.9"},
		{"a chain of proxies", "10.1.1.1:1234", []string{"198.51.100.1, 203.0.113.9, 10.2.2.2"}, "203.0.113.9"},
		{"a chain in several lines", "10.1.1.1:1234", []string{"198.51.100.1", "203.0.113.9", "10.2.2.2"}, "203.0.113.9"},
		{"a proxy without X-Forwarded-For", "10.1.1.1:1234", nil, "10.1.1.1"},
		{"a proxy with a malformed entry", "10.1.1.1:1234", []string{"203.0.113.9, unknown"}, "10.1.1.1"},
		{"only proxies", "10.1.1.1:1234", []string{"10.2.2.2"}, "10.2.2.2"},
		{"an IPv4-mapped client of a proxy", "10.1.1.1:1234", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"no port", "pipe", nil, "pipe"},
		{"no address", "pipe:1", nil, "pipe"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{"X-Forwarded-For": tt.forwarded}}
			if got := clientNetwork(r, proxies); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
