package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// createPending creates an invoice that has no verdict until the clock advances.
func (e *env) createPending() resource {
	e.t.Helper()
	return e.created(e.send(request{method: http.MethodPost, path: "invoices", idem: "unsettled", body: invoiceBody("unsettled"), header: scenarioHeader("accepted")}))
}

// awaitVerdict advances the clock until the invoices have their verdicts.
func (e *env) awaitVerdict(ids ...string) {
	e.t.Helper()
	eventually(e.t, "the verdict", func() bool {
		e.clock.advance(time.Second)
		for _, id := range ids {
			inv, err := e.store.Invoice(e.t.Context(), e.scope(), id)
			e.must(err)
			if !inv.Status.Final() {
				return false
			}
		}
		return true
	})
}

func prefer(values ...string) http.Header { return http.Header{"Prefer": values} }

func TestFinalInvoiceIsAnsweredAtOnce(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		a := e.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A"), header: prefer("wait=100")})
		made := e.created(a)
		if made.Status != "accepted" || a.header.Get("Preference-Applied") != "wait=20" || a.header.Get("Location") == "" {
			t.Errorf("%s %v", a, a.header)
		}
		a = e.send(request{path: "invoices/" + made.ID, header: prefer("respond-async, wait=7")})
		if a.status != http.StatusOK || a.header.Get("Preference-Applied") != "wait=7" {
			t.Errorf("%s %v", a, a.header)
		}
	})
}

func TestWaitEndsWithTheVerdict(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		header := scenarioHeader("accepted")
		header.Set("Prefer", "wait=20")
		creation := request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A"), header: header}
		creating := e.sendAsync(creation)
		e.awaitWaits(t, 1)
		found, err := e.store.InvoiceByExternalID(t.Context(), e.scope(), "A")
		e.must(err)
		reading := e.sendAsync(request{path: "invoices/" + found.ID, header: prefer("wait=20")})
		e.awaitWaits(t, 2)

		// The stored answer is the original one. A repeated request gets it at once.
		again := e.send(creation)
		if r := e.created(again); r.Status != "queued" || again.header.Get("Idempotency-Replayed") != "true" || again.header.Get("Preference-Applied") != "" {
			t.Errorf("a replay: %s %v", again, again.header)
		}
		e.awaitVerdict(found.ID)
		for name, c := range map[string]<-chan response{"creation": creating, "reading": reading} {
			a := receive(t, name, c)
			var r resource
			a.data(t, &r)
			if r.ID != found.ID || r.Status != "accepted" || a.header.Get("Preference-Applied") != "wait=20" || a.header.Get("Idempotency-Replayed") != "" {
				t.Errorf("%s: %s %v", name, a, a.header)
			}
			if (a.status == http.StatusAccepted) != (name == "creation") || (a.header.Get("Location") != "") != (name == "creation") {
				t.Errorf("%s: %s %v", name, a, a.header)
			}
		}
		if later := e.send(creation); !bytes.Equal(later.body, again.body) {
			t.Errorf("a replay after the verdict: %s", later)
		}
	})
}

// Answers with one request id are one body: an answer that waited is another one than the
// stored answer, which a repetition gets, also while the first still waits.
func TestOneRequestIDIsOneBody(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		bodies := map[string]string{} // by request id
		add := func(name string, a response) string {
			var body struct {
				Meta struct {
					RequestID string `json:"request_id"`
				} `json:"meta"`
			}
			if err := json.Unmarshal(a.body, &body); err != nil || a.status != http.StatusAccepted {
				t.Fatal(name, a, err)
			}
			id := body.Meta.RequestID
			if before, known := bodies[id]; known && before != string(a.body) {
				t.Errorf("%s: two bodies have the id %s:\n%s\n%s", name, id, before, a.body)
			}
			bodies[id] = string(a.body)
			return id
		}
		for _, wait := range []string{"wait=20", "wait=0"} {
			id := fmt.Sprintf("req_%032x", len(wait))
			header := scenarioHeader("accepted")
			header.Set("Prefer", wait)
			header.Set("X-Request-Id", id)
			creation := request{method: http.MethodPost, path: "invoices", idem: wait, body: invoiceBody(wait), header: header}
			var first response
			if wait == "wait=0" {
				first = e.send(creation)
				found, err := e.store.InvoiceByExternalID(t.Context(), e.scope(), wait)
				e.must(err)
				e.awaitVerdict(found.ID)
			} else {
				creating := e.sendAsync(creation)
				e.awaitWaits(t, 1)
				add("during the wait", e.send(creation))
				found, err := e.store.InvoiceByExternalID(t.Context(), e.scope(), wait)
				e.must(err)
				e.awaitVerdict(found.ID)
				first = receive(t, "the creation", creating)
			}
			if got := add("the first answer", first); got != id || first.header.Get("X-Request-Id") != id {
				t.Errorf("%s: the first answer has the id %s, and %s in its header", wait, got, first.header.Get("X-Request-Id"))
			}
			stored := add("after the verdict", e.send(creation))
			for _, name := range []string{id, stored} { // each leads to the invoice
				if ids, err := e.store.InvoicesOfRequest(t.Context(), e.scope(), name); err != nil || len(ids) != 1 {
					t.Errorf("%s: request %s is about %v, %v", wait, name, ids, err)
				}
			}
		}
		// Without anything to wait for, the first answer is the stored one.
		final := request{method: http.MethodPost, path: "invoices", idem: "final", body: invoiceBody("final"), header: prefer("wait=20")}
		first := e.send(final)
		wantReplay(t, "a final invoice", first, e.send(final))
		plain := request{method: http.MethodPost, path: "invoices", idem: "plain", body: invoiceBody("plain"), header: scenarioHeader("accepted")}
		first = e.send(plain)
		wantReplay(t, "no wait", first, e.send(plain))
	})
}

func TestWaitEndsAfterItsTime(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		header := scenarioHeader("accepted")
		header.Set("Prefer", "wait=1")
		a := e.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A"), header: header})
		if r := e.created(a); r.Status != "queued" || a.header.Get("Preference-Applied") != "wait=1" {
			t.Errorf("%s %v", a, a.header)
		}
	})
}

func TestMalformedPreferenceIsIgnored(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		made := e.createPending()
		for _, lines := range [][]string{{"wait"}, {"wait=x"}, {"wait=-5"}, {"wait=1.5"}, {"wait=x, wait=20"}, {"handling=strict"}, {""}} {
			a := e.send(request{path: "invoices/" + made.ID, header: prefer(lines...)})
			if a.status != http.StatusOK || a.header.Get("Preference-Applied") != "" {
				t.Errorf("%q: %s %v", lines, a, a.header)
			}
		}
		for _, path := range []string{"invoices", "fiscal-documents/" + made.FiscalDocumentID} { // these operations ignore the preference
			if a := e.send(request{path: path, header: prefer("wait=20")}); a.status != http.StatusOK || a.header.Get("Preference-Applied") != "" {
				t.Errorf("%s: %s %v", path, a, a.header)
			}
		}
		wantStatus(t, "an unknown invoice", e.send(request{path: "invoices/" + store.NewID(), header: prefer("wait=20")}), http.StatusNotFound)
	})
}

func TestDrainEndsEveryWait(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		made := e.createPending()
		old := e.withService(t, func(*api.Options, *http.Server) {})
		var waiting []<-chan response
		for range 10 {
			waiting = append(waiting, old.sendAsync(request{path: "invoices/" + made.ID, header: prefer("wait=20")}),
				old.sendAsync(request{path: "events?wait=30"}))
		}
		old.awaitWaits(t, len(waiting))
		old.api.Drain()
		for i, c := range waiting {
			if a := receive(t, "an answer", c); a.status != http.StatusOK {
				t.Errorf("%d: %s", i, a)
			}
		}
	})
}

// Waiting requests hold no slots, and their number is limited.
func TestWaitingRequestsDoNotBlockOthers(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		const most, all = 256, 300
		made, began := e.createPending(), time.Now()
		var waiting []<-chan response
		for len(waiting) < most { // not all at once: a credential has 64 slots
			for range 32 {
				waiting = append(waiting, e.sendAsync(request{path: "invoices/" + made.ID, header: prefer("wait=20")}))
			}
			e.awaitWaits(t, len(waiting))
		}
		for i := most; i < all; i++ {
			path, header := "invoices/"+made.ID, prefer("wait=20")
			if i%2 == 0 {
				path, header = "events?wait=30", nil
			}
			if a := e.send(request{path: path, header: header}); a.status != http.StatusOK || a.header.Get("Preference-Applied") != "" {
				t.Errorf("request %d: %s %v", i+1, a, a.header)
			}
		}
		for i := range 5 {
			e.created(e.create(fmt.Sprint("k", i), invoiceBody(fmt.Sprint("B", i))))
		}
		other := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.InvoicesRead)
		more := e.sendAsync(request{path: "invoices/" + made.ID, header: prefer("wait=20"), key: other})
		e.awaitWaits(t, most+1) // another credential has its own limit
		e.awaitVerdict(made.ID)
		ended := time.Since(began) > 20*time.Second // the first waits have ended: the machine is very busy
		for i, c := range append(waiting, more) {
			a := receive(t, "an answer", c)
			var r resource
			if a.data(t, &r); a.status != http.StatusOK || r.Status != "accepted" && !ended || a.header.Get("Preference-Applied") != "wait=20" {
				t.Errorf("%d: %s %v", i, a, a.header)
			}
		}
	})
}

// The timeouts of the server do not apply while a request waits.
func TestWaitsOutlastTheTimeoutsOfTheServer(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		made := e.createPending()
		hasty := e.withService(t, func(_ *api.Options, s *http.Server) {
			s.ReadTimeout, s.WriteTimeout = 300*time.Millisecond, 300*time.Millisecond
		})
		header := scenarioHeader("accepted")
		header.Set("Prefer", "wait=1")
		waiting := []<-chan response{
			hasty.sendAsync(request{path: "events?wait=1"}),
			hasty.sendAsync(request{path: "invoices/" + made.ID, header: prefer("wait=1")}),
			hasty.sendAsync(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("B"), header: header}),
		}
		for i, c := range waiting {
			if a := receive(t, "an answer", c); a.status != http.StatusOK && a.status != http.StatusAccepted {
				t.Errorf("%d: %s", i, a)
			}
		}
	})
}
