package simulator_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestRulesMatchCalls(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, zone)
	for _, c := range []struct {
		name  string
		match simulator.Match
		count int
		want  []int // statuses of three posts: two of the first number, one of the second
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
		{"100 percent", simulator.Match{Percent: 100}, 0, []int{503, 503, 503}},
		{"almost 0 percent", simulator.Match{Percent: 0.0001}, 0, []int{200, 200, 200}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t).login()
			e.addRule(simulator.Rule{Match: c.match, Action: simulator.Action{Fault: "F05"}, Count: c.count})
			for i, n := range []int{1, 1, 2} {
				if a := e.upload(reception, issuer+encf31(n)+".xml", e.sign(invoice, encf31(n))); a.status != c.want[i] {
					t.Errorf("post %d: %d, want %d", i+1, a.status, c.want[i])
				}
			}
		})
	}
}

func TestFirstRuleWins(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.addRule(simulator.Rule{ID: "one", Match: simulator.Match{ENCF: encf31(1)}, Action: simulator.Action{Fault: "F05", Status: 500}, Count: 1})
	e.addRule(simulator.Rule{ID: "two", Action: simulator.Action{Fault: "F05", Status: 504}})
	if _, err := e.AddRule(simulator.Rule{ID: "two", Action: simulator.Action{Fault: "F01"}}); err == nil {
		t.Error("AddRule accepted an id twice")
	}
	for _, want := range []int{500, 504} {
		if a := e.upload(reception, issuer+encf31(1)+".xml", e.sign(invoice, encf31(1))); a.status != want {
			t.Errorf("%d, want %d", a.status, want)
		}
	}
	if q := e.Requests(); q[len(q)-1].Rule != "two" {
		t.Errorf("the journal names rule %q", q[len(q)-1].Rule)
	}
}

// A rule with Percent draws again for every look-up and every post, so that a client that
// retries succeeds in the end.
func TestPercentIsDrawnForEveryCall(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	id := e.send(encf31(1), e.sign(invoice, encf31(1)))
	e.addRule(simulator.Rule{Match: simulator.Match{Percent: 50}, Action: simulator.Action{Fault: "F05"}})
	raw := e.sign(invoice, encf31(2))
	for name, ask := range map[string]func() int{
		"result": func() int { return e.get(result, "trackid", id).status },
		"state":  func() int { return e.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(1)).status },
		"seed":   func() int { return e.get(seedURL).status },
		"post":   func() int { return e.upload(reception, issuer+encf31(2)+".xml", raw).status },
		"peer": func() int {
			q := *e
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
