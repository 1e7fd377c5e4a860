package console

import (
	"context"
	"errors"
	"html"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addWaiting stores a document of a live environment that waits at a stage; without a
// stage, no worker continues with it.
func (e *env) addWaiting(taxpayer, externalID, stage string, change ...func(*store.Job)) store.Invoice {
	e.t.Helper()
	now := e.clock.Now()
	scope := store.Scope{Environment: e.o.Environment, TaxpayerID: taxpayer}
	inv := store.Invoice{
		Scope: scope, ID: store.NewID(), DocumentID: store.NewID(), ExternalID: externalID, Type: fiscal.Consumer, Status: fiscal.Queued, Revision: 1,
		Currency: "DOP", IssueDate: "2026-11-15", Subtotal: "1", DiscountTotal: "0", TaxTotal: "0", Total: "1", Paid: "1", Balance: "0", DocumentTotal: "1.00",
		Messages: []string{}, CreatedAt: now, UpdatedAt: now,
	}
	r := store.Registration{
		Invoice: inv, Request: []byte(`{}`),
		Reply: store.StoredReply{Scope: scope, Operation: "create_invoice", Key: inv.ID, Fingerprint: []byte{1}, RawDigest: []byte{1}, ObjectID: inv.ID, HTTPStatus: 202, CreatedAt: now, Body: []byte(`{}`)},
		Entry: store.HistoryEntry{Scope: scope, InvoiceID: inv.ID, ID: store.NewID(), At: now, Kind: "created", Status: inv.Status},
	}
	if stage != "" {
		r.Job = &store.Job{Scope: scope, DocumentID: inv.DocumentID, Plan: "live", Stage: stage, RunAt: now.Add(time.Minute), CreatedAt: now}
		for _, fn := range change {
			fn(r.Job)
		}
	}
	_, err := e.o.Store.Register(e.t.Context(), r)
	e.must(err)
	return inv
}

// newCertificationEnv returns a console of the environment certification.
func newCertificationEnv(t *testing.T, address string, change ...func(*Options)) *env {
	t.Helper()
	change = append([]func(*Options){func(o *Options) { o.Environment = fiscal.Certification }}, change...)
	e := newNode(t, address, storetest.NewClock(), seal.NewKeys(filepath.Join(t.TempDir(), "master.key")), change...)
	e.taxpayer = e.addTaxpayer("199000013", "Palma Clara, SRL")
	return e
}

// The page shows what waits, by stage, taxpayer and age, and only the documents of the
// taxpayers that the person sees.
func TestPendingWorkIsListed(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newCertificationEnv(t, address)
		other := e.addTaxpayer("199000102", "Otra, SRL")
		e.addWaiting(e.taxpayer, "OLD-1", "submit")
		e.clock.Advance(25 * time.Hour)
		e.addWaiting(e.taxpayer, "NEW-1", "poll")
		e.addWaiting(other, "OTHER-1", "submit")
		e.addWaiting(e.taxpayer, "STUCK-1", "")
		operator, _ := e.signedIn(store.RoleOperator)
		accountant, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
		for _, test := range []struct {
			b     *browser
			query string
			want  string
		}{
			{operator, "", "OLD-1 NEW-1 OTHER-1"},
			{accountant, "", "OLD-1 NEW-1"},
			{operator, "?stage=poll", "NEW-1"},
			{operator, "?taxpayer=" + other, "OTHER-1"},
			{operator, "?age=24h", "OLD-1"},
			{operator, "?stage=none", "STUCK-1"},
			{accountant, "?stage=none", "STUCK-1"},
		} {
			got := test.b.get(workAddress + test.query)
			if got.StatusCode != http.StatusOK {
				t.Fatalf("%s answered %d", test.query, got.StatusCode)
			}
			var found []string
			for _, name := range []string{"OLD-1", "NEW-1", "OTHER-1", "STUCK-1"} {
				if strings.Contains(got.body, ">"+name+"<") {
					found = append(found, name)
				}
			}
			if strings.Join(found, " ") != test.want {
				t.Errorf("%q shows %v, want %s", test.query, found, test.want)
			}
		}
		wantAnswer(t, "the work of another taxpayer", accountant.get(workAddress+"?taxpayer="+other), http.StatusNotFound)
		if got := accountant.get(workAddress).body; strings.Contains(got, "/requeue") {
			t.Error("an accountant sees the control of operators")
		}
	})
}

// The first page links to the documents that it counts: those with a deadline after a
// contingency, and those without a verdict for 15 minutes.
func TestTheFirstPageLinksToThePendingWorkThatItCounts(t *testing.T) {
	t.Parallel()
	e := newCertificationEnv(t, storetest.Address(t, "sqlite"))
	change := func(fn func(context.Context, time.Time, *store.Tx) (bool, error)) {
		e.must(e.o.Store.Update(t.Context(), func(tx *store.Tx) error {
			_, err := fn(t.Context(), e.clock.Now(), tx)
			return err
		}))
	}
	change(func(ctx context.Context, now time.Time, tx *store.Tx) (bool, error) {
		return tx.StartContingency(ctx, fiscal.Certification, now)
	})
	e.addWaiting(e.taxpayer, "OLD-1", "submit")
	e.clock.Advance(time.Hour)
	change(func(ctx context.Context, now time.Time, tx *store.Tx) (bool, error) {
		return tx.EndContingency(ctx, fiscal.Certification, now)
	})
	e.clock.Advance(time.Second)
	e.addWaiting(e.taxpayer, "LATE-1", "submit")
	e.clock.Advance(16 * time.Minute)
	e.addWaiting(e.taxpayer, "NEW-1", "submit")
	operator, _ := e.signedIn(store.RoleOperator)
	first := operator.get("/console/").body
	for title, want := range map[string]string{
		"1 comprobante de una contingencia debe enviarse": "OLD-1", "2 comprobantes sin veredicto por más de 15 minutos": "OLD-1 LATE-1",
	} {
		before, _, ok := strings.Cut(first, title)
		if !ok {
			t.Fatalf("the first page does not say %q", title)
		}
		_, address, _ := strings.Cut(before[strings.LastIndex(before, "<a "):], `href="`)
		address, _, _ = strings.Cut(address, `"`)
		got := operator.get(html.UnescapeString(address)).body
		var found []string
		for _, name := range []string{"OLD-1", "LATE-1", "NEW-1"} {
			if strings.Contains(got, ">"+name+"<") {
				found = append(found, name)
			}
		}
		if strings.Join(found, " ") != want {
			t.Errorf("%s shows %v, want %s", address, found, want)
		}
		if !strings.Contains(got, "Quitar filtros") {
			t.Errorf("%s does not say that it is filtered", address)
		}
	}
}

// An operator puts a document back to work, with a reason that is in the audit log.
func TestAnOperatorRequeuesADocument(t *testing.T) {
	t.Parallel()
	e := newCertificationEnv(t, storetest.Address(t, "sqlite"))
	stuck := e.addWaiting(e.taxpayer, "STUCK-1", "")
	operator, u := e.signedIn(store.RoleOperator)
	accountant, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	address := workAddress + "/" + stuck.DocumentID + "/requeue"
	wantAnswer(t, "an accountant's requeue", accountant.post(address, "reason", "x"), http.StatusForbidden)
	wantAnswer(t, "a requeue without a reason", operator.post(address, "reason", " "), http.StatusUnprocessableEntity, `id="reason-error"`)
	wantAnswer(t, "the page", operator.get(address), http.StatusOK)
	if got := operator.post(address, "reason", "se cayó el servidor"); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("requeue answered %d: %s", got.StatusCode, got.body)
	}
	if got := operator.get(workAddress).body; !strings.Contains(got, ">STUCK-1<") {
		t.Error("the document has no job")
	}
	entries, err := e.o.Store.AuditEntries(t.Context(), store.AuditFilter{Object: "document:" + stuck.DocumentID}, 0, 10)
	e.must(err)
	if len(entries) != 1 || entries[0].Action != "document.requeue" || entries[0].Caller.Actor != u.Name || entries[0].Caller.Reason != "se cayó el servidor" {
		t.Errorf("the audit log has %+v", entries)
	}
}

// The page of the authority shows services, circuits, contingencies and the clock.
func TestTheAuthorityIsShown(t *testing.T) {
	t.Parallel()
	e := newCertificationEnv(t, storetest.Address(t, "sqlite"), func(o *Options) {
		o.Services = func() ([]overview.ServiceFigures, error) {
			return []overview.ServiceFigures{{Service: "reception", Calls: 200, Failures: 3, Median: 120 * time.Millisecond, P99: 2300 * time.Millisecond}}, nil
		}
		o.Circuits = func() map[string]bool { return map[string]bool{"reception": true} }
		o.AuthorityClock = func() (time.Duration, bool) { return -42 * time.Second, true }
	})
	e.must(e.o.Store.Update(t.Context(), func(tx *store.Tx) error {
		_, err := tx.StartContingency(t.Context(), e.o.Environment, e.clock.Now())
		return err
	}))
	e.clock.Advance(90 * time.Minute)
	auditor, _ := e.signedIn(store.RoleAuditor)
	accountant, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	wantAnswer(t, "an accountant", accountant.get(authorityAddress), http.StatusNotFound)
	got := auditor.get(authorityAddress).body
	for _, want := range []string{"reception", "1.5 %", "120\u00a0ms", "2.3\u00a0s", "Abierto", "-42\u00a0s", "Desfasado", "Contingencia", "90\u00a0min"} {
		if !strings.Contains(got, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	sandbox := newEnv(t)
	b, _ := sandbox.signedIn(store.RoleOperator)
	if got := b.get(authorityAddress).body; !strings.Contains(got, "no usa la DGII") {
		t.Error("the page of the sandbox does not say that it has no authority")
	}
}

// newBrowserLiveEnv returns a console of certification with figures of the authority.
func newBrowserLiveEnv(t *testing.T) *env {
	t.Helper()
	e := newCertificationEnv(t, storetest.Address(t, "sqlite"), func(o *Options) {
		o.Services = func() ([]overview.ServiceFigures, error) {
			return []overview.ServiceFigures{
				{Service: "authentication", Calls: 41, Median: 180 * time.Millisecond, P99: 900 * time.Millisecond},
				{Service: "reception", Calls: 12_204, Failures: 31, Median: 120 * time.Millisecond, P99: 2300 * time.Millisecond},
				{Service: "status", Calls: 34_410, Failures: 2, Median: 85 * time.Millisecond, P99: 610 * time.Millisecond},
			}, nil
		}
		o.Circuits = func() map[string]bool {
			return map[string]bool{"authentication": false, "reception": false, "status": true}
		}
		o.AuthorityClock = func() (time.Duration, bool) { return 400 * time.Millisecond, true }
	})
	e.must(e.o.Store.Update(t.Context(), func(tx *store.Tx) error {
		if _, err := tx.StartContingency(t.Context(), e.o.Environment, e.clock.Now().Add(-5*time.Hour)); err != nil {
			return err
		}
		if _, err := tx.EndContingency(t.Context(), e.o.Environment, e.clock.Now().Add(-3*time.Hour)); err != nil {
			return err
		}
		return tx.ReportAnswer(t.Context(), e.o.Environment, e.clock.Now())
	}))
	return e
}

// An operator starts the release of fenced ranges in the background, and sees why it ended.
func TestAnOperatorReleasesFencedRanges(t *testing.T) {
	t.Parallel()
	begun, end := make(chan store.Scope), make(chan error)
	e := newCertificationEnv(t, storetest.Address(t, "sqlite"), func(o *Options) {
		o.Release = func(_ context.Context, scope store.Scope) error {
			begun <- scope
			return <-end
		}
	})
	operator, _ := e.signedIn(store.RoleOperator)
	auditor, _ := e.signedIn(store.RoleAuditor)
	wantAnswer(t, "an auditor's release", auditor.post(authorityAddress+"/release", "taxpayer", e.taxpayer), http.StatusForbidden)
	wantAnswer(t, "the release of no taxpayer", operator.post(authorityAddress+"/release", "taxpayer", store.NewID()), http.StatusNotFound)
	for range 2 { // the second one finds the first one running
		if got := operator.post(authorityAddress+"/release", "taxpayer", e.taxpayer).StatusCode; got != http.StatusSeeOther {
			t.Fatalf("the release answered %d", got)
		}
	}
	if scope := <-begun; scope.TaxpayerID != e.taxpayer || scope.Environment != fiscal.Certification {
		t.Errorf("the release is for %+v", scope)
	}
	if running, _ := e.releases.state(e.taxpayer); !running {
		t.Error("the release does not run")
	}
	end <- errors.New("the authority does not answer")
	for {
		if running, problem := e.releases.state(e.taxpayer); !running {
			if problem != "the authority does not answer" {
				t.Errorf("the problem is %q", problem)
			}
			return
		}
		runtime.Gosched()
	}
}
