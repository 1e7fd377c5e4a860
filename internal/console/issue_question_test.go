package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// liveFields returns the fields of a valid invoice of today with a total of 2,360.00.
func (w *liveEnv) liveFields(change ...string) url.Values {
	return w.invoiceFields(append([]string{"issue_date", fiscal.DateOf(w.clock.Now()).String()}, change...)...)
}

// The draft has the question when the server would issue the form as it is, and only then.
func TestACompleteFormHasAQuestion(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	b, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
	made := w.create(fiscal.FiscalCredit, "Otro, SRL", 100)
	draft := func(fields url.Values) string {
		return b.send(http.MethodPost, issueAddress+"/draft", fields).body
	}
	asked := draft(w.liveFields())
	for _, want := range []string{`id="issue-question"`, "¿Emitir este comprobante?", "31 · Factura de crédito fiscal", "Cliente, SRL · 199000021", "RD$\u00a02,360.00"} {
		if !strings.Contains(asked, want) {
			t.Errorf("the question has no %q: %s", want, asked)
		}
	}
	if got := draft(w.liveFields("lines.1.quantity", "1", "lines.1.billing_indicator", "1", "lines.1.item_kind", "product")); !strings.Contains(got, "issue-question") {
		t.Error("a form with an empty line has no question, and the server would issue it")
	}
	for name, fields := range map[string]url.Values{
		"without a buyer":                w.liveFields("buyer.legal_name", ""),
		"with a wrong RNC":               w.liveFields("buyer.tax_id", "123"),
		"without a line":                 w.liveFields("lines.0.description", "", "lines.0.unit_price", ""),
		"of tomorrow":                    w.liveFields("issue_date", fiscal.DateOf(w.clock.Now().AddDate(0, 0, 2)).String()),
		"with an id that is used":        w.liveFields("external_id", made.ExternalID),
		"that the authority cannot take": w.liveFields("lines.0.description", strings.Repeat("x", 5000)),
	} {
		if got := draft(fields); strings.Contains(got, "issue-question") {
			t.Errorf("a form %s has a question", name)
		}
		fields.Set("action", "check")
		if got := b.send(http.MethodPost, issueAddress, fields); got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, "-error") {
			t.Errorf("a check of a form %s answers %d", name, got.StatusCode)
		}
	}
	before := w.invoices()
	if got := b.send(http.MethodPost, issueAddress, w.liveFields("action", "check")); got.StatusCode != http.StatusOK || w.invoices() != before {
		t.Errorf("a check answers %d and leaves %d documents", got.StatusCode, w.invoices()-before)
	}
	wantAnswer(t, "a complete form", b.send(http.MethodPost, issueAddress, w.liveFields("action", "issue")), http.StatusSeeOther)
	// The form has made its invoice: nothing is asked, and a check leads to it.
	if got := draft(w.liveFields()); strings.Contains(got, "issue-question") {
		t.Error("a form that was sent has a question")
	}
	if got := b.send(http.MethodPost, issueAddress, w.liveFields("action", "check")); got.StatusCode != http.StatusSeeOther || w.invoices() != before+1 {
		t.Errorf("a check of a form that was sent answers %d", got.StatusCode)
	}
	e := newEnv(t)
	person, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	if got := person.send(http.MethodPost, issueAddress+"/draft", e.invoiceFields()).body; strings.Contains(got, "issue-question") {
		t.Error("the sandbox asks")
	}
}

// A person who issues an invoice is asked once, and only about a complete form.
func TestIssuingAsksOnce(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	b := w.openTab()
	b.signIn(w.env, store.RoleAccountant, w.scope.TaxpayerID)
	b.open(issueAddress)
	b.fill(`[name="lines.0.description"]`, "Cemento")
	b.evaluate(`(window.mark = 1, true)`)
	b.click(`button[value="issue"]`)
	b.wait(`!window.mark && document.getElementById('buyer.legal_name-error') && document.getElementById('lines.0.unit_price-error')`)
	if w.invoices() != 0 || b.evaluate(`document.getElementById('question').open`) {
		t.Error("an incomplete form was issued or asked about")
	}
	b.fill(`[name="buyer.tax_id"]`, "199-00002-1")
	b.fill(`[name="buyer.legal_name"]`, "Ferretería El Sol, SRL")
	b.fill(`[name="lines.0.unit_price"]`, "1,000.00")
	b.click(`button[value="issue"]`)
	b.wait(`document.getElementById('question').open && document.activeElement.id === 'question-no'`)
	for _, want := range []string{"¿Emitir este comprobante?", "31 · Factura de crédito fiscal", "Ferretería El Sol, SRL", "RD$\u00a01,180.00"} {
		if !b.evaluate(`document.getElementById('question').innerText.includes(` + quoted(want) + `)`) {
			t.Errorf("the question has no %q", want)
		}
	}
	b.picture("issue-question")
	b.click("#question-no")
	b.wait(`!document.getElementById('question').open && document.activeElement.value === 'issue'`)
	if w.invoices() != 0 {
		t.Error("a person said no, and the invoice was issued")
	}
	b.click(`button[value="issue"]`)
	b.wait(`document.getElementById('question').open`)
	b.click("#question-yes")
	b.wait(`location.pathname.startsWith('/console/documents/') && location.pathname !== '/console/documents/new'`)
	if w.invoices() != 1 {
		t.Errorf("%d documents", w.invoices())
	}
	b.evaluate(`(location.href = '` + issueAddress + `?copy=' + location.pathname.split('/').pop(), true)`)
	b.wait(`location.search.includes('copy=') && document.querySelector('h1').innerText === 'Esta venta no se emite otra vez'`)
	b.picture("issue-blocked")
	b.click("main a.button")
	b.wait(`document.querySelector('#advice-title')`)
	b.picture("issue-under-way")
}
