package api_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
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

// scenarioWalks are the statuses of each scenario, one per second.
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

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !holds() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within 30 seconds: %s", what)
		}
	}
}

// awaitStatus waits until an invoice has a status.
func (e *env) awaitStatus(id, status string) {
	e.t.Helper()
	eventually(e.t, "status "+status, func() bool {
		inv, err := e.store.Invoice(e.t.Context(), e.scope(), id)
		e.must(err)
		return string(inv.Status) == status
	})
	var shown resource
	e.send(request{path: "invoices/" + id}).data(e.t, &shown)
	if shown.Status != status {
		e.t.Errorf("the API shows %s, want %s", shown.Status, status)
	}
}

// advanceSecond advances the clock by a second. The runner sleeps by the real
// clock, so an invoice of another taxpayer wakes it.
func (e *env) advanceSecond() {
	e.t.Helper()
	e.clock.advance(time.Second)
	other := *e
	other.taxpayer = e.newTaxpayer()
	other.key = e.newKey(other.taxpayer, e.opt.environment, apikey.AllScopes()...)
	other.created(other.send(request{method: http.MethodPost, path: "invoices", idem: "wake", body: invoiceBody("wake"), header: scenarioHeader("submitted")}))
}

// walkScenario advances the clock until the document has reached the end of its
// scenario.
func (e *env) walkScenario(id, scenario string) {
	e.t.Helper()
	for _, status := range scenarioWalks()[scenario] {
		e.advanceSecond()
		e.awaitStatus(id, status)
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

func (e *env) readDocument(id string) documentData {
	e.t.Helper()
	var d documentData
	a := e.send(request{path: "fiscal-documents/" + id})
	if a.status != http.StatusOK {
		e.t.Fatalf("read the document: %s", a)
	}
	a.data(e.t, &d)
	return d
}

func TestMinimumChecksOfTheSandbox(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		first := e.create("k", invoiceBody("A-1", asFiscalCredit))
		inv := e.created(first)
		if inv.Status != "accepted" {
			t.Errorf("one accepted operation: the status is %s", inv.Status)
		}
		wantInvalid(t, "one failed validation", e.create("bad", invoiceBody("A-2", setField("lines.0.unit_price", "abc"))), "lines.0.unit_price invalid_decimal")
		wantReplay(t, "the same request with the same key", first, e.create("k", invoiceBody("A-1", asFiscalCredit)))
		wantCode(t, "the same key with a different body", e.create("k", invoiceBody("A-2", asFiscalCredit)), http.StatusConflict, "idempotency_mismatch")
		var list []resource
		e.send(request{path: "invoices?external_id=A-1"}).data(t, &list)
		if len(list) != 1 || list[0].ID != inv.ID {
			t.Errorf("lookup by external_id: %+v", list)
		}
		d := e.readDocument(inv.FiscalDocumentID)
		if d.InvoiceID != inv.ID || d.Status != "accepted" || d.ENCF != nil || d.TrackID != nil {
			t.Errorf("the synthetic fiscal document: %+v", d)
		}
		for _, artifact := range []string{"xml", "pdf"} {
			a := e.send(request{path: "fiscal-documents/" + d.ID + "/" + artifact})
			wantCode(t, artifact, a, http.StatusConflict, "artifact_not_ready")
		}
	})
}

func TestDocumentsAreFoundAtOnce(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		unknown := "fiscal-documents/" + store.NewID()
		for i := range 5 {
			id := fmt.Sprintf("D-%d", i)
			inv := e.created(e.create(id, invoiceBody(id)))
			var found []documentData
			e.send(request{path: "fiscal-documents?external_id=" + id}).data(t, &found)
			if len(found) != 1 || found[0].ID != inv.FiscalDocumentID || found[0].InvoiceID != inv.ID {
				t.Errorf("%s: %+v", id, found)
			}
		}
		a := e.send(request{path: "fiscal-documents?external_id=none"})
		if a.status != http.StatusOK || !strings.Contains(string(a.body), `"data":[]`) {
			t.Errorf("no match: %s", a)
		}
		waiting := e.created(e.send(request{method: http.MethodPost, path: "invoices", idem: "w", body: invoiceBody("W"), header: scenarioHeader("processing")}))
		var done []documentData
		e.send(request{path: "fiscal-documents?external_id=D-0"}).data(t, &done)
		for _, artifact := range []string{"/xml", "/pdf"} {
			a := e.send(request{path: "fiscal-documents/" + done[0].ID + artifact})
			wantCode(t, artifact, a, http.StatusConflict, "artifact_not_ready")
			if a.header.Get("Retry-After") != "" {
				t.Errorf("%s of a final document: Retry-After %q", artifact, a.header.Get("Retry-After"))
			}
			a = e.send(request{path: "fiscal-documents/" + waiting.FiscalDocumentID + artifact})
			wantCode(t, artifact, a, http.StatusConflict, "artifact_not_ready")
			if a.header.Get("Retry-After") != "5" {
				t.Errorf("%s of a document that is not final: Retry-After %q", artifact, a.header.Get("Retry-After"))
			}
			wantCode(t, artifact, e.send(request{path: unknown + artifact}), http.StatusNotFound, "not_found")
			// The id of the invoice is not the id of its document.
			wantCode(t, artifact, e.send(request{path: "fiscal-documents/" + waiting.ID + artifact}), http.StatusNotFound, "not_found")
		}
	})
}

// Every scenario takes one step per second and stays at its end. The history
// lists the steps.
func TestScenariosWalkStepByStep(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		began := e.clock.now()
		made := map[string]resource{}
		answers := map[string]response{}
		for name := range scenarioWalks() {
			a := e.send(request{method: http.MethodPost, path: "invoices", idem: name, body: invoiceBody(name, asFiscalCredit), header: scenarioHeader(name)})
			made[name], answers[name] = e.created(a), a
			if made[name].Status != "queued" {
				t.Errorf("%s starts %s", name, made[name].Status)
			}
		}
		const steps = 5 // one more than the longest scenario, to see that all stay at their end
		for step := range steps {
			e.advanceSecond()
			for name, walk := range scenarioWalks() {
				e.awaitStatus(made[name].ID, walk[min(step, len(walk)-1)])
			}
		}
		for name, walk := range scenarioWalks() {
			var want []string
			want = append(want, "created queued +0s "+answers[name].header.Get("X-Request-Id"))
			for i, status := range walk {
				want = append(want, fmt.Sprintf("status_changed %s +%ds ", status, i+1))
			}
			if diff := cmp.Diff(want, e.history(made[name].ID, began)); diff != "" {
				t.Errorf("%s: history (-want +got):\n%s", name, diff)
			}
			d := e.readDocument(made[name].FiscalDocumentID)
			if d.ENCF != nil || d.TrackID != nil || d.Status != walk[len(walk)-1] {
				t.Errorf("%s: document %+v", name, d)
			}
			notes := d.StatusMessages
			if name == "accepted_conditional" {
				if notes[0] != "[4] Aceptado Condicional" {
					t.Errorf("%s: the verdict is not the first message: %q", name, notes)
				}
				notes = notes[1:]
			}
			if !slices.ContainsFunc(notes, func(n string) bool {
				return strings.Contains(n, "ynthetic") && strings.Contains(n, "scenario "+name+";")
			}) || len(notes) > 2 {
				t.Errorf("%s: messages %q", name, notes)
			}
			wantReplay(t, name, answers[name], e.send(request{method: http.MethodPost, path: "invoices", idem: name, body: invoiceBody(name, asFiscalCredit), header: scenarioHeader(name)}))
		}
		if n := rowCount(t, e.database(t), "jobs WHERE taxpayer_id = '"+e.taxpayer+"'"); n != 0 {
			t.Errorf("%d jobs remain", n)
		}
	})
}

// history returns the history of an invoice, one line for each entry, with times
// relative to from.
func (e *env) history(id string, from time.Time) []string {
	e.t.Helper()
	entries, err := e.store.History(e.t.Context(), e.scope(), id)
	e.must(err)
	var list []string
	for _, entry := range entries {
		list = append(list, fmt.Sprintf("%s %s +%s %s", entry.Kind, entry.Status, entry.At.Sub(from), entry.RequestID))
		if entry.Cause == "" {
			e.t.Errorf("the history entry %s has no detail", entry.Kind)
		}
	}
	return list
}

func TestHistoryListsEveryRequestForTheInvoice(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		began := e.clock.now()
		var want []string
		var id string
		for _, tt := range []struct {
			kind, idem string
			body       []byte
		}{
			{"created", "k", invoiceBody("H-1")}, {"replayed", "k", invoiceBody("H-1")}, {"idempotency_mismatch", "k", invoiceBody("H-2")},
			{"external_id_conflict", "other", invoiceBody("H-1")}, {"replayed", "k", invoiceBody("H-1")},
		} {
			a := e.create(tt.idem, tt.body)
			if id == "" {
				id = e.created(a).ID
			}
			want = append(want, fmt.Sprintf("%s accepted +%s %s", tt.kind, e.clock.now().Sub(began), a.header.Get("X-Request-Id")))
			e.clock.advance(time.Second)
		}
		eventually(t, "five history entries", func() bool { return len(e.history(id, began)) == 5 })
		if diff := cmp.Diff(want, e.history(id, began)); diff != "" {
			t.Errorf("history (-want +got):\n%s", diff)
		}
		// Each request id leads to the invoice, so that integrators can rebuild their
		// records.
		for _, event := range want {
			request := event[strings.LastIndex(event, " ")+1:]
			if got, err := e.store.InvoicesOfRequest(t.Context(), e.scope(), request); err != nil || !slices.Equal(got, []string{id}) {
				t.Errorf("%s leads to %q, %v", request, got, err)
			}
		}
	})
}

func TestScenarioHeader(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		post := func(idem string, b []byte, values ...string) response {
			return e.send(request{method: http.MethodPost, path: "invoices", idem: idem, body: b, header: scenarioHeader(values...)})
		}
		for _, bad := range [][]string{
			{"queued"}, {"Accepted"}, {"accept"}, {""}, {"accepted,rejected"}, {"accepted", "accepted"}, {"accepted", "rejected"}, {"accepted;q=1"}, {"\xff"},
		} {
			wantCode(t, fmt.Sprintf("%q", bad), post("bad", invoiceBody("bad"), bad...), http.StatusBadRequest, "bad_request")
		}
		wantCode(t, "a 32 is never delivered", post("bad", invoiceBody("bad"), "delivered"), http.StatusBadRequest, "bad_request")
		if n := e.stored(1); n != 0 {
			t.Fatalf("%d invoices", n)
		}
		e.created(post("bad", invoiceBody("bad", asFiscalCredit), "delivered"))

		// The header is part of the comparison of requests.
		with := post("with", invoiceBody("with"), "rejected")
		e.created(with)
		wantReplay(t, "the same scenario", with, post("with", invoiceBody("with"), "rejected"))
		wantCode(t, "another scenario", post("with", invoiceBody("with"), "accepted"), http.StatusConflict, "idempotency_mismatch")
		wantCode(t, "no scenario", e.create("with", invoiceBody("with")), http.StatusConflict, "idempotency_mismatch")
		e.created(e.create("without", invoiceBody("without")))
		wantCode(t, "a scenario after none", post("without", invoiceBody("without"), "accepted"), http.StatusConflict, "idempotency_mismatch")
		wantCode(t, "an invalid header is refused before the key", post("without", invoiceBody("without"), "x"), http.StatusBadRequest, "bad_request")
	})
}

func TestScenarioIsIgnoredOutsideTheSandbox(t *testing.T) {
	eachEngine(t, envOptions{environment: fiscal.Certification, plan: pipeline.Sandbox{}}, func(t *testing.T, e *env) {
		first := e.create("k", invoiceBody("S"))
		if inv := e.created(first); inv.Status != "accepted" {
			t.Fatalf("the plan of this test answers at once, got %s", inv.Status)
		}
		for _, values := range [][]string{{"rejected"}, {"nonsense"}, {"accepted", "accepted"}, {""}} {
			a := e.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("S"), header: scenarioHeader(values...)})
			wantReplay(t, fmt.Sprintf("%q", values), first, a)
		}
		if n := rowCount(t, e.database(t), "jobs"); n != 0 {
			t.Errorf("%d jobs", n)
		}
	})
}

// The sandbox takes no numbers, adds jobs only for scenarios, and marks each
// document as synthetic.
func TestSandboxTakesNoNumbers(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		db := e.database(t)
		const n = 20
		for i := range n {
			id := fmt.Sprintf("L-%d", i)
			change := []func(map[string]any){}
			if i%2 == 0 {
				change = append(change, asFiscalCredit)
			}
			d := e.readDocument(e.created(e.create(id, invoiceBody(id, change...))).FiscalDocumentID)
			if d.ENCF != nil || d.TrackID != nil || len(d.StatusMessages) != 1 || !strings.Contains(d.StatusMessages[0], "Synthetic") {
				t.Errorf("document %+v", d)
			}
		}
		if jobs := rowCount(t, db, "jobs"); jobs != 0 {
			t.Errorf("%d jobs without a scenario", jobs)
		}
		e.created(e.send(request{method: http.MethodPost, path: "invoices", idem: "s", body: invoiceBody("S"), header: scenarioHeader("submitted")}))
		if jobs := rowCount(t, db, "jobs"); jobs != 1 {
			t.Errorf("%d jobs for one scenario", jobs)
		}
		var taken int
		e.must(db.QueryRowContext(context.WithoutCancel(t.Context()), `SELECT count(*) FROM documents WHERE encf IS NOT NULL OR track_id IS NOT NULL`).Scan(&taken))
		if rows := rowCount(t, db, "invoices"); taken != 0 || rows != n+1 {
			t.Errorf("%d of %d invoices have an e-NCF or a track id", taken, rows)
		}
		if answers := rowCount(t, db, "idempotency"); answers != n+1 {
			t.Errorf("%d answers", answers)
		}
	})
}

var instantForm = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`)

// Invoice and document show the same times, and updated_at only grows.
func TestUpdatedAtGrowsWithEachChange(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		inv := e.created(e.send(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("T", asFiscalCredit), header: scenarioHeader("delivered")}))
		seen := []string{inv.UpdatedAt}
		for _, status := range scenarioWalks()["delivered"] {
			e.advanceSecond()
			e.awaitStatus(inv.ID, status)
			var now resource
			e.send(request{path: "invoices/" + inv.ID}).data(t, &now)
			d := e.readDocument(inv.FiscalDocumentID)
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
