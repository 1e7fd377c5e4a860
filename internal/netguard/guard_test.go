package netguard

import (
	"errors"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

// refusedRanges lists every refused range: its first and last address, and the
// addresses before and after it where these are public.
var refusedRanges = []struct{ first, last, before, after string }{
	{"0.0.0.0", "0.255.255.255", "", "1.0.0.0"},
	{"10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"},
	{"100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"},
	{"127.0.0.0", "127.255.255.255", "126.255.255.255", "128.0.0.0"},
	{"169.254.0.0", "169.254.255.255", "169.253.255.255", "169.255.0.0"},
	{"172.16.0.0", "172.31.255.255", "172.15.255.255", "172.32.0.0"},
	{"192.0.0.0", "192.0.0.255", "191.255.255.255", "192.0.1.0"},
	{"192.0.2.0", "192.0.2.255", "192.0.1.255", "192.0.3.0"},
	{"192.31.196.0", "192.31.196.255", "192.31.195.255", "192.31.197.0"},
	{"192.52.193.0", "192.52.193.255", "192.52.192.255", "192.52.194.0"},
	{"192.88.99.0", "192.88.99.255", "192.88.98.255", "192.88.100.0"},
	{"192.168.0.0", "192.168.255.255", "192.167.255.255", "192.169.0.0"},
	{"192.175.48.0", "192.175.48.255", "192.175.47.255", "192.175.49.0"},
	{"198.18.0.0", "198.19.255.255", "198.17.255.255", "198.20.0.0"},
	{"198.51.100.0", "198.51.100.255", "198.51.99.255", "198.51.101.0"},
	{"203.0.113.0", "203.0.113.255", "203.0.112.255", "203.0.114.0"},
	{"224.0.0.0", "239.255.255.255", "223.255.255.255", ""},
	{"240.0.0.0", "255.255.255.255", "", ""},

	{"::", "::", "", ""},
	{"::1", "::1", "", ""},
	{"::2", "::fffe:ffff:ffff", "", ""}, // including IPv4-compatible addresses
	{"64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff", "", ""},
	{"100::", "100::ffff:ffff:ffff:ffff", "", ""},
	{"101::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", "2000::"},
	{"2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", "2000:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "2001:200::"},
	{"2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::"},
	{"2620:4f:8000::", "2620:4f:8000:ffff:ffff:ffff:ffff:ffff", "2620:4f:7fff:ffff:ffff:ffff:ffff:ffff", "2620:4f:8001::"},
	{"3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"},
	{"4000::", "5eff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", ""},
	{"5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""},
	{"fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""},
	{"fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""},
	{"fec0::", "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""},
	{"ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "", ""},
}

func TestAddrRefusesEverySpecialRange(t *testing.T) {
	t.Parallel()
	check := func(s string, allowed bool) {
		t.Helper()
		if s == "" {
			return
		}
		if err := (Guard{}).Addr(netip.MustParseAddr(s)); (err == nil) != allowed || err != nil && !errors.Is(err, ErrAddress) {
			t.Errorf("%s is allowed: %t", s, err == nil)
		}
	}
	for _, r := range refusedRanges {
		check(r.first, false)
		check(r.last, false)
		check(r.before, true)
		check(r.after, true)
	}
	if err := (Guard{}).Addr(netip.Addr{}); err == nil {
		t.Error("the zero address is allowed")
	}
	for _, zoned := range []string{"fe80::1%eth0", "2606:4700::1%eth0"} {
		check(zoned, false)
	}
}

// An IPv6 address that contains an IPv4 address is allowed exactly when the IPv4
// address is, for each form of translation.
func TestAddrChecksTheEmbeddedIPv4Address(t *testing.T) {
	t.Parallel()
	wrap := map[string]func([4]byte) netip.Addr{
		"mapped": func(b [4]byte) netip.Addr {
			return netip.AddrFrom16(netip.AddrFrom4(b).As16())
		},
		"NAT64": func(b [4]byte) netip.Addr {
			return netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 12: b[0], 13: b[1], 14: b[2], 15: b[3]})
		},
		"6to4": func(b [4]byte) netip.Addr {
			return netip.AddrFrom16([16]byte{0x20, 0x02, b[0], b[1], b[2], b[3], 15: 1})
		},
	}
	own := netip.MustParseAddr("198.41.0.4")
	for _, g := range []Guard{
		{Refuse: []netip.Prefix{netip.PrefixFrom(own, 32)}},
		{Refuse: []netip.Prefix{netip.MustParsePrefix("::ffff:198.41.0.0/120")}},
	} {
		for name, in := range wrap {
			for _, s := range []string{"127.0.0.1", "10.1.2.3", "169.254.169.254", "192.168.0.1", "0.0.0.0", own.String()} {
				if a := in(netip.MustParseAddr(s).As4()); g.Addr(a) == nil {
					t.Errorf("%s, which is %s by %s, is allowed", a, s, name)
				}
			}
			if a := in([4]byte{8, 8, 8, 8}); g.Addr(a) != nil {
				t.Errorf("%s, which is 8.8.8.8 by %s, is refused", a, name)
			}
		}
		if g.Addr(own) == nil {
			t.Error("our own address is allowed")
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := [4]byte(rapid.SliceOfN(rapid.Byte(), 4, 4).Draw(t, "address"))
		plain := (Guard{}).Addr(netip.AddrFrom4(b)) == nil
		for name, in := range wrap {
			if got := (Guard{}).Addr(in(b)) == nil; got != plain {
				t.Errorf("%v is allowed: %t, by %s: %t", b, plain, name, got)
			}
		}
		// The position of the IPv4 address in a local NAT64 prefix is unknown.
		if local := netip.AddrFrom16([16]byte{0, 0x64, 0xff, 0x9b, 0, 1, b[0], b[1], 0, b[2], b[3]}); (Guard{}).Addr(local) == nil {
			t.Errorf("%s is allowed", local)
		}
	})
}

func TestControlChecksNetworkAddressAndPort(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		network, address string
		public, private  bool
	}{
		{"tcp4", "8.8.8.8:443", true, true},
		{"tcp6", "[2606:4700::1111]:443", true, true},
		{"tcp4", "8.8.8.8:80", false, true},
		{"tcp4", "127.0.0.1:443", false, true},
		{"tcp6", "[::1]:8080", false, true},
		{"tcp6", "[::ffff:127.0.0.1]:443", false, true},
		{"tcp4", "172.17.0.2:8080", false, true},
		{"tcp6", "[fd00::1]:443", false, true},
		{"tcp4", "169.254.169.254:80", false, false},
		{"tcp6", "[fe80::1%eth0]:443", false, false},
		{"tcp6", "[64:ff9b::7f00:1]:443", false, false},
		{"tcp4", "0.0.0.0:443", false, false},
		{"tcp4", "198.41.0.4:443", false, false},
		{"tcp4", "example.com:443", false, false},
		{"udp4", "8.8.8.8:443", false, false},
		{"unix", "/run/x", false, false},
	} {
		refuse := []netip.Prefix{netip.MustParsePrefix("198.41.0.4/32")}
		for _, g := range []Guard{{Refuse: refuse}, {Refuse: refuse, Private: true}} {
			want := tt.public
			if g.Private {
				want = tt.private
			}
			err := g.Control(tt.network, tt.address, nil)
			if (err == nil) != want || err != nil && !errors.Is(err, ErrAddress) {
				t.Errorf("%s %s, private %t: %v", tt.network, tt.address, g.Private, err)
			}
		}
	}
}
