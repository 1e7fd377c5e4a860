package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

const issueAddress = "/console/documents/new"

// maxInvoiceForm is the size in bytes of the largest form of an invoice.
const maxInvoiceForm = 2 << 20

func (c *Console) issuePages() []page {
	act := c.issuers()
	// Everyone who may not issue gets 403 for the form, and no page.
	send := post(issueAddress, everyone(), act, c.sendInvoice)
	draft := post(issueAddress+"/draft", everyone(), act, c.showDraft)
	send.maxBody, draft.maxBody = maxInvoiceForm, maxInvoiceForm
	return []page{get(issueAddress, act, c.showIssue), send, draft}
}

// issuers returns the roles that issue invoices by hand.
func (c *Console) issuers() []store.Role {
	roles := []store.Role{store.RoleOperator, store.RoleAccountant}
	if c.o.Environment == fiscal.Sandbox {
		roles = append(roles, store.RoleDeveloper)
	}
	return roles
}

// issueView is the data of the page that issues an invoice by hand.
type issueView struct {
	Form      *invoiceForm
	Taxpayers []option
	Draft     draftView
	CopyOf    *store.Invoice // the document that the form issues again
	Template  *store.Invoice // the document of another sale that the form was filled from
	Conflict  string         // the document that already has the external id or the key
}

// blockedView is the data of the page that says why a sale must not be issued again.
type blockedView struct {
	reissue
	Document store.Invoice
	Template bool // the document may be the template of another sale
}

// showIssue shows an empty form; one that issues the sale of the document ?copy=ID again,
// or why that must not be; or one of another sale, filled from the document ?template=ID.
func (c *Console) showIssue(x *request) error {
	f := emptyInvoiceForm()
	query := x.URL.Query()
	f.set("taxpayer", query.Get("taxpayer"))
	source := query.Get("copy")
	if source == "" {
		source = query.Get("template")
	}
	key, external := store.NewID(), ""
	if source != "" {
		inv, err := x.source(source)
		if err != nil {
			return err
		}
		again, err := x.reissue(inv)
		if err != nil {
			return err
		}
		template := query.Get("copy") == ""
		switch {
		case template && !isTemplate(inv.Status):
			return x.redirectInstead(issueAddress + "?copy=" + inv.DocumentID)
		case !template && again.Blocked != "":
			return x.renderBlocked(http.StatusOK, inv, again)
		}
		if f, err = x.copied(inv); err != nil {
			return err
		}
		if template {
			f.set("template", inv.DocumentID)
		} else {
			f.set("copy", inv.DocumentID)
			if external, err = x.freeID(inv); err != nil {
				return err
			}
			key = again.Key
		}
	}
	today := fiscal.DateOf(x.console.o.Now()).String()
	if external == "" {
		external = "M-" + today + "-" + key[len(key)-6:]
	}
	f.set("idempotency_key", key)
	f.set("issue_date", today)
	f.set("external_id", external)
	return x.renderIssue(http.StatusOK, f, "")
}

// source reads the document that a form is filled from. The error is store.ErrNotFound when
// the viewer may not see it.
func (x *request) source(id string) (store.Invoice, error) {
	inv, err := x.console.o.Store.AnyDocument(x.Context(), id)
	if err == nil {
		err = x.viewer.Check(inv.Scope)
	}
	return inv, err
}

// copied returns a form with the contents of a document.
func (x *request) copied(inv store.Invoice) (*invoiceForm, error) {
	request, err := x.console.o.Pipeline.Requested(x.Context(), inv)
	if err != nil {
		return nil, err
	}
	f := copiedForm(request)
	if inv.Status == fiscal.ValidationFailed { // it was never issued, so nobody has said what its taxes are
		f.restoreUnknownTaxes(request)
	}
	f.set("taxpayer", inv.TaxpayerID)
	return f, nil
}

// renderBlocked says why the sale of a document must not be issued again.
func (x *request) renderBlocked(status int, inv store.Invoice, why reissue) error {
	return x.renderStatus(status, "issue-blocked", x.text("issue.title"), blockedView{why, inv, isTemplate(inv.Status)})
}

func (x *request) renderIssue(status int, f *invoiceForm, conflict string) error {
	taxpayers, err := x.chooseTaxpayer(f.form)
	if err != nil {
		return err
	}
	view := issueView{Form: f, Taxpayers: taxpayers, Conflict: conflict}
	for name, to := range map[string]**store.Invoice{"copy": &view.CopyOf, "template": &view.Template} {
		if id := f.Value(name); id != "" {
			inv, err := x.source(id)
			if err != nil {
				return err
			}
			*to = &inv
		}
	}
	if view.Draft, err = x.draft(f); err != nil {
		return err
	}
	return x.renderStatus(status, "issue", x.text("issue.title"), view)
}

// showDraft answers the totals, the problems and the preview of a form that a person is
// writing, and the question that the button asks when the form is complete. It stores
// nothing.
func (c *Console) showDraft(x *request) error {
	draft, err := x.draft(newInvoiceForm(x.PostForm))
	if err != nil {
		return err
	}
	return x.fragment("issue-draft", draft)
}

// sendInvoice registers the invoice of a form. Buttons that add or remove lines, and the
// button of the preview, only show the form again; so does a check, with all errors.
func (c *Console) sendInvoice(x *request) error {
	f := newInvoiceForm(x.PostForm)
	effect := issueNow
	switch action := f.Value("action"); {
	case action == "add_line":
		f.addLine()
		return x.renderIssue(http.StatusOK, f, "")
	case strings.HasPrefix(action, "remove_line."):
		f.removeLine(strings.TrimPrefix(action, "remove_line."))
		return x.renderIssue(http.StatusOK, f, "")
	case action == "preview":
		return x.renderIssue(http.StatusOK, f, "")
	case action == "check":
		effect = checkOnly
	}
	f.dropEmptyLines()
	done, err := x.register(f, effect)
	switch {
	case err != nil:
		return err
	case done.blocked != nil:
		return x.renderBlocked(http.StatusUnprocessableEntity, done.invoice, *done.blocked)
	case !f.ok():
		return x.renderIssue(http.StatusUnprocessableEntity, f, done.conflict)
	case done.invoice.ID == "": // checked, and complete
		return x.renderIssue(http.StatusOK, f, "")
	}
	return x.done("/console/documents/"+done.invoice.DocumentID, "issue.sent")
}

// registered is what became of a form.
type registered struct {
	command  pipeline.Command
	invoice  store.Invoice // zero: none
	conflict string        // the document that stands in the way, if there is one
	blocked  *reissue      // why the sale of invoice must not be issued again, if that is so
}

// An effect is what register does with a form that has no error.
type effect bool

const (
	issueNow  effect = true
	checkOnly effect = false // and nothing is written
)

// register registers the invoice of a form, or only checks that it could. When the invoice
// is refused, the form has the errors.
func (x *request) register(f *invoiceForm, e effect) (r registered, err error) {
	scope, ok, err := x.issueScope(f)
	if err != nil || !ok {
		return r, err
	}
	key := f.Value("idempotency_key")
	if key == "" {
		// Not a form of this page. Its external id keeps it from making two invoices.
		sum := sha256.Sum256([]byte(f.Value("external_id")))
		key = "console-" + hex.EncodeToString(sum[:])
	}
	if len(key) > 200 || strings.ContainsFunc(key, func(c rune) bool { return c < 0x20 || c > 0x7e }) {
		return r, errBadRequest
	}
	command, err := f.command()
	if err != nil && command.Fingerprint == nil {
		return r, err // the form could not be read
	}
	command.Refusal = err
	command.Scope, command.Key, command.Audited, command.Language = scope, key, true, x.language
	command.RequestID = "req_" + strings.ReplaceAll(x.id, "-", "")
	var done pipeline.Registered
	err = nil
	if id := f.Value("copy"); command.Refusal == nil && id != "" {
		var ended bool
		if r, done, ended, err = x.copyAgain(f, &command, id); ended || err != nil {
			return r, err
		}
	}
	r.command = command
	switch {
	case err != nil || done.ObjectID != "":
	case e == issueNow:
		done, err = x.console.o.Pipeline.Register(x.Context(), command)
	default:
		done, err = x.console.o.Pipeline.Check(x.Context(), command)
	}
	if err != nil {
		return x.refused(f, command, err)
	}
	if done.ObjectID != "" {
		r.invoice, err = x.console.o.Store.Invoice(x.Context(), scope, done.ObjectID)
	}
	return r, err
}

// copyAgain checks that the sale of a document may be issued again by a form, and gives
// the command the key that the document has one of. done is the answer to a form that was
// sent before. ended says that nothing may be registered: the result or the form says why.
func (x *request) copyAgain(f *invoiceForm, command *pipeline.Command, id string) (r registered, done pipeline.Registered, ended bool, err error) {
	inv, err := x.source(id)
	if err != nil {
		return r, done, true, err
	}
	if inv.Scope != command.Scope {
		f.fail("taxpayer", x.text("copy.taxpayer"))
		return r, done, true, nil
	}
	if done, err = x.console.o.Pipeline.Known(x.Context(), command.Intent); err == nil {
		return r, done, false, nil
	}
	again, err := x.reissue(inv)
	if err != nil {
		return r, done, true, err
	}
	if again.Blocked != "" {
		return registered{invoice: inv, blocked: &again}, pipeline.Registered{}, true, nil
	}
	command.Key = again.Key
	return r, pipeline.Registered{}, false, nil
}

// refused puts an error of a registration at the fields of the form. It returns every
// other error.
func (x *request) refused(f *invoiceForm, c pipeline.Command, err error) (r registered, _ error) {
	var (
		problems fiscal.Problems
		notReady *pipeline.NotReadyError
		taken    *pipeline.ConflictError
		other    store.Invoice
	)
	switch {
	case errors.As(err, &problems):
		x.failFields(f, problems)
		return r, nil
	case errors.As(err, &notReady):
		for _, p := range notReady.Problems {
			f.fail("", x.text("issue.not_ready", x.readinessText(p)))
		}
		return r, nil
	case errors.As(err, &taken):
		f.fail("external_id", x.text("issue.taken"))
		other, err = x.console.o.Store.Invoice(x.Context(), c.Scope, taken.InvoiceID)
		return registered{conflict: other.DocumentID}, err
	case errors.Is(err, pipeline.ErrMismatch):
		known, err := x.console.o.Store.StoredReply(x.Context(), c.Scope, pipeline.CreateInvoice, c.Key)
		if err != nil {
			return r, err
		}
		if other, err = x.console.o.Store.Invoice(x.Context(), c.Scope, known.ObjectID); err != nil {
			return r, err
		}
		if f.Value("copy") != "" { // another person has issued the sale again at this moment
			inv, err := x.source(f.Value("copy"))
			return registered{invoice: inv, blocked: &reissue{Blocked: "copy.again", Again: []store.Invoice{other}}}, err
		}
		f.fail("", x.text("issue.mismatch"))
		f.set("idempotency_key", store.NewID()) // what is in the form now is another invoice
		return registered{conflict: other.DocumentID}, nil
	}
	return r, err
}

// issueScope returns the taxpayer of the form. It records an error of the form and
// reports false when none is chosen, or it is suspended.
func (x *request) issueScope(f *invoiceForm) (scope store.Scope, ok bool, err error) {
	id := f.Value("taxpayer")
	if id == "" {
		choices, _, err := x.taxpayerOptions()
		if err != nil {
			return scope, false, err
		}
		if len(choices) != 1 {
			f.fail("taxpayer", x.text("issue.no_taxpayer"))
			_, err := f.command() // all errors at once
			var problems fiscal.Problems
			if errors.As(err, &problems) {
				x.failFields(f, problems)
			}
			return scope, false, nil
		}
		id = choices[0].Value
	}
	if scope, err = x.viewer.Scope(id); err != nil {
		return scope, false, err
	}
	if _, err := x.console.o.Store.Taxpayer(x.Context(), id); err != nil {
		return scope, false, err
	}
	all, err := x.console.o.Store.Suspensions(x.Context())
	if err != nil {
		return scope, false, err
	}
	if slices.ContainsFunc(all, func(s store.Suspension) bool {
		return s.Subject == store.TaxpayerSubject(id) || s.Subject == store.EnvironmentSubject(scope.Environment)
	}) {
		f.fail("", x.text("issue.suspended"))
		return scope, false, nil
	}
	return scope, true, nil
}

// command validates the invoice of a form as the API validates a request. The totals that
// the invoice declares are the computed ones.
func (f *invoiceForm) command() (pipeline.Command, error) {
	_, incomplete, err := f.document(fiscal.Totals{})
	if err != nil {
		return pipeline.Command{}, err
	}
	draft := fiscal.NewDraft(fiscal.DecodeRequest(incomplete))
	raw, document, err := f.document(draft.Totals)
	if err != nil {
		return pipeline.Command{}, err
	}
	return pipeline.NewCommand(raw, document, "")
}

// document returns the form as the body of a request of the API.
func (f *invoiceForm) document(totals fiscal.Totals) ([]byte, *strictjson.Document, error) {
	raw, err := json.Marshal(f.body(totals))
	if err != nil {
		return nil, nil, err
	}
	document, err := strictjson.Parse(raw)
	return raw, document, err
}
