package simulation

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// A plan is what a seed decides before the run begins: how large it is, and which faults
// it has how often.
type plan struct {
	nodes, workers, clients, documents int
	bursts                             int           // instants at which all documents are created; any time if 0
	numbers                            int           // of each range; few: the range ends during the run
	span                               time.Duration // in which invoices are created and faults occur
	validation, lag                    time.Duration // of the authority
	profile                            string        // of the authority
	duplicates                         simulator.DuplicateMode
	rules                              []simulator.Rule
	authoritySkew                      time.Duration
	buyerReceives, buyerToken          bool

	// How often a fault occurs at a point, of 10,000.
	crash, errorBefore, errorAfter, stall, witness int
	network                                        int // at a message
	hook                                           int // at a webhook

	skew                                bool // clocks of nodes are wrong, and are set
	certificateEnds                     bool // and a new one comes later
	lostDisks                           int  // nodes that start with an empty disk
	restarts, pauses, cuts, outages     int
	databaseStalls, failovers, foreigns int

	responses int  // of the buyer
	compares  bool // the run goes on until every document was compared with the authority
}

func newPlan(r *rand.Rand) plan {
	some := func(percent, most int) int {
		if r.IntN(100) >= percent {
			return 0
		}
		return 1 + r.IntN(most)
	}
	p := plan{
		nodes: 1 + r.IntN(3), workers: 1 + r.IntN(3), clients: 1 + r.IntN(3), documents: 3 + r.IntN(10), numbers: firstRange,
		span: time.Duration(1+r.IntN(40)) * time.Minute, validation: time.Duration(r.IntN(20)) * time.Second,
		buyerReceives: r.IntN(4) > 0, buyerToken: r.IntN(4) == 0,
		profile:    []string{"happy", "happy", "flaky", "chaos", "chaos"}[r.IntN(5)],
		duplicates: []simulator.DuplicateMode{simulator.DuplicateReject, simulator.DuplicateReject, simulator.DuplicateSameTrackID, simulator.DuplicateSameVerdict}[r.IntN(4)],
	}
	if r.IntN(3) == 0 {
		p.lag = time.Duration(r.IntN(8)) * time.Second
	}
	p.crash, p.errorBefore, p.errorAfter, p.stall = some(50, 80), some(40, 300), some(50, 300), some(25, 100)
	p.witness, p.network, p.hook = some(20, 300), some(60, 1200), some(50, 3000)
	p.skew = r.IntN(5) == 0
	p.restarts, p.pauses, p.cuts, p.outages = some(25, 3), some(25, 2), some(25, 2), some(15, 1)
	p.databaseStalls, p.failovers, p.foreigns = some(15, 2), some(12, 2), some(10, 2)
	p.certificateEnds, p.lostDisks = r.IntN(8) == 0, some(10, 2)
	p.bursts = some(30, 3)
	if r.IntN(4) == 0 {
		p.numbers = 2 + r.IntN(6)
	}
	if r.IntN(6) == 0 {
		p.authoritySkew = time.Duration(r.IntN(120)-60) * time.Second
	}
	if r.IntN(3) == 0 {
		p.rules = verdicts(r)
	}
	if r.IntN(3) == 0 {
		p.rules = append(p.rules, wrongAnswers(r)...)
	}
	p.responses, p.compares = some(60, 12), r.IntN(4) == 0
	return p
}

// verdicts are rules by which the authority rejects or conditionally accepts some
// documents.
func verdicts(r *rand.Rand) []simulator.Rule {
	var rules []simulator.Rule
	for i, v := range []simulator.Verdict{
		{Code: 2, Used: false, Messages: []simulator.Message{{Code: 90001, Text: "no"}}},
		{Code: 2, Used: true, Messages: []simulator.Message{{Code: 90002, Text: "no"}}},
		{Code: 4, Used: true, Messages: []simulator.Message{{Code: 90003, Text: "casi"}}},
	} {
		for _, service := range []simulator.Service{simulator.Reception, simulator.RFCE} {
			rules = append(rules, simulator.Rule{
				ID: fmt.Sprintf("verdict-%d-%s", i, service), Match: simulator.Match{Service: service, Percent: float64(5 + r.IntN(25)), Attempt: 1},
				Action: simulator.Action{Fault: "F17", Verdict: &v},
			})
		}
	}
	return rules
}

// wrongAnswers are rules by which the authority answers about other documents, doubles
// its track ids, contradicts itself, has a wrong clock, or lacks the look-ups by number.
func wrongAnswers(r *rand.Rand) []simulator.Rule {
	var rules []simulator.Rule
	for _, a := range []struct {
		service simulator.Service
		action  simulator.Action
	}{
		{simulator.Result, simulator.Action{Fault: "F15", Variant: "other-encf", Verdict: &simulator.Verdict{Code: 2}}},
		{simulator.Result, simulator.Action{Fault: "F15", Variant: "other-rnc"}},
		{simulator.Result, simulator.Action{Fault: "F15", Variant: "contradiction"}},
		{simulator.Result, simulator.Action{Fault: "F15", Variant: "unknown-code"}},
		{simulator.Reception, simulator.Action{Fault: "F13", Variant: "first"}},
		{simulator.Reception, simulator.Action{Fault: "F13", Variant: "second"}},
		{simulator.Seed, simulator.Action{Fault: "F20", Delay: simulator.Duration(time.Hour)}},
		{simulator.Token, simulator.Action{Fault: "F09", Variant: "expires-after", After: 2}},
	} {
		if r.IntN(3) > 0 {
			continue
		}
		rules = append(rules, simulator.Rule{
			ID: "wrong-" + string(a.service) + a.action.Fault + a.action.Variant, Match: simulator.Match{Service: a.service, Percent: float64(10 + r.IntN(60))},
			Action: a.action, Count: 1 + r.IntN(3),
		})
	}
	if r.IntN(3) > 0 {
		return rules
	}
	for _, service := range []simulator.Service{simulator.TrackIDs, simulator.StateLookup} {
		rules = append(rules, simulator.Rule{
			ID: "no-" + string(service), Match: simulator.Match{Service: service}, Action: simulator.Action{Fault: "F05", Status: http.StatusNotFound},
		})
	}
	return rules
}

func (p plan) String() string {
	return fmt.Sprintf("%d nodes with %d workers, %d clients, %d documents in %s and %d bursts, ranges of %d numbers; authority %s, duplicates %s, validation up to %s, lag up to %s, skew %s; "+
		"of 10,000: crash %d, error before %d and after %d, stall %d, witness %d, message %d, webhook %d; wrong clocks %t; "+
		"restarts %d, pauses %d, cuts %d, outages %d, database stalls %d, failovers %d, documents of others %d, lost disks %d, certificate ends %t, %d rules; responses %d, comparison %t",
		p.nodes, p.workers, p.clients, p.documents, p.span, p.bursts, p.numbers, p.profile, p.duplicates, p.validation, p.lag, p.authoritySkew,
		p.crash, p.errorBefore, p.errorAfter, p.stall, p.witness, p.network, p.hook, p.skew,
		p.restarts, p.pauses, p.cuts, p.outages, p.databaseStalls, p.failovers, p.foreigns, p.lostDisks, p.certificateEnds, len(p.rules), p.responses, p.compares)
}
