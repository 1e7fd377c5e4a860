package live_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/openapi/openapitest"
)

// Every change emits its event in the transaction of the change. The acceptance also
// emits that the artifacts are ready.
func TestEveryChangeEmitsItsEvents(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Receiver: true})
		commits := 0
		w.Engine.OnCommit = func(scope store.Scope) {
			if scope == w.Scope {
				commits++
			}
		}
		w.StartEngine()
		credit, small := w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000)
		w.Drive(time.Hour)
		want := "fiscal_document.submitted fiscal_document.accepted fiscal_document.artifacts_ready fiscal_document.delivered"
		if got := w.Kinds(credit); got != want {
			t.Errorf("of the 31: %s", got)
		}
		if got := w.Kinds(small); got != "fiscal_document.accepted fiscal_document.artifacts_ready" {
			t.Errorf("of the 32: %s", got)
		}
		if commits != 4 {
			t.Errorf("OnCommit was called %d times, want after each of the 4 commits", commits)
		}
		events := w.Feed()
		first := events[slices.IndexFunc(events, func(e livetest.Emitted) bool { return e.Data.InvoiceID == credit.ID })]
		if first.Data.PreviousStatus != fiscal.Queued || first.Data.Sequence != 2 || first.Data.ENCF == nil || *first.Data.ENCF != "E310000000001" ||
			first.Data.TrackID == nil || first.Data.Total != "1180.00" || first.TaxpayerID != w.Scope.TaxpayerID || first.Environment != "production" {
			t.Errorf("the first: %+v", first)
		}
		w.Clean()
	})
}

// The events are those that the OpenAPI document describes.
func TestEventsMatchTheOpenAPIDescription(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{Receiver: true, Numbers: 50})
	w.Rule(1, simulator.PeerReception, simulator.Action{Fault: "peer", Variant: "arecf-4"})
	inv := w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(time.Hour)
	w.Must(w.Approve(w.Respond(inv, livetest.Rejected("no pedido"))))
	w.Must(w.Approve(w.Respond(inv, nil)))
	w.Must(w.Approve(w.RespondAs(livetest.Stranger, inv, nil)))
	w.Must(w.Watcher.Warn(t.Context(), w.Signals())) // few numbers
	certificates, err := w.Store().CertificatesOf(t.Context(), w.Scope)
	w.Must(err)
	w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error {
		return tx.CreateCredential(t.Context(), store.Credential{
			ID: store.NewID(), Prefix: "abcdefgh", Environment: w.Options.Env, TaxpayerID: w.Scope.TaxpayerID,
			Digest: []byte{1}, PepperVersion: 1, CreatedAt: w.Now(), ExpiresAt: certificates[0].NotAfter,
		})
	}))
	w.Clock.Advance(certificates[0].NotAfter.Add(-20 * 24 * time.Hour).Sub(w.Now()))
	w.Must(w.Watcher.Warn(t.Context(), w.Signals())) // a certificate, a credential, the end of a range
	w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error {
		id, now := w.Scope.TaxpayerID, w.Now()
		started := event.NewContingency(id, now, time.Time{}, time.Time{})
		ended := event.NewContingency(id, now, now, now.Add(fiscal.ContingencyTime))
		for kind, data := range map[string]any{event.ContingencyStarted: started, event.ContingencyEnded: ended} {
			e, err := pipeline.NewEvent(w.Scope, kind, now, data)
			if err != nil {
				return err
			}
			if err := tx.AddEvent(t.Context(), e); err != nil {
				return err
			}
		}
		return nil
	}))
	page, err := w.Store().Feed(t.Context(), w.Scope, 0, 100)
	w.Must(err)
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
	request := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/taxpayers/"+w.Scope.TaxpayerID+"/events", nil)
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
