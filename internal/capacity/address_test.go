package capacity

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"
)

func TestAddressOfAClient(t *testing.T) {
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
		{"a proxy that writes the port of its client", "10.1.1.1:1234", []string{"198.51.100.1, 203.0.113.9:5678"}, "203.0.113.9"},
		{"a proxy that writes the port of a client on IPv6", "10.1.1.1:1234", []string{"[2001:db8:9::1]:5678"}, "2001:db8:9::/64"},
		{"a proxy that writes brackets", "10.1.1.1:1234", []string{"[2001:db8:9::1]"}, "2001:db8:9::/64"},
		{"half a bracket", "10.1.1.1:1234", []string{"[2001:db8:9::1"}, "10.1.1.1"},
		{"only proxies", "10.1.1.1:1234", []string{"10.2.2.2"}, "10.2.2.2"},
		{"an IPv4-mapped client of a proxy", "10.1.1.1:1234", []string{"::ffff:203.0.113.9"}, "203.0.113.9"},
		{"no port", "pipe", nil, "pipe"},
		{"no address", "pipe:1", nil, "pipe:1"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{"X-Forwarded-For": tt.forwarded}}
			f := NewClientFinder(proxies, time.Now, slog.New(slog.DiscardHandler))
			if got := f.Address(r); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// Every client can send X-Forwarded-For. The operator must learn of a proxy that is
// not configured, but no client may fill the log.
func TestForwardedHeaderOfAnUnknownProxyIsWarnedOfOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	f := NewClientFinder([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, func() time.Time { return now }, slog.New(slog.NewTextHandler(&log, nil)))
	send := func(peer string, header http.Header) { f.Address(&http.Request{RemoteAddr: peer, Header: header}) }
	forwarded := http.Header{"X-Forwarded-For": {"203.0.113.9"}}
	send("10.1.1.1:1", forwarded)      // a trusted proxy
	send("192.0.2.7:1", http.Header{}) // no proxy
	if log.Len() > 0 {
		t.Fatalf("warned without a reason: %s", log.String())
	}
	for range 100 {
		send("192.0.2.7:1", forwarded)
		now = now.Add(30 * time.Second)
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, "--trusted-proxy 192.0.2.7/32") {
		t.Errorf("within an hour: %s", text)
	}
	now = now.Add(time.Hour)
	send("[2001:db8::1]:1", forwarded)
	if text := log.String(); strings.Count(text, "level=WARN") != 2 || !strings.Contains(text, "--trusted-proxy 2001:db8::1/128") {
		t.Errorf("after an hour: %s", text)
	}
}

func TestLocalClients(t *testing.T) {
	t.Parallel()
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.7/32")}
	tests := []struct {
		name, peer, host string
		header           http.Header
		want             bool
	}{
		{"loopback", "127.0.0.1:1", "127.0.0.1:8080", nil, true},
		{"loopback by name", "127.0.0.1:1", "localhost:8080", nil, true},
		{"loopback without a port", "127.0.0.1:1", "localhost", nil, true},
		{"loopback on IPv6", "[::1]:1", "[::1]:8080", nil, true},
		{"loopback inside IPv6", "[::ffff:127.0.0.1]:1", "127.0.0.1:8080", nil, true},
		{"another machine", "192.0.2.1:1", "127.0.0.1:8080", nil, false},
		{"no address", "pipe", "127.0.0.1:8080", nil, false},
		{"a proxy that sets X-Forwarded-For", "127.0.0.1:1", "127.0.0.1:8080", http.Header{"X-Forwarded-For": {"192.0.2.1"}}, false},
		{"a proxy that sets an empty X-Forwarded-For", "127.0.0.1:1", "127.0.0.1:8080", http.Header{"X-Forwarded-For": {""}}, false},
		{"a proxy that sets Forwarded", "127.0.0.1:1", "127.0.0.1:8080", http.Header{"Forwarded": {"for=192.0.2.1"}}, false},
		{"a proxy that sets Via", "127.0.0.1:1", "127.0.0.1:8080", http.Header{"Via": {"1.1 proxy"}}, false},
		{"a proxy that sets X-Real-IP", "127.0.0.1:1", "127.0.0.1:8080", http.Header{"X-Real-Ip": {"192.0.2.1"}}, false},
		{"a proxy that sets nothing and passes the host on", "127.0.0.1:1", "invoices.example", nil, false},
		{"a trusted proxy that sets nothing", "127.0.0.7:1", "127.0.0.1:8080", nil, false},
		{"a proxy that speaks HTTP/1.0", "127.0.0.1:1", "127.0.0.1:8080", nil, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.header == nil {
				tt.header = http.Header{}
			}
			f := NewClientFinder(proxies, time.Now, slog.New(slog.DiscardHandler))
			r := &http.Request{RemoteAddr: tt.peer, Host: tt.host, Header: tt.header, ProtoMajor: 1, ProtoMinor: 1}
			if strings.HasSuffix(tt.name, "HTTP/1.0") {
				r.ProtoMinor = 0
			}
			if got := f.Local(r); got != tt.want {
				t.Errorf("Local is %v", got)
			}
		})
	}
}
