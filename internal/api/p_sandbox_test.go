package api_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

func scenarioHeader(values ...string) http.Header { return http.Header{"Sandbox-Scenario": values} }

// scenarioWalks are the statuses that each scenario shows, one a second.
func scenarioWalks() map[string][]string {
	return map[string][]string{
		"submitted":            {"submitted"},
		"processing":           {"submitted", "processing"},
		"accepted":             {"submitted", "processing", "accepted"},
		"accepted_conditional": {"submitted", "processing", "accepted_conditional"},
		"rejected":             {"submitted", "processing", "rejected"},
		"outcome_unknown":      {"outcome_unknown"},
		"delivered":            {"submitted", "processing", "accepted", "delivered"},
		"validation_failed":    {"validation_failed"},
	}
}

// eventually waits for a condition that other goroutines bring about.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("never came about: %s", what)
		}
	}
}

// awaitStatus waits until an invoice has a status.
func (w *world) awaitStatus(id, status string) {
	w.t.Helper()
	eventually(w.t, "status "+status, func() bool {
		inv, err := w.store.Invoice(w.t.Context(), w.scope(), id)
		w.must(err)
		return string(inv.Status) == status
	})
	var shown resource
	w.send(request{path: "invoices/" + id}).data(w.t, &shown)
	if shown.Status != status {
		w.t.Errorf("the API shows %s, want %s", shown.Status, status)
	}
}

// second lets a second pass. The runner sleeps by the real clock, so it is woken
// by work of another taxpayer.
func (w *world) second() {
	w.t.Helper()
	w.clock.advance(time.Second)
	other := *w
	other.taxpayer = w.newTaxpayer()
	other.key = w.newKey(other.taxpayer, w.opt.env, apikey.AllScopes()...)
	other.created(other.send(request{method: http.MethodPost, path: "invoices", idem: "wake", body: body("wake"), header: scenarioHeader("submitted")}))
}

// walk takes a document through its scenario.
func (w *world) walk(id, scenario string) {
	w.t.Helper()
	for _, status := range scenarioWalks()[scenario] {
		w.second()
		w.awaitStatus(id, status)
	}
}

type documentData struct {
	ID             string            `json:"id"`
	InvoiceID      string            `json:"invoice_id"`
	ExternalID     string            `json:"external_id"`
	Status         string            `json:"status"`
	ENCF           *string           `json:"encf"`
	TrackID        *string           `json:"track_id"`
	Total          string            `json:"total"`
	StatusMessages []string          `json:"status_messages"`
	Links          map[string]string `json:"links"`
	CreatedAt      string            `json:"created_at"`
	UpdatedAt      string            `json:"updated_at"`
}

func (w *world) readDocument(id string) documentData {
	w.t.Helper()
	var d documentData
	a := w.send(request{path: "fiscal-documents/" + id})
	if a.status != http.StatusOK {
		w.t.Fatalf("read the document: %s", a)
	}
	a.data(w.t, &d)
	return d
}

func TestP69MinimumChecksOfTheSandbox(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		first := w.create("k", body("A-1", credit))
		inv := w.created(first)
		if inv.Status != "accepted" {
			t.Errorf("one accepted operation: the status is %s", inv.Status)
		}
		wantInvalid(t, "one failed validation", w.create("bad", body("A-2", set("lines.0.unit_price", "abc"))), "lines.0.unit_price invalid_decimal")
		wantReplay(t, "the same request with the same key", first, w.create("k", body("A-1", credit)))
		wantCode(t, "the same key with a different body", w.create("k", body("A-2", credit)), http.StatusConflict, "idempotency_mismatch")
		var list []resource
		w.send(request{path: "invoices?external_id=A-1"}).data(t, &list)
		if len(list) != 1 || list[0].ID != inv.ID {
			t.Errorf("lookup by external_id: %+v", list)
		}
		d := w.readDocument(inv.FiscalDocumentID)
		if d.InvoiceID != inv.ID || d.Status != "accepted" || d.ENCF != nil || d.TrackID != nil {
			t.Errorf("the synthetic fiscal document: %+v", d)
		}
		for _, artifact := range []string{"xml", "pdf"} {
			a := w.send(request{path: "fiscal-documents/" + d.ID + "/" + artifact})
			wantCode(t, artifact, a, http.StatusConflict, "artifact_not_ready")
		}
	})
}

func TestP70DocumentsAreFoundAtOnce(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		nobody := "fiscal-documents/" + store.NewID()
		for i := range 5 {
			id := fmt.Sprintf("D-%d", i)
			inv := w.created(w.create(id, body(id)))
			var found []documentData
			w.send(request{path: "fiscal-documents?external_id=" + id}).data(t, &found)
			if len(found) != 1 || found[0].ID != inv.FiscalDocumentID || found[0].InvoiceID != inv.ID {
				t.Errorf("%s: %+v", id, found)
			}
		}
		a := w.send(request{path: "fiscal-documents?external_id=none"})
		if a.status != http.StatusOK || !strings.Contains(string(a.body), `"data":[]`) {
			t.Errorf("no match: %s", a)
		}
		waiting := w.created(w.send(request{method: http.MethodPost, path: "invoices", idem: "w", body: body("W"), header: scenarioHeader("processing")}))
		var done []documentData
		w.send(request{path: "fiscal-documents?external_id=D-0"}).data(t, &done)
		for _, artifact := range []string{"/xml", "/pdf"} {
			a := w.send(request{path: "fiscal-documents/" + done[0].ID + artifact})
			wantCode(t, artifact, a, http.StatusConflict, "artifact_not_ready")
			if a.header.Get("Retry-After") != "" {
				t.Errorf("%s of a document at its end: Retry-After %q", artifact, a.header.Get("Retry-After"))
			}
			a = w.send(request{path: "fiscal-documents/" + waiting.FiscalDocumentID + artifact})
			wantCode(t, artifact, a, http.StatusConflict, "artifact_not_ready")
			if a.header.Get("Retry-After") != "5" {
				t.Errorf("%s of a document under way: Retry-After %q", artifact, a.header.Get("Retry-After"))
			}
			wantCode(t, artifact, w.send(request{path: nobody + artifact}), http.StatusNotFound, "not_found")
			// The id of the invoice is not the id of its document.
			wantCode(t, artifact, w.send(request{path: "fiscal-documents/" + waiting.ID + artifact}), http.StatusNotFound, "not_found")
		}
	})
}

// Every scenario walks its way one step a second and stays at its end. The
// history tells it step by step.
func TestP73ScenariosWalkStepByStep(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		began := w.clock.now()
		made := map[string]resource{}
		answers := map[string]answer{}
		for name := range scenarioWalks() {
			a := w.send(request{method: http.MethodPost, path: "invoices", idem: name, body: body(name, credit), header: scenarioHeader(name)})
			made[name], answers[name] = w.created(a), a
			if made[name].Status != "queued" {
				t.Errorf("%s starts %s", name, made[name].Status)
			}
		}
		const steps = 5 // one more than the longest walk: they stay where they ended
		for step := range steps {
			w.second()
			for name, walk := range scenarioWalks() {
				w.awaitStatus(made[name].ID, walk[min(step, len(walk)-1)])
			}
		}
		for name, walk := range scenarioWalks() {
			var want []string
			want = append(want, "created queued +0s "+answers[name].header.Get("X-Request-Id"))
			for i, status := range walk {
				want = append(want, fmt.Sprintf("status_changed %s +%ds ", status, i+1))
			}
			if diff := cmp.Diff(want, w.history(made[name].ID, began)); diff != "" {
				t.Errorf("%s: history (-want +got):\n%s", name, diff)
			}
			d := w.readDocument(made[name].FiscalDocumentID)
			if d.ENCF != nil || d.TrackID != nil || d.Status != walk[len(walk)-1] {
				t.Errorf("%s: document %+v", name, d)
			}
			notes := d.StatusMessages
			if name == "accepted_conditional" {
				if notes[0] != "[4] Aceptado Condicional" {
					t.Errorf("%s: the verdict does not lead: %q", name, notes)
				}
				notes = notes[1:]
			}
			if len(notes) != 1 || !strings.Contains(notes[0], "ynthetic") || !strings.Contains(notes[0], "scenario "+name+";") {
				t.Errorf("%s: messages %q", name, notes)
			}
			wantReplay(t, name, answers[name], w.send(request{method: http.MethodPost, path: "invoices", idem: name, body: body(name, credit), header: scenarioHeader(name)}))
		}
		if n := rowCount(t, w.database(t), "jobs WHERE taxpayer_id = '"+w.taxpayer+"'"); n != 0 {
			t.Errorf("%d jobs remain", n)
		}
	})
}

// history is what happened to an invoice, in short. Times are from a moment on.
func (w *world) history(id string, from time.Time) []string {
	w.t.Helper()
	events, err := w.store.History(w.t.Context(), w.scope(), id)
	w.must(err)
	var list []string
	for _, e := range events {
		list = append(list, fmt.Sprintf("%s %s +%s %s", e.Kind, e.Status, e.At.Sub(from), e.RequestID))
		if e.Detail == "" {
			w.t.Errorf("event %s says nothing", e.Kind)
		}
	}
	return list
}

func TestHistoryTellsWhoMetTheInvoice(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		began := w.clock.now()
		var want []string
		var id string
		for _, tt := range []struct {
			kind, idem string
			body       []byte
		}{
			{"created", "k", body("H-1")}, {"replayed", "k", body("H-1")}, {"idempotency_mismatch", "k", body("H-2")},
			{"external_id_conflict", "other", body("H-1")}, {"replayed", "k", body("H-1")},
		} {
			a := w.create(tt.idem, tt.body)
			if id == "" {
				id = w.created(a).ID
			}
			want = append(want, fmt.Sprintf("%s accepted +%s %s", tt.kind, w.clock.now().Sub(began), a.header.Get("X-Request-Id")))
			w.clock.advance(time.Second)
		}
		eventually(t, "five events", func() bool { return len(w.history(id, began)) == 5 })
		if diff := cmp.Diff(want, w.history(id, began)); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		// Each exchange leads back to the invoice, which is how an integrator's
		// own records are rebuilt.
		for _, event := range want {
			request := event[strings.LastIndex(event, " ")+1:]
			if got, err := w.store.InvoiceOfRequest(t.Context(), w.scope(), request); err != nil || got != id {
				t.Errorf("%s leads to %q, %v", request, got, err)
			}
		}
	})
}

func TestScenarioHeader(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		post := func(idem string, b []byte, values ...string) answer {
			return w.send(request{method: http.MethodPost, path: "invoices", idem: idem, body: b, header: scenarioHeader(values...)})
		}
		for _, bad := range [][]string{
			{"queued"}, {"Accepted"}, {"accept"}, {""}, {"accepted,rejected"}, {"accepted", "accepted"}, {"accepted", "rejected"}, {"accepted;q=1"}, {"\xff"},
		} {
			wantCode(t, fmt.Sprintf("%q", bad), post("bad", body("bad"), bad...), http.StatusBadRequest, "bad_request")
		}
		wantCode(t, "a 32 is never delivered", post("bad", body("bad"), "delivered"), http.StatusBadRequest, "bad_request")
		if n := w.stored(1); n != 0 {
			t.Fatalf("%d invoices", n)
		}
		w.created(post("bad", body("bad", credit), "delivered"))

		// The header is part of what a key stands for.
		with := post("with", body("with"), "rejected")
		w.created(with)
		wantReplay(t, "the same scenario", with, post("with", body("with"), "rejected"))
		wantCode(t, "another scenario", post("with", body("with"), "accepted"), http.StatusConflict, "idempotency_mismatch")
		wantCode(t, "no scenario", w.create("with", body("with")), http.StatusConflict, "idempotency_mismatch")
		w.created(w.create("without", body("without")))
		wantCode(t, "a scenario after none", post("without", body("without"), "accepted"), http.StatusConflict, "idempotency_mismatch")
		wantCode(t, "a header that is wrong comes before the key", post("without", body("without"), "x"), http.StatusBadRequest, "bad_request")
	})
}

func TestScenarioMeansNothingOutsideTheSandbox(t *testing.T) {
	each(t, options{env: fiscal.Certification, plan: pipeline.Sandbox{}}, func(t *testing.T, w *world) {
		first := w.create("k", body("S"))
		if inv := w.created(first); inv.Status != "accepted" {
			t.Fatalf("the plan of this test answers at once, got %s", inv.Status)
		}
		for _, values := range [][]string{{"rejected"}, {"nonsense"}, {"accepted", "accepted"}, {""}} {
			a := w.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: body("S"), header: scenarioHeader(values...)})
			wantReplay(t, fmt.Sprintf("%q", values), first, a)
		}
		if n := rowCount(t, w.database(t), "jobs"); n != 0 {
			t.Errorf("%d jobs", n)
		}
	})
}

// A load of the sandbox takes no number, makes no job without a scenario, and
// says of each document that it is synthetic.
func TestP73SandboxTakesNothing(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		db := w.database(t)
		const n = 20
		for i := range n {
			id := fmt.Sprintf("L-%d", i)
			change := []func(map[string]any){}
			if i%2 == 0 {
				change = append(change, credit)
			}
			d := w.readDocument(w.created(w.create(id, body(id, change...))).FiscalDocumentID)
			if d.ENCF != nil || d.TrackID != nil || len(d.StatusMessages) != 1 || !strings.Contains(d.StatusMessages[0], "Synthetic") {
				t.Errorf("document %+v", d)
			}
		}
		if jobs := rowCount(t, db, "jobs"); jobs != 0 {
			t.Errorf("%d jobs without a scenario", jobs)
		}
		w.created(w.send(request{method: http.MethodPost, path: "invoices", idem: "s", body: body("S"), header: scenarioHeader("submitted")}))
		if jobs := rowCount(t, db, "jobs"); jobs != 1 {
			t.Errorf("%d jobs of one scenario", jobs)
		}
		var taken int
		w.must(db.QueryRowContext(context.WithoutCancel(t.Context()), `SELECT count(*) FROM invoices WHERE encf IS NOT NULL OR track_id IS NOT NULL`).Scan(&taken))
		if rows := rowCount(t, db, "invoices"); taken != 0 || rows != n+1 {
			t.Errorf("%d of %d invoices have a number or a track", taken, rows)
		}
		if answers := rowCount(t, db, "idempotency"); answers != n+1 {
			t.Errorf("%d answers", answers)
		}
	})
}

var instantForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// Invoice and document show the same moments, which only ever grow.
func TestUpdatedAtGrowsWithEachChange(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		inv := w.created(w.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: body("T", credit), header: scenarioHeader("delivered")}))
		seen := []string{inv.UpdatedAt}
		for _, status := range scenarioWalks()["delivered"] {
			w.second()
			w.awaitStatus(inv.ID, status)
			var now resource
			w.send(request{path: "invoices/" + inv.ID}).data(t, &now)
			d := w.readDocument(inv.FiscalDocumentID)
			if d.UpdatedAt != now.UpdatedAt || d.CreatedAt != inv.CreatedAt || now.CreatedAt != inv.CreatedAt {
				t.Errorf("invoice %s/%s, document %s/%s", now.CreatedAt, now.UpdatedAt, d.CreatedAt, d.UpdatedAt)
			}
			seen = append(seen, now.UpdatedAt)
		}
		for i, at := range seen {
			if !instantForm.MatchString(at) || i > 0 && at <= seen[i-1] {
				t.Errorf("updated_at went %q", seen)
				break
			}
		}
	})
}
