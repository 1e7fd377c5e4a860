package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// createInvoice registers an invoice and answers 202 with the committed
// resource. The pipeline issues and sends the invoice afterwards.
func (a *API) createInvoice(x *exchange) error {
	key, err := creationKey(x)
	if err != nil {
		return err
	}
	scenario, err := a.scenario(x.r.Header)
	if err != nil {
		return err
	}
	raw, document, err := a.readJSON(x)
	if err != nil {
		return err
	}
	command, err := newCommand(raw, document, scenario)
	command.Scope, command.Key, command.RequestID = x.scope, key, x.id
	command.Language, command.Trace = x.language, x.trace.String()
	ctx, cancel := x.deadline()
	defer cancel()
	var done pipeline.Registered
	if err == nil {
		done, err = a.pipeline.Register(ctx, command)
	}
	if mayBeReplay(err) {
		// The stored answer of a known key counts more than any rule: the same
		// request may have been accepted before. Reading it needs no write.
		known, recallErr := a.pipeline.Recall(ctx, command.Intent)
		if !errors.Is(recallErr, store.ErrNotFound) {
			done, err = known, recallErr
		}
	}
	if err != nil {
		return err
	}
	x.invoiceID, x.replayed = done.ObjectID, done.Replayed
	x.w.Header().Set("Location", done.Location)
	if done.Replayed {
		x.w.Header().Set("Idempotency-Replayed", "true")
		return x.write(done.HTTPStatus, done.Body)
	}
	if inv, ok := a.awaitInvoice(x, done.ObjectID); ok {
		return x.respondAs(done.HTTPStatus, pipeline.NewInvoiceResource(inv), pipeline.Meta{RequestID: x.id})
	}
	return x.write(done.HTTPStatus, done.Body)
}

// newCommand validates an invoice and returns the command that registers it. When the
// invoice is not valid, the command has only what identifies the request: the pipeline
// may have registered it before.
func newCommand(raw []byte, document *strictjson.Document, scenario pipeline.Scenario) (pipeline.Command, error) {
	canonical := document.Canonical()
	if document.Truncated() {
		// The canonical form is that of another request. No registered request
		// has this one, which is not canonical.
		canonical = append([]byte{' '}, raw...)
	}
	c := pipeline.Command{Intent: pipeline.Intent{Fingerprint: fingerprint(canonical, scenario), RawDigest: digest(raw)}}
	inv, err := fiscal.New(fiscal.DecodeRequest(document))
	if err != nil {
		return c, err
	}
	if !scenario.Fits(inv.Type) {
		return c, badRequest(lang.Messagef(
			"Sandbox-Scenario: an invoice of type %s never has the status %s",
			"Sandbox-Scenario: una factura del tipo %s nunca tiene el estado %s", inv.Type, scenario))
	}
	c.Invoice, c.Request, c.Scenario = inv, canonical, scenario
	return c, nil
}

// mayBeReplay reports whether the idempotency key may be known although err was
// returned. That is so when a rule refused the invoice, because the rule may
// have been different before, and when the database takes no writes. It is not
// so when the outcome of a commit is unknown: a retry of the client finds out.
func mayBeReplay(err error) bool {
	var (
		problems fiscal.Problems
		notReady *pipeline.NotReadyError
		refused  *apiError
	)
	return errors.As(err, &problems) || errors.As(err, &notReady) || errors.As(err, &refused) ||
		(errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrOutcomeUnknown))
}

// fingerprint returns a hash of the meaning of a request. The scenario is part
// of it, after a zero byte, which JSON text cannot contain.
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

// shortDigest identifies an idempotency key in logs without showing it.
func shortDigest(key string) string { return hex.EncodeToString(digest([]byte(key))[:6]) }

// readInvoice answers one invoice.
func (a *API) readInvoice(x *exchange) error {
	id, ok := parseUUID(x.params["invoice_id"])
	if !ok {
		return notFound()
	}
	ctx, cancel := x.deadline()
	defer cancel()
	inv, err := a.store.Invoice(ctx, x.scope, id)
	if err != nil {
		return err
	}
	x.invoiceID = inv.ID
	if later, ok := a.awaitInvoice(x, inv.ID); ok {
		inv = later
	}
	return x.respond(pipeline.NewInvoiceResource(inv))
}

// scenario reads the header Sandbox-Scenario. Other environments than the
// sandbox ignore it.
func (a *API) scenario(h http.Header) (pipeline.Scenario, error) {
	lines := h.Values("Sandbox-Scenario")
	if a.environment != fiscal.Sandbox || len(lines) == 0 {
		return "", nil
	}
	s, ok := pipeline.ParseScenario(lines[0])
	if !ok || len(lines) > 1 {
		return "", badRequest(lang.Messagef(
			"Sandbox-Scenario must be one of %s", "Sandbox-Scenario debe ser uno de %s",
			"submitted, processing, accepted, accepted_conditional, rejected, outcome_unknown, delivered, validation_failed"))
	}
	return s, nil
}
