package pipeline

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// CreateInvoice names the operation in the scope of an idempotency key.
const CreateInvoice = "create_invoice"

// ErrMismatch says that the key was used with another request.
var ErrMismatch = errors.New("idempotency key used with another request")

// Conflict says that the external id belongs to another invoice.
type Conflict struct{ InvoiceID string }

func (c *Conflict) Error() string { return "external id belongs to invoice " + c.InvoiceID }

// NotReady says what keeps the taxpayer from issuing.
type NotReady struct{ Problems fiscal.Problems }

func (n *NotReady) Error() string { return "taxpayer is not ready: " + n.Problems.Error() }

// Intent identifies a creation: who wants it, under which key, and the prints
// of the request by which a repetition is recognised.
type Intent struct {
	Scope       store.Scope
	Key         string
	Fingerprint []byte
	RawDigest   []byte
	RequestID   string
}

// Command is an invoice to be registered.
type Command struct {
	Intent
	Invoice  *fiscal.Invoice
	Request  []byte // the canonical request
	Scenario Scenario
	// Answer renders what the integrator is told. It is stored with the
	// invoice, so it is called before the transaction.
	Answer func(store.Invoice) (location string, body []byte, err error)
}

// Registered is the answer of a creation.
type Registered struct {
	store.Answer
	Replayed bool
}

// Recall looks for the answer of an earlier equal request, without writing. It
// stands above every rule whose answer may change with time, so that the
// repetition of an accepted request never fails by one. store.ErrNotFound: the
// key is new.
func (p *Pipeline) Recall(ctx context.Context, in Intent) (Registered, error) {
	known, err := p.Store.Answer(ctx, in.Scope, CreateInvoice, in.Key)
	if err != nil {
		return Registered{}, err
	}
	return p.replay(in, known)
}

func (p *Pipeline) replay(in Intent, known store.Answer) (Registered, error) {
	kind, err := "replayed", error(nil)
	if !bytes.Equal(known.Fingerprint, in.Fingerprint) {
		kind, err = "idempotency_mismatch", ErrMismatch
	}
	p.note(in, known.ObjectID, kind)
	if err != nil {
		return Registered{}, err
	}
	return Registered{Answer: known, Replayed: true}, nil
}

// note records in the history of an invoice that a request met it. No answer
// depends on it.
func (p *Pipeline) note(in Intent, invoiceID, kind string) {
	at := p.Now()
	p.journal.Add(func(ctx context.Context, tx *store.Tx) error {
		inv, err := tx.Invoice(ctx, in.Scope, invoiceID)
		if err != nil {
			return err
		}
		return tx.Do(ctx, new(store.Batch).AddEvent(store.Event{
			Scope: in.Scope, InvoiceID: invoiceID, ID: store.NewID(), At: at,
			Kind: kind, Status: inv.Status, RequestID: in.RequestID, Detail: noteDetails[kind],
		}))
	})
}

var noteDetails = map[string]string{
	"replayed":             "the same request came again and got the stored answer",
	"idempotency_mismatch": "another request came with the same key and was refused",
	"external_id_conflict": "another request came with the same external id and was refused",
}

// Register stores an invoice, its document, its first job and the answer in
// one transaction, whose unique indexes are the judge of repetitions.
func (p *Pipeline) Register(ctx context.Context, c Command) (Registered, error) {
	if err := p.Plan.Check(ctx, c.Scope, c.Invoice); err != nil {
		return Registered{}, err
	}
	missing, err := p.Plan.Ready(ctx, c.Scope, c.Invoice.Type)
	if err != nil {
		return Registered{}, err
	}
	if len(missing) > 0 {
		return Registered{}, &NotReady{missing}
	}
	birth := p.Plan.Birth(c.Invoice, c.Scenario)
	now := p.Now().UTC().Truncate(time.Millisecond)
	inv := newInvoice(c, birth, now)
	location, body, err := c.Answer(inv)
	if err != nil {
		return Registered{}, fmt.Errorf("pipeline: render answer: %w", err)
	}
	answer := store.Answer{
		Scope: c.Scope, Operation: CreateInvoice, Key: c.Key, Fingerprint: c.Fingerprint, RawDigest: c.RawDigest,
		ObjectID: inv.ID, HTTPStatus: http.StatusAccepted, Location: location, RequestID: c.RequestID,
		CreatedAt: now, Body: body,
	}
	registration := store.Registration{
		Answer: answer, Invoice: inv, Request: c.Request,
		Event: store.Event{
			Scope: c.Scope, InvoiceID: inv.ID, ID: store.NewID(), At: now,
			Kind: "created", Status: inv.Status, RequestID: c.RequestID, Detail: birth.Cause,
		},
	}
	if birth.Stage != "" {
		registration.Job = &store.Job{
			Scope: c.Scope, DocumentID: inv.DocumentID, Plan: birth.Plan, Stage: birth.Stage,
			RunAt: now.Add(birth.After), CreatedAt: now,
		}
	}
	known, err := p.Store.Register(ctx, registration)
	switch {
	case errors.Is(err, store.ErrExternalIDTaken):
		return Registered{}, p.conflict(ctx, c)
	case err != nil:
		return Registered{}, err
	case known != nil:
		return p.replay(c.Intent, *known)
	}
	if birth.Stage != "" {
		p.rouse()
	}
	return Registered{Answer: answer}, nil
}

// conflict finds the invoice that has the external id.
func (p *Pipeline) conflict(ctx context.Context, c Command) error {
	other, err := p.Store.InvoiceByExternalID(ctx, c.Scope, c.Invoice.ExternalID)
	if err != nil {
		return err
	}
	p.note(c.Intent, other.ID, "external_id_conflict")
	return &Conflict{other.ID}
}

func newInvoice(c Command, birth Birth, now time.Time) store.Invoice {
	declared := c.Invoice.Declared
	return store.Invoice{
		Scope: c.Scope, ID: store.NewID(), DocumentID: store.NewID(),
		ExternalID: c.Invoice.ExternalID, Type: c.Invoice.Type, Status: birth.Status, Sequence: 1,
		Currency: c.Invoice.Currency, IssueDate: c.Invoice.IssueDate.String(),
		Subtotal: declared.Subtotal.Text, DiscountTotal: declared.DiscountTotal.Text,
		TaxTotal: declared.TaxTotal.Text, Total: declared.Total.Text,
		Paid: c.Invoice.Paid(), Balance: c.Invoice.Balance(),
		DocumentTotal: c.Invoice.Totals.Total.StringFixed(2),
		Messages:      birth.Messages, CreatedAt: now, UpdatedAt: now,
	}
}
