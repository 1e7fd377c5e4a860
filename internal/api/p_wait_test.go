package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// unsettled creates an invoice whose verdict does not come before the clock goes on.
func (w *world) unsettled() resource {
	w.t.Helper()
	return w.created(w.send(request{method: http.MethodPost, path: "invoices", idem: "unsettled", body: body("unsettled"), header: scenarioHeader("accepted")}))
}

// judge lets the clock go on until everything has its verdict.
func (w *world) judge(ids ...string) {
	w.t.Helper()
	eventually(w.t, "the verdict", func() bool {
		w.clock.advance(time.Second)
		for _, id := range ids {
			inv, err := w.store.Invoice(w.t.Context(), w.scope(), id)
			w.must(err)
			if !inv.Status.Final() {
				return false
			}
		}
		return true
	})
}

func prefer(values ...string) http.Header { return http.Header{"Prefer": values} }

func TestW10WhatIsFinalIsAnsweredAtOnce(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		a := w.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: body("A"), header: prefer("wait=100")})
		made := w.created(a)
		if made.Status != "accepted" || a.header.Get("Preference-Applied") != "wait=20" || a.header.Get("Location") == "" {
			t.Errorf("%s %v", a, a.header)
		}
		a = w.send(request{path: "invoices/" + made.ID, header: prefer("respond-async, wait=7")})
		if a.status != http.StatusOK || a.header.Get("Preference-Applied") != "wait=7" {
			t.Errorf("%s %v", a, a.header)
		}
	})
}

func TestW10WaitingEndsWithTheVerdict(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		header := scenarioHeader("accepted")
		header.Set("Prefer", "wait=20")
		creation := request{method: http.MethodPost, path: "invoices", idem: "k", body: body("A"), header: header}
		creating := w.sendLater(creation)
		w.awaitWaiting(t, 1)
		found, err := w.store.InvoiceByExternalID(t.Context(), w.scope(), "A")
		w.must(err)
		reading := w.sendLater(request{path: "invoices/" + found.ID, header: prefer("wait=20")})
		w.awaitWaiting(t, 2)

		// The stored answer is the original, and whoever repeats the request has it at once.
		again := w.send(creation)
		if r := w.created(again); r.Status != "queued" || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Preference-Applied") != "" {
			t.Errorf("a repetition: %s %v", again, again.header)
		}
		w.judge(found.ID)
		for name, c := range map[string]<-chan answer{"creation": creating, "reading": reading} {
			a := soon(t, name, c)
			var r resource
			a.data(t, &r)
			if r.ID != found.ID || r.Status != "accepted" || a.header.Get("Preference-Applied") != "wait=20" || a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: %s %v", name, a, a.header)
			}
			if (a.status == http.StatusAccepted) != (name == "creation") || (a.header.Get("Location") != "") != (name == "creation") {
				t.Errorf("%s: %s %v", name, a, a.header)
			}
		}
		if later := w.send(creation); !bytes.Equal(later.body, again.body) {
			t.Errorf("a repetition after the verdict: %s", later)
		}
	})
}

func TestW10WaitingEndsInTime(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		header := scenarioHeader("accepted")
		header.Set("Prefer", "wait=1")
		a := w.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: body("A"), header: header})
		if r := w.created(a); r.Status != "queued" || a.header.Get("Preference-Applied") != "wait=1" {
			t.Errorf("%s %v", a, a.header)
		}
	})
}

func TestW10WhatCannotBeReadIsNoPreference(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		made := w.unsettled()
		for _, lines := range [][]string{{"wait"}, {"wait=x"}, {"wait=-5"}, {"wait=1.5"}, {"wait=x, wait=20"}, {"handling=strict"}, {""}} {
			a := w.send(request{path: "invoices/" + made.ID, header: prefer(lines...)})
			if a.status != http.StatusOK || a.header.Get("Preference-Applied") != "" {
				t.Errorf("%q: %s %v", lines, a, a.header)
			}
		}
		for _, path := range []string{"invoices", "fiscal-documents/" + made.FiscalDocumentID} { // where it has no meaning
			if a := w.send(request{path: path, header: prefer("wait=20")}); a.status != http.StatusOK || a.header.Get("Preference-Applied") != "" {
				t.Errorf("%s: %s %v", path, a, a.header)
			}
		}
		if a := w.send(request{path: "invoices/" + store.NewID(), header: prefer("wait=20")}); a.status != http.StatusNotFound {
			t.Errorf("an invoice that is not there: %s", a)
		}
	})
}

func TestW10ADrainEndsEveryWait(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		made := w.unsettled()
		old := w.beside(t, func(*api.Options, *http.Server) {})
		var waiting []<-chan answer
		for range 10 {
			waiting = append(waiting, old.sendLater(request{path: "invoices/" + made.ID, header: prefer("wait=20")}),
				old.sendLater(request{path: "events?wait=30"}))
		}
		old.awaitWaiting(t, len(waiting))
		old.api.Drain()
		for i, c := range waiting {
			if a := soon(t, "an answer", c); a.status != http.StatusOK {
				t.Errorf("%d: %s", i, a)
			}
		}
	})
}

// Those who wait keep nobody out, and are bounded.
func TestW10ThreeHundredThatWaitKeepNobodyOut(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		const most, all = 256, 300
		made := w.unsettled()
		var waiting []<-chan answer
		for len(waiting) < most { // not all at once: a credential has 64 places
			for range 32 {
				waiting = append(waiting, w.sendLater(request{path: "invoices/" + made.ID, header: prefer("wait=20")}))
			}
			w.awaitWaiting(t, len(waiting))
		}
		for i := most; i < all; i++ {
			path, header := "invoices/"+made.ID, prefer("wait=20")
			if i%2 == 0 {
				path, header = "events?wait=30", nil
			}
			if a := w.send(request{path: path, header: header}); a.status != http.StatusOK || a.header.Get("Preference-Applied") != "" {
				t.Errorf("the %dth: %s %v", i+1, a, a.header)
			}
		}
		for i := range 5 {
			w.created(w.create(fmt.Sprint("k", i), body(fmt.Sprint("B", i))))
		}
		other := w.newKey(w.taxpayer, fiscal.Sandbox, apikey.InvoicesRead)
		more := w.sendLater(request{path: "invoices/" + made.ID, header: prefer("wait=20"), key: other})
		w.awaitWaiting(t, most+1) // another credential has waits of its own
		w.judge(made.ID)
		for i, c := range append(waiting, more) {
			a := soon(t, "an answer", c)
			var r resource
			if a.data(t, &r); a.status != http.StatusOK || r.Status != "accepted" || a.header.Get("Preference-Applied") != "wait=20" {
				t.Errorf("%d: %s %v", i, a, a.header)
			}
		}
	})
}

// The times that the server gives a request do not count while it waits.
func TestW10WaitsOutlastTheTimesOfTheServer(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		made := w.unsettled()
		hasty := w.beside(t, func(_ *api.Options, s *http.Server) {
			s.ReadTimeout, s.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
		})
		header := scenarioHeader("accepted")
		header.Set("Prefer", "wait=1")
		waiting := []<-chan answer{
			hasty.sendLater(request{path: "events?wait=1"}),
			hasty.sendLater(request{path: "invoices/" + made.ID, header: prefer("wait=1")}),
			hasty.sendLater(request{method: http.MethodPost, path: "invoices", idem: "k", body: body("B"), header: header}),
		}
		for i, c := range waiting {
			if a := soon(t, "an answer", c); a.status != http.StatusOK && a.status != http.StatusAccepted {
				t.Errorf("%d: %s", i, a)
			}
		}
	})
}
