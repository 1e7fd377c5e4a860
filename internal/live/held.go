package live

import (
	"context"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// heldPause is how soon a document that is held is looked at again.
const heldPause = time.Hour

// holdEnded returns a *pipeline.LaterError for a document whose number range has ended and
// of which the authority certainly has nothing: the authority would reject it, and the sale
// would have no valid document. An operator gives it another number, or sends it all the
// same. A document that may have arrived is not held: the service asks about it.
func (p *Plan) holdEnded(ctx context.Context, w pipeline.Work, issued store.Issued, attempts []store.Attempt) error {
	ahead, _ := p.authority.Clock()
	today := fiscal.DateOf(p.now().Add(max(ahead, 0)))
	if !fiscal.DateOf(issued.SignedAt).Before(today) {
		return nil // on the day of its signature the range had not ended
	}
	if !neverReceived(attempts) || sentAllTheSame(w.Evidence, issued.ENCF) {
		return nil
	}
	numbers, err := p.store.NumberRange(ctx, issued.Scope, issued.NumberRangeID)
	if err != nil || !numbers.Expired(today) {
		return err
	}
	if err := p.reportHeld(ctx, w.Job, issued, numbers); err != nil {
		return err
	}
	return &pipeline.LaterError{
		After: p.pace.Of(heldPause, time.Second), Uncounted: true, Held: true,
		Reason: "the number range ended on " + numbers.Expires.String() + ", and the authority would reject the number: " +
			"`fiscalhub work reissue` gives the document a new one, `fiscalhub work resend` sends it all the same",
	}
}

// reportHeld logs that documents of a range are held, once for the range.
func (p *Plan) reportHeld(ctx context.Context, job store.Job, issued store.Issued, numbers store.NumberRange) error {
	p.mu.Lock()
	known := p.held[numbers.ID] || job.Held()
	p.mu.Unlock()
	if known {
		return nil
	}
	fresh := false
	err := p.store.Update(ctx, func(tx *store.Tx) (err error) {
		fresh, err = tx.MarkNotified(ctx, issued.Scope, "sequence "+numbers.ID, "documents are held", p.now())
		return err
	})
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.held[numbers.ID] = true
	p.mu.Unlock()
	if fresh {
		p.log.Error("A number range has ended before its documents were sent. They are held: the authority would reject them. See `fiscalhub work list`, then give each a new number with `fiscalhub work reissue`, or send it with `fiscalhub work resend`.",
			"taxpayer_id", issued.TaxpayerID, "sequence_id", numbers.ID, "ended", numbers.Expires.String(), "document_id", issued.DocumentID, "encf", issued.ENCF)
	}
	return nil
}

// neverReceived reports whether the authority certainly got none of these submissions.
func neverReceived(attempts []store.Attempt) bool {
	return !slices.ContainsFunc(attempts, func(a store.Attempt) bool { return a.Class != store.NotReceived })
}

// sentAllTheSame reports whether an operator has decided to send a document with its
// number, although the range of the number has ended.
func sentAllTheSame(known []evidence.Item, encf string) bool {
	return slices.ContainsFunc(known, func(i evidence.Item) bool { return i.Kind == evidence.Note && i.ENCF == encf })
}
