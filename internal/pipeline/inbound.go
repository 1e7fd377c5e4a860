package pipeline

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// What a relay may pass on.
const (
	InboundReceipt    = "ecf.receipt_acknowledged"
	InboundCommercial = "ecf.commercial_response"
)

// Inbound is a buyer's signed message that a relay passes on. The relay has
// shown who it is; the message is proven by its own signature.
type Inbound struct {
	Source    store.Source
	MessageID string
	Kind      string
	ENCF      string
	XML       []byte
}

// Heard is what became of a message.
type Heard struct {
	EventID   string
	Duplicate bool // it was heard before, and nothing was done
}

// Unfit says why a message has no effect: it is not what it should be, or does
// not belong to the document that it names.
type Unfit struct{ Reason string }

func (u *Unfit) Error() string { return u.Reason }

// Commercial takes in a buyer's verified approval or rejection of a document of
// whichever taxpayer of the environment. The error is reply.ErrNoDocument or
// reply.ErrMismatch when it is about none of ours.
func (p *Pipeline) Commercial(ctx context.Context, r reply.Response) error {
	issued, err := p.Store.IssuedUnder(ctx, p.Env, r.IssuerRNC, r.ENCF)
	if errors.Is(err, store.ErrNotFound) {
		return reply.ErrNoDocument
	}
	if err != nil {
		return err
	}
	return p.again(ctx, func(ctx context.Context, tx *store.Tx) (store.Invoice, bool, error) {
		return p.commercial(ctx, tx, issued, r)
	})
}

// again runs an update anew for as long as its invoice changes under it.
func (p *Pipeline) again(ctx context.Context, write func(context.Context, *store.Tx) (store.Invoice, bool, error)) (err error) {
	for range maxMoves {
		if err = p.update(ctx, write); !errors.Is(err, store.ErrMoved) {
			break
		}
	}
	return err
}

// commercial keeps the buyer's response as evidence, and tells of the first one.
// The first stands: the same again has no effect, and another one is kept for
// people to look at. Where the document stands does not depend on it, which is
// why nobody's job is in the way.
func (p *Pipeline) commercial(ctx context.Context, tx *store.Tx, issued store.Issued, r reply.Response) (store.Invoice, bool, error) {
	before, err := tx.InvoiceOfDocument(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return before, false, err
	}
	if err := matches(before, issued, r); err != nil {
		return before, false, err
	}
	stored, err := tx.EvidenceOf(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return before, false, err
	}
	known, err := decodeEvidence(stored)
	if err != nil {
		return before, false, err
	}
	now := p.Now()
	said := Evidence{Kind: KindCommercial, Verdict: fiscal.VerdictAccepted, Note: r.Reason, Signer: r.Signer, At: now}
	message, result := "Aprobación comercial", "accepted"
	if !r.Accepted {
		said.Verdict, message, result = fiscal.VerdictRejected, "Rechazo comercial: "+r.Reason, "rejected"
	}
	first := slices.IndexFunc(known, func(e Evidence) bool { return e.Kind == KindCommercial })
	if first >= 0 && known[first].Verdict == said.Verdict {
		return before, false, nil
	}
	record, err := said.record(issued.Scope, issued.DocumentID, r.XML)
	if err != nil {
		return before, false, err
	}
	rows := new(store.Batch).AddEvidence(record)
	if first >= 0 {
		p.Log.Error("a buyer has said both that it approves a document and that it rejects it; the first stands",
			"document_id", issued.DocumentID, "encf", issued.ENCF)
		return before, false, tx.Do(ctx, rows)
	}
	after := before
	after.Messages = append(slices.Clone(before.Messages), message)
	after.UpdatedAt = later(before.UpdatedAt, now)
	rows.TellInvoice(before, after).AddEvent(store.Event{
		Scope: issued.Scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt,
		Kind: "commercial_response", Status: after.Status, Detail: message,
	})
	told := p.Plan.Tells() && announce(rows, before, after, []Tidings{{Kind: NoticeCommercial, Result: result, Reason: r.Reason}}, now)
	return after, told, tx.Do(ctx, rows)
}

// matches tells whether a response is about the document that it names, and the
// document one that a buyer may respond to.
func matches(inv store.Invoice, issued store.Issued, r reply.Response) error {
	total, err := fiscal.ParseDecimal(inv.DocumentTotal)
	if err != nil {
		return fmt.Errorf("pipeline: total of %s: %w", inv.ID, err)
	}
	switch inv.Status {
	case fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
	default:
		return reply.ErrMismatch
	}
	if !strings.HasPrefix(issued.ENCF, "E31") || issued.BuyerRNC != r.BuyerRNC || inv.IssueDate != r.IssueDate.String() || !total.Equal(r.Total) {
		return reply.ErrMismatch
	}
	return nil
}

// Hear takes in what a relay passes on, once: the effect is committed with the
// fact that it was heard. What is about a document that we do not know is kept
// for a while, and answered like any other. The error is Unfit when it can have
// no effect.
func (p *Pipeline) Hear(ctx context.Context, in Inbound) (Heard, error) {
	heard := Heard{EventID: inboundID(in)}
	known, err := p.Store.HasHeard(ctx, in.Source.Scope, in.Source.ID, in.MessageID)
	if err != nil || known {
		heard.Duplicate = known
		return heard, err
	}
	message, err := p.understand(in)
	if err != nil {
		return Heard{}, err
	}
	issued, err := p.Store.IssuedUnder(ctx, p.Env, message.issuer, in.ENCF)
	ours := err == nil && issued.Scope == in.Source.Scope
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return Heard{}, err
	}
	err = p.again(ctx, func(ctx context.Context, tx *store.Tx) (after store.Invoice, told bool, err error) {
		entry := store.Inbound{
			Scope: in.Source.Scope, SourceID: in.Source.ID, MessageID: in.MessageID, At: p.Now(), Kind: in.Kind, Outcome: "parked",
		}
		if ours {
			entry.Outcome, entry.DocumentID = "taken in", issued.DocumentID
		}
		fresh, err := tx.HearInbound(ctx, entry)
		heard.Duplicate = !fresh
		switch {
		case err != nil || !fresh:
		case !ours:
			p.Log.Warn("a relay told about a document that is not known; it is kept", "source_id", in.Source.ID, "encf", in.ENCF)
			err = tx.Park(ctx, store.Parked{
				Scope: in.Source.Scope, ID: store.NewID(), SourceID: in.Source.ID, MessageID: in.MessageID,
				Kind: in.Kind, ENCF: in.ENCF, Body: in.XML, At: entry.At,
			})
		default:
			after, told, err = message.effect(ctx, tx, issued)
		}
		return after, told, err
	})
	if errors.Is(err, reply.ErrMismatch) {
		err = &Unfit{"the message does not agree with the document that it names, or the document is not one that can have it"}
	}
	return heard, err
}

// inboundID is the same for the same message.
func inboundID(in Inbound) string {
	digest := sha256.Sum256([]byte(in.Source.ID + " " + in.MessageID))
	return "evt_" + hex.EncodeToString(digest[:16])
}

// A signedMessage is what a relay passed on, understood.
type signedMessage struct {
	issuer string
	effect func(ctx context.Context, tx *store.Tx, issued store.Issued) (after store.Invoice, told bool, err error)
}

// understand verifies the message itself.
func (p *Pipeline) understand(in Inbound) (signedMessage, error) {
	var m signedMessage
	var encf string
	var err error
	switch in.Kind {
	case InboundCommercial:
		var r reply.Response
		r, err = reply.ReadResponse(in.XML, p.Roots, p.Now())
		m.issuer, encf = r.IssuerRNC, r.ENCF
		m.effect = func(ctx context.Context, tx *store.Tx, issued store.Issued) (store.Invoice, bool, error) {
			return p.commercial(ctx, tx, issued, r)
		}
	case InboundReceipt:
		var r fiscal.Receipt
		r, err = reply.ReadReceipt(in.XML, p.Roots, p.Now())
		m.issuer, encf = r.RNC, r.ENCF
		m.effect = func(ctx context.Context, tx *store.Tx, issued store.Issued) (store.Invoice, bool, error) {
			return p.receipt(ctx, tx, issued, r)
		}
	default:
		return m, &Unfit{"no message is called " + in.Kind}
	}
	if err != nil {
		return m, &Unfit{err.Error()}
	}
	if encf != in.ENCF || !slices.Contains(in.Source.Kinds, in.Kind) {
		return m, &Unfit{"the message is about another document than data.encf says, or not one that this source may tell"}
	}
	return m, nil
}

// receipt takes in a buyer's acknowledgement that did not come as the answer to
// a delivery.
func (p *Pipeline) receipt(ctx context.Context, tx *store.Tx, issued store.Issued, r fiscal.Receipt) (store.Invoice, bool, error) {
	live, ok := p.Plan.(*Live)
	if !ok || r.BuyerRNC != issued.BuyerRNC || !strings.HasPrefix(issued.ENCF, "E31") {
		return store.Invoice{}, false, reply.ErrMismatch
	}
	// That it was received already is our own delivery of which the answer was
	// lost, if there was one.
	repeated := false
	if r.Reason == reply.MotiveDuplicate {
		job, err := tx.JobOf(ctx, issued.Scope, issued.DocumentID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return store.Invoice{}, false, err
		}
		repeated = err == nil && job.Stage == stageDeliver && job.LastError != ""
	}
	said := Evidence{Kind: KindReceipt, Signer: r.Signer, At: p.Now()}
	if !r.Received && !repeated {
		said.Kind, said.Note = KindRefusedDelivery, refusal(r.Reason)
	}
	return live.insist(ctx, tx, issued, nil, []finding{{said, r.XML}}, func(before store.Invoice, c *Change) error {
		switch before.Status {
		case fiscal.Accepted, fiscal.AcceptedConditional:
		case fiscal.Delivered:
			c.Next = ""
			return nil // it is known
		default:
			return reply.ErrMismatch
		}
		if said.Kind == KindRefusedDelivery {
			c.Tell = append(c.Tell, Tidings{Kind: NoticeDeliveryFailed, Reason: said.Note})
		}
		return nil
	})
}

// refusal says that a buyer has not taken a document.
func refusal(reason string) string { return "the buyer refused it, reason " + reason }
