package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Message is a buyer's signed message that a source passes on. The source has
// authenticated itself; the message is proven by its own signature.
type Message struct {
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

// InvalidMessageError says why a message has no effect: it is malformed, its source may
// not send its kind, or it does not agree with the document that it names.
type InvalidMessageError struct{ Problem fiscal.Problem }

func (e *InvalidMessageError) Error() string { return e.Problem.Message.String() }

// invalidXML returns the error of a message whose signed XML has no effect.
func invalidXML(reason lang.Message) *InvalidMessageError {
	return &InvalidMessageError{fiscal.Problem{Field: "data.xml_base64", Code: fiscal.CodeInvalidFormat, Message: reason}}
}

// maxMessages is how many messages of sources are kept about one number that is not
// known yet, and how many receipts and refusals about one document.
const maxMessages = 8

// Receive takes in a message of a source, once: the effect is committed together
// with the message's id. A message about a document that we do not know is kept for
// a while and answered like any other. Receive returns *InvalidMessageError when the
// message can have no effect.
func (b *Inbox) Receive(ctx context.Context, in Message) (Received, error) {
	received := Received{EventID: messageID(in)}
	known, err := b.o.Store.HasReceived(ctx, in.Source.Scope, in.Source.ID, in.MessageID)
	if err != nil || known {
		received.Duplicate = known
		return received, err
	}
	message, err := b.verify(in, b.o.Now())
	if err != nil {
		return Received{}, err
	}
	issued, err := b.o.Store.IssuedUnder(ctx, b.o.Env, message.issuer, in.ENCF)
	ours := err == nil && issued.Scope == in.Source.Scope
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Received{}, err
	}
	err = b.update(ctx, func(tx *store.Tx) (after store.Invoice, notified bool, err error) {
		entry := store.Inbound{
			Scope: in.Source.Scope, SourceID: in.Source.ID, MessageID: in.MessageID, At: b.o.Now(), Kind: in.Kind, Outcome: "parked",
		}
		if ours {
			entry.Outcome, entry.DocumentID = "taken in", issued.DocumentID
		}
		fresh, err := tx.ReceiveInbound(ctx, entry)
		received.Duplicate = !fresh
		switch {
		case err != nil || !fresh:
		case !ours:
			err = b.park(ctx, tx, in, message)
		default:
			after, notified, err = message.apply(ctx, tx, issued)
		}
		return after, notified, err
	})
	switch {
	case errors.Is(err, reply.ErrMismatch):
		err = invalidXML(lang.Messagef(
			"the message does not agree with the document that it names, or the document cannot have such a message",
			"el mensaje no coincide con el comprobante que nombra, o el comprobante no admite ese mensaje"))
	case errors.Is(err, reply.ErrTooMany):
		err = invalidXML(lang.Messagef(
			"the document already has the largest number of messages of this kind",
			"el comprobante ya tiene el máximo de mensajes de este tipo"))
	}
	return received, err
}

// park keeps a message about a document that we do not know. It fails with
// reply.ErrTooMany when enough of them are kept about the number.
func (b *Inbox) park(ctx context.Context, tx *store.Tx, in Message, message verifiedMessage) error {
	now := b.o.Now()
	parked, err := tx.Parked(ctx, in.Source.Scope, in.ENCF, now)
	if err == nil && len(parked) >= maxMessages {
		err = reply.ErrTooMany
	}
	if err != nil {
		return err
	}
	b.o.Log.Warn("A source sent a message about a document that we do not know. The message is kept.", "source_id", in.Source.ID, "encf", in.ENCF)
	return tx.Park(ctx, store.Parked{
		Scope: in.Source.Scope, ID: store.NewID(), SourceID: in.Source.ID, MessageID: in.MessageID,
		Kind: in.Kind, ENCF: in.ENCF, Body: message.xml, At: now,
	})
}

// messageID returns the same id for the same message.
func messageID(in Message) string {
	digest := sha256.Sum256([]byte(in.Source.ID + " " + in.MessageID))
	return "evt_" + hex.EncodeToString(digest[:16])
}

// A verifiedMessage is an inbound message whose signature was verified.
type verifiedMessage struct {
	issuer string
	xml    []byte // its canonical form
	apply  func(ctx context.Context, tx *store.Tx, issued store.Issued) (after store.Invoice, notified bool, err error)
}

// verify checks that the source may send a message of its kind, verifies the signature
// of the message and reads it. The signer must be trusted at the moment when the message
// came.
func (b *Inbox) verify(in Message, came time.Time) (verifiedMessage, error) {
	if !slices.Contains(in.Source.Kinds, in.Kind) {
		return verifiedMessage{}, &InvalidMessageError{fiscal.Problem{Field: "type", Code: fiscal.CodeInvalidEnum, Message: lang.Messagef(
			"must be %s for this source", "debe ser %s para esta fuente", lang.OneOf(in.Source.Kinds))}}
	}
	var m verifiedMessage
	var encf string
	var err error
	if in.Kind == event.InboundCommercial {
		var r reply.Response
		r, err = reply.ReadResponse(in.XML, b.o.Roots, came)
		m.issuer, m.xml, encf = r.IssuerRNC, r.XML, r.ENCF
		m.apply = func(ctx context.Context, tx *store.Tx, issued store.Issued) (store.Invoice, bool, error) {
			return b.respond(ctx, tx, issued, r)
		}
	} else {
		var r fiscal.Acknowledgement
		r, err = reply.ReadAcknowledgement(in.XML, b.o.Roots, came)
		m.issuer, m.xml, encf = r.RNC, r.XML, r.ENCF
		m.apply = func(ctx context.Context, tx *store.Tx, issued store.Issued) (store.Invoice, bool, error) {
			return b.receipt(ctx, tx, issued, r)
		}
	}
	if err != nil {
		return m, invalidXML(reply.Explain(err))
	}
	if encf != in.ENCF {
		return m, &InvalidMessageError{fiscal.Problem{Field: "data.encf", Code: fiscal.CodeInvalidFormat, Message: lang.Messagef(
			"must be the eNCF that the message names", "debe ser el eNCF que el mensaje nombra")}}
	}
	return m, nil
}

// receipt takes in a buyer's acknowledgement that did not come as the answer to a
// delivery.
func (b *Inbox) receipt(ctx context.Context, tx *store.Tx, issued store.Issued, r fiscal.Acknowledgement) (store.Invoice, bool, error) {
	if r.BuyerRNC != issued.BuyerRNC || !hasBuyer(issued) {
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
		repeated = err == nil && store.QueueOf(job.Stage) == store.QueueDeliver && job.Attempt > 0 && job.Cause != ""
	}
	item := evidence.Item{Kind: evidence.Receipt, Signer: r.Signer, At: b.o.Now()}
	if !r.Received && !repeated {
		item.Kind, item.Note = evidence.DeliveryFailed, string(cause.New(cause.BuyerRefused, r.Reason))
	}
	before, known, err := pipeline.ReadDocument(ctx, tx, issued)
	if err != nil {
		return before, false, err
	}
	known = slices.DeleteFunc(known, func(i evidence.Item) bool { return i.Kind != item.Kind })
	switch {
	case slices.ContainsFunc(known, item.Repeats):
		return before, false, nil // it says what was said before
	case len(known) >= maxMessages:
		return before, false, reply.ErrTooMany
	}
	t, err := pipeline.TakeOver(ctx, tx, issued, b.o.Now(), pipeline.Finding{Item: item, Raw: r.XML})
	if err != nil {
		return before, false, err
	}
	if s := t.Invoice.Status; s != fiscal.Accepted && s != fiscal.AcceptedConditional && s != fiscal.Delivered {
		return before, false, reply.ErrMismatch
	}
	return t.Commit(ctx, tx, b.o.Settler.Settle(t.Document))
}

// parkedPage is how many parked messages are read at a time.
const parkedPage = 100

// ApplyParked applies parked messages whose document exists by now. A message that
// turns out not to fit its document is dropped with a line in the log.
func (b *Inbox) ApplyParked(ctx context.Context) error {
	for after := (store.Parked{}); ; {
		page, err := b.o.Store.ParkedWithDocument(ctx, b.o.Env, after, b.o.Now(), parkedPage)
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
	source, err := b.o.Store.SourceOf(ctx, b.o.Env, p.SourceID)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	message, err := b.verify(Message{Source: source, MessageID: p.MessageID, Kind: p.Kind, ENCF: p.ENCF, XML: p.Body}, p.At)
	var issued store.Issued
	if err == nil {
		issued, err = b.o.Store.IssuedUnder(ctx, b.o.Env, message.issuer, p.ENCF)
	}
	var invalid *InvalidMessageError
	if err != nil && !errors.As(err, &invalid) && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	fits := err == nil && issued.Scope == p.Scope
	err = b.update(ctx, func(tx *store.Tx) (after store.Invoice, notified bool, err error) {
		taken, err := tx.Unpark(ctx, p.Scope, p.ID)
		if err != nil || !taken || !fits {
			return after, false, err
		}
		return message.apply(ctx, tx, issued)
	})
	if errors.Is(err, reply.ErrMismatch) || errors.Is(err, reply.ErrTooMany) {
		// The document may still reach a status in which it can have the message.
		return nil
	}
	if err == nil && !fits {
		b.o.Log.Warn("A parked message does not fit its document. It is dropped.", "source_id", p.SourceID, "encf", p.ENCF)
	}
	return err
}
