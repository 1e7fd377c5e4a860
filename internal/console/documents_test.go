package console

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// want fails the test when a page lacks a text, or has the texts in another order.
func (a answer) want(t *testing.T, texts ...string) {
	t.Helper()
	rest := a.body
	for _, text := range texts {
		_, after, found := strings.Cut(rest, text)
		if !found {
			t.Errorf("the page (%d) lacks, or has too early: %s", a.StatusCode, text)
			continue
		}
		rest = after
	}
}

// wantAnswer fails the test when an answer has another status, or lacks a text.
func wantAnswer(t *testing.T, what string, a answer, status int, texts ...string) {
	t.Helper()
	if a.StatusCode != status {
		t.Errorf("%s: want %d, got %d", what, status, a.StatusCode)
	}
	for _, text := range texts {
		if !strings.Contains(a.body, text) {
			t.Errorf("%s: the page (%d) lacks %s", what, a.StatusCode, text)
		}
	}
}

// A document is found by each kind of identifier, and a person finds only documents of
// the own taxpayers.
func TestDocumentsAreFoundByEveryIdentifier(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveEnv(t, address)
		first := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 1000)
		w.create(fiscal.Consumer, "Colmado La Esquina", 50)
		w.drive(time.Hour)
		first = w.read(first)
		accountant, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
		stranger, _ := w.signedIn(store.RoleAccountant, w.addTaxpayer("199000102", "Otra, SRL"))
		for name, q := range map[string]string{
			"external id": first.ExternalID, "e-NCF": first.ENCF, "trackId": first.TrackID, "name": "ferreteria pe", "amount": "RD$ 1,180.00",
			"request id": "req_1", "idempotency key": "clave-1", "document id": first.DocumentID, "invoice id": first.ID,
		} {
			link := `href="/console/documents/` + first.DocumentID + `"`
			got := accountant.get("/console/documents?q=" + url.QueryEscape(q))
			got.want(t, link)
			if n := strings.Count(got.body, `<th scope="row">`); got.StatusCode != http.StatusOK || n != 1 {
				t.Errorf("%s: %d, %d documents", name, got.StatusCode, n)
			}
			if got := stranger.get("/console/documents?q=" + url.QueryEscape(q)); strings.Contains(got.body, link) {
				t.Errorf("%s: a person of another taxpayer finds the document", name)
			}
		}
		if got := accountant.get("/console/documents?q=" + liveBuyer); strings.Count(got.body, `<th scope="row">`) != 2 {
			t.Error("the RNC does not find both documents")
		}
		for _, filter := range []string{"status=accepted", "type=31", "from=" + first.IssueDate, "taxpayer=" + w.scope.TaxpayerID} {
			accountant.get("/console/documents?"+filter).want(t, first.ENCF)
		}
		for _, filter := range []string{"status=rejected", "to=2020-01-01", "taxpayer=x", "q=nada"} {
			if got := accountant.get("/console/documents?" + filter); strings.Contains(got.body, first.ENCF) || got.StatusCode != http.StatusOK {
				t.Errorf("%s: %d, and shows the document", filter, got.StatusCode)
			}
		}
	})
}

// A number that the witness may not know yet is on no page, and no search finds it.
func TestAHiddenNumberIsOnNoPage(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveEnv(t, address)
		inv := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 1000)
		jobs, err := w.o.Pipeline.Claim(t.Context(), 32)
		w.must(err)
		ranges, err := w.o.Store.NumberRangesOf(t.Context(), w.scope, fiscal.FiscalCredit)
		w.must(err)
		now := w.clock.Now()
		signed := store.Issued{
			Scope: w.scope, RNC: liveRNC, ENCF: "E310000000001", DocumentID: inv.DocumentID, NumberRangeID: ranges[0].ID, SecurityCode: "AbC123",
			SignedAt: now, CreatedAt: now, XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte("<x/>"),
		}
		w.must(w.o.Store.IssueAll(t.Context(), "", ranges[0], []store.Issuance{{Issued: signed, Job: jobs[0]}}, "submit", now.Add(time.Minute)))
		w.index()
		operator, _ := w.signedIn(store.RoleOperator)
		for _, page := range []string{"/console/documents/" + inv.DocumentID, "/console/documents", "/console/work"} {
			if got := operator.get(page); got.StatusCode != http.StatusOK || strings.Contains(got.body, signed.ENCF) {
				t.Errorf("%s (%d) shows the number", page, got.StatusCode)
			}
		}
		if got := operator.get("/console/documents?q=" + signed.ENCF); strings.Contains(got.body, inv.DocumentID) {
			t.Error("a search for the number finds the document")
		}
		w.must(w.o.Store.Commit(t.Context(), new(store.Batch).ShowNumber(signed)))
		operator.get("/console/documents/"+inv.DocumentID).want(t, signed.ENCF)
		operator.get("/console/documents?q="+signed.ENCF).want(t, inv.DocumentID)
	})
}

// A filter that is not valid is an error at its field, and the others keep their values.
func TestFiltersThatAreNotValid(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	b, _ := e.signedIn(store.RoleAccountant, e.taxpayer)
	for query, id := range map[string]string{"status=x": "status", "type=99": "type", "from=ayer": "from", "from=2026-11-02&to=2026-11-01": "to"} {
		got := b.get("/console/documents?q=conservado&" + query)
		if got.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d", query, got.StatusCode)
		}
		got.want(t, `value="conservado"`, `id="`+id+`-error"`)
	}
	wantAnswer(t, "a cursor of another list", b.get("/console/documents?cursor=other"), http.StatusSeeOther)
	b.get("/console/documents").want(t, "Todavía no hay comprobantes")
}

// The list has pages, and the CSV file has all of them.
func TestPagesAndCSVOfDocuments(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	for i := range 53 {
		w.create(fiscal.Consumer, "=cmd()", 100+i)
	}
	w.index()
	b, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
	first := b.get("/console/documents?type=32")
	_, after, _ := strings.Cut(first.body, `href="/console/documents?cursor=`)
	next, _, _ := strings.Cut(after, `"`)
	second := b.get("/console/documents?cursor=" + strings.ReplaceAll(next, "&amp;", "&"))
	if a, b := strings.Count(first.body, `<th scope="row">`), strings.Count(second.body, `<th scope="row">`); a != 50 || b != 3 {
		t.Errorf("the pages have %d and %d documents", a, b)
	}
	file := b.get("/console/documents.csv?type=32")
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(file.body, "\ufeff"))).ReadAll()
	if err != nil || len(rows) != 54 || !strings.HasPrefix(file.body, "\ufeffcreado,") {
		t.Fatalf("CSV: %d rows, %v", len(rows), err)
	}
	if got := rows[1][7]; got != "'=cmd()" {
		t.Errorf("a text that looks like a formula is %s", got)
	}
	if !strings.Contains(file.Header.Get("Content-Disposition"), "attachment") {
		t.Error("the CSV file is no download")
	}
	wantAnswer(t, "CSV with a wrong filter", b.get("/console/documents.csv?status=x"), http.StatusBadRequest)
}

// The page of a rejected document says first why, and then what to do, in the language
// of the person.
func TestARejectedDocumentSaysWhyAndWhatToDo(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	inv := w.judged(2, simulator.Message{Code: 145, Text: "Fecha de vencimiento no válida"}, "Ferretería Pérez, SRL", 1000)
	b, u := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
	got := b.get("/console/documents/" + inv.DocumentID)
	got.want(t, inv.ENCF, "Rechazado", "La DGII rechazó este comprobante", "Por qué", "La fecha de vencimiento de la secuencia no es correcta", "Fecha de vencimiento no válida",
		"Código 145", "Qué hacer", "El operador agrega de nuevo el rango", "Qué ha pasado", "Solicitud recibida", "Secuencia "+inv.ENCF, "Envío n.º 1", "Veredicto de la DGII: rechazado")
	for _, english := range []string{"the authority", "registered", "Verdict"} {
		if strings.Contains(got.body, english) {
			t.Errorf("the Spanish page says %q", english)
		}
	}
	if strings.Contains(got.body, "data-live=") || strings.Contains(got.body, "/resolve") {
		t.Error("a rejected document updates itself, or an accountant can decide")
	}
	w.must(w.o.People.SetPreferences(t.Context(), u.ID, "en", ""))
	b.get("/console/documents/"+inv.DocumentID).want(t, "The tax authority rejected this document", "Why", "The expiry date of the number range is wrong", "What to do")
	operator, _ := w.signedIn(store.RoleOperator)
	operator.get("/console/").want(t, "1 comprobante rechazado en los últimos 7 días", "/console/documents?from=")
}

// A rejected sale that was issued again says so, on its page and on the form of another copy.
// The copy links back. An invoice whose number follows that of another one is no copy.
func TestARejectedSaleThatWasIssuedAgain(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	rejected := w.judged(2, simulator.Message{Code: 145, Text: "Fecha de vencimiento no válida"}, "Ferretería Pérez, SRL", 1000)
	w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 1000) // VENTA-0002
	b, u := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
	page, form := documentAddress(rejected.DocumentID), issueAddress+"?copy="+rejected.DocumentID
	first := b.get(page)
	first.want(t, `class="button primary"`, "Corregir y emitir otra vez")
	if strings.Contains(first.body, "ya se emitió otra vez") || strings.Contains(b.get(form).body, "ya se emitió otra vez") {
		t.Error("a sale that was not issued again says that it was")
	}
	sent := b.send(http.MethodPost, issueAddress, formOf(b.get(form).body))
	address, _, _ := strings.Cut(sent.Header.Get("Location"), "?")
	if sent.StatusCode != http.StatusSeeOther {
		t.Fatalf("the copy was answered with %d: %.500s", sent.StatusCode, sent.body)
	}
	got := b.get(page)
	got.want(t, "ya se emitió otra vez", `href="`+address+`"`, rejected.ExternalID+"-2", "Abra ese comprobante")
	if strings.Contains(got.body, "Corregir y emitir otra vez") || strings.Contains(got.body, "?copy=") {
		t.Error("the page still offers to issue the sale again")
	}
	b.get(form).want(t, "ya se emitió otra vez", `href="`+address+`"`)
	b.get(address).want(t, "Vuelve a emitir", `href="`+page+`"`, rejected.ENCF)
	w.must(w.o.People.SetPreferences(t.Context(), u.ID, "en", ""))
	b.get(page).want(t, "already issued again")
	copied, err := w.o.Store.AnyDocument(t.Context(), strings.TrimPrefix(address, documentsAddress+"/"))
	w.must(err)
	x := &request{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, page, nil), console: w.Console}
	if f, err := x.copyFamily(copied, maxCopies); err != nil || f.Original.ID != rejected.ID || f.FreeID != rejected.ExternalID+"-3" || len(f.Copies) != 1 {
		t.Errorf("the family of the copy: %+v, %v", f, err)
	}
	if f, err := x.copyFamily(w.create(fiscal.FiscalCredit, "Otro, SRL", 1000), maxCopies); err != nil || f.FreeID != "VENTA-0003-2" || len(f.Copies) != 0 {
		t.Errorf("the family of an invoice without copies: %+v, %v", f, err)
	}
}

// A developer sees documents of the sandbox only. The first page is then that of the keys,
// and no page links to what the person does not see.
func TestADeveloperSeesNoLiveDocuments(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	inv := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 1000)
	developer, _ := w.signedIn(store.RoleDeveloper, w.scope.TaxpayerID)
	for _, address := range []string{
		documentsAddress, documentsAddress + ".csv", documentsAddress + "/" + inv.DocumentID, documentsAddress + "/" + inv.DocumentID + "/xml",
		workAddress, overviewLive, exportsAddress,
	} {
		if got := developer.get(address); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers a developer with %d", address, got.StatusCode)
		}
	}
	if got := developer.get("/console/"); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != keysAddress {
		t.Errorf("the first page answers %d, %s", got.StatusCode, got.Header.Get("Location"))
	}
	if got := developer.get(keysAddress); got.StatusCode != http.StatusOK || strings.Contains(got.body, `href="`+documentsAddress) {
		t.Errorf("the page of the keys answers %d, or links to documents", got.StatusCode)
	}
	e := newEnv(t)
	sandbox, _ := e.signedIn(store.RoleDeveloper, e.taxpayer)
	wantAnswer(t, "the documents of the sandbox", sandbox.get(documentsAddress), http.StatusOK)
}

// Every address of a document answers 404 to a person of another taxpayer, and in another
// environment.
func TestDocumentsOfOtherTaxpayersDoNotExist(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	inv := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 1000)
	w.drive(time.Hour)
	stranger, _ := w.signedIn(store.RoleAccountant, w.addTaxpayer("199000102", "Otra, SRL"))
	own, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
	for _, end := range []string{"", "/progress", "/files", "/pdf", "/xml"} {
		if got := stranger.get("/console/documents/" + inv.DocumentID + end); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s answers a stranger with %d", end, got.StatusCode)
		}
		if got := own.get("/console/documents/" + inv.DocumentID + end); got.StatusCode != http.StatusOK {
			t.Errorf("%s answers the own accountant with %d", end, got.StatusCode)
		}
	}
	for _, end := range []string{"/resolve", "/resend"} {
		if got := own.post("/console/documents/"+inv.DocumentID+end, "as", "rejected", "evidence", "x", "reason", "x"); got.StatusCode != http.StatusForbidden {
			t.Errorf("%s answers an accountant with %d", end, got.StatusCode)
		}
	}
	other := newNode(t, w.address, w.clock, w.keys) // of the sandbox
	operator, _ := other.signedIn(store.RoleOperator)
	wantAnswer(t, "the sandbox shows a document of another environment", operator.get("/console/documents/"+inv.DocumentID), http.StatusNotFound)
	if got := own.get("/console/documents/" + inv.ID); got.StatusCode != http.StatusSeeOther || got.Header.Get("Location") != "/console/documents/"+inv.DocumentID {
		t.Errorf("the id of the invoice: %d", got.StatusCode)
	}
}

// The page of an accepted document has its printed page in a frame of the same site, and
// the verified XML.
func TestFilesOfAnAcceptedDocument(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	inv := w.create(fiscal.FiscalCredit, "Ferretería <b>Pérez</b>", 1000)
	b, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
	page := "/console/documents/" + inv.DocumentID
	b.get(page).want(t, "data-live=", "cuando la DGII da su veredicto")
	if got := b.get(page + "/pdf"); got.StatusCode != http.StatusNotFound || !strings.Contains(got.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Errorf("the page of a document without a verdict: %d, %s", got.StatusCode, got.Header.Get("Content-Security-Policy"))
	}
	w.drive(time.Hour)
	inv = w.read(inv)
	got := b.get(page)
	got.want(t, `<iframe class="printed"`, `/pdf#`, "Válida, de", "Vigente del", inv.ENCF+" · código de seguridad", "0 faltas", "RNCEmisor", "&lt;ECF")
	checkPage(t, "document", got)
	if strings.Contains(got.body, "<b>P") {
		t.Error("the name of the buyer is HTML")
	}
	for format, want := range map[string]int{"": 200, "?format=letter": 200, "?format=receipt": 200, "?format=receipt58": 200, "?format=x": 400} {
		got := b.get(page + "/pdf" + format)
		if got.StatusCode != want || want == 200 && (!strings.HasPrefix(got.body, "%PDF") || !strings.Contains(got.Header.Get("Content-Security-Policy"), "frame-ancestors 'self'")) {
			t.Errorf("%s: %d, %s", format, got.StatusCode, got.Header.Get("Content-Security-Policy"))
		}
	}
	if got := b.get(page + "/pdf?download"); got.Header.Get("Content-Disposition") != `attachment; filename="`+liveRNC+inv.ENCF+`.pdf"` {
		t.Errorf("download: %s", got.Header.Get("Content-Disposition"))
	}
	if got := b.get(page + "/xml"); got.Header.Get("Content-Type") != "application/xml" || !strings.Contains(got.body, "<ECF") {
		t.Errorf("XML: %d %s", got.StatusCode, got.Header.Get("Content-Type"))
	}
	if got := b.get(page + "/progress"); got.Header.Get("Console-Live") != "end" || got.Header.Get("ETag") == "" {
		t.Error("the fragments of a finished document do not end")
	}
}

// An operator decides an unknown outcome with evidence: the document changes, and the
// audit log and the timeline have the name of the person.
func TestAnOperatorResolvesAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveEnv(t, address)
		inv := w.unknown("Ferretería Pérez, SRL", 1000)
		page := "/console/documents/" + inv.DocumentID
		operator, u := w.signedIn(store.RoleOperator)
		operator.get(page).want(t, "No se sabe todavía", "El envío n.º 1", "No emita la venta otra vez", `action="`+page+`/resolve"`, "Todavía no se puede")
		wrong := operator.post(page+"/resolve", "as", "perhaps", "evidence", "")
		if wrong.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("a form without evidence: %d", wrong.StatusCode)
		}
		wrong.want(t, `id="as-error"`, `id="evidence-error"`)
		wantAnswer(t, "sending again without a look-up", operator.post(page+"/resend", "reason", "no llegó"), http.StatusUnprocessableEntity, "No se cambió nada")
		if got := operator.post(page+"/resolve", "as", "rejected", "evidence", "Oficina Virtual: no existe"); got.StatusCode != http.StatusSeeOther {
			t.Fatalf("resolve answered %d: %s", got.StatusCode, got.body)
		}
		if got := w.read(inv); got.Status != fiscal.Rejected {
			t.Errorf("the document is %s", got.Status)
		}
		operator.get(page+"?done=document.resolved").want(t, "La decisión quedó guardada", "decidió que está rechazado", "Oficina Virtual: no existe", "Decisión de un operador: rechazado")
		operator.get("/console/audit?object=document:"+inv.DocumentID).want(t, u.Name, "document.resolve")
	})
}

// The page of a document that only an operator decided names the operator and the evidence,
// and does not say that the authority decided. When the authority confirms it later, the page
// says so.
func TestADecisionIsNotTheVerdictOfTheAuthority(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	operator, u := w.signedIn(store.RoleOperator)
	for verdict, want := range map[string][3]string{
		"accepted": {"Aceptado por decisión de un operador", " decidió que la DGII lo aceptó", "La DGII lo aceptó."},
		"rejected": {"Un operador decidió que este comprobante está rechazado", " decidió que está rechazado", "La DGII rechazó este comprobante"},

		"accepted_conditional": {"Aceptado con observaciones por decisión de un operador", " decidió que la DGII lo aceptó con observaciones", "La DGII hizo observaciones."},
	} {
		page := documentAddress(w.unknown("Ferretería Pérez, SRL", 1000).DocumentID)
		if got := operator.post(page+"/resolve", "as", verdict, "evidence", "Oficina Virtual, hoy"); got.StatusCode != http.StatusSeeOther {
			t.Fatalf("resolve answered %d", got.StatusCode)
		}
		got := operator.get(page)
		got.want(t, want[0], u.Name+want[1], "Oficina Virtual, hoy")
		if strings.Contains(got.body, want[2]) {
			t.Errorf("%s: the page says that the authority decided", verdict)
		}
	}
	w.must(w.o.People.SetPreferences(t.Context(), u.ID, "en", ""))
	accepted := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 500)
	w.drive(time.Hour)
	got := operator.get(documentAddress(accepted.DocumentID))
	got.want(t, "Accepted: the document is valid.", "The authority accepted it.")
}

// What an operator decided and the authority confirmed is the verdict of the authority.
func TestADecisionThatTheAuthorityConfirms(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	x := &request{console: e.Console, language: e.languageOf("es")}
	at := e.clock.Now()
	decision := evidence.Item{Kind: evidence.Operator, Verdict: fiscal.VerdictAccepted, By: "Ana", Note: "Oficina Virtual", At: at}
	known := []evidence.Item{{Kind: evidence.Track, TrackID: "1", At: at}, decision}
	state := dossier.Dossier{Evidence: known, Invoice: store.Invoice{Scope: store.Scope{Environment: fiscal.Production}, Status: fiscal.Accepted}}
	if got := x.advise(documentFacts{Dossier: state}); len(got.Reasons) != 1 || got.Reasons[0].Words != "Oficina Virtual" {
		t.Errorf("a decision alone: %+v", got.Reasons)
	}
	state.Evidence = append(known, evidence.Item{Kind: evidence.Verdict, TrackID: "1", Verdict: fiscal.VerdictAccepted, At: at})
	if got := x.advise(documentFacts{Dossier: state}); len(got.Reasons) != 1 || got.Reasons[0].Meaning != "La DGII lo aceptó." {
		t.Errorf("a decision and a verdict: %+v", got.Reasons)
	}
	state.Invoice.Status = fiscal.Delivered
	state.Evidence = []evidence.Item{decision, {Kind: evidence.Receipt, At: at}}
	if got := x.advise(documentFacts{Dossier: state}); len(got.Reasons) != 2 || got.Reasons[1].Meaning != "El comprador acusó recibo." {
		t.Errorf("a decision and a receipt: %+v", got.Reasons)
	}
}

// An operator sends a document again when a look-up has shown that the authority does not
// have it.
func TestAnOperatorSendsADocumentAgain(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	inv := w.unknown("Ferretería Pérez, SRL", 1000)
	page := "/console/documents/" + inv.DocumentID
	operator, _ := w.signedIn(store.RoleOperator)
	operator.get(page).want(t, "Todavía no se puede")
	w.drive(40 * time.Second) // one look-up, which shows nothing
	operator.get(page).want(t, `action="`+page+`/resend"`)
	if got := operator.post(page+"/resend", "reason", "la DGII no lo tiene"); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("resend answered %d", got.StatusCode)
	}
	w.drive(time.Hour)
	if got := w.read(inv); got.Status != fiscal.Accepted {
		t.Errorf("the document is %s", got.Status)
	}
	operator.get(page).want(t, "Enviado de nuevo: la DGII no lo tiene")
}

// The first page counts the documents of the viewer, and of nobody else.
func TestTheFirstPageCountsTheDocumentsOfTheViewer(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveEnv(t, address)
		for range 3 {
			w.create(fiscal.Consumer, "Colmado La Esquina", 50)
		}
		w.drive(time.Hour)
		own, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
		got := own.get("/console/")
		got.want(t, "Nada necesita su atención", `class="figure">3<`, "Aceptado", `<svg viewBox="0 0 240 100"`, "Tiempo hasta el veredicto", ">3<", "DGII")
		checkPage(t, "overview", got)
		other, _ := w.signedIn(store.RoleAccountant, w.addTaxpayer("199000102", "Otra, SRL"))
		other.get("/console/").want(t, `class="figure">0<`)
		tag := own.get("/console/overview/live").Header.Get("ETag")
		own.header.Set("If-None-Match", tag)
		wantAnswer(t, "an unchanged overview", own.get("/console/overview/live"), http.StatusNotModified)
	})
}

// The sandbox shows its synthetic results, signs nothing and lets nobody decide.
func TestADocumentOfTheSandbox(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	w := &liveEnv{env: e, scope: store.Scope{Environment: fiscal.Sandbox, TaxpayerID: e.taxpayer}}
	inv := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 1000)
	operator, _ := e.signedIn(store.RoleOperator)
	page := "/console/documents/" + inv.DocumentID
	got := operator.get(page)
	if strings.Contains(got.body, "La DGII lo aceptó") || strings.Contains(got.body, "Puede entregar") {
		t.Error("the page says that the authority has accepted the document, or that it can be printed")
	}
	got.want(t, "Aceptado en pruebas. No tiene valor fiscal.", "Servicio de mantenimiento", "RD$\u00a01,180.00", "no se firma ni se imprime nada")
	wantAnswer(t, "a decision in the sandbox", operator.post(page+"/resolve", "as", "rejected", "evidence", "x"), http.StatusUnprocessableEntity)
}

// The page of a document has the deliveries of its events, with the last answer of the
// endpoint.
func TestDeliveriesOfADocument(t *testing.T) {
	t.Parallel()
	w := newLiveEnv(t, storetest.Address(t, "sqlite"))
	ctx, now := t.Context(), w.clock.Now()
	endpoint := store.Endpoint{
		Scope: w.scope, ID: store.NewID(), URL: "https://pos.example/webhook", Kinds: []string{"*"}, Status: store.EndpointEnabled,
		Secret: store.SealedSecret{Sealed: []byte{1}, Version: 1}, Concurrency: 1, CreatedAt: now, UpdatedAt: now,
	}
	w.must(w.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.CreateEndpoint(ctx, endpoint) }))
	inv := w.judged(4, simulator.Message{Code: 1385, Text: "RNC del comprador no existe"}, "Clínica San Rafael, SA", 7_800)
	deliveries, err := w.o.Store.DeliveriesOfDocument(ctx, w.scope, inv.DocumentID)
	w.must(err)
	w.must(w.o.Store.Update(ctx, func(tx *store.Tx) error {
		return tx.AddDeliveryAttempt(ctx, store.DeliveryAttempt{
			Scope: w.scope, ID: store.NewID(), EndpointID: endpoint.ID, EventID: deliveries[0].EventID, Kind: deliveries[0].Kind, Number: 1, At: now, HTTPStatus: 503, Error: "status_503",
		})
	}))
	b, _ := w.signedIn(store.RoleAccountant, w.scope.TaxpayerID)
	got := b.get("/console/documents/" + inv.DocumentID)
	got.want(t, "Aceptado con observaciones", "Qué hacer", "No emita la venta otra vez", "Webhooks", deliveries[0].Kind, endpoint.URL, "Pendiente", "HTTP 503", "status_503")
	checkPage(t, "document", got)
	if !strings.Contains(got.body, "data-live=") {
		t.Error("the page does not follow a delivery that is pending")
	}
}

// Everything that the service can know about a document has words in both languages.
func TestEveryFactOfADocumentHasWords(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, status := range fiscal.Statuses() {
		for _, end := range []string{".title", ".why", ".do"} {
			e.mustHave("advice." + string(status) + end)
		}
	}
	for _, kind := range []overview.Kind{
		overview.Deadlines, overview.UnknownOutcomes, overview.Fences, overview.Rejections, overview.FailedValidations, overview.Overdue,
		overview.LowRanges, overview.EndingCertificates, overview.EndingCredentials, overview.FailingEndpoints,
	} {
		for _, end := range []string{".one", ".many", ".do"} {
			e.mustHave("attention." + string(kind) + end)
		}
	}
	for _, kind := range []evidence.Kind{
		evidence.Track, evidence.Verdict, evidence.Absent, evidence.Lost, evidence.Inconclusive, evidence.Settled, evidence.NoOther,
		evidence.Operator, evidence.Note, evidence.Receipt, evidence.DeliveryFailed, evidence.Commercial, evidence.State + "_ours",
		evidence.State + "_foreign", evidence.State + "_unclear",
	} {
		e.mustHave("evidence." + string(kind))
	}
	for _, state := range []store.DeliveryState{store.DeliveryPending, store.DeliveryDelivered, store.DeliveryFailed} {
		e.mustHave("delivery." + string(state))
	}
	for _, payment := range []fiscal.PaymentType{fiscal.Cash, fiscal.Credit, fiscal.FreeOfCharge} {
		e.mustHave("payment." + string(payment))
	}
}

// Durations are written as people read them.
func TestShortDurations(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "–", 350 * time.Millisecond: "350 ms", 1400 * time.Millisecond: "1.4 s", 125 * time.Second: "2 min 5 s",
		3*time.Hour + 10*time.Minute: "3 h 10 min", 50 * time.Hour: "2 d 2 h",
	} {
		if got := shortDuration(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if got := fmt.Sprint(amount("USD", "1180.00"), amount("DOP", "5")); got != "USD\u00a01,180.00RD$\u00a05.00" {
		t.Errorf("amounts: %s", got)
	}
}

// A document whose number range ended before it was sent is held. An operator gives it a
// new number in the console.
// A document whose stored bytes have changed is held too. A new number would not help it.
func TestAnAlteredDocumentGetsNoNewNumber(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	w := newLiveEnv(t, address)
	_, err := w.sim.AddRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F09"}, Count: 4})
	w.must(err)
	inv := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 1000)
	w.drive(0)
	_, err = storetest.OpenSQL(t, address).ExecContext(t.Context(), `UPDATE jobs SET last_error = $1`, cause.New(cause.Altered))
	w.must(err)
	operator, _ := w.signedIn(store.RoleOperator)
	page := operator.get(documentAddress(inv.DocumentID))
	page.want(t, "Retenido: sus bytes guardados cambiaron.")
	if strings.Contains(page.body, "Tomar una secuencia nueva") {
		t.Error("the page offers a new number")
	}
}

func TestAnOperatorGivesAHeldDocumentANewNumber(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	w := newLiveEnv(t, address)
	_, err := w.sim.AddRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F09"}, Count: 4})
	w.must(err)
	inv := w.create(fiscal.FiscalCredit, "Ferretería Pérez, SRL", 1000)
	w.drive(0)
	today := fiscal.DateOf(w.clock.Now()).String()
	_, err = storetest.OpenSQL(t, address).ExecContext(t.Context(), `UPDATE number_ranges SET expires = $1, last_number = 100 WHERE ecf_type = '31'`, today)
	w.must(err)
	w.clock.Advance(24 * time.Hour)
	w.drive(time.Minute)
	later, err := fiscal.ParseDate(w.clock.Now().AddDate(0, 6, 0).Format(time.DateOnly))
	w.must(err)
	w.must(w.o.Store.Update(t.Context(), func(tx *store.Tx) error {
		return tx.AddNumberRange(t.Context(), store.NumberRange{
			Scope: w.scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 101, Last: 200, Next: 101, Expires: later, CreatedAt: w.clock.Now(),
		})
	}))
	w.must(w.sim.UpdateTaxpayer(liveRNC, func(t *simulator.Taxpayer) error {
		t.Ranges = []simulator.Range{{Type: "31", From: 101, To: 200, Expires: later.String()}}
		return nil
	}))
	page := documentAddress(inv.DocumentID)
	operator, u := w.signedIn(store.RoleOperator)
	why := "La secuencia venció el " + today
	operator.get(workAddress).want(t, inv.ExternalID, "Retenido: ábralo y decida qué hacer.", why)
	operator.get(page).want(t, "Retenido: su secuencia venció antes del envío.", why, "Tomar una secuencia nueva", "Enviarlo de todos modos")
	w.must(w.o.People.SetPreferences(t.Context(), u.ID, "en", ""))
	operator.get(page).want(t, "Held: its number range ended before it was sent.", "The number range ended on "+today, "Take a new number")
	operator.get(workAddress).want(t, "Held: open it and decide what to do.")
	w.must(w.o.People.SetPreferences(t.Context(), u.ID, "es", ""))
	wantAnswer(t, "without a reason", operator.post(page+"/resend", "number", "new", "reason", ""), http.StatusUnprocessableEntity)
	if got := operator.post(page+"/resend", "number", "new", "reason", "venció el rango"); got.StatusCode != http.StatusSeeOther {
		t.Fatalf("reissue answered %d", got.StatusCode)
	}
	w.drive(time.Hour)
	if got := w.read(inv); got.Status != fiscal.Accepted || got.ENCF != "E310000000101" {
		t.Errorf("the document is %s, with the number %s", got.Status, got.ENCF)
	}
	operator.get(page).want(t, "E310000000101", "El e-NCF E310000000001 fue sustituido", "Un operador le dio una secuencia nueva", "Se sustituyó la secuencia E310000000001: venció el rango")
	if found, err := w.o.Store.DocumentsByValue(t.Context(), store.Within{Environment: w.scope.Environment, All: true}, "E310000000001"); err != nil || len(found) != 1 {
		t.Errorf("the old number finds %v, %v", found, err)
	}
	wantAnswer(t, "an accepted document took another number", operator.post(page+"/resend", "number", "new", "reason", "otra vez"), http.StatusUnprocessableEntity)
}
