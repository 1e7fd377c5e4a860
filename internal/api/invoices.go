package api

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
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
	command := newCommand(raw, document, scenario)
	command.Scope, command.Key, command.RequestID = x.scope, key, x.id
	command.Language, command.Trace = x.language, x.trace.String()
	_, command.Waits = preferredWait(x.r.Header)
	ctx, cancel := x.deadline()
	defer cancel()
	done, err := a.o.Pipeline.Register(ctx, command)
	if err != nil {
		return err
	}
	x.invoiceID, x.replayed = done.ObjectID, done.Replayed
	x.w.Header().Set("Location", a.basePath+done.Location)
	if done.Replayed {
		x.w.Header().Set("Idempotency-Replayed", "true")
		return x.write(done.HTTPStatus, done.Body)
	}
	inv, ok := a.awaitInvoice(x, done.ObjectID)
	if done.RequestID == x.id {
		return x.write(done.HTTPStatus, done.Body)
	}
	// The stored answer is another one, with an id of its own.
	if !ok {
		inv = done.Invoice
	}
	return x.respondAs(done.HTTPStatus, pipeline.NewInvoiceResource(inv), envelope.Meta{RequestID: x.id})
}

// newCommand validates an invoice and returns the command that registers it or says why it
// is refused. It also refuses a scenario that the type does not have.
func newCommand(raw []byte, document *strictjson.Document, scenario pipeline.Scenario) pipeline.Command {
	c, err := pipeline.NewCommand(raw, document, scenario)
	if err == nil && !scenario.Fits(c.Invoice.Type) {
		err = badRequest(lang.Messagef("Sandbox-Scenario: an invoice of type %s never has the status %s",
			"Sandbox-Scenario: una factura del tipo %s nunca tiene el estado %s", c.Invoice.Type, scenario))
	}
	c.Refusal = err
	return c
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
	inv, err := a.o.Store.Invoice(ctx, x.scope, id)
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
	if a.o.Environment != fiscal.Sandbox || len(lines) == 0 {
		return "", nil
	}
	s, ok := pipeline.ParseScenario(lines[0])
	if !ok || len(lines) > 1 {
		return "", badRequest(lang.Messagef("Sandbox-Scenario must be one of %s", "Sandbox-Scenario debe ser uno de %s",
			"submitted, processing, accepted, accepted_conditional, rejected, outcome_unknown, delivered, validation_failed"))
	}
	return s, nil
}
