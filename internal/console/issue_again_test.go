package console

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// One function decides for every status whether a sale may be issued again.
func TestWhenASaleMayBeIssuedAgain(t *testing.T) {
	t.Parallel()
	want := map[fiscal.Status]string{
		fiscal.Queued: "copy.under_way", fiscal.Submitted: "copy.under_way", fiscal.Processing: "copy.under_way",
		fiscal.OutcomeUnknown: "copy.unknown",
		fiscal.Accepted:       "copy.counts", fiscal.AcceptedConditional: "copy.counts", fiscal.Delivered: "copy.counts",
		fiscal.Rejected: "", fiscal.ValidationFailed: "",
	}
	e := newEnv(t)
	for _, s := range fiscal.Statuses() {
		if got := whyNotAgain(s, false, false); got != want[s] {
			t.Errorf("%s: %q, want %q", s, got, want[s])
		}
		for _, flags := range [][2]bool{{true, false}, {false, true}, {true, true}} {
			got := whyNotAgain(s, flags[0], flags[1])
			if got == "" {
				t.Errorf("%s may be issued again, although %v", s, flags)
			} else {
				e.mustHave(got)
			}
		}
		if isTemplate(s) != (want[s] == "copy.counts") {
			t.Errorf("%s is a template: %t", s, isTemplate(s))
		}
	}
	if whyNotAgain("new_status", false, false) == "" {
		t.Error("a status that is not known may be issued again")
	}
}

// setStatus gives a document another status, as if the authority had said so.
func (w *liveEnv) setStatus(inv store.Invoice, s fiscal.Status) {
	w.t.Helper()
	// The store allows no way back from a verdict.
	_, err := storetest.OpenSQL(w.t, w.address).ExecContext(w.t.Context(), "UPDATE documents SET status = $1 WHERE id = $2", string(s), inv.ID)
	w.must(err)
}

// invoices returns how many documents the taxpayer has.
func (w *liveEnv) invoices() int {
	w.t.Helper()
	all, err := w.o.Store.IssuedBetween(w.t.Context(), w.scope, store.IssueSpan{
		From: date(w.t, "2020-01-01"), To: date(w.t, "2099-12-31"), Until: "ffffffff", Limit: 1000,
	})
	w.must(err)
	return len(all)
}

// The page of a document and the address of the copy offer to issue the sale again only
// when it may be. A form that was opened before is refused, too.
func TestASaleIsNotIssuedTwice(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveEnv(t, address)
		inv := w.judged(2, simulator.Message{Code: 145, Text: "Fecha de vencimiento no válida"}, "Ferretería Pérez, SRL", 1000)
		b, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
		form := issueAddress + "?copy=" + inv.DocumentID
		opened := formOf(b.get(form).body)
		if opened.Get("lines.0.description") == "" || opened.Get("copy") != inv.DocumentID {
			t.Fatalf("the copy of a rejected document is %v", opened)
		}
		for status, reason := range map[fiscal.Status]string{
			fiscal.Queued: "todavía está en curso", fiscal.Submitted: "todavía está en curso", fiscal.Processing: "todavía está en curso",
			fiscal.OutcomeUnknown: "La DGII puede tener este comprobante",
			fiscal.Accepted:       "su venta ya cuenta", fiscal.AcceptedConditional: "su venta ya cuenta", fiscal.Delivered: "su venta ya cuenta",
		} {
			w.setStatus(inv, status)
			page, blocked := b.get(documentAddress(inv.DocumentID)), b.get(form)
			if strings.Contains(page.body, "?copy=") || strings.Contains(page.body, "emitir otra vez</span>") {
				t.Errorf("%s: the page offers the copy", status)
			}
			if offered := strings.Contains(page.body, "?template="+inv.DocumentID); offered != isTemplate(status) {
				t.Errorf("%s: the page offers the template: %t", status, offered)
			}
			if !isTemplate(status) && !strings.Contains(page.body, reason) {
				t.Errorf("%s: the page does not say why", status)
			}
			blocked.want(t, reason, documentAddress(inv.DocumentID))
			if strings.Contains(blocked.body, "lines.0.description") || strings.Contains(blocked.body, `name="external_id"`) {
				t.Errorf("%s: the copy is a form", status)
			}
			template := b.get(issueAddress + "?template=" + inv.DocumentID)
			if isTemplate(status) {
				template.want(t, "Es otra venta", `name="lines.0.description"`)
				if id := formOf(template.body).Get("external_id"); strings.HasPrefix(id, inv.ExternalID) {
					t.Errorf("%s: another sale has the id %s", status, id)
				}
			} else if template.StatusCode != http.StatusSeeOther || template.Header.Get("Location") != form {
				t.Errorf("%s: the template answers %d %s", status, template.StatusCode, template.Header.Get("Location"))
			}
			before := w.invoices()
			for _, action := range []string{"issue", "check", ""} {
				opened.Set("action", action)
				if got := b.send(http.MethodPost, issueAddress, opened); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, reason) {
					t.Errorf("%s: the form that was opened before answers %d", status, got.StatusCode)
				}
			}
			if draft := b.send(http.MethodPost, issueAddress+"/draft", opened); strings.Contains(draft.body, "issue-question") {
				t.Errorf("%s: the draft asks a question", status)
			}
			if w.invoices() != before {
				t.Errorf("%s: the sale was issued again", status)
			}
		}
		w.setStatus(inv, fiscal.ValidationFailed)
		b.get(form).want(t, `name="lines.0.description"`)
		wantAnswer(t, "a sale that may be issued again", b.send(http.MethodPost, issueAddress, opened), http.StatusSeeOther)
	})
}

// Two people who issue a rejected sale again make one document, whatever ids they write.
// When that one is rejected, too, the sale may be issued once more.
func TestARejectedSaleHasOneCopy(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveEnv(t, address)
		inv := w.judged(2, simulator.Message{Code: 145, Text: "Fecha de vencimiento no válida"}, "Ferretería Pérez, SRL", 1000)
		b, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
		other, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
		form, before := issueAddress+"?copy="+inv.DocumentID, w.invoices()
		first, second := formOf(b.get(form).body), formOf(other.get(form).body)
		second.Set("external_id", "OTRA-1")
		second.Set("idempotency_key", "mine")
		var group sync.WaitGroup
		answers := make([]answer, 2)
		group.Go(func() { answers[0] = b.send(http.MethodPost, issueAddress, first) })
		group.Go(func() { answers[1] = other.send(http.MethodPost, issueAddress, second) })
		group.Wait()
		made := ""
		for _, got := range answers {
			switch got.StatusCode {
			case http.StatusSeeOther:
				made, _, _ = strings.Cut(got.Header.Get("Location"), "?")
			case http.StatusUnprocessableEntity:
				got.want(t, "ya se emitió otra vez")
			default:
				t.Errorf("answered %d: %.300s", got.StatusCode, got.body)
			}
		}
		if w.invoices() != before+1 {
			t.Fatalf("%d documents, want %d", w.invoices(), before+1)
		}
		// The person who made it may send the form again.
		winner, fields := b, first
		if answers[1].StatusCode == http.StatusSeeOther {
			winner, fields = other, second
			fields.Set("idempotency_key", copyKey(inv))
		}
		if got := winner.send(http.MethodPost, issueAddress, fields); got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), made) {
			t.Errorf("the same form again answers %d %s", got.StatusCode, got.Header.Get("Location"))
		}
		copied, err := w.o.Store.AnyDocument(t.Context(), strings.TrimPrefix(made, documentsAddress+"/"))
		w.must(err)
		w.setStatus(copied, fiscal.Rejected)
		for _, id := range []string{inv.DocumentID, copied.DocumentID} {
			if got := formOf(b.get(issueAddress + "?copy=" + id).body).Get("idempotency_key"); got != copyKey(copied) {
				t.Errorf("the next copy has the key %s", got)
			}
		}
		wantAnswer(t, "the third try", b.send(http.MethodPost, issueAddress, formOf(b.get(form).body)), http.StatusSeeOther)
	})
}

// A document that the authority shows differently may count, although it is rejected here.
func TestADifferenceKeepsASaleFromBeingIssuedAgain(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	inv := w.judged(2, simulator.Message{Code: 145, Text: "Fecha de vencimiento no válida"}, "Ferretería Pérez, SRL", 1000)
	w.must(w.o.Store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.SaveDifference(t.Context(), store.Difference{
			Scope: inv.Scope, DocumentID: inv.DocumentID, Kind: store.DifferenceState, Ours: "rejected", Theirs: "accepted", FoundAt: w.clock.Now(),
		})
	}))
	b, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
	b.get(issueAddress+"?copy="+inv.DocumentID).want(t, "La DGII muestra este comprobante de otra forma")
	if got := b.get(documentAddress(inv.DocumentID)); strings.Contains(got.body, "?copy=") {
		t.Error("the page offers the copy")
	}
}

// So may a copy of it, whichever of the two a person opens.
func TestACopyThatDiffersKeepsASaleFromBeingIssuedAgain(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveEnv(t, address)
		inv := w.judged(2, simulator.Message{Code: 145, Text: "Fecha de vencimiento no válida"}, "Ferretería Pérez, SRL", 1000)
		b, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
		form := formOf(b.get(issueAddress + "?copy=" + inv.DocumentID).body)
		form.Set("external_id", "OTRA-1")
		made := b.send(http.MethodPost, issueAddress, form)
		id, _, _ := strings.Cut(strings.TrimPrefix(made.Header.Get("Location"), documentsAddress+"/"), "?")
		copied, err := w.o.Store.AnyDocument(t.Context(), id)
		w.must(err)
		w.setStatus(copied, fiscal.Rejected)
		form = formOf(b.get(issueAddress + "?copy=" + inv.DocumentID).body)
		difference := store.Difference{
			Scope: copied.Scope, DocumentID: copied.DocumentID, Kind: store.DifferenceState, Ours: "rejected", Theirs: "accepted", FoundAt: w.clock.Now(),
		}
		w.must(w.o.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.SaveDifference(t.Context(), difference) }))
		b.get(issueAddress+"?copy="+inv.DocumentID).want(t, "ya se emitió otra vez", documentAddress(copied.DocumentID))
		b.get(issueAddress+"?copy="+copied.DocumentID).want(t, "La DGII muestra este comprobante de otra forma")
		if page := b.get(documentAddress(inv.DocumentID)); strings.Contains(page.body, "?copy=") {
			t.Error("the page offers the copy")
		}
		before := w.invoices()
		if got := b.send(http.MethodPost, issueAddress, form); got.StatusCode != http.StatusUnprocessableEntity || w.invoices() != before {
			t.Errorf("a form that was opened before answers %d", got.StatusCode)
		}
	})
}
