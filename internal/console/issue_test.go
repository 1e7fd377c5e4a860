package console

import (
	"net/http"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// invoiceFields returns the fields of a valid invoice with a total of 2,360.00.
func (e *env) invoiceFields(change ...string) url.Values {
	v := url.Values{
		"taxpayer": {e.taxpayer}, "idempotency_key": {"form-1"}, "external_id": {"F-1"}, "ecf_type": {"31"}, "issue_date": {"2026-11-15"},
		"payment_type": {"cash"}, "buyer.legal_name": {"Cliente, SRL"}, "buyer.tax_id": {"199000021"},
		"lines.0.description": {"Servicio"}, "lines.0.quantity": {"2"}, "lines.0.unit_price": {"RD$ 1,000.00"},
		"lines.0.billing_indicator": {"1"}, "lines.0.item_kind": {"service"},
	}
	for i := 0; i < len(change); i += 2 {
		v.Set(change[i], change[i+1])
	}
	return v
}

func (e *env) onlyInvoices() []store.Invoice {
	e.t.Helper()
	all, err := e.o.Store.IssuedBetween(e.t.Context(), store.Scope{Environment: fiscal.Sandbox, TaxpayerID: e.taxpayer},
		store.IssueSpan{From: date(e.t, "2026-01-01"), To: date(e.t, "2026-12-31"), Until: "ffffffff", Limit: 100})
	e.must(err)
	return all
}

func date(t *testing.T, text string) fiscal.Date {
	t.Helper()
	d, err := fiscal.ParseDate(text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// A form is registered as the API registers a request, with totals that the server has
// computed, and the audit log names the person. Sending the form twice makes one invoice.
func TestAPersonIssuesAnInvoice(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newNode(t, address, storetest.NewClock(), seal.NewKeys(filepath.Join(t.TempDir(), "master.key")))
		e.taxpayer = e.addTaxpayer("199000013", "Palma Clara, SRL")
		b, u := e.signedIn(store.RoleAccountant, e.taxpayer)
		var address1 string
		for i := range 2 {
			got := b.send(http.MethodPost, issueAddress, e.invoiceFields())
			if got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/console/documents/") {
				t.Fatalf("send %d answered %d %s: %s", i+1, got.StatusCode, got.Header.Get("Location"), got.body)
			}
			if i == 0 {
				address1 = got.Header.Get("Location")
			} else if got.Header.Get("Location") != address1 {
				t.Errorf("the second answer leads to %s, want %s", got.Header.Get("Location"), address1)
			}
		}
		all := e.onlyInvoices()
		if len(all) != 1 || all[0].Total != "2360.00" || all[0].TaxTotal != "360.00" || all[0].Subtotal != "2000.00" {
			t.Fatalf("the invoices are %+v", all)
		}
		entries, err := e.o.Store.AuditEntries(t.Context(), store.AuditFilter{Object: "document:" + all[0].DocumentID}, 0, 10)
		e.must(err)
		if len(entries) != 1 || entries[0].Action != "document.issue" || entries[0].Caller.Actor != u.Name || entries[0].TaxpayerID != e.taxpayer {
			t.Errorf("the audit log has %+v", entries)
		}
	})
}

// Every error of a form is at its field, in the language of the person, and every value is
// kept.
func TestErrorsOfAnInvoiceAreAtTheirFields(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, u := e.signedIn(store.RoleAccountant, e.taxpayer)
	fields := e.invoiceFields("buyer.tax_id", "123", "lines.0.quantity", "dos", "lines.0.description", "", "lines.1.description", "Otra <b>",
		"lines.1.unit_price", "10", "lines.1.quantity", "1", "lines.1.item_kind", "product", "payment_type", "credit", "notes", "hasta luego")
	got := b.send(http.MethodPost, issueAddress, fields)
	if got.StatusCode != http.StatusUnprocessableEntity {
		t.Fatalf("answered %d", got.StatusCode)
	}
	for _, name := range []string{"buyer.tax_id", "lines.0.quantity", "lines.0.description", "due_date"} {
		if !strings.Contains(got.body, `id="`+name+`-error"`) {
			t.Errorf("%s has no error", name)
		}
	}
	for _, want := range []string{`value="dos"`, `value="123"`, `hasta luego`, `Otra &lt;b&gt;`, `value="form-1"`, "Línea 1, Cantidad: debe ser un número", "RNC de 9 dígitos"} {
		if !strings.Contains(got.body, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	e.must(e.o.People.SetPreferences(t.Context(), u.ID, "en", ""))
	if got := b.send(http.MethodPost, issueAddress, fields); !strings.Contains(got.body, "Line 1, Quantity: must be a number like 2.5") {
		t.Error("the errors are not in English")
	}
	if len(e.onlyInvoices()) != 0 {
		t.Error("a wrong form has made an invoice")
	}
}

// Every code of a problem has a text. The message of a text that is too short or too long
// says the length: it is shown as it is.
func TestEveryProblemHasAText(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, code := range []string{
		fiscal.CodeRequired, fiscal.CodeInvalidType, fiscal.CodeInvalidEnum, fiscal.CodeInvalidFormat, fiscal.CodeInvalidDecimal, fiscal.CodeInvalidDate,
		fiscal.CodeDateInFuture, fiscal.CodeDateOrder, fiscal.CodeTooFewItems, fiscal.CodeTooManyItems, fiscal.CodeBlank,
		fiscal.CodeInvalidCharacters, fiscal.CodeUnknownField, fiscal.CodeOutOfRange, fiscal.CodeTotalMismatch, fiscal.CodeRequiredForType, fiscal.CodeNotAllowedForType,
		fiscal.CodeAlreadyExists, fiscal.CodeDuplicated, fiscal.CodeTooManyErrors, fiscal.CodeUnknownTax, fiscal.CodeUnsupportedTax, fiscal.CodeTaxConflict,
	} {
		e.mustHave("form.problem." + code)
	}
}

// Lines are added and removed by buttons that send the form back, without a script.
func TestLinesAreAddedAndRemoved(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	got := b.send(http.MethodPost, issueAddress, e.invoiceFields("action", "add_line"))
	if got.StatusCode != http.StatusOK || !strings.Contains(got.body, `name="lines.1.description"`) || !strings.Contains(got.body, `value="Servicio"`) {
		t.Fatalf("add_line answered %d", got.StatusCode)
	}
	two := e.invoiceFields("lines.7.description", "Segunda", "lines.7.quantity", "1", "lines.7.unit_price", "5", "action", "remove_line.0")
	got = b.send(http.MethodPost, issueAddress, two)
	if strings.Contains(got.body, `value="Servicio"`) || !strings.Contains(got.body, `id="lines.0.description" name="lines.0.description" type="text" value="Segunda"`) {
		t.Error("remove_line has not removed the first line")
	}
	if len(e.onlyInvoices()) != 0 {
		t.Error("a button has made an invoice")
	}
	// A line in which nothing is written does not count.
	fields := e.invoiceFields("lines.1.quantity", "1", "lines.1.billing_indicator", "1", "lines.1.item_kind", "product")
	wantAnswer(t, "a form with an empty line", b.send(http.MethodPost, issueAddress, fields), http.StatusSeeOther)
}

// While a person writes, the server answers totals of what is complete, and stores nothing.
func TestTheDraftHasTotals(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	for _, test := range []struct {
		change []string
		want   []string
	}{
		{nil, []string{"RD$\u00a02,360.00", "Listo para emitir", "No es un comprobante fiscal"}},
		{[]string{"issue_date", "2026-11-05"}, []string{"Fecha de emisión: 05-11-2026"}},
		{[]string{"issue_date", "ayer"}, []string{"Fecha de emisión: ayer"}},
		{[]string{"buyer.tax_id", "199000022"}, []string{"dígito verificador no corresponde", "Listo para emitir"}},
		{[]string{"buyer.tax_id", "199-00001-3"}, []string{"dígito verificador correctos"}},
		{[]string{"lines.1.description", "x", "lines.1.quantity", "2"}, []string{"RD$\u00a02,360.00", "Falta"}},
		{[]string{"lines.0.discount.value", "10", "lines.0.taxes.0.code", "001"}, []string{"RD$\u00a0180.00", "RD$\u00a02,304.00"}},
		{[]string{"lines.0.quantity", "99999999999999999999"}, []string{"RD$\u00a00.00"}},
	} {
		got := b.send(http.MethodPost, issueAddress+"/draft", e.invoiceFields(test.change...))
		if got.StatusCode != http.StatusOK || strings.Contains(got.body, "<html") {
			t.Fatalf("answered %d", got.StatusCode)
		}
		for _, want := range test.want {
			if !strings.Contains(got.body, want) {
				t.Errorf("%v: the draft has no %q: %s", test.change, want, got.body)
			}
		}
	}
	if len(e.onlyInvoices()) != 0 {
		t.Error("a draft has made an invoice")
	}
}

// The form of a used key with other data, a used external id, and a suspended taxpayer are
// refused with words and a way on.
func TestRefusedInvoices(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, _ := e.signedIn(store.RoleOperator)
	first := b.send(http.MethodPost, issueAddress, e.invoiceFields())
	document := strings.TrimSuffix(strings.TrimPrefix(first.Header.Get("Location"), "/console/documents/"), "?done=issue.sent")
	mismatch := b.send(http.MethodPost, issueAddress, e.invoiceFields("lines.0.quantity", "3"))
	taken := b.send(http.MethodPost, issueAddress, e.invoiceFields("idempotency_key", "form-2"))
	for name, got := range map[string]answer{"mismatch": mismatch, "taken": taken} {
		if got.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(got.body, `href="/console/documents/`+document+`"`) {
			t.Errorf("%s answered %d without a link to the document", name, got.StatusCode)
		}
	}
	if strings.Contains(mismatch.body, `value="form-1"`) {
		t.Error("after a mismatch the form keeps the used key")
	}
	if !strings.Contains(taken.body, `id="external_id-error"`) {
		t.Error("the external id has no error")
	}
	for _, key := range []string{strings.Repeat("x", 201), "ñ"} {
		if got := b.send(http.MethodPost, issueAddress, e.invoiceFields("idempotency_key", key)); got.StatusCode != http.StatusBadRequest {
			t.Errorf("the key %.10q answered %d", key, got.StatusCode)
		}
	}
	e.must(e.o.Store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.Suspend(t.Context(), store.Suspension{Subject: store.TaxpayerSubject(e.taxpayer), At: e.clock.Now()})
	}))
	got := b.send(http.MethodPost, issueAddress, e.invoiceFields("idempotency_key", "form-3", "external_id", "F-3"))
	wantAnswer(t, "a suspended taxpayer", got, http.StatusUnprocessableEntity, "suspendido")
	if n := len(e.onlyInvoices()); n != 1 {
		t.Errorf("%d invoices, want 1", n)
	}
	entries, err := e.o.Store.AuditEntries(t.Context(), store.AuditFilter{}, 0, 1000)
	e.must(err)
	issued := slices.DeleteFunc(entries, func(a audit.Entry) bool { return a.Action != "document.issue" })
	if len(issued) != 1 {
		t.Errorf("the audit log has %d entries of issued documents, want 1", len(issued))
	}
}

// A document that counts is a template: the form has everything of the invoice but a new
// identifier, a new key and today's date.
func TestAnInvoiceIsATemplate(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	fields := e.invoiceFields("due_date", "2027-01-31", "notes", "Gracias", "buyer.email", "a@example.com", "buyer.address.line1", "Calle 1", "buyer.address.city", "Santiago",
		"lines.0.discount.value", "5", "lines.0.taxes.0.code", "001", "lines.0.taxes.1.code", "002", "lines.0.unit", "hora", "lines.0.unit_code", "43", "lines.0.line_id", "A",
		"estimated_withholdings.itbis_amount", "30", "estimated_withholdings.income_tax_amount", "10", "external_id", "F-7")
	got := b.send(http.MethodPost, issueAddress, fields)
	if got.StatusCode != http.StatusSeeOther {
		t.Fatalf("answered %d: %s", got.StatusCode, got.body)
	}
	inv := e.onlyInvoices()[0]
	page := b.get(issueAddress + "?template=" + inv.DocumentID)
	if page.StatusCode != http.StatusOK {
		t.Fatalf("the copy answered %d", page.StatusCode)
	}
	page.want(t, "Venta nueva, con los datos de", "Es otra venta")
	sent := formOf(page.body)
	if strings.HasPrefix(sent.Get("external_id"), "F-7") || sent.Get("external_id") == "" || sent.Get("idempotency_key") == "form-1" || sent.Get("idempotency_key") == "" {
		t.Errorf("the copy has the external id %s and the key %s", sent.Get("external_id"), sent.Get("idempotency_key"))
	}
	if got := b.send(http.MethodPost, issueAddress, sent); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("the copy was answered with %d", got.StatusCode)
	}
	all := e.onlyInvoices()
	if len(all) != 2 {
		t.Fatalf("%d invoices", len(all))
	}
	var requests [2]*fiscal.Invoice
	for i := range all {
		raw, err := e.o.Store.Request(t.Context(), all[i].Scope, all[i].ID)
		e.must(err)
		requests[i], err = pipeline.ParseRequest(all[i], raw)
		e.must(err)
		requests[i].ExternalID, requests[i].IssueDate = "", fiscal.Date{}
		for l := range requests[i].Lines {
			requests[i].Lines[l].Taxes = nil // only their labels differ
		}
	}
	if diff := cmp.Diff(requests[0].Totals.Total.String(), requests[1].Totals.Total.String()); diff != "" {
		t.Error(diff)
	}
	if a, b := *requests[0].Buyer.Address, *requests[1].Buyer.Address; a != b || requests[1].Notes != "Gracias" || requests[1].Lines[0].ID != "A" || requests[1].Lines[0].UnitCode != 43 {
		t.Errorf("the copy differs: %+v", requests[1])
	}
}

// A document of an earlier release, whose tax has a code that is not known any more, is
// shown and copied with the tax that it was issued with.
func TestADocumentOfAnEarlierReleaseIsShownAndCopied(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	raw := []byte(`{"external_id":"O-1","ecf_type":"32","issue_date":"2026-11-14","currency":"DOP","payment_type":"cash","buyer":{"legal_name":"Ana"},
		"lines":[{"line_id":"1","description":"Servicio de antes","item_kind":"service","quantity":"1","unit_price":"100.00","discount":null,
			"taxes":[{"code":"OTRO","label":"x","rate_percent":"18"}]}],
		"declared_totals":{"subtotal":"100.00","discount_total":"0","tax_total":"18.00","total":"118.00"}}`)
	document, err := strictjson.Parse(raw)
	e.must(err)
	command, _ := pipeline.NewCommand(raw, document, "")
	command.Invoice, err = fiscal.New(fiscal.DecodeRegistered(document))
	e.must(err)
	command.Request, command.Key, command.RequestID = document.Canonical(), "k", "req_"+strings.Repeat("0", 32)
	command.Scope = store.Scope{Environment: fiscal.Sandbox, TaxpayerID: e.taxpayer}
	_, err = e.o.Pipeline.Register(t.Context(), command)
	e.must(err)
	b, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	inv := e.onlyInvoices()[0]
	if page := b.get(documentsAddress + "/" + inv.DocumentID); page.StatusCode != http.StatusOK || !strings.Contains(page.body, "Servicio de antes") {
		t.Errorf("the page answered %d", page.StatusCode)
	}
	page := b.get(issueAddress + "?template=" + inv.DocumentID)
	if form := formOf(page.body); page.StatusCode != http.StatusOK || form.Get("lines.0.description") != "Servicio de antes" || form.Get("lines.0.billing_indicator") != "1" {
		t.Errorf("the copy answered %d with %v", page.StatusCode, form)
	}
}

// A request of an earlier release that was never issued, because its tax is not known any
// more, is copied with this tax: a person says what it is.
func TestAnUnknownTaxIsNotGuessedInACopy(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	raw := []byte(`{"external_id":"O-1","ecf_type":"32","issue_date":"` + fiscal.DateOf(w.clock.Now()).String() + `","currency":"DOP","payment_type":"cash","buyer":{"legal_name":"Ana"},
		"lines":[{"line_id":"1","description":"Servicio de antes","item_kind":"service","quantity":"1","unit_price":"100.00","discount":null,
			"taxes":[{"code":"001","label":"Propina","rate_percent":"10"},{"code":"ISC","label":"x","rate_percent":"18"}]}],
		"declared_totals":{"subtotal":"100.00","discount_total":"0","tax_total":"28.00","total":"128.00"}}`)
	document, err := strictjson.Parse(raw)
	w.must(err)
	command, _ := pipeline.NewCommand(raw, document, "")
	command.Invoice, err = fiscal.New(fiscal.DecodeRegistered(document))
	w.must(err)
	command.Request, command.Key, command.RequestID, command.Scope = document.Canonical(), "k", "req_"+strings.Repeat("0", 32), w.scope
	_, err = w.o.Pipeline.Register(t.Context(), command)
	w.must(err)
	w.drive(time.Minute)
	inv, err := w.o.Store.InvoiceByExternalID(t.Context(), w.scope, "O-1")
	w.must(err)
	b, _ := w.signedIn(store.RoleAccountant, w.taxpayer)
	form := formOf(b.get(issueAddress + "?copy=" + inv.DocumentID).body)
	if inv.Status != fiscal.ValidationFailed || form.Get("lines.0.taxes.0.code") != "ISC" || form.Get("lines.0.taxes.1.code") != "001" {
		t.Fatalf("%s is copied as %v", inv.Status, form)
	}
	if draft := b.send(http.MethodPost, issueAddress+"/draft", form); strings.Contains(draft.body, "issue-question") {
		t.Error("the draft asks a question")
	}
	refused := b.send(http.MethodPost, issueAddress, form)
	if refused.want(t, "no es un impuesto conocido"); refused.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("the copy answers %d", refused.StatusCode)
	}
	form.Set("lines.0.taxes.0.code", "") // the person chooses none, and ITBIS at 18 %
	form.Set("lines.0.billing_indicator", "1")
	if got := b.send(http.MethodPost, issueAddress, form); got.StatusCode != http.StatusSeeOther {
		t.Errorf("the form without the tax answers %d: %s", got.StatusCode, got.body)
	}
	made, err := w.o.Store.InvoiceByExternalID(t.Context(), w.scope, "O-1-2")
	w.must(err)
	if made.Total != "128.00" {
		t.Errorf("the total is %s", made.Total)
	}
}

var (
	inputs  = regexp.MustCompile(`<input[^>]* name="([^"]+)"[^>]*?(?: value="([^"]*)")?[^>]*>`)
	values  = regexp.MustCompile(` value="([^"]*)"`)
	selects = regexp.MustCompile(`(?s)<select id="[^"]*" name="([^"]+)".*?</select>`)
	chosen  = regexp.MustCompile(`<option value="([^"]*)" selected>`)
	areas   = regexp.MustCompile(`(?s)<textarea id="[^"]*" name="([^"]+)"[^>]*>(.*?)</textarea>`)
)

// formOf returns what a browser would send of the form of a page.
func formOf(page string) url.Values {
	_, page, _ = strings.Cut(page, `<form class="issue"`)
	v := url.Values{}
	for _, m := range inputs.FindAllStringSubmatch(page, -1) {
		if found := values.FindStringSubmatch(m[0]); found != nil {
			v.Set(m[1], found[1])
		}
	}
	for _, m := range selects.FindAllStringSubmatch(page, -1) {
		if found := chosen.FindStringSubmatch(m[0]); found != nil {
			v.Set(m[1], found[1])
		}
	}
	for _, m := range areas.FindAllStringSubmatch(page, -1) {
		v.Set(m[1], m[2])
	}
	return v
}

// Who may issue: operators and accountants everywhere, developers in the sandbox, auditors
// never; and only for taxpayers that the person sees.
func TestWhoMayIssue(t *testing.T) {
	t.Parallel()
	for _, environment := range []fiscal.Environment{fiscal.Sandbox, fiscal.Production} {
		e := newEnv(t, func(o *Options) { o.Environment = environment })
		other := e.addTaxpayer("199000102", "Otra, SRL")
		for role, may := range map[store.Role]bool{
			store.RoleOperator: true, store.RoleAccountant: true, store.RoleAuditor: false, store.RoleDeveloper: environment == fiscal.Sandbox,
		} {
			b, _ := e.signedIn(role, e.taxpayer)
			page, sent := b.get(issueAddress), b.send(http.MethodPost, issueAddress, e.invoiceFields("lines.0.quantity", "x"))
			want := [2]int{http.StatusNotFound, http.StatusForbidden}
			if may {
				want = [2]int{http.StatusOK, http.StatusUnprocessableEntity}
			}
			if got := [2]int{page.StatusCode, sent.StatusCode}; got != want {
				t.Errorf("%s, %s: %v, want %v", environment, role, got, want)
			}
			if may && role != store.RoleOperator {
				for _, address := range []string{issueAddress, issueAddress + "/draft"} {
					if got := b.send(http.MethodPost, address, e.invoiceFields("taxpayer", other)); got.StatusCode != http.StatusNotFound {
						t.Errorf("%s, %s: the form of another taxpayer answered %d", environment, role, got.StatusCode)
					}
				}
			}
		}
	}
}

// The preview names what keeps the taxpayer from issuing, and links to the page where it is
// mended when the person sees that page.
func TestThePreviewNamesWhatATaxpayerLacks(t *testing.T) {
	t.Parallel()
	e := newEnv(t, certification)
	accountant, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	operator, _ := e.signedIn(store.RoleOperator)
	page := taxpayersAddress + "/" + e.taxpayer
	for _, b := range []*browser{accountant, operator} {
		got := b.send(http.MethodPost, issueAddress+"/draft", e.invoiceFields())
		got.want(t, "Este contribuyente no puede emitir", "Falta la dirección", "Falta el certificado digital.", "Falta una secuencia de e-NCF de este tipo.")
		if strings.Contains(got.body, "Listo para emitir") {
			t.Error("the preview is ready to issue")
		}
		if linked := strings.Contains(got.body, page+"#certificate"); linked != (b == operator) {
			t.Errorf("the preview links to the taxpayer: %t", linked)
		}
	}
	sandbox := newEnv(t)
	b, _ := sandbox.signedIn(store.RoleAccountant, sandbox.taxpayer)
	b.send(http.MethodPost, issueAddress+"/draft", sandbox.invoiceFields()).want(t, "Listo para emitir")
	for subject, want := range map[store.Subject]string{
		store.TaxpayerSubject(sandbox.taxpayer):  "El contribuyente está suspendido.",
		store.EnvironmentSubject(fiscal.Sandbox): "El ambiente está suspendido",
	} {
		sandbox.must(sandbox.o.Store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.Suspend(t.Context(), store.Suspension{Subject: subject, Reason: "revisión", At: sandbox.clock.Now()})
		}))
		got := b.send(http.MethodPost, issueAddress+"/draft", sandbox.invoiceFields())
		got.want(t, want, "Consulte a quien opera el servicio.")
		if strings.Contains(got.body, "Listo para emitir") {
			t.Error("the preview of a suspended taxpayer is ready to issue")
		}
		sandbox.must(sandbox.o.Store.Update(t.Context(), func(tx *store.Tx) error { return tx.Resume(t.Context(), subject) }))
	}
}
