package live_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// A trial is one document and what goes wrong with it besides the crash.
type trial struct {
	name  string
	kind  fiscal.Type
	net   int
	fault func(w *env, reception simulator.Service)
	final fiscal.Status
	state store.NumberState
	// twice: also with a second crash. postgres: also there. more: only when
	// FISCALHUB_CRASHES is set, as in the long run of make soak.
	twice, postgres, more bool
}

// summary tells whether the authority gets a summary.
func (tr trial) summary() bool { return tr.kind == fiscal.Consumer && tr.net < 200_000 }

func trials() []trial {
	var all []trial
	for _, doc := range []trial{
		{name: "31", kind: fiscal.FiscalCredit, net: 1000, final: fiscal.Delivered},
		{name: "small 32", kind: fiscal.Consumer, net: 1000, final: fiscal.Accepted},
		{name: "large 32", kind: fiscal.Consumer, net: 300_000, final: fiscal.Accepted},
	} {
		add := func(name string, tr trial) {
			tr.name, tr.kind, tr.net = doc.name+" "+name, doc.kind, doc.net
			if tr.final == "" {
				tr.final, tr.state = doc.final, store.NumberUsed
			}
			all = append(all, tr)
		}
		once := func(a simulator.Action) func(*env, simulator.Service) {
			return func(w *env, reception simulator.Service) { w.Rule(1, reception, a) }
		}
		add("plain", trial{twice: doc.name == "31", postgres: doc.name != "large 32"})
		add("answer lost", trial{fault: once(simulator.Action{Fault: "F02"})})
		// These two take the same way, which is long.
		if doc.name != "large 32" {
			add("document lost", trial{fault: once(simulator.Action{Fault: "F02", Store: livetest.No()}), more: doc.name != "31"})
		}
		if doc.name != "31" {
			add("503", trial{fault: once(simulator.Action{Fault: "F05"}), more: true})
		}
		add("rejected", trial{
			fault: func(w *env, reception simulator.Service) { w.Rule(0, reception, livetest.Verdict(2, false, "no")) },
			final: fiscal.Rejected, state: store.NumberReusable, more: doc.name != "31",
		})
		add("401", trial{fault: once(simulator.Action{Fault: "F09"}), more: true})
		if doc.name != "31" {
			continue
		}
		add("in process", trial{more: true, fault: func(w *env, _ simulator.Service) {
			w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(5 * time.Second) }))
		}})
		add("look-up fails", trial{more: true, fault: func(w *env, _ simulator.Service) { w.Rule(1, simulator.Result, simulator.Action{Fault: "F05"}) }})
		add("buyer fails", trial{fault: func(w *env, _ simulator.Service) {
			w.Rule(1, simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "500"})
		}})
	}
	return all
}

// TestEveryCrashPoint ends the service at every point that a document comes by
// on its way, and starts another on what is left. Whatever the point, there is
// one number, one content under it, and the same end. A run tests every second point.
func TestEveryCrashPoint(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for _, tr := range trials() {
				if engine != "sqlite" && !tr.postgres || tr.more && os.Getenv("FISCALHUB_CRASHES") == "" {
					continue
				}
				t.Run(tr.name, func(t *testing.T) {
					t.Parallel()
					c := newCrashEnv(t, engine, tr)
					whole, chosen := c.survive(t), everySecond()
					for n, name := range whole {
						// Nothing lasting happens from the end of one thing to the
						// beginning of the next: it is the same crash.
						if strings.HasPrefix(name, "before ") || !chosen() {
							continue
						}
						ok := t.Run(fmt.Sprintf("%02d %s", n+1, name), func(t *testing.T) { c.survive(t, n+1) })
						if ok && tr.twice && engine == "sqlite" {
							second := 2 + n/4%6*2 // by turns, so that all of them come up
							ok = t.Run(fmt.Sprintf("%02d %s and %02d", n+1, name, second), func(t *testing.T) { c.survive(t, n+1, second) })
						}
						if !ok {
							break // what is left over would be in the way of the next
						}
					}
					t.Logf("%d points, then %s", len(whole), tr.final)
				})
			}
		})
	}
}

// TestEveryErrorPoint makes every commit, every call of the authority and every write
// of the witness fail once: before its effect, or after it, so that its success is
// hidden. The service goes on, and the document has one number, one content and the
// same end.
func TestEveryErrorPoint(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for _, tr := range trials() {
				if tr.more || engine != "sqlite" && !tr.postgres {
					continue
				}
				t.Run(tr.name, func(t *testing.T) {
					t.Parallel()
					c, chosen := newCrashEnv(t, engine, tr), everySecond()
					for n, name := range c.survive(t) {
						if !chosen() {
							continue
						}
						if !t.Run(fmt.Sprintf("%02d %s", n+1, name), func(t *testing.T) { c.endure(t, n+1) }) {
							break // what is left over would be in the way of the next
						}
					}
				})
			}
		})
	}
}

// everySecond returns a function that chooses the points of this run: all of them when
// FISCALHUB_CRASHES is set, else two of four in a row, and the other two on the next day.
func everySecond() func() bool {
	n := 2 * int(time.Now().Unix()/86400)
	return func() bool {
		n++
		return n%4 < 2 || os.Getenv("FISCALHUB_CRASHES") != ""
	}
}

// errInjected is what a store returns when its database does not answer.
var errInjected = fmt.Errorf("injected: %w", store.ErrUnavailable)

// endure brings the document to its end in one service whose n-th point fails.
func (c *crashEnv) endure(t *testing.T, at int) {
	t.Helper()
	c.begin(t)
	p := &points{}
	failed := false
	p.fail = func(n int) error {
		if n == at {
			failed = true
			return errInjected
		}
		return nil
	}
	w := c.service(t, c.store, p)
	for range 2 {
		w.Drive(24 * time.Hour)
		c.clock.Advance(wake.MaxLease + time.Second) // of a job whose claim seemed to fail
	}
	if !failed {
		t.Fatalf("point %d was never reached: %q", at, p.names)
	}
	sent := 0
	for i, name := range p.names {
		if strings.HasPrefix(name, "before Submit") && i+1 != at {
			sent++
		}
	}
	c.audit(t, w, sent, 0)
}

// survive brings the document to its end through services that end at the named
// points, one after the other, and a last one that does not. It returns the
// points that the first one came by.
func (c *crashEnv) survive(t *testing.T, ends ...int) []string {
	t.Helper()
	c.begin(t)
	var first []string
	var w *env
	sent := 0
	var seen []store.Evidence
	for life := range len(ends) + 1 {
		p := &points{}
		killed, finished := false, false
		if life < len(ends) {
			p.stop = func(n int) {
				if n == ends[life] {
					killed = true
					runtime.Goexit() // no recover keeps it, and nothing more is committed
				}
			}
		}
		from := c.store
		// A store remembers nothing but statements, and to open one takes longer
		// than all the rest: the plain trials do.
		if life > 0 && c.trial.fault == nil {
			from = storetest.Open(t, c.address, c.clock.Now)
		}
		w = c.service(t, from, p)
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.Drive(12 * time.Hour)
			finished = true
		}()
		<-done
		if life == 0 {
			first = p.names
		}
		sent += p.sent()
		if !killed && !finished {
			t.FailNow() // drive has said why
		}
		if life == 0 && killed != (len(ends) > 0) {
			t.Fatalf("point %d was never reached: %q", ends[0], p.names)
		}
		seen = c.grown(t, w, seen)
		if finished {
			break
		}
		c.clock.Advance(wake.MaxLease + time.Second)
	}
	c.audit(t, w, sent, len(ends))
	return first
}

// grown asserts that what was known is known still.
func (c *crashEnv) grown(t *testing.T, w *env, before []store.Evidence) []store.Evidence {
	t.Helper()
	now, err := w.Store().EvidenceOf(t.Context(), c.scope, c.inv.DocumentID)
	w.Must(err)
	for i, e := range before {
		if i >= len(now) || now[i].ID != e.ID || now[i].Body != e.Body {
			t.Errorf("evidence %s is gone", e.Body)
		}
	}
	return now
}

// audit asserts what must hold of a document that came to its end, however.
func (c *crashEnv) audit(t *testing.T, w *env, sent, restarts int) {
	t.Helper()
	ctx := t.Context()
	inv := w.Read(c.inv)
	if inv.Status != c.trial.final {
		t.Errorf("it ended %s, want %s: %s", inv.Status, c.trial.final, w.Story(inv))
	}
	c.auditHistory(t, w, inv)
	issued, err := w.Store().IssuedDocument(ctx, c.scope, inv.DocumentID)
	w.Must(err)
	if want := fmt.Sprintf("E%s%010d", c.trial.kind, c.made); issued.ENCF != want || inv.ENCF != want || issued.State != c.trial.state {
		t.Errorf("the ledger has %s %s and the invoice %s, want %s %s", issued.ENCF, issued.State, inv.ENCF, want, c.trial.state)
	}
	sequences, err := w.Store().NumberRanges(ctx)
	w.Must(err)
	for _, s := range sequences {
		if taken := s.Next - s.First; s.Type == c.trial.kind && taken != int64(c.made) {
			t.Errorf("%d numbers were taken for %d documents", taken, c.made)
		}
	}
	for _, s := range sequences {
		mark, err := w.Options.Fence.Mark(livetest.IssuerRNC, s)
		if err != nil || s.Type == c.trial.kind && mark.Seen != int64(c.made) {
			t.Errorf("the witness has seen %d numbers, want %d (%v)", mark.Seen, c.made, err)
		}
	}
	waiting, err := w.Store().WaitingDocuments(ctx, w.Scope)
	w.Must(err)
	for _, one := range waiting {
		if one.Job != nil {
			t.Errorf("a job is left: %+v", *one.Job)
		}
	}
	c.auditAttempts(t, w, issued, sent)
	c.auditAuthority(t, issued, restarts)
}

// auditHistory asserts that the statuses are a path of the table, each recorded once.
func (c *crashEnv) auditHistory(t *testing.T, w *env, inv store.Invoice) {
	t.Helper()
	events, err := w.Store().History(t.Context(), c.scope, inv.ID)
	w.Must(err)
	for i, e := range events[1:] {
		if before := events[i]; !before.Status.MayBecome(e.Status) || !e.At.After(before.At) || e.Kind != "status_changed" {
			t.Errorf("%s at %s became %s at %s", before.Status, before.At, e.Status, e.At)
		}
	}
	if last := events[len(events)-1]; int64(len(events)) != inv.Revision || last.Status != inv.Status {
		t.Errorf("change %d to %s, and %d events up to %s", inv.Revision, inv.Status, len(events), last.Status)
	}
}

// auditAttempts asserts that every one sent the same, and that none followed one
// that may have arrived before the authority had been asked often enough.
func (c *crashEnv) auditAttempts(t *testing.T, w *env, issued store.Issued, sent int) {
	t.Helper()
	attempts, err := w.Store().Attempts(t.Context(), c.scope, issued.DocumentID)
	w.Must(err)
	known, err := w.Store().EvidenceOf(t.Context(), c.scope, issued.DocumentID)
	w.Must(err)
	for i, a := range attempts {
		if a.Number != int64(i)+1 || a.ClosedAt.IsZero() || !bytes.Equal(a.Digest, issued.SentDigest) {
			t.Errorf("attempt %+v", a)
		}
		if i == 0 || attempts[i-1].Class == store.NotReceived {
			continue
		}
		absent, last := 0, time.Time{}
		for _, e := range known {
			if evidence.Kind(e.Kind) == evidence.Absent && e.At.After(attempts[i-1].ClosedAt) && !e.At.After(a.OpenedAt) && e.At.Sub(last) >= live.AbsentSpan {
				absent, last = absent+1, e.At
			}
		}
		if absent < live.AbsentTimes {
			t.Errorf("sent again after %d proofs that it is not there", absent)
		}
	}
	if sent > len(attempts) {
		t.Errorf("sent %d times, and %d attempts are known", sent, len(attempts))
	}
}

// auditAuthority asserts that it has one content, and nothing to complain about.
func (c *crashEnv) auditAuthority(t *testing.T, issued store.Issued, restarts int) {
	t.Helper()
	documents := c.sim.Documents(simulator.Filter{ENCF: issued.ENCF})
	if len(documents) == 0 {
		t.Error("the authority has nothing")
	}
	for _, d := range documents {
		if d.SHA256 != hex.EncodeToString(issued.SentDigest) {
			t.Errorf("the authority has %s, and we %x", d.SHA256, issued.SentDigest)
		}
	}
	delivered := ""
	for _, d := range c.sim.Deliveries(livetest.BuyerRNC) {
		if d.Key == issued.RNC+issued.ENCF {
			delivered = d.SHA256
		}
	}
	if got := delivered == hex.EncodeToString(issued.XMLDigest); got != (c.trial.final == fiscal.Delivered) {
		t.Errorf("the buyer has %q, and we %x", delivered, issued.XMLDigest)
	}
	for _, v := range c.sim.Violations() {
		if v.Kind == simulator.TokenAgain && restarts > 0 {
			restarts-- // a token is not kept: each life gets its own
			continue
		}
		t.Errorf("violation: %s", v)
	}
}
