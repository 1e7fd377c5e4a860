package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// createInvoice registers the intention to issue an invoice and answers what
// was committed. Whatever comes after is the pipeline's.
func (a *API) createInvoice(x *exchange) error {
	if _, err := readQuery(x.r); err != nil {
		return err
	}
	key, err := idempotencyKey(x.r.Header)
	if err != nil {
		return err
	}
	x.keyDigest = shortDigest(key)
	scenario, err := a.scenario(x.r.Header)
	if err != nil {
		return err
	}
	body, err := readJSON(x.r)
	if err != nil {
		return err
	}
	document, err := strictjson.Parse(body)
	if err != nil {
		return err
	}
	canonical := document.Canonical()
	intent := pipeline.Intent{
		Scope: x.scope, Key: key, RequestID: x.id,
		Fingerprint: fingerprint(canonical, scenario), RawDigest: digest(body),
	}
	ctx, cancel := x.deadline()
	defer cancel()
	done, err := a.register(ctx, intent, document, canonical, scenario)
	if open(err) {
		// What is refused today may have been accepted before: the answer to a
		// known key stands above every rule, and needs nobody to write.
		known, unknown := a.Pipeline.Recall(ctx, intent)
		if !errors.Is(unknown, store.ErrNotFound) {
			done, err = known, unknown
		}
	}
	if err != nil {
		return err
	}
	x.invoiceID, x.replayed = done.ObjectID, done.Replayed
	x.w.Header().Set("Location", done.Location)
	if done.Replayed {
		x.w.Header().Set("Idempotency-Replayed", "true")
		x.write(done.HTTPStatus, done.Body)
		return nil
	}
	if inv, ok := a.awaitInvoice(x, done.ObjectID); ok {
		return x.respondAs(done.HTTPStatus, pipeline.NewInvoiceResource(inv), pipeline.Meta{RequestID: x.id})
	}
	x.write(done.HTTPStatus, done.Body)
	return nil
}

// register judges the invoice and has it stored. A key that is known is found
// there, in the same transaction that would store the invoice.
func (a *API) register(ctx context.Context, in pipeline.Intent, document *strictjson.Document, canonical []byte, scenario pipeline.Scenario) (pipeline.Registered, error) {
	inv, err := fiscal.New(fiscal.DecodeRequest(document))
	if err != nil {
		return pipeline.Registered{}, err
	}
	if !scenario.Fits(inv.Type) {
		return pipeline.Registered{}, badRequest("an invoice of type " + string(inv.Type) + " is never " + string(scenario))
	}
	return a.Pipeline.Register(ctx, pipeline.Command{Intent: in, Invoice: inv, Request: canonical, Scenario: scenario})
}

// open tells that the key may be known although nothing was registered: a rule
// refused, which may have changed since, or nobody can write now. Stored keys
// and identifiers have decided the rest; and what a commit that may have
// happened did is for the repetition to find out.
func open(err error) bool {
	var (
		problems fiscal.Problems
		notReady *pipeline.NotReadyError
		misfit   *fault
	)
	return errors.As(err, &problems) || errors.As(err, &notReady) || errors.As(err, &misfit) ||
		(errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrOutcomeUnknown))
}

// fingerprint is the print of a request's meaning. A scenario is part of it;
// a zero byte keeps the two apart, since JSON text holds none.
func fingerprint(canonical []byte, s pipeline.Scenario) []byte {
	h := sha256.New()
	_, _ = h.Write(canonical) // a hash never fails
	if s != "" {
		_, _ = h.Write([]byte("\x00" + string(s)))
	}
	return h.Sum(nil)
}

func digest(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}

// shortDigest lets a key be recognised in a log without being shown.
func shortDigest(key string) string { return hex.EncodeToString(digest([]byte(key))[:6]) }

// listInvoices answers one page, the newest first.
func (a *API) listInvoices(x *exchange) error {
	query, err := readQuery(x.r, "external_id", "status", "cursor", "limit")
	if err != nil {
		return err
	}
	filter, err := a.invoiceFilter(x.scope, query)
	if err != nil {
		return err
	}
	ctx, cancel := x.deadline()
	defer cancel()
	page := filter.Limit
	filter.Limit++ // one more tells whether there is another page
	invoices, err := a.Store.ListInvoices(ctx, x.scope, filter)
	if err != nil {
		return err
	}
	m := pageMeta{RequestID: x.id}
	if len(invoices) > page {
		invoices = invoices[:page]
		if m, err = a.nextPage(x, invoices[page-1].ID, invoiceList(x.scope, filter)); err != nil {
			return err
		}
	}
	data := make([]pipeline.InvoiceResource, len(invoices))
	for i, inv := range invoices {
		data[i] = pipeline.NewInvoiceResource(inv)
	}
	return x.respondWith(data, m)
}

// readInvoice answers one invoice.
func (a *API) readInvoice(x *exchange) error {
	id, ok := parseUUID(x.params["invoice_id"])
	if !ok {
		return notFound()
	}
	ctx, cancel := x.deadline()
	defer cancel()
	inv, err := a.Store.Invoice(ctx, x.scope, id)
	if err != nil {
		return err
	}
	x.invoiceID = inv.ID
	if later, ok := a.awaitInvoice(x, inv.ID); ok {
		inv = later
	}
	return x.respond(pipeline.NewInvoiceResource(inv))
}

// scenario reads what the sandbox is asked to play. Elsewhere the header means
// nothing.
func (a *API) scenario(h http.Header) (pipeline.Scenario, error) {
	lines := h.Values("Sandbox-Scenario")
	if a.Environment != fiscal.Sandbox || len(lines) == 0 {
		return "", nil
	}
	s, ok := pipeline.ParseScenario(lines[0])
	if !ok || len(lines) > 1 {
		return "", badRequest("Sandbox-Scenario names one of submitted, processing, accepted, accepted_conditional, " +
			"rejected, outcome_unknown, delivered, validation_failed")
	}
	return s, nil
}
