package live

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/openapi/openapitest"
)

// emitted is an event as integrators read it.
type emitted struct {
	ID, Type, Timestamp, Environment string
	TaxpayerID                       string `json:"taxpayer_id"`
	Data                             struct {
		Object, ID     string
		InvoiceID      string `json:"invoice_id"`
		Status         fiscal.Status
		PreviousStatus fiscal.Status `json:"previous_status"`
		Sequence       int64
		ENCF           *string
		TrackID        *string `json:"track_id"`
		Total          string
		Result, Reason string
		Signer         string
		Contradicts    string
		ECFType        string `json:"ecf_type"`
		Remaining      *int64
		ExpiresAt      string `json:"expires_at"`
		Deadline       string
	}
}

// feed returns the events of the taxpayer, in order.
func (w *env) feed() []emitted {
	w.t.Helper()
	var all []emitted
	for after := int64(0); ; {
		page, err := w.store().Feed(w.t.Context(), w.scope, after, 100)
		w.must(err)
		for _, n := range page {
			var e emitted
			w.must(json.Unmarshal(n.Body, &e))
			if e.ID != n.ID || e.Type != n.Kind || len(n.Body) > 20<<10 || n.Number != after+1 {
				w.t.Errorf("event %d: %s", n.Number, n.Body)
			}
			all, after = append(all, e), n.Number
		}
		if len(page) == 0 {
			return all
		}
	}
}

// kinds returns the kinds of the events about an invoice.
func (w *env) kinds(inv store.Invoice) string {
	var list []string
	for _, e := range w.feed() {
		if e.Data.InvoiceID == inv.ID {
			list = append(list, e.Type)
		}
	}
	return strings.Join(list, " ")
}

// audit asserts that every change of status emitted one event, with consecutive
// numbers, whatever has happened.
func (w *env) audit() {
	w.t.Helper()
	statuses, last := map[string][]string{}, map[string]int64{}
	for _, e := range w.feed() {
		if e.Data.Object != "fiscal_document" {
			continue
		}
		id := e.Data.InvoiceID
		if last[id] == 0 {
			last[id] = 1 // the creation
		}
		if e.Data.PreviousStatus != "" {
			last[id]++
			statuses[id] = append(statuses[id], string(e.Data.Status))
			if e.Type != event.StatusChanged(e.Data.Status) {
				w.t.Errorf("%s has status %s", e.Type, e.Data.Status)
			}
		}
		if e.Data.Sequence != last[id] {
			w.t.Errorf("%s of %s has sequence %d, want %d", e.Type, id, e.Data.Sequence, last[id])
		}
	}
	page, err := w.store().ListInvoices(w.t.Context(), w.scope, store.InvoiceFilter{Limit: 100_000})
	w.must(err)
	for _, inv := range page {
		events, err := w.store().History(w.t.Context(), w.scope, inv.ID)
		w.must(err)
		var want []string
		for _, e := range events {
			if e.Kind == "status_changed" {
				want = append(want, string(e.Status))
			}
		}
		if !slices.Equal(statuses[inv.ID], want) {
			w.t.Errorf("%s: events %q, want %q", inv.ExternalID, statuses[inv.ID], want)
		}
	}
}

// Every change emits its event in the transaction of the change. The acceptance also
// emits that the artifacts are ready.
func TestEveryChangeEmitsItsEvents(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{receiver: true})
		commits := 0
		w.engine.OnCommit = func(scope store.Scope) {
			if scope == w.scope {
				commits++
			}
		}
		w.startEngine()
		credit, small := w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.Consumer, 1000)
		w.drive(time.Hour)
		want := "fiscal_document.submitted fiscal_document.accepted fiscal_document.artifacts_ready fiscal_document.delivered"
		if got := w.kinds(credit); got != want {
			t.Errorf("of the 31: %s", got)
		}
		if got := w.kinds(small); got != "fiscal_document.accepted fiscal_document.artifacts_ready" {
			t.Errorf("of the 32: %s", got)
		}
		if commits != 4 {
			t.Errorf("OnCommit was called %d times, want after each of the 4 commits", commits)
		}
		events := w.feed()
		first := events[slices.IndexFunc(events, func(e emitted) bool { return e.Data.InvoiceID == credit.ID })]
		if first.Data.PreviousStatus != fiscal.Queued || first.Data.Sequence != 2 || first.Data.ENCF == nil || *first.Data.ENCF != "E310000000001" ||
			first.Data.TrackID == nil || first.Data.Total != "1180.00" || first.TaxpayerID != w.scope.TaxpayerID || first.Environment != "production" {
			t.Errorf("the first: %+v", first)
		}
		w.clean()
	})
}

// The events are those that the OpenAPI document describes.
func TestEventsMatchTheOpenAPIDescription(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{receiver: true, numbers: 50})
	w.rule(1, simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-4"})
	inv := w.create(fiscal.FiscalCredit, 1000)
	w.drive(time.Hour)
	w.must(w.approve(w.respond(inv, rejected("no pedido"))))
	w.must(w.approve(w.respond(inv, nil)))
	w.must(w.approve(w.respondAs(stranger, inv, nil)))
	w.must(w.watcher.Warn(t.Context(), w.signals())) // few numbers
	certificates, err := w.store().CertificatesOf(t.Context(), w.scope)
	w.must(err)
	w.must(w.store().Update(t.Context(), func(tx *store.Tx) error {
		return tx.CreateCredential(t.Context(), store.Credential{
			ID: store.NewID(), Prefix: "abcdefgh", Environment: w.options.Env, TaxpayerID: w.scope.TaxpayerID,
			Digest: []byte{1}, PepperVersion: 1, CreatedAt: w.now(), ExpiresAt: certificates[0].NotAfter,
		})
	}))
	w.clock.Advance(certificates[0].NotAfter.Add(-20 * 24 * time.Hour).Sub(w.now()))
	w.must(w.watcher.Warn(t.Context(), w.signals())) // a certificate, a credential, the end of a range
	w.must(w.store().Update(t.Context(), func(tx *store.Tx) error {
		id, now := w.scope.TaxpayerID, w.now()
		started := event.NewContingency(id, now, time.Time{}, time.Time{})
		ended := event.NewContingency(id, now, now, now.Add(fiscal.ContingencyTime))
		for kind, data := range map[string]any{event.ContingencyStarted: started, event.ContingencyEnded: ended} {
			e, err := pipeline.NewEvent(w.scope, kind, now, data)
			if err != nil {
				return err
			}
			if err := tx.AddEvent(t.Context(), e); err != nil {
				return err
			}
		}
		return nil
	}))
	page, err := w.store().Feed(t.Context(), w.scope, 0, 100)
	w.must(err)
	var bodies, kinds []string
	for _, n := range page {
		bodies = append(bodies, strings.Replace(string(n.Body), `"self":"/`, `"self":"https://api.example/`, 1))
		kinds = append(kinds, n.Kind)
	}
	slices.Sort(kinds)
	want := []string{
		event.CredentialExpiring, "fiscal_document.accepted", event.ArtifactsReady, event.CommercialResponse, event.CommercialResponseUnconfirmed, event.DeliveryFailed, "fiscal_document.submitted",
		event.CertificateExpiring, event.ContingencyEnded, event.ContingencyStarted, event.SequenceLow,
	}
	if got := slices.Compact(kinds); !slices.Equal(got, want) {
		t.Errorf("kinds %q, want %q", got, want)
	}
	body := `{"data":[` + strings.Join(bodies, ",") + `],"meta":{"request_id":"req_0123456789abcdef0123456789abcdef","next_cursor":"c","has_more":false}}`
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/taxpayers/"+w.scope.TaxpayerID+"/events", nil)
	request.Header.Set("Authorization", "Bearer x")
	recorder := httptest.NewRecorder()
	for name, value := range map[string]string{
		"Content-Type": "application/json; charset=utf-8", "X-Request-Id": "req_0123456789abcdef0123456789abcdef", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
		"RateLimit-Limit": "1", "RateLimit-Remaining": "1", "RateLimit-Reset": "1",
	} {
		recorder.Header().Set(name, value)
	}
	openapitest.New(t).Check(t, request, nil, recorder.Result(), []byte(body))
}
