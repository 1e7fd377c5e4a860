package pipeline

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
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
	issued, _, id, err := l.known(ctx, w)
	if err != nil {
		return Step{}, err
	}
	again := &Later{After: l.pause(deliverPauses, w.Job.Attempt)}
	receiver, found, err := l.receiver(ctx, id, issued.BuyerRNC)
	if err == nil && !found {
		return Step{}, nil // nobody to deliver to; the status stays
	}
	if err == nil {
		var receipt fiscal.Receipt
		receipt, err = l.Authority.Deliver(ctx, id, receiver, fiscal.Shipment{RNC: issued.RNC, ENCF: issued.ENCF, XML: issued.XML})
		if err == nil {
			e := Evidence{Kind: KindReceipt, Note: receipt.Signer, At: l.Now()}
			// A duplicate is our own delivery of which the answer was lost.
			if repeated := receipt.Reason == "3" && w.Job.Attempt > 1; !receipt.Received && !repeated {
				if receipt.Reason == "4" {
					l.forget(issued.BuyerRNC)
				}
				e = Evidence{Kind: KindRefusedDelivery, Note: "the buyer refused it, reason " + receipt.Reason, At: l.Now()}
				l.Log.Warn("a buyer refused a document", "document_id", issued.DocumentID, "reason", receipt.Reason)
			}
			return l.done(l.learn(issued, nil, finding{e, receipt.XML})), nil
		}
	}
	if l.Now().Sub(w.Invoice.UpdatedAt) > time.Duration(float64(deliverFor)/l.Pace) {
		l.Log.Warn("a buyer could not be reached", "document_id", issued.DocumentID)
		return l.done(l.learn(issued, nil, finding{Evidence: Evidence{Kind: KindRefusedDelivery, Note: "the buyer could not be reached", At: l.Now()}})), nil
	}
	l.forget(issued.BuyerRNC)
	again.Reason = err.Error()
	return Step{}, again
}
