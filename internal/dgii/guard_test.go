package dgii

import (
	"errors"
	"net/netip"
	"testing"
)

func TestGuardAddresses(t *testing.T) {
	t.Parallel()
	g := Guard{Refuse: []netip.Prefix{netip.MustParsePrefix("198.41.0.4/32")}}
	for _, s := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.255.255.254", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.1.1",
		"192.175.48.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
		"240.0.0.1", "255.255.255.255", "198.41.0.4",
		"::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:198.41.0.4", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
		"64:ff9b:1::808:808", "100::1", "2001::1", "2001:0:808:808::1", "2001:db8::1", "2002:7f00:1::1", "2002:a00:1::", "2620:4f:8000::1",
		"3fff::1", "5f00::1", "fc00::1", "fd00::1", "fe80::1", "fe80::1%eth0", "2606:4700::1%eth0", "fec0::1", "ff02::1", "4000::1",
	} {
		if err := g.Addr(netip.MustParseAddr(s)); !errors.Is(err, ErrAddress) {
			t.Errorf("%s may be called", s)
		}
	}
	for _, s := range []string{
		"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1", "198.17.255.255", "223.255.255.255",
		"2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1", "2001:4860::8888",
	} {
		if err := g.Addr(netip.MustParseAddr(s)); err != nil {
			t.Errorf("%s must not be called", s)
		}
	}
	if err := g.Addr(netip.Addr{}); err == nil {
		t.Error("no address may be called")
	}
	for address, ok := range map[string]bool{"8.8.8.8:443": true, "8.8.8.8:80": false, "127.0.0.1:443": false, "[::1]:443": false, "x:443": false} {
		if err := g.Control("tcp4", address, nil); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if err := g.Control("udp4", "8.8.8.8:443", nil); err == nil {
		t.Error("another network")
	}
}

func TestGuardURLs(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", "http://a.example.com", "https://a.example.com:8443", "https://u:p@a.example.com", "https://a.example.com/#x", "https://a.example.com/?x=1",
		"https://127.0.0.1", "https://2130706433", "https://0x7f.1", "https://0177.0.0.1", "https://127.1", "https://[::1]", "https://a.127",
		"https://localhost", "https://intranet", "https://a.local", "https://a.internal.", "https://x.localhost", "https://1.0.0.127.in-addr.arpa",
		"https://a..example.com", "https://ñ.example.com", "https://a.example.com%00", "https:a.example.com", "//a.example.com", "ftp://a.example.com",
		"https://a example.com", "https://" + string(make([]byte, 3000)),
	} {
		if u, err := (Guard{}).URL(s); !errors.Is(err, ErrAddress) {
			t.Errorf("%q is %v", s, u)
		}
	}
	for s, want := range map[string]string{
		"https://A.example.com":         "https://a.example.com",
		"https://a.example.com:443/b/c": "https://a.example.com/b/c",
		" https://a.example.com./ ":     "https://a.example.com/",
		"https://xn--a-0ga.example.com": "https://xn--a-0ga.example.com",
	} {
		u, err := (Guard{}).URL(s)
		if err != nil || u.String() != want {
			t.Errorf("%q is %v: %v", s, u, err)
		}
	}
}
