package pipeline

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// CreateInvoice names the operation in the scope of an idempotency key.
const CreateInvoice = "create_invoice"

// ErrMismatch says that the idempotency key was used with another request.
var ErrMismatch = errors.New("idempotency key used with another request")

// ConflictError says that the external id belongs to another invoice.
type ConflictError struct{ InvoiceID string }

func (e *ConflictError) Error() string { return "external id belongs to invoice " + e.InvoiceID }

// NotReadyError says what keeps the taxpayer from issuing.
type NotReadyError struct{ Problems fiscal.Problems }

func (e *NotReadyError) Error() string { return "taxpayer is not ready: " + e.Problems.Error() }

// Intent identifies a creation: the taxpayer, the idempotency key, and the
// digests by which a repeated request is recognised.
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
	// Refusal is why the request is not valid; nil: it is. Without a valid request there is
	// no invoice.
	Refusal  error
	Invoice  *fiscal.Invoice
	Request  []byte // the canonical request
	Scenario Scenario
	Language lang.Language // of the notes that are stored with the document
	Trace    string        // traceparent of the request; empty: it has none
	// Waits says that the client waits for the verdict. Its answer is then another one than
	// the stored answer, which has a request id of its own: answers with one request id are
	// one body. It means nothing for an invoice that is final at once.
	Waits bool
	// Audited says that a person issues the invoice by hand: the audit log names the
	// caller of the context.
	Audited bool
}

// Registered is the answer to a creation.
type Registered struct {
	store.StoredReply
	Replayed bool
	Invoice  store.Invoice // as it was registered; zero when the answer is replayed
}

// Known returns the stored answer of an earlier equal request. It writes nothing. It
// returns store.ErrNotFound when the key is new, and ErrMismatch when the key was used
// with another request.
func (p *Pipeline) Known(ctx context.Context, in Intent) (Registered, error) {
	known, err := p.o.Store.StoredReply(ctx, in.Scope, CreateInvoice, in.Key)
	switch {
	case err != nil:
		return Registered{}, err
	case !bytes.Equal(known.Fingerprint, in.Fingerprint):
		return Registered{}, ErrMismatch
	}
	return Registered{StoredReply: known, Replayed: true}, nil
}

// recall is Known, and records the repetition in the history of the invoice.
func (p *Pipeline) recall(ctx context.Context, in Intent) (Registered, error) {
	known, err := p.o.Store.StoredReply(ctx, in.Scope, CreateInvoice, in.Key)
	if err != nil {
		return Registered{}, err
	}
	return p.replay(in, known)
}

func (p *Pipeline) replay(in Intent, known store.StoredReply) (Registered, error) {
	if !bytes.Equal(known.Fingerprint, in.Fingerprint) {
		p.addHistoryNote(in, known.ObjectID, "idempotency_mismatch", cause.KeyMismatch)
		return Registered{}, ErrMismatch
	}
	p.addHistoryNote(in, known.ObjectID, "replayed", cause.Replayed)
	return Registered{StoredReply: known, Replayed: true}, nil
}

// addHistoryNote records a repeated request in the history of an invoice. No
// answer depends on it.
func (p *Pipeline) addHistoryNote(in Intent, invoiceID, kind string, why cause.Kind) {
	at := p.o.Now()
	p.journal.Add(func(ctx context.Context, tx *store.Tx) error {
		inv, err := tx.Invoice(ctx, in.Scope, invoiceID)
		if err != nil {
			return err
		}
		return tx.Do(ctx, new(store.Batch).AddHistoryEntry(store.HistoryEntry{
			Scope: in.Scope, InvoiceID: invoiceID, ID: store.NewID(), At: at,
			Kind: kind, Status: inv.Status, RequestID: in.RequestID, Cause: cause.New(why),
		}))
	})
}

// Register stores an invoice, its document, its first job and the answer in one
// transaction. It returns the refusal of the command when it has one, fiscal.Problems
// when the invoice breaks a rule, *NotReadyError when the taxpayer cannot issue,
// *ConflictError when the external id is taken, and ErrMismatch when the key was used
// with another request.
//
// It looks the key up first. The stored answer of a known key stands above every rule
// whose answer may change with time, and needs no write: the repetition of an accepted
// request never fails by a rule, and delays no other creation. Of equal requests that
// come at the same moment, the unique indexes of the transaction let one pass.
func (p *Pipeline) Register(ctx context.Context, c Command) (Registered, error) {
	known, err := p.recall(ctx, c.Intent)
	if !errors.Is(err, store.ErrNotFound) {
		return known, err
	}
	if c.Refusal != nil {
		return Registered{}, c.Refusal
	}
	return p.registerNew(ctx, c)
}

// registerNew registers an invoice whose key was not known a moment ago.
func (p *Pipeline) registerNew(ctx context.Context, c Command) (Registered, error) {
	if err := p.checkRules(ctx, c); err != nil {
		return Registered{}, err
	}
	start := p.o.Plan.Start(withLosses(c.Invoice), c.Scenario)
	registration, err := newRegistration(c, start, p.o.Now().UTC().Truncate(time.Millisecond))
	if err != nil {
		return Registered{}, err
	}
	known, err := p.o.Store.Register(ctx, registration)
	switch {
	case errors.Is(err, store.ErrExternalIDTaken):
		return Registered{}, p.conflict(ctx, c)
	case err != nil:
		return Registered{}, err
	case known != nil:
		return p.replay(c.Intent, *known)
	}
	if start.Stage != "" {
		p.notifyQueue(start.Stage)
	}
	return Registered{StoredReply: registration.Reply, Invoice: registration.Invoice}, nil
}

// checkRules returns fiscal.Problems when the invoice breaks a rule, and *NotReadyError
// when the taxpayer cannot issue.
func (p *Pipeline) checkRules(ctx context.Context, c Command) error {
	if err := p.o.Plan.Check(ctx, c.Scope, c.Invoice); err != nil {
		return err
	}
	missing, err := p.o.Plan.Ready(ctx, c.Scope, c.Invoice.Type)
	if err == nil && len(missing) > 0 {
		err = &NotReadyError{missing}
	}
	return err
}

// Check returns what Register would return now, and writes nothing. It returns a zero
// Registered when Register would store a new invoice.
func (p *Pipeline) Check(ctx context.Context, c Command) (Registered, error) {
	known, err := p.Known(ctx, c.Intent)
	if !errors.Is(err, store.ErrNotFound) {
		return known, err
	}
	if c.Refusal != nil {
		return Registered{}, c.Refusal
	}
	if err := p.checkRules(ctx, c); err != nil {
		return Registered{}, err
	}
	other, err := p.o.Store.InvoiceByExternalID(ctx, c.Scope, c.Invoice.ExternalID)
	if errors.Is(err, store.ErrNotFound) {
		return Registered{}, nil
	}
	if err != nil {
		return Registered{}, err
	}
	return Registered{}, &ConflictError{other.ID}
}

// withLosses returns an invoice whose warnings also describe what the fiscal
// document and its printed page cannot show as it was sent.
func withLosses(inv *fiscal.Invoice) *fiscal.Invoice {
	lost := append(ecf.Lost(inv), printed.Lost(inv)...)
	if len(lost) == 0 {
		return inv
	}
	noted := *inv
	noted.Warnings = slices.Concat(inv.Warnings, lost)
	return &noted
}

// conflict returns the error that names the invoice with the external id. It returns
// store.ErrUnavailable when the invoice cannot be read.
func (p *Pipeline) conflict(ctx context.Context, c Command) error {
	other, err := p.o.Store.InvoiceByExternalID(ctx, c.Scope, c.Invoice.ExternalID)
	if err != nil {
		return store.Vanished("invoice with an external id", err)
	}
	p.addHistoryNote(c.Intent, other.ID, "external_id_conflict", cause.ExternalIDConflict)
	return &ConflictError{other.ID}
}

func newRegistration(c Command, start Start, now time.Time) (store.Registration, error) {
	inv := newInvoice(c, start, now)
	answerID := c.RequestID
	if c.Waits && start.Stage != "" {
		answerID = store.AnswerID(inv.ID)
	}
	body, err := envelope.Encode(NewInvoiceResource(inv), envelope.Meta{RequestID: answerID})
	if err != nil {
		return store.Registration{}, err
	}
	r := store.Registration{
		Invoice: inv, Request: c.Request,
		Reply: store.StoredReply{
			Scope: c.Scope, Operation: CreateInvoice, Key: c.Key, Fingerprint: c.Fingerprint, RawDigest: c.RawDigest,
			ObjectID: inv.ID, HTTPStatus: http.StatusAccepted, Location: InvoicePath(inv), RequestID: answerID,
			CreatedAt: now, Body: body,
		},
		Entry: store.HistoryEntry{
			Scope: c.Scope, InvoiceID: inv.ID, ID: store.NewID(), At: now,
			Kind: "created", Status: inv.Status, RequestID: c.RequestID, Cause: start.Cause,
		},
	}
	if c.Audited {
		r.Audit = &store.AuditEntry{Scope: c.Scope, Action: "document.issue", Object: "document:" + inv.DocumentID, After: map[string]any{
			"external_id": inv.ExternalID, "ecf_type": inv.Type, "issue_date": inv.IssueDate, "total": inv.Total, "buyer": c.Invoice.Buyer.LegalName,
		}}
	}
	if start.Stage != "" {
		r.Job = &store.Job{
			Scope: c.Scope, DocumentID: inv.DocumentID, Plan: start.Plan, Stage: start.Stage,
			RunAt: now.Add(start.After), CreatedAt: now,
		}
	}
	return r, nil
}

func newInvoice(c Command, start Start, now time.Time) store.Invoice {
	var notes []string
	for _, m := range start.Messages {
		notes = append(notes, m.In(c.Language))
	}
	declared := c.Invoice.Declared
	return store.Invoice{
		Scope: c.Scope, ID: store.NewID(), DocumentID: store.NewID(),
		ExternalID: c.Invoice.ExternalID, Type: c.Invoice.Type, Status: start.Status, Revision: 1,
		Currency: c.Invoice.Currency, IssueDate: c.Invoice.IssueDate.String(),
		Subtotal: declared.Subtotal.Text, DiscountTotal: declared.DiscountTotal.Text,
		TaxTotal: declared.TaxTotal.Text, Total: declared.Total.Text,
		Paid: c.Invoice.Paid(), Balance: c.Invoice.Balance(),
		DocumentTotal: c.Invoice.Totals.Total.StringFixed(2),
		Messages:      notes, Trace: c.Trace, CreatedAt: now, UpdatedAt: now,
	}
}
