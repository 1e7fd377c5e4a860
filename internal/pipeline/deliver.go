package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// deliverPauses are how long to wait before a buyer is tried again.
var deliverPauses = []time.Duration{
	0, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// deliverFor is how long a buyer is tried.
const deliverFor = 15 * 24 * time.Hour

// deliver brings an accepted document to the receiver that the directory has for
// its buyer. Reception is idempotent by number, so that trying again is safe.
func (l *Live) deliver(ctx context.Context, w Work) (Step, error) {
	id, err := l.identity(ctx, w.Job.Scope)
	if err != nil {
		return Step{}, err
	}
	issued := *w.Issued
	again := &Later{After: l.pause(deliverPauses, w.Job.Attempt)}
	receiver, found, err := l.receiver(ctx, id, issued.BuyerRNC)
	if err == nil && !found {
		return Step{}, nil // nobody to deliver to; the status stays
	}
	if err == nil {
		issued, err = l.issued(ctx, w)
		if err != nil {
			return Step{}, err
		}
		var receipt fiscal.Receipt
		receipt, err = l.Authority.Deliver(ctx, id, receiver, fiscal.Shipment{RNC: issued.RNC, ENCF: issued.ENCF, XML: issued.XML})
		if err == nil {
			e := Evidence{Kind: KindReceipt, Signer: receipt.Signer, At: l.Now()}
			// A duplicate is our own delivery of which the answer was lost.
			if repeated := receipt.Reason == "3" && w.Job.Attempt > 1; !receipt.Received && !repeated {
				if receipt.Reason == "4" {
					l.forget(issued.BuyerRNC)
				}
				l.Log.Warn("a buyer refused a document", "document_id", issued.DocumentID, "reason", receipt.Reason)
				return l.undelivered(issued, w.Evidence, refusal(receipt.Reason), receipt.XML), nil
			}
			return l.done(l.learn(issued, w.Evidence, nil, finding{e, receipt.XML})), nil
		}
	}
	if errors.Is(err, fiscal.ErrBlocked) {
		// Trying again would not make it public; the next document looks it up.
		l.Log.Warn("the directory names an address that must not be called", "document_id", issued.DocumentID, "buyer_rnc", issued.BuyerRNC)
		l.forget(issued.BuyerRNC)
		return l.undelivered(issued, w.Evidence, "the buyer's address in the authority's directory is not a public one", nil), nil
	}
	if l.Now().Sub(w.Invoice.UpdatedAt) > time.Duration(float64(deliverFor)/l.Pace) {
		l.Log.Warn("a buyer could not be reached", "document_id", issued.DocumentID)
		return l.undelivered(issued, w.Evidence, "the buyer could not be reached", nil), nil
	}
	l.forget(issued.BuyerRNC)
	again.Reason = err.Error()
	return Step{}, again
}

// undelivered is the end of trying: the status stays, and integrators are told.
func (l *Live) undelivered(issued store.Issued, known []Evidence, reason string, raw []byte) Step {
	step := l.done(l.learn(issued, known, nil, finding{Evidence{Kind: KindRefusedDelivery, Note: reason, At: l.Now()}, raw}))
	within := step.Within
	step.Within = func(rows *store.Batch, before store.Invoice) (Change, error) {
		c, err := within(rows, before)
		c.Tell = append(c.Tell, Tidings{Kind: NoticeDeliveryFailed, Reason: reason})
		return c, err
	}
	return step
}
