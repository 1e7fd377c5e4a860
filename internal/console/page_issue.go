package console

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
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
	if c.environment == fiscal.Sandbox {
		roles = append(roles, store.RoleDeveloper)
	}
	return roles
}

// issueView is the data of the page that issues an invoice by hand.
type issueView struct {
	Form      *invoiceForm
	Taxpayers []option
	Draft     draftView
	CopyOf    *store.Invoice  // the document that the form was filled from
	Again     []store.Invoice // documents that issue the refused one again
	Conflict  string          // the document that already has the external id or the key
}

// showIssue shows an empty form, or one that is filled from the document ?copy=ID.
func (c *Console) showIssue(x *request) error {
	f, from, err := x.startInvoice()
	if err != nil {
		return err
	}
	return x.renderIssue(http.StatusOK, f, from, "")
}

// startInvoice returns the form to begin with.
func (x *request) startInvoice() (f *invoiceForm, from *store.Invoice, err error) {
	taxpayer := x.URL.Query().Get("taxpayer")
	if id := x.URL.Query().Get("copy"); id != "" {
		inv, err := x.console.store.AnyDocument(x.Context(), id)
		if err != nil {
			return nil, nil, err
		}
		if err := x.viewer.Check(inv.Scope); err != nil {
			return nil, nil, err
		}
		request, err := x.console.pipeline.Requested(x.Context(), inv)
		if err != nil {
			return nil, nil, err
		}
		f = copiedForm(request)
		from, taxpayer = &inv, inv.TaxpayerID
		family, err := x.copyFamily(inv, math.MaxInt)
		if err != nil {
			return nil, nil, err
		}
		f.set("external_id", family.FreeID)
	} else {
		f = emptyInvoiceForm()
	}
	key := store.NewID()
	f.set("taxpayer", taxpayer)
	f.set("idempotency_key", key)
	f.set("issue_date", fiscal.DateOf(x.console.now()).String())
	if f.Value("external_id") == "" {
		f.set("external_id", "M-"+fiscal.DateOf(x.console.now()).String()+"-"+key[len(key)-6:])
	}
	return f, from, nil
}

func (x *request) renderIssue(status int, f *invoiceForm, from *store.Invoice, conflict string) error {
	taxpayers, _, err := x.taxpayerOptions()
	if err != nil {
		return err
	}
	if f.Value("taxpayer") == "" && len(taxpayers) == 1 {
		f.set("taxpayer", taxpayers[0].Value)
	}
	if len(taxpayers) > 1 {
		taxpayers = append([]option{{"", x.text("issue.choose")}}, taxpayers...)
	}
	draft, err := x.draft(f)
	if err != nil {
		return err
	}
	view := issueView{Form: f, Taxpayers: taxpayers, Draft: draft, CopyOf: from, Conflict: conflict}
	if from != nil {
		if view.Again, err = x.issuedAgain(*from); err != nil {
			return err
		}
	}
	return x.renderStatus(status, "issue", x.text("issue.title"), view)
}

// showDraft answers the totals, the problems and the preview of a form that a person is
// writing. It stores nothing.
func (c *Console) showDraft(x *request) error {
	draft, err := x.draft(newInvoiceForm(x.PostForm))
	if err != nil {
		return err
	}
	return x.fragment("issue-draft", draft)
}

// sendInvoice registers the invoice of a form. Buttons that add or remove lines, and the
// button of the preview, only show the form again.
func (c *Console) sendInvoice(x *request) error {
	f := newInvoiceForm(x.PostForm)
	switch action := f.Value("action"); {
	case action == "add_line":
		f.addLine()
		return x.renderIssue(http.StatusOK, f, nil, "")
	case strings.HasPrefix(action, "remove_line."):
		f.removeLine(strings.TrimPrefix(action, "remove_line."))
		return x.renderIssue(http.StatusOK, f, nil, "")
	case action == "preview":
		return x.renderIssue(http.StatusOK, f, nil, "")
	}
	f.dropEmptyLines()
	inv, conflict, err := x.register(f)
	switch {
	case err != nil:
		return err
	case !f.ok():
		return x.renderIssue(http.StatusUnprocessableEntity, f, nil, conflict)
	}
	return x.done("/console/documents/"+inv.DocumentID, "issue.sent")
}

// register registers the invoice of a form. When it is refused, the form has the errors,
// and conflict is the document that stands in the way, if there is one.
func (x *request) register(f *invoiceForm) (inv store.Invoice, conflict string, err error) {
	scope, ok, err := x.issueScope(f)
	if err != nil || !ok {
		return inv, "", err
	}
	key := f.Value("idempotency_key")
	if key == "" {
		// Not a form of this page. Its external id keeps it from making two invoices.
		sum := sha256.Sum256([]byte(f.Value("external_id")))
		key = "console-" + hex.EncodeToString(sum[:])
	}
	if len(key) > 200 || strings.ContainsFunc(key, func(c rune) bool { return c < 0x20 || c > 0x7e }) {
		return inv, "", errBadRequest
	}
	command, err := f.command()
	if err != nil && command.Fingerprint == nil {
		return inv, "", err // the form could not be read
	}
	command.Refusal = err
	command.Scope, command.Key, command.Audited, command.Language = scope, key, true, x.language
	command.RequestID = "req_" + strings.ReplaceAll(x.id, "-", "")
	done, err := x.console.pipeline.Register(x.Context(), command)
	if err != nil {
		return x.refused(f, scope, key, err)
	}
	inv, err = x.console.store.Invoice(x.Context(), scope, done.ObjectID)
	return inv, "", err
}

// refused puts an error of a registration at the fields of the form. It returns every
// other error.
func (x *request) refused(f *invoiceForm, scope store.Scope, key string, err error) (inv store.Invoice, conflict string, _ error) {
	var (
		problems fiscal.Problems
		notReady *pipeline.NotReadyError
		taken    *pipeline.ConflictError
	)
	switch {
	case errors.As(err, &problems):
		x.failFields(f, problems)
		return inv, "", nil
	case errors.As(err, &notReady):
		for _, p := range notReady.Problems {
			f.fail("", x.text("issue.not_ready", x.readinessText(p)))
		}
		return inv, "", nil
	case errors.As(err, &taken):
		f.fail("external_id", x.text("issue.taken"))
		inv, err = x.console.store.Invoice(x.Context(), scope, taken.InvoiceID)
		return inv, inv.DocumentID, err
	case errors.Is(err, pipeline.ErrMismatch):
		f.fail("", x.text("issue.mismatch"))
		known, err := x.console.store.Answer(x.Context(), scope, pipeline.CreateInvoice, key)
		if err != nil {
			return inv, "", err
		}
		inv, err = x.console.store.Invoice(x.Context(), scope, known.ObjectID)
		f.set("idempotency_key", store.NewID()) // what is in the form now is another invoice
		return inv, inv.DocumentID, err
	}
	return inv, "", err
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
	if _, err := x.console.store.Taxpayer(x.Context(), id); err != nil {
		return scope, false, err
	}
	all, err := x.console.store.Suspensions(x.Context())
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
