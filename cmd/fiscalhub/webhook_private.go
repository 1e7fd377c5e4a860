package main

import (
	"net"
	"net/netip"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
)

// privateFlag allows webhooks to addresses that are not public.
type privateFlag struct {
	WebhookAllowPrivate bool `help:"Allow http, private addresses and any port for webhooks. For development and tests, refused in production."`
}

// check returns a usageError when the flag is set in production.
func (f privateFlag) check(env fiscal.Environment) error {
	if f.WebhookAllowPrivate && env == fiscal.Production {
		return wrongUsage("--webhook-allow-private is refused in production: webhooks go to public addresses only",
			"--webhook-allow-private no se admite en production: los webhooks van solo a direcciones públicas")
	}
	return nil
}

// guard returns the rules for webhook addresses. Without the flag it refuses
// addresses that are not public. It always refuses the public addresses of this
// machine, because other services here may trust local callers.
func (f privateFlag) guard() (netguard.Guard, error) {
	g := netguard.Guard{Private: f.WebhookAllowPrivate}
	interfaces, err := net.InterfaceAddrs()
	if err != nil {
		return g, lang.Errorf("the addresses of this machine cannot be read: %s",
			"no se pueden leer las direcciones de esta máquina: %s", err)
	}
	for _, i := range interfaces {
		network, err := netip.ParsePrefix(i.String())
		if err != nil {
			continue // not an IP address
		}
		if own := network.Addr().Unmap(); (netguard.Guard{}).Addr(own) == nil { // the guard refuses the others anyway
			g.Refuse = append(g.Refuse, netip.PrefixFrom(own, own.BitLen()))
		}
	}
	return g, nil
}
