package live

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// Inbound is a buyer's signed message that a source passes on. The source has
// authenticated itself; the message is proven by its own signature.
type Inbound struct {
	Source    store.Source
	MessageID string
	Kind      string
	ENCF      string
	XML       []byte
}

// Received is the result of an inbound message.
type Received struct {
	EventID   string
	Duplicate bool // it was received before, and nothing was done
}

// InvalidMessageError says why a message has no effect: it is malformed, or it does
// not agree with the document that it names.
type InvalidMessageError struct{ Reason string }

func (e *InvalidMessageError) Error() string { return e.Reason }

// InboxOptions configure an Inbox.
type InboxOptions struct {
	Store    *store.Store
	Env      fiscal.Environment
	Pipeline *pipeline.Pipeline
	Now      func() time.Time
	Log      *slog.Logger
	Pace     wake.Pace
	// Roots are the certificates that a buyer's signature must chain to. Without
	// them no message is believed.
	Roots *x509.CertPool
}

// Inbox takes in what buyers say about our documents: acknowledgements of receipt
// and commercial responses.
type Inbox struct {
	settler
	env      fiscal.Environment
	pipeline *pipeline.Pipeline
	roots    *x509.CertPool
}

// NewInbox returns an inbox. It fails when an option that it needs is missing.
func NewInbox(o InboxOptions) (*Inbox, error) {
	if o.Store == nil || o.Pipeline == nil || o.Env == "" || o.Now == nil || o.Log == nil {
		return nil, errors.New("live: InboxOptions are incomplete")
	}
	return &Inbox{
		settler: settler{store: o.Store, now: o.Now, log: o.Log, pace: o.Pace, directory: newDirectory()},
		env:     o.Env, pipeline: o.Pipeline, roots: o.Roots,
	}, nil
}

// Commercial takes in a buyer's verified approval or rejection of a document of any
// taxpayer of the environment. It returns reply.ErrNoDocument or reply.ErrMismatch
// when it is about none of ours.
func (b *Inbox) Commercial(ctx context.Context, r reply.Response) error {
	issued, err := b.store.IssuedUnder(ctx, b.env, r.IssuerRNC, r.ENCF)
	if errors.Is(err, store.ErrNotFound) {
		return reply.ErrNoDocument
	}
	if err != nil {
		return err
	}
	return b.retryUpdate(ctx, func(ctx context.Context, tx *store.Tx) (store.Invoice, bool, error) {
		return b.commercial(ctx, tx, issued, r)
	})
}

// maxUpdates is how often an update is repeated because its invoice changed
// meanwhile.
const maxUpdates = 5

func (b *Inbox) retryUpdate(ctx context.Context, write func(context.Context, *store.Tx) (store.Invoice, bool, error)) (err error) {
	for range maxUpdates {
		if err = b.pipeline.Update(ctx, write); !errors.Is(err, store.ErrInvoiceChanged) {
			break
		}
	}
	return err
}

// commercial keeps the buyer's response as evidence and adds an event for the first
// one. The first response stands: an equal one has no effect, and a contradicting
// one is kept for people to look at. The status does not depend on it, so no job is
// touched.
func (b *Inbox) commercial(ctx context.Context, tx *store.Tx, issued store.Issued, r reply.Response) (store.Invoice, bool, error) {
	before, known, err := readDocument(ctx, tx, issued)
	if err != nil {
		return before, false, err
	}
	if err := matches(before, issued, r); err != nil {
		return before, false, err
	}
	now := b.now()
	item := evidence.Item{Kind: evidence.Commercial, Verdict: fiscal.VerdictAccepted, Note: r.Reason, Signer: r.Signer, At: now}
	message, result := "Aprobación comercial", "accepted"
	if !r.Accepted {
		item.Verdict, message, result = fiscal.VerdictRejected, "Rechazo comercial: "+r.Reason, "rejected"
	}
	first := slices.IndexFunc(known, func(i evidence.Item) bool { return i.Kind == evidence.Commercial })
	if first >= 0 && known[first].Verdict == item.Verdict {
		return before, false, nil
	}
	row, err := finding{item, r.XML}.row(issued.Scope, issued.DocumentID)
	if err != nil {
		return before, false, err
	}
	rows := new(store.Batch).AddEvidence(row)
	if first >= 0 {
		b.log.Error("A buyer has both approved and rejected a document. The first response stands.",
			"document_id", issued.DocumentID, "encf", issued.ENCF)
		return before, false, tx.Do(ctx, rows)
	}
	after := before
	after.Messages = append(slices.Clone(before.Messages), message)
	after.UpdatedAt = pipeline.NextUpdate(before.UpdatedAt, now)
	rows.UpdateInvoice(before, after).AddHistoryEntry(store.HistoryEntry{
		Scope: issued.Scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt,
		Kind: "commercial_response", Status: after.Status, Detail: message,
	})
	notice := pipeline.Notice{Kind: event.CommercialResponse, Result: result, Reason: r.Reason}
	notified := pipeline.AddEvents(rows, before, after, []pipeline.Notice{notice}, now)
	return after, notified, tx.Do(ctx, rows)
}

// matches returns reply.ErrMismatch unless the response agrees with the document,
// and the document is one that a buyer may respond to.
func matches(inv store.Invoice, issued store.Issued, r reply.Response) error {
	total, err := fiscal.ParseDecimal(inv.DocumentTotal)
	if err != nil {
		return fmt.Errorf("live: total of %s: %w", inv.ID, err)
	}
	switch inv.Status {
	case fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
	default:
		return reply.ErrMismatch
	}
	if !deliverable(issued) || issued.BuyerRNC != r.BuyerRNC || inv.IssueDate != r.IssueDate.String() || !total.Equal(r.Total) {
		return reply.ErrMismatch
	}
	return nil
}

// Receive takes in a message of a source, once: the effect is committed together
// with the message's id. A message about a document that we do not know is kept for
// a while and answered like any other. Receive returns *InvalidMessageError when the
// message can have no effect.
func (b *Inbox) Receive(ctx context.Context, in Inbound) (Received, error) {
	received := Received{EventID: inboundID(in)}
	known, err := b.store.HasReceived(ctx, in.Source.Scope, in.Source.ID, in.MessageID)
	if err != nil || known {
		received.Duplicate = known
		return received, err
	}
	message, err := b.verify(in)
	if err != nil {
		return Received{}, err
	}
	issued, err := b.store.IssuedUnder(ctx, b.env, message.issuer, in.ENCF)
	ours := err == nil && issued.Scope == in.Source.Scope
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Received{}, err
	}
	err = b.retryUpdate(ctx, func(ctx context.Context, tx *store.Tx) (after store.Invoice, notified bool, err error) {
		entry := store.Inbound{
			Scope: in.Source.Scope, SourceID: in.Source.ID, MessageID: in.MessageID, At: b.now(), Kind: in.Kind, Outcome: "parked",
		}
		if ours {
			entry.Outcome, entry.DocumentID = "taken in", issued.DocumentID
		}
		fresh, err := tx.ReceiveInbound(ctx, entry)
		received.Duplicate = !fresh
		switch {
		case err != nil || !fresh:
		case !ours:
			b.log.Warn("A source sent a message about a document that we do not know. The message is kept.", "source_id", in.Source.ID, "encf", in.ENCF)
			err = tx.Park(ctx, store.Parked{
				Scope: in.Source.Scope, ID: store.NewID(), SourceID: in.Source.ID, MessageID: in.MessageID,
				Kind: in.Kind, ENCF: in.ENCF, Body: in.XML, At: entry.At,
			})
		default:
			after, notified, err = message.apply(ctx, tx, issued)
		}
		return after, notified, err
	})
	if errors.Is(err, reply.ErrMismatch) {
		err = &InvalidMessageError{"the message does not agree with the document that it names, or the document cannot have such a message"}
	}
	return received, err
}

// inboundID returns the same id for the same message.
func inboundID(in Inbound) string {
	digest := sha256.Sum256([]byte(in.Source.ID + " " + in.MessageID))
	return "evt_" + hex.EncodeToString(digest[:16])
}

// A verifiedMessage is an inbound message whose signature was verified.
type verifiedMessage struct {
	issuer string
	apply  func(ctx context.Context, tx *store.Tx, issued store.Issued) (after store.Invoice, notified bool, err error)
}

// verify verifies the signature of a message and reads it.
func (b *Inbox) verify(in Inbound) (verifiedMessage, error) {
	var m verifiedMessage
	var encf string
	var err error
	switch in.Kind {
	case event.InboundCommercial:
		var r reply.Response
		r, err = reply.ReadResponse(in.XML, b.roots, b.now())
		m.issuer, encf = r.IssuerRNC, r.ENCF
		m.apply = func(ctx context.Context, tx *store.Tx, issued store.Issued) (store.Invoice, bool, error) {
			return b.commercial(ctx, tx, issued, r)
		}
	case event.InboundReceipt:
		var r fiscal.Acknowledgement
		r, err = reply.ReadAcknowledgement(in.XML, b.roots, b.now())
		m.issuer, encf = r.RNC, r.ENCF
		m.apply = func(ctx context.Context, tx *store.Tx, issued store.Issued) (store.Invoice, bool, error) {
			return b.receipt(ctx, tx, issued, r)
		}
	default:
		return m, &InvalidMessageError{"there is no message of the kind " + in.Kind}
	}
	if err != nil {
		return m, &InvalidMessageError{err.Error()}
	}
	if encf != in.ENCF || !slices.Contains(in.Source.Kinds, in.Kind) {
		return m, &InvalidMessageError{"the message names another document than data.encf, or the source may not send messages of its kind"}
	}
	return m, nil
}

// receipt takes in a buyer's acknowledgement that did not come as the answer to a
// delivery.
func (b *Inbox) receipt(ctx context.Context, tx *store.Tx, issued store.Issued, r fiscal.Acknowledgement) (store.Invoice, bool, error) {
	if r.BuyerRNC != issued.BuyerRNC || !deliverable(issued) {
		return store.Invoice{}, false, reply.ErrMismatch
	}
	// "Duplicate" after an attempt of ours means that the attempt arrived and its
	// answer was lost.
	repeated := false
	if r.Reason == reply.ReasonDuplicate {
		job, err := tx.JobOf(ctx, issued.Scope, issued.DocumentID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Invoice{}, false, err
		}
		repeated = err == nil && job.Stage == stageDeliver && job.LastError != ""
	}
	item := evidence.Item{Kind: evidence.Receipt, Signer: r.Signer, At: b.now()}
	if !r.Received && !repeated {
		item.Kind, item.Note = evidence.DeliveryFailed, refusal(r.Reason)
	}
	learnt := report{issued: issued, findings: []finding{{item, r.XML}}}
	return b.commitLate(ctx, tx, learnt, func(before store.Invoice, c *pipeline.Change) error {
		switch before.Status {
		case fiscal.Accepted, fiscal.AcceptedConditional:
		case fiscal.Delivered:
			c.Next = ""
			return nil // it is known already
		default:
			return reply.ErrMismatch
		}
		if item.Kind == evidence.DeliveryFailed {
			c.Notices = append(c.Notices, pipeline.Notice{Kind: event.DeliveryFailed, Reason: item.Note})
		}
		return nil
	})
}

// parkedPage is how many parked messages are read at a time.
const parkedPage = 100

// ApplyParked applies parked messages whose document exists by now. A message that
// turns out not to fit its document is dropped with a line in the log.
func (b *Inbox) ApplyParked(ctx context.Context) error {
	for after := (store.Parked{}); ; {
		page, err := b.store.ParkedWithDocument(ctx, b.env, after, b.now(), parkedPage)
		if err != nil || len(page) == 0 {
			return err
		}
		for _, p := range page {
			if err := b.applyParked(ctx, p); err != nil {
				return err
			}
			after = p
		}
	}
}

func (b *Inbox) applyParked(ctx context.Context, p store.Parked) error {
	source, err := b.store.SourceOf(ctx, b.env, p.SourceID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	message, err := b.verify(Inbound{Source: source, MessageID: p.MessageID, Kind: p.Kind, ENCF: p.ENCF, XML: p.Body})
	var issued store.Issued
	if err == nil {
		issued, err = b.store.IssuedUnder(ctx, b.env, message.issuer, p.ENCF)
	}
	var invalid *InvalidMessageError
	if err != nil && !errors.As(err, &invalid) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	fits := err == nil && issued.Scope == p.Scope
	err = b.retryUpdate(ctx, func(ctx context.Context, tx *store.Tx) (after store.Invoice, notified bool, err error) {
		taken, err := tx.Unpark(ctx, p.Scope, p.ID)
		if err != nil || !taken || !fits {
			return after, false, err
		}
		return message.apply(ctx, tx, issued)
	})
	if errors.Is(err, reply.ErrMismatch) {
		// The document may still reach a status in which it can have the message.
		return nil
	}
	if err == nil && !fits {
		b.log.Warn("A parked message does not fit its document. It is dropped.", "source_id", p.SourceID, "encf", p.ENCF)
	}
	return err
}
