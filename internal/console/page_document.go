package console

import (
	"errors"
	"html/template"
	"net/http"
	"net/url"

	"github.com/fiscalhub/fiscalhub/internal/decision"
	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	liveplan "github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// documentPage is the data of the page of a document.
type documentPage struct {
	Invoice  store.Invoice
	Taxpayer string
	Progress template.HTML // heading, advice, timeline and deliveries
	Files    template.HTML // printed page and XML
	Content  *fiscal.Invoice
	Related  []store.FoundDocument
	Original *store.Invoice // the refused document that this one issues again; nil: none
	Resolve  *decisionForm  // nil: the viewer cannot decide on the document
	Resend   *decisionForm  // nil: the viewer cannot send the document again
	Refused  []fieldError   // of a form that the page does not show any more
}

// decisionForm is a form with which an operator decides on a document.
type decisionForm struct {
	Form    *form
	Options []option
	Blocked string // why it cannot be sent now; empty: it can
}

// IsTemplate reports whether another sale may be written with the document as its template.
func (p documentPage) IsTemplate() bool { return isTemplate(p.Invoice.Status) }

func documentAddress(id string) string { return documentsAddress + "/" + id }

// document reads the document that the address names. The error is store.ErrNotFound when
// the viewer may not see it.
func (x *request) document() (store.Invoice, error) {
	id := x.PathValue("document_id")
	inv, err := x.source(id)
	if err != nil {
		return inv, err
	}
	if inv.DocumentID != id && x.Method == http.MethodGet { // the id of its invoice
		return inv, x.redirectInstead(documentAddress(inv.DocumentID))
	}
	return inv, nil
}

func (c *Console) showDocument(x *request) error {
	return x.renderDocument(http.StatusOK, nil, nil)
}

// renderDocument writes the page of a document. resolve and resend are forms that were
// sent and have an error.
func (x *request) renderDocument(status int, resolve, resend *form) error {
	inv, err := x.document()
	if err != nil {
		return err
	}
	facts, err := x.documentFacts(inv)
	if err != nil {
		return err
	}
	page := documentPage{Invoice: facts.Invoice}
	taxpayer, err := x.console.o.Store.Taxpayer(x.Context(), inv.TaxpayerID)
	if err != nil {
		return err
	}
	page.Taxpayer = taxpayer.LegalName
	if page.Related, err = x.console.searcher.SameBuyer(x.Context(), inv.Scope, inv.DocumentID, 5); err != nil {
		return err
	}
	if page.Original, err = x.refusedOriginal(inv); err != nil {
		return err
	}
	if page.Content, err = x.content(facts.Invoice); err != nil {
		return err
	}
	progress := x.progress(facts)
	address := documentAddress(inv.DocumentID)
	if page.Progress, err = x.liveWhile(progress.Live, address+"/progress", "document-progress", progress); err != nil {
		return err
	}
	files, err := x.files(facts.Invoice)
	if err != nil {
		return err
	}
	if page.Files, err = x.liveWhile(!files.Final, address+"/files", "document-files", files); err != nil {
		return err
	}
	page.Resolve, page.Resend = x.decisions(facts, resolve, resend)
	if page.Resolve == nil {
		page.Refused = resolve.Errors()
	}
	if page.Resend == nil || page.Resend.Blocked != "" {
		page.Refused = append(page.Refused, resend.Errors()...)
	}
	return x.renderStatus(status, "document", documentName(inv), page)
}

// documentName returns the number of a document, or the external id while it has none.
func documentName(inv store.Invoice) string {
	if inv.ENCF != "" {
		return inv.ENCF
	}
	return inv.ExternalID
}

// liveWhile returns a template that updates itself while something can change.
func (x *request) liveWhile(changing bool, address, name string, data any) (template.HTML, error) {
	if changing {
		return x.live(address, name, data)
	}
	content, err := x.execute(name, x.view("", data))
	return `<div>` + content + `</div>`, err
}

// content reads the amounts and lines of a document. It returns nil when the stored
// request cannot be read, and logs why: the page shows the rest.
func (x *request) content(inv store.Invoice) (*fiscal.Invoice, error) {
	content, err := x.console.o.Pipeline.Requested(x.Context(), inv)
	switch {
	case errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrNotFound) || x.Context().Err() != nil:
		return nil, err
	case err != nil:
		x.console.o.Log.Error("The stored request of a document cannot be read. Its page shows no lines.", "document_id", inv.DocumentID, "error", err.Error())
		return nil, nil //nolint:nilnil // no content is a state of the page
	}
	return content, nil
}

func (c *Console) updateProgress(x *request, inv store.Invoice) error {
	facts, err := x.documentFacts(inv)
	if err != nil {
		return err
	}
	progress := x.progress(facts)
	return x.lastFragment(!progress.Live, "document-progress", progress)
}

func (c *Console) updateFiles(x *request, inv store.Invoice) error {
	files, err := x.files(inv)
	if err != nil {
		return err
	}
	return x.lastFragment(files.Final, "document-files", files)
}

// lastFragment is fragment. When it is the last one, the browser stops updating the
// element.
func (x *request) lastFragment(last bool, name string, data any) error {
	if last {
		x.w.Header().Set("Console-Live", "end")
	}
	return x.fragment(name, data)
}

// decisions returns the forms that the viewer may send for a document.
func (x *request) decisions(facts documentFacts, resolve, resend *form) (decide, again *decisionForm) {
	inv := facts.Invoice
	if inv.Environment == fiscal.Sandbox || facts.Shown() == nil ||
		!x.console.mayUse(x.viewer.Role(), http.MethodPost, documentsAddress+"/{document_id}/resolve") {
		return nil, nil
	}
	if resolve == nil {
		resolve = newForm(url.Values{})
	}
	if resend == nil {
		resend = newForm(url.Values{})
	}
	var verdicts []option
	for _, one := range []struct {
		verdict fiscal.Verdict
		value   string
	}{{fiscal.VerdictAccepted, "accepted"}, {fiscal.VerdictConditional, "accepted_conditional"}, {fiscal.VerdictRejected, "rejected"}} {
		if liveplan.MayDecide(inv.Status, one.verdict) == nil {
			verdicts = append(verdicts, option{one.value, x.text("decision." + one.value)})
		}
	}
	if len(verdicts) > 0 {
		decide = &decisionForm{Form: resolve, Options: verdicts}
	}
	if facts.Job != nil && facts.Job.Cause.Held() && !facts.Job.Cause.Altered() {
		return decide, &decisionForm{Form: resend, Options: []option{{newNumber, x.text("decision.new_number")}, {sameNumber, x.text("decision.same_number")}}}
	}
	if inv.Status == fiscal.OutcomeUnknown || inv.Status == fiscal.Submitted || inv.Status == fiscal.Processing {
		again = &decisionForm{Form: resend}
		if liveplan.MayResend(inv.Status, facts.Evidence) != nil {
			again.Blocked = x.text("document.resend_blocked")
		}
	}
	return decide, again
}

// resolveDocument records what an operator knows about a document.
func (c *Console) resolveDocument(x *request, inv store.Invoice) error {
	f := x.sentForm()
	d := liveplan.Decision{DocumentID: inv.DocumentID, Note: f.Value("evidence")}
	switch f.Value("as") {
	case "accepted":
		d.Verdict = fiscal.VerdictAccepted
	case "accepted_conditional":
		d.Verdict = fiscal.VerdictConditional
	case "rejected":
		d.Verdict = fiscal.VerdictRejected
	default:
		f.fail("as", x.text("document.wrong_verdict"))
	}
	if f.Value("evidence") == "" {
		f.fail("evidence", x.text("document.wrong_evidence"))
	}
	err := x.decide(f, "evidence", func() error {
		_, err := c.resolver.Resolve(x.Context(), inv.Scope, d)
		return err
	})
	switch {
	case err != nil:
		return err
	case !f.ok():
		return x.renderDocument(http.StatusUnprocessableEntity, f, nil)
	}
	return x.done(documentAddress(inv.DocumentID), "document.resolved")
}

// What an operator can do with a document that is held because its number range has ended.
const (
	newNumber  = "new"
	sameNumber = "same"
)

// resendDocument lets a worker send the same bytes once more. A document that is held takes
// a new number instead, if the operator wants it.
func (c *Console) resendDocument(x *request, inv store.Invoice) error {
	f := x.sentForm()
	if f.Value("reason") == "" {
		f.fail("reason", x.text("document.wrong_reason"))
	}
	done := "document.resent"
	err := x.decide(f, "reason", func() (err error) {
		if f.Value("number") == newNumber {
			done = "document.reissued"
			_, err = decision.Reissue(x.Context(), c.o.Store, c.o.Now(), inv.Scope, inv.DocumentID, f.Value("reason"))
		} else {
			_, err = c.resolver.Resend(x.Context(), inv.Scope, inv.DocumentID, f.Value("reason"))
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !f.ok():
		return x.renderDocument(http.StatusUnprocessableEntity, nil, f)
	}
	return x.done(documentAddress(inv.DocumentID), done)
}

// decide makes a decision when the form has no error. A refusal by the rules of decisions
// becomes an error of the form; decide returns other errors.
func (x *request) decide(f *form, field string, decision func() error) error {
	if !f.ok() {
		return nil
	}
	err := decision()
	switch {
	case errors.Is(err, liveplan.ErrUndecidable):
		f.fail(field, x.text("document.refused", lang.ErrorText(err, x.language)))
		return nil
	case errors.Is(err, store.ErrInvoiceChanged):
		f.fail("", x.text("document.changed"))
		return nil
	}
	return err
}

// documentFacts is everything that the service knows about a document.
type documentFacts struct {
	dossier.Dossier
	Reissue reissue // whether the sale may be issued again
}

// documentFacts reads what is known about a document.
func (x *request) documentFacts(inv store.Invoice) (f documentFacts, err error) {
	if f.Dossier, err = dossier.Read(x.Context(), x.console.o.Store, inv.Scope, inv.DocumentID); err != nil {
		return f, err
	}
	f.Reissue, err = x.reissue(f.Invoice)
	return f, err
}
