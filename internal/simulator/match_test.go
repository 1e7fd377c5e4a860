package simulator_test

import (
	"crypto/x509"
	"net/http"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

func pool(r *rig) *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(r.CA())
	return p
}

func TestRuleMatchers(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, zone)
	for _, c := range []struct {
		name  string
		match simulator.Match
		count int
		want  []int // of three posts: two of the first number, one of the second
	}{
		{"everything", simulator.Match{}, 0, []int{503, 503, 503}},
		{"twice", simulator.Match{}, 2, []int{503, 503, 200}},
		{"the service", simulator.Match{Service: simulator.RFCE}, 0, []int{200, 200, 200}},
		{"the environment", simulator.Match{Amb: "testecf"}, 0, []int{200, 200, 200}},
		{"the issuer", simulator.Match{RNC: issuer}, 0, []int{503, 503, 503}},
		{"another issuer", simulator.Match{RNC: buyer}, 0, []int{200, 200, 200}},
		{"the type", simulator.Match{Type: "32"}, 0, []int{200, 200, 200}},
		{"the number", simulator.Match{ENCF: encf31(2)}, 0, []int{200, 200, 503}},
		{"the start", simulator.Match{ENCFPrefix: "E31"}, 0, []int{503, 503, 503}},
		{"the end", simulator.Match{ENCFSuffix: "1"}, 0, []int{503, 503, 200}},
		{"the attempt", simulator.Match{Attempt: 2}, 0, []int{200, 503, 200}},
		{"the nth call", simulator.Match{Nth: 3}, 0, []int{200, 200, 503}},
		{"before the window", simulator.Match{From: now.Add(time.Hour)}, 0, []int{200, 200, 200}},
		{"after the window", simulator.Match{To: now}, 0, []int{200, 200, 200}},
		{"a header", simulator.Match{Header: map[string]string{"Content-Type": "multipart"}}, 0, []int{503, 503, 503}},
		{"another header", simulator.Match{Header: map[string]string{"Content-Type": "json"}}, 0, []int{200, 200, 200}},
		{"all per cent", simulator.Match{Percent: 100}, 0, []int{503, 503, 503}},
		{"hardly ever", simulator.Match{Percent: 0.0001}, 0, []int{200, 200, 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).login()
			r.fault(simulator.Rule{Match: c.match, Action: simulator.Action{Fault: "F05"}, Count: c.count})
			for i, n := range []int{1, 1, 2} {
				if a := r.upload(reception, issuer+encf31(n)+".xml", r.sign(invoice, encf31(n))); a.status != c.want[i] {
					t.Errorf("post %d: %d, want %d", i+1, a.status, c.want[i])
				}
			}
		})
	}
}

func TestFirstRuleWins(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	r.fault(simulator.Rule{ID: "one", Match: simulator.Match{ENCF: encf31(1)}, Action: simulator.Action{Fault: "F05", Status: 500}, Count: 1})
	r.fault(simulator.Rule{ID: "two", Action: simulator.Action{Fault: "F05", Status: 504}})
	if _, err := r.AddRule(simulator.Rule{ID: "two", Action: simulator.Action{Fault: "F01"}}); err == nil {
		t.Error("two rules of one id")
	}
	for _, want := range []int{500, 504} {
		if a := r.upload(reception, issuer+encf31(1)+".xml", r.sign(invoice, encf31(1))); a.status != want {
			t.Errorf("%d, want %d", a.status, want)
		}
	}
	if q := r.Requests(); q[len(q)-1].Rule != "two" {
		t.Errorf("the journal names rule %q", q[len(q)-1].Rule)
	}
}

func TestMagicNumbers(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *simulator.Options) { o.Config.MagicNumbers = true }).login()
	for n, want := range map[int]string{901: "2 false", 902: "2 true", 903: "4 true", 904: "3 false", 907: "0 false", 900: "1 true"} {
		v := r.verdict(r.send(encf31(n), r.sign(invoice, encf31(n))))
		used := "false"
		if v["secuenciaUtilizada"] == true {
			used = "true"
		}
		if got := v["codigo"].(string) + " " + used; got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
	if a := r.upload(reception, issuer+encf31(905)+".xml", r.sign(invoice, encf31(905))); a.err == nil {
		t.Errorf("905: %d", a.status)
	}
	for _, want := range []int{503, 200} {
		if a := r.upload(reception, issuer+encf31(906)+".xml", r.sign(invoice, encf31(906))); a.status != want {
			t.Errorf("906: %d, want %d", a.status, want)
		}
	}
}

func TestProfiles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"happy", "slow-day", "flaky", "dgii-down", "certification-strict", "chaos", "moon"} {
		r := newRig(t)
		if err := r.SetProfile(name); (err == nil) != (name != "moon") {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Of flaky, some fail and most do not.
	r := newRig(t).login()
	must(t, r.SetProfile("flaky"))
	failed := 0
	for n := 1; n <= 100; n++ {
		a := r.upload(reception, issuer+encf31(n)+".xml", r.sign(invoice, encf31(n)))
		if a.err != nil || a.status != http.StatusOK || a.body[0] != '{' {
			failed++
		}
	}
	if failed < 5 || failed > 40 {
		t.Errorf("%d of 100 failed", failed)
	}
}

func open(t testing.TB, c *simulator.Certificate) *xmlsig.Identity {
	t.Helper()
	id, err := xmlsig.OpenP12(c.P12, c.Password)
	must(t, err)
	return id
}

// Who asks often enough is answered: a rule of some per cent is drawn anew for
// every question and every post.
func TestPerCentIsDrawnAnew(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	id := r.send(encf31(1), r.sign(invoice, encf31(1)))
	r.fault(simulator.Rule{Match: simulator.Match{Percent: 50}, Action: simulator.Action{Fault: "F05"}})
	raw := r.sign(invoice, encf31(2))
	for name, ask := range map[string]func() int{
		"result": func() int { return r.get(result, "trackid", id).status },
		"state":  func() int { return r.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(1)).status },
		"seed":   func() int { return r.get(seedURL).status },
		"post":   func() int { return r.upload(reception, issuer+encf31(2)+".xml", raw).status },
		"peer": func() int {
			q := *r
			q.token = ""
			return q.upload(peerPath, issuer+encf31(2)+".xml", raw).status
		},
	} {
		good, bad := 0, 0
		for range 30 {
			if ask() == http.StatusOK {
				good++
			} else {
				bad++
			}
		}
		if good == 0 || bad == 0 {
			t.Errorf("%s: %d answered and %d refused", name, good, bad)
		}
	}
}
