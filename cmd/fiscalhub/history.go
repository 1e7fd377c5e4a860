package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type historyCmd struct {
	Taxpayer       string `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Environment    string `required:"" help:"sandbox, certification or production." enum:"sandbox,certification,production"`
	ExternalID     string `help:"Id of the invoice in the integrator's system." xor:"which" placeholder:"ID"`
	IdempotencyKey string `help:"Idempotency key of the creation." xor:"which" placeholder:"KEY"`
	Invoice        string `help:"Id of the invoice." xor:"which" placeholder:"ID"`
	Document       string `help:"Id of the fiscal document." xor:"which" placeholder:"ID"`
	RequestID      string `help:"Request id of the creation, or of a repetition of it." xor:"which" placeholder:"ID"`
}

// historyView is the history of an invoice. A request id that a client used more than once
// has several invoices: the view then names the last one, Invoices has all of them, and
// Events the events of all.
type historyView struct {
	historyInvoiceView
	Invoices []historyInvoiceView `json:"invoices,omitempty"`
	Events   []historyEventView   `json:"events"`
}

type historyInvoiceView struct {
	InvoiceID  string        `json:"invoice_id"`
	DocumentID string        `json:"fiscal_document_id"`
	ExternalID string        `json:"external_id"`
	Status     fiscal.Status `json:"status"`
}

type historyEventView struct {
	InvoiceID string        `json:"invoice_id,omitempty"` // when there are several
	At        string        `json:"at"`
	Kind      string        `json:"kind"`
	Status    fiscal.Status `json:"status"`
	RequestID *string       `json:"request_id"`
	Detail    string        `json:"detail"`
}

// Run prints the history of one invoice, or of those that share a request id.
func (c historyCmd) Run(t *terminal) error {
	if c.ExternalID+c.IdempotencyKey+c.Invoice+c.Document+c.RequestID == "" {
		return wrongUsage("say which invoice: give one of --external-id, --idempotency-key, --invoice, --document and --request-id",
			"indique la factura: use uno de --external-id, --idempotency-key, --invoice, --document y --request-id")
	}
	return t.withStore(func(s *store.Store) error {
		scope := store.Scope{Environment: fiscal.Environment(c.Environment), TaxpayerID: c.Taxpayer}
		found, err := c.find(t, s, scope)
		if errors.Is(err, store.ErrNotFound) {
			if _, err := s.Taxpayer(t.ctx, c.Taxpayer); err != nil {
				return missing(err, "taxpayer", c.Taxpayer)
			}
			return lang.Errorf("this taxpayer has no such invoice in this environment: check the value, and --environment",
				"este contribuyente no tiene esa factura en este ambiente: revise el valor y --environment")
		}
		if err != nil {
			return err
		}
		var v historyView
		for i, inv := range found {
			d, err := dossier.Read(t.ctx, s, inv.Scope, inv.DocumentID)
			if err != nil {
				return err
			}
			events := newHistoryEvents(d, t.outputLanguage())
			v.historyInvoiceView = historyInvoiceView{inv.ID, inv.DocumentID, inv.ExternalID, inv.Status}
			if len(found) > 1 {
				v.Invoices = append(v.Invoices, v.historyInvoiceView)
				for i := range events {
					events[i].InvoiceID = inv.ID
				}
			}
			v.Events = append(v.Events, events...)
			if t.cli.JSON {
				continue
			}
			if err := printHistory(t, inv, events, i > 0); err != nil {
				return err
			}
		}
		if !t.cli.JSON {
			return nil
		}
		return t.answer(v, nil)
	})
}

// printHistory prints the history of one invoice, after an empty line if it follows another.
func printHistory(t *terminal, inv store.Invoice, events []historyEventView, follows bool) error {
	if err := t.answer(nil, func(w io.Writer) {
		if follows {
			line(w, "")
		}
		line(w, "invoice", inv.ID)
		line(w, "document", inv.DocumentID)
		line(w, "external id", inv.ExternalID)
		line(w, "status", string(inv.Status))
		for _, m := range rejection.Explained(inv.Status, inv.Messages, t.language) {
			line(w, "message", m)
		}
		line(w, "")
	}); err != nil {
		return err
	}
	b := newTable("TIME", "KIND", "STATUS", "REQUEST ID", "DETAIL")
	for _, e := range events {
		b.add(e.At, e.Kind, string(e.Status), textOf(e.RequestID), e.Detail)
	}
	return t.list(nil, b)
}

// newHistoryEvents returns what happened to an invoice, its number, the attempts to send its
// document and the evidence about it, in order.
func newHistoryEvents(d dossier.Dossier, l lang.Language) (events []historyEventView) {
	for _, e := range d.Entries() {
		v := historyEventView{At: e.At.Format(time.RFC3339Nano), Status: e.Status}
		switch what := e.What.(type) {
		case store.HistoryEntry:
			v.Kind, v.RequestID, v.Detail = what.Kind, optional(what.RequestID), what.Cause.In(l)
		case store.Issued:
			v.Kind, v.Detail = "issued", lang.Messagef("%s, security code %s", "%s, código de seguridad %s", what.ENCF, what.SecurityCode).In(l)
		case store.Attempt:
			v.Kind, v.Detail = "attempt", strings.TrimSpace(fmt.Sprintf("%s %d: %s %s", what.Kind, what.Number, cmp.Or(string(what.Class), "open"), what.Cause.In(l)))
		case evidence.Item:
			v.Kind, v.Detail = "evidence", strings.TrimSpace(string(what.Kind)+" "+newEvidenceView(what, l).summary(l))
		default:
			continue
		}
		events = append(events, v)
	}
	return events
}

// find reads the invoices by the one identifier that was given. Only a request id may have
// several.
func (c historyCmd) find(t *terminal, s *store.Store, scope store.Scope) ([]store.Invoice, error) {
	var (
		ids = []string{c.Invoice}
		err error
	)
	switch {
	case c.ExternalID != "":
		inv, err := s.InvoiceByExternalID(t.ctx, scope, c.ExternalID)
		return []store.Invoice{inv}, err
	case c.Document != "":
		inv, err := s.InvoiceOfDocument(t.ctx, scope, c.Document)
		return []store.Invoice{inv}, err
	case c.IdempotencyKey != "":
		var answer store.StoredReply
		answer, err = s.StoredReply(t.ctx, scope, pipeline.CreateInvoice, c.IdempotencyKey)
		ids = []string{answer.ObjectID}
	case c.RequestID != "":
		if ids, err = s.InvoicesOfRequest(t.ctx, scope, c.RequestID); len(ids) == store.MaxOfRequest {
			t.warn(lang.Messagef("the client has used this request id very often: these are the first %d invoices",
				"el cliente usó este request id muchas veces: estas son las primeras %d facturas", len(ids)))
		}
	}
	if err != nil {
		return nil, err
	}
	found := make([]store.Invoice, len(ids))
	for i, id := range ids {
		if found[i], err = s.Invoice(t.ctx, scope, id); err != nil {
			return nil, err
		}
	}
	return found, nil
}
