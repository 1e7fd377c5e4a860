package inbox

import (
	"context"
	"fmt"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// A ResponseOutcome is what became of a response.
type ResponseOutcome string

// The outcomes of a response.
const (
	Stands      ResponseOutcome = "stands"      // it is the first response of a known signer
	Contradicts ResponseOutcome = "contradicts" // a known signer says the opposite of the response that stands
	Unconfirmed ResponseOutcome = "unconfirmed" // its signer is not known to act for the buyer; it is kept apart
	Repeated    ResponseOutcome = "repeated"    // it says what was said before; it has no effect
	TooMany     ResponseOutcome = "too_many"    // the document has enough responses; it is refused
)

// ResponseOutcomes returns all outcomes.
func ResponseOutcomes() []ResponseOutcome {
	return []ResponseOutcome{Stands, Contradicts, Unconfirmed, Repeated, TooMany}
}

// maxConfirmed is how many responses of known signers a document has at most.
const maxConfirmed = 8

// A statement is what a response says, and who has signed it.
type statement struct {
	accepted bool
	reason   string
	signer   string
	xml      []byte
}

func (s statement) verdict() fiscal.Verdict {
	if s.accepted {
		return fiscal.VerdictAccepted
	}
	return fiscal.VerdictRejected
}

func (s statement) result() string {
	if s.accepted {
		return "accepted"
	}
	return "rejected"
}

// message returns the statement in the words of status_messages.
func (s statement) message() string {
	if s.accepted {
		return "Aprobación comercial"
	}
	return "Rechazo comercial: " + s.reason
}

// contradiction is message for a statement that contradicts the one that stands.
func (s statement) contradiction() string {
	if s.accepted {
		return "Aprobación comercial posterior que contradice el rechazo"
	}
	return "Rechazo comercial posterior que contradice la aprobación: " + s.reason
}

// A document is an issued document with the responses to it.
type document struct {
	issued      store.Issued
	invoice     store.Invoice
	confirmed   []evidence.Item             // of known signers; the first stands
	unconfirmed []store.UnconfirmedResponse // of the others
}

// read reads the responses to a document. Programs of earlier versions did not ask who
// signs for a buyer: a response that they stored counts only when its signer is known.
func (b *Inbox) read(ctx context.Context, tx *store.Tx, issued store.Issued) (document, error) {
	inv, known, err := pipeline.ReadDocument(ctx, tx, issued)
	d := document{issued: issued, invoice: inv}
	if err != nil {
		return d, err
	}
	for _, item := range known {
		counts := item.Kind == evidence.Commercial && item.Confirmed
		if item.Kind == evidence.Commercial && !item.Confirmed {
			if counts, err = signsFor(ctx, tx, issued, item.Signer); err != nil {
				return d, err
			}
		}
		if counts {
			d.confirmed = append(d.confirmed, item)
		}
	}
	d.unconfirmed, err = tx.UnconfirmedResponses(ctx, issued.Scope, issued.DocumentID)
	return d, err
}

// signsFor reports whether a signer is known to act for the buyer of a document: the
// certificate names the buyer, the signer has signed an acknowledgement that came from the
// buyer's registered address, or an operator has confirmed the signer.
func signsFor(ctx context.Context, tx *store.Tx, issued store.Issued, signer string) (bool, error) {
	if signer == "" || issued.BuyerRNC == "" {
		return false, nil
	}
	if signer == issued.BuyerRNC {
		return true, nil
	}
	return tx.IsBuyerSigner(ctx, issued.Scope, issued.BuyerRNC, signer)
}

// respond takes in a verified response to a document as part of a transaction. It returns
// the invoice after it, and whether it added events. It fails with reply.ErrMismatch when
// the response does not agree with the document, and with reply.ErrTooMany when the
// document has enough responses.
func (b *Inbox) respond(ctx context.Context, tx *store.Tx, issued store.Issued, r reply.Response) (store.Invoice, bool, error) {
	d, err := b.read(ctx, tx, issued)
	if err != nil {
		return d.invoice, false, err
	}
	if err := d.matches(r); err != nil {
		return d.invoice, false, err
	}
	return b.take(ctx, tx, d, statement{r.Accepted, r.Reason, r.Signer, r.XML})
}

// matches returns reply.ErrMismatch unless the response agrees with the document, and the
// document is one that a buyer may respond to.
func (d document) matches(r reply.Response) error {
	total, err := fiscal.ParseDecimal(d.invoice.DocumentTotal)
	if err != nil {
		return fmt.Errorf("inbox: total of %s: %w", d.invoice.ID, err)
	}
	switch d.invoice.Status {
	case fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
	default:
		return reply.ErrMismatch
	}
	if !hasBuyer(d.issued) || d.issued.BuyerRNC != r.BuyerRNC || d.invoice.IssueDate != r.IssueDate.String() || !total.Equal(r.Total) {
		return reply.ErrMismatch
	}
	return nil
}

// outcome decides what becomes of a statement. The first response of a known signer
// stands. Responses of unknown signers have a limit of their own, so that they never stand
// in the way of a known one.
func (d document) outcome(s statement, known bool) ResponseOutcome {
	said := func(i evidence.Item) bool { return i.Signer == s.signer && i.Verdict == s.verdict() }
	switch {
	case known && len(d.confirmed) == 0:
		return Stands
	case known && d.confirmed[0].Verdict == s.verdict(), slices.ContainsFunc(d.confirmed, said):
		return Repeated
	case known && len(d.confirmed) >= maxConfirmed:
		return TooMany
	case known:
		return Contradicts
	case slices.ContainsFunc(d.unconfirmed, func(u store.UnconfirmedResponse) bool { return u.Signer == s.signer && u.Accepted == s.accepted }):
		return Repeated
	case len(d.unconfirmed) >= store.MaxUnconfirmedResponses:
		return TooMany
	}
	return Unconfirmed
}

// take commits a statement about a document. The status does not depend on it, so no job
// is touched.
func (b *Inbox) take(ctx context.Context, tx *store.Tx, d document, s statement) (store.Invoice, bool, error) {
	known, err := signsFor(ctx, tx, d.issued, s.signer)
	if err != nil {
		return d.invoice, false, err
	}
	outcome := d.outcome(s, known)
	b.o.OnResponse(outcome)
	log := b.o.Log.With("document_id", d.issued.DocumentID, "encf", d.issued.ENCF, "buyer_rnc", d.issued.BuyerRNC, "signer", s.signer, "result", s.result())
	switch outcome {
	case Repeated:
		return d.invoice, false, nil
	case TooMany:
		if b.firstRefusal(d.issued.DocumentID) {
			log.Warn("A document has as many commercial responses as the service keeps. This one and further ones are refused.")
		}
		return d.invoice, false, reply.ErrTooMany
	case Unconfirmed:
		log.Warn("A person who is not known to act for the buyer has signed a commercial response. It is kept apart. If the person acts for the buyer, confirm the signer with fiscalhub buyer confirm.")
		return b.keep(ctx, tx, d, s)
	case Contradicts:
		log.Error("A buyer has both approved and rejected a document. The first response stands. Ask the buyer which one counts.")
	case Stands:
	}
	return b.record(ctx, tx, d, s, outcome)
}

// keep keeps a statement of an unknown signer apart. The status of the invoice does not
// change.
func (b *Inbox) keep(ctx context.Context, tx *store.Tx, d document, s statement) (store.Invoice, bool, error) {
	now, number := b.o.Now(), int64(1)
	for slices.ContainsFunc(d.unconfirmed, func(u store.UnconfirmedResponse) bool { return u.Number == number }) {
		number++
	}
	rows := new(store.Batch).AddUnconfirmedResponse(store.UnconfirmedResponse{
		Scope: d.issued.Scope, DocumentID: d.issued.DocumentID, Number: number, BuyerRNC: d.issued.BuyerRNC,
		Signer: s.signer, Accepted: s.accepted, Reason: s.reason, At: now, XML: s.xml,
	}).AddHistoryEntry(store.HistoryEntry{
		Scope: d.issued.Scope, InvoiceID: d.invoice.ID, ID: store.NewID(), At: d.invoice.NextUpdate(now),
		Kind: "commercial_response_unconfirmed", Status: d.invoice.Status, Cause: cause.New(cause.ResponseUnconfirmed, s.message(), s.signer),
	})
	extra := pipeline.ExtraEvent{Kind: event.CommercialResponseUnconfirmed, Result: s.result(), Reason: s.reason, Signer: s.signer}
	after, notified := pipeline.AddEvents(rows, d.invoice, d.invoice, []pipeline.ExtraEvent{extra}, now)
	return after, notified, tx.Do(ctx, rows)
}

// record adds a statement of a known signer to the evidence, and an event for integrators.
func (b *Inbox) record(ctx context.Context, tx *store.Tx, d document, s statement, outcome ResponseOutcome) (store.Invoice, bool, error) {
	now := b.o.Now()
	item := evidence.Item{Kind: evidence.Commercial, Verdict: s.verdict(), Note: s.reason, Signer: s.signer, Confirmed: true, At: now}
	row, err := pipeline.Finding{Item: item, Raw: s.xml}.Row(d.issued.Scope, d.issued.DocumentID)
	if err != nil {
		return d.invoice, false, err
	}
	message, kind := s.message(), cause.ResponseConfirmed
	extra := pipeline.ExtraEvent{Kind: event.CommercialResponse, Result: s.result(), Reason: s.reason, Signer: s.signer}
	if outcome == Contradicts {
		message, kind = s.contradiction(), cause.ResponseContradicts
		extra.Contradicts = statement{accepted: !s.accepted}.result()
	}
	after := d.invoice
	after.Messages = append(slices.Clone(d.invoice.Messages), message)
	after.UpdatedAt = d.invoice.NextUpdate(now)
	rows := new(store.Batch).AddEvidence(row).UpdateInvoice(d.invoice, after).AddHistoryEntry(store.HistoryEntry{
		Scope: d.issued.Scope, InvoiceID: d.invoice.ID, ID: store.NewID(), At: after.UpdatedAt,
		Kind: "commercial_response", Status: after.Status, Cause: cause.New(kind, message, s.signer),
	})
	after, notified := pipeline.AddEvents(rows, d.invoice, after, []pipeline.ExtraEvent{extra}, now)
	return after, notified, tx.Do(ctx, rows)
}

// maxFull is how many documents are remembered whose limit was logged.
const maxFull = 10_000

// firstRefusal reports whether a refusal is the first one of a document in this process,
// as far as it is remembered.
func (b *Inbox) firstRefusal(documentID string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.full[documentID] {
		return false
	}
	if len(b.full) >= maxFull {
		clear(b.full)
	}
	b.full[documentID] = true
	return true
}
