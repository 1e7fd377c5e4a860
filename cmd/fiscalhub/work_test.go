package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// scriptSimulate starts a simulated authority in this process. It drops every
// summary without an answer, so that the outcome of a small invoice stays unknown.
func scriptSimulate(t *testing.T, ts *testscript.TestScript) {
	sim, err := simulator.New(simulator.Options{Now: time.Now, Seed: 1, Config: simulator.Quick()})
	ts.Check(err)
	const person = "00112345678"
	ts.Check(sim.AddTaxpayer(simulator.Baseline("199000013", person, demoExpiry().String())))
	lost := false
	_, err = sim.AddRule(simulator.Rule{Match: simulator.Match{Service: simulator.RFCE}, Action: simulator.Action{Fault: "F02", Store: &lost}})
	ts.Check(err)
	server := httptest.NewServer(sim.Handler())
	t.Cleanup(func() {
		sim.Close()
		server.Close()
	})
	certificate, err := sim.IssueCertificate(simulator.CertificateRequest{Holder: person})
	ts.Check(err)
	for name, content := range map[string][]byte{"person.p12": certificate.P12, "person.password": []byte(certificate.Password), "person.roots": sim.RootsPEM()} {
		ts.Check(os.WriteFile(ts.MkAbs(name), content, 0o600))
	}
	ts.Setenv("AUTHORITY", server.URL)
}

// addHeld adds a document that is held: its number range ended yesterday.
func addHeld(t *testing.T, s *store.Store, scope store.Scope) store.Invoice {
	t.Helper()
	ctx, now := t.Context(), s.Now().Truncate(time.Millisecond)
	inv := store.Invoice{
		Scope: scope, ID: store.NewID(), DocumentID: store.NewID(), ExternalID: "EXT-1", Type: fiscal.FiscalCredit, Status: fiscal.Queued, Revision: 1,
		Currency: "DOP", IssueDate: "2026-11-14", Total: "118.00", DocumentTotal: "118.00", CreatedAt: now, UpdatedAt: now,
	}
	job := store.Job{Scope: scope, DocumentID: inv.DocumentID, Plan: "live", Stage: "submit", Lease: "worker", RunAt: now, CreatedAt: now}
	_, err := s.Register(ctx, store.Registration{
		Invoice: inv, Request: []byte(`{"language":"en"}`), Job: &job,
		Reply: store.StoredReply{Scope: scope, Operation: "create_invoice", Key: "k", Fingerprint: []byte{1}, RawDigest: []byte{1}, ObjectID: inv.ID, HTTPStatus: 202, CreatedAt: now, Body: []byte("{}")},
		Entry: store.HistoryEntry{Scope: scope, InvoiceID: inv.ID, ID: store.NewID(), At: now, Kind: "created", Status: inv.Status},
	})
	must(t, err)
	numbers := store.NumberRange{
		Scope: scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 1, Last: 10, Next: 2, Expires: fiscal.DateOf(now.AddDate(0, 0, -1)), CreatedAt: now,
	}
	err = s.Update(ctx, func(tx *store.Tx) error {
		return errors.Join(tx.AddNumberRange(ctx, numbers), tx.Issue(ctx, store.Issued{
			Scope: scope, RNC: "199000102", ENCF: "E310000000001", DocumentID: inv.DocumentID, NumberRangeID: numbers.ID, SecurityCode: "AbC123",
			SignedAt: now.AddDate(0, 0, -1), CreatedAt: now, XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte("<x/>"),
		}), tx.TakeOverJob(ctx, job), tx.Do(ctx, new(store.Batch).RetryJob(job, now.Add(time.Hour), cause.New(cause.RangeEnded, "2026-12-31"))))
	})
	must(t, err)
	return inv
}

func TestWorkReissue(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		var out bytes.Buffer
		ctx := audit.WithCaller(t.Context(), audit.Caller{Actor: "ana"})
		term := &terminal{ctx: ctx, cli: &cli{JSON: true, Data: t.TempDir(), Database: address}, out: &out, errOut: io.Discard, now: time.Now, language: lang.English}
		run := func(c interface{ Run(t *terminal) error }, to any) error {
			out.Reset()
			if err := c.Run(term); err != nil {
				return err
			}
			return json.Unmarshal(out.Bytes(), to)
		}
		var made struct{ ID string }
		must(t, run(taxpayerCreateCmd{RNC: "199000102", LegalName: "Comercial Demostración, SRL"}, &made))
		scope := store.Scope{Environment: fiscal.Certification, TaxpayerID: made.ID}
		inv := addHeld(t, s, scope)

		hidden := func(events []historyEventView) bool {
			return !slices.ContainsFunc(events, func(e historyEventView) bool { return strings.Contains(e.Detail, "E310000000001") })
		}
		for _, encf := range []string{"", "E310000000001"} { // before and after the number was shown
			d, err := dossier.Read(t.Context(), s, inv.Scope, inv.DocumentID)
			d.Invoice.ENCF = encf
			if events := newHistoryEvents(d, lang.English); err != nil || hidden(events) != (encf == "") {
				t.Errorf("the history of a document with the number %q: %+v, %v", encf, events, err)
			}
		}

		var list []workView
		if err := run(workListCmd{}, &list); err != nil || len(list) != 1 || !strings.HasPrefix(textOf(list[0].LastError), "held: ") || *list[0].Stage != "submit" {
			t.Errorf("work list: %+v, %v", list, err)
		}
		if err := run(workReissueCmd{ID: inv.DocumentID, Reason: " "}, nil); !errors.Is(err, decision.ErrUndecidable) {
			t.Errorf("without a reason: %v", err)
		}
		var shown workShowView
		must(t, run(workReissueCmd{ID: inv.ID, Reason: "signed on the last day"}, &shown))
		if shown.Job == nil || shown.Job.Stage != "issue" || shown.Document.ENCF != nil || shown.Document.Status != fiscal.Queued || len(shown.Replaced) != 1 {
			t.Fatalf("after: %s", out.String())
		}
		if n := shown.Replaced[0]; n.ENCF != "E310000000001" || n.SecurityCode != "AbC123" || n.Reason != "signed on the last day" || n.By != "ana" || n.SHA256 != "01" {
			t.Errorf("the old number: %+v", n)
		}
		if len(shown.Document.Messages) != 1 || !strings.HasPrefix(shown.Document.Messages[0], "The number E310000000001 was replaced by a new one") {
			t.Errorf("messages: %q", shown.Document.Messages)
		}
		if err := run(workReissueCmd{ID: inv.DocumentID, Reason: "again"}, nil); !errors.Is(err, decision.ErrUndecidable) {
			t.Errorf("without a number: %v", err)
		}
		entries, err := s.AuditEntries(t.Context(), store.AuditFilter{Object: "document:" + inv.DocumentID}, 0, 10)
		if err != nil || !slices.ContainsFunc(entries, func(e audit.Entry) bool {
			return e.Action == "document.reissue" && e.Caller.Actor == "ana" && e.Caller.Reason == "signed on the last day"
		}) {
			t.Errorf("the audit log: %+v, %v", entries, err)
		}
		d, err := dossier.Read(t.Context(), s, inv.Scope, inv.DocumentID)
		must(t, err)
		events := newHistoryEvents(d, lang.English)
		kinds := make([]string, len(events))
		for i, e := range events {
			kinds[i] = e.Kind
		}
		if !slices.Equal(kinds, []string{"created", "issued", "reissued"}) {
			t.Errorf("the history: %+v", events)
		}
		if err := run(workShowCmd{ID: inv.DocumentID}, &shown); err != nil {
			t.Error(err)
		}
		term.cli.JSON = false
		out.Reset()
		if err := (workShowCmd{ID: inv.DocumentID}).Run(term); err != nil || !strings.Contains(out.String(), "replaced") || !strings.Contains(out.String(), "AbC123") {
			t.Errorf("%s, %v", out.String(), err)
		}
	})
}
