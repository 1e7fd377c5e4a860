package live

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// deliverPauses are the waits between attempts to deliver to a buyer.
var deliverPauses = []time.Duration{
	0, time.Minute, 5 * time.Minute, 15 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

// deliverFor is for how long delivery is attempted.
const deliverFor = 15 * 24 * time.Hour

// deliver sends an accepted document to the receiver that the directory has for
// its buyer. Receivers recognise a number that they have, so that a second attempt
// is safe.
func (p *Plan) deliver(ctx context.Context, w pipeline.Work) (pipeline.Result, error) {
	if err := p.checkNodeClock(); err != nil {
		return pipeline.Result{}, err
	}
	id, err := p.identity(ctx, w.Job.Scope)
	if err != nil {
		return pipeline.Result{}, err
	}
	buyer := w.Issued.BuyerRNC
	to, found, err := p.endpoint(ctx, id, buyer)
	if err != nil && !p.outSince().IsZero() {
		return pipeline.Result{}, p.tryLater(0, err) // the directory is a service of the authority
	}
	if err != nil {
		return p.deliverLater(w, directoryError{err})
	}
	if !found {
		return pipeline.Result{Move: &pipeline.Move{}}, nil // the buyer has no receiver; the status stays
	}
	issued, err := p.issued(ctx, w)
	if err != nil {
		return pipeline.Result{}, err
	}
	receipt, err := p.authority.Deliver(ctx, id, to, fiscal.Shipment{RNC: issued.RNC, ENCF: issued.ENCF, XML: issued.XML})
	if err != nil {
		return p.deliverLater(w, err)
	}
	return p.receipt(w, issued, receipt), nil
}

// receipt records the buyer's answer to a delivery.
func (p *Plan) receipt(w pipeline.Work, issued store.Issued, r fiscal.Acknowledgement) pipeline.Result {
	// "Duplicate" after an earlier attempt means that the earlier one arrived and
	// its answer was lost.
	repeated := r.Reason == reply.ReasonDuplicate && w.Job.Attempt > 1
	if r.Received || repeated {
		item := evidence.Item{Kind: evidence.Receipt, Signer: r.Signer, Answered: true, At: p.now()}
		return delivered(pipeline.Finding{Item: item, Raw: r.XML})
	}
	if r.Reason == reply.ReasonBuyer {
		p.directory.forget(issued.BuyerRNC)
	}
	p.log.Warn("A buyer refused a document. The document stays accepted.", "document_id", issued.DocumentID, "reason", r.Reason)
	return p.deliveryFailed(reply.Refusal(r.Reason), &r)
}

// deliverLater schedules the next attempt, or ends the attempts when the address
// must not be called or the time is over.
func (p *Plan) deliverLater(w pipeline.Work, failure error) (pipeline.Result, error) {
	issued := *w.Issued
	if errors.Is(failure, fiscal.ErrBlocked) {
		p.log.Warn("The authority's directory names an address that must not be called. The document is not delivered.",
			"document_id", issued.DocumentID, "buyer_rnc", issued.BuyerRNC)
		p.directory.forget(issued.BuyerRNC)
		return p.deliveryFailed("the buyer's address in the authority's directory is not a public one", nil), nil
	}
	if p.now().Sub(w.Invoice.UpdatedAt) > p.pace.Scale(deliverFor) {
		p.log.Warn("A buyer could not be reached for 15 days. The document is not delivered.", "document_id", issued.DocumentID)
		return p.deliveryFailed("the buyer could not be reached", nil), nil
	}
	wait := pipeline.Wait{After: p.pause(deliverPauses, w.Job.Attempt), Reason: cause.Of(failure)}
	var asked interface{ Wait() time.Duration }
	var directory directoryError
	switch { // an attempt counts when the receiver was called
	case errors.As(failure, &asked):
		wait.After, wait.Untried = max(asked.Wait(), p.pace.Of(time.Second, 100*time.Millisecond)), true
	case errors.As(failure, &directory):
		wait.After, wait.Untried = p.pause(deliverPauses, 1), true
	default:
		p.directory.forget(issued.BuyerRNC)
	}
	return pipeline.Result{}, &pipeline.WaitError{Wait: wait}
}

// A directoryError is the error of a delivery for which the authority's directory gave no
// address.
type directoryError struct{ error }

func (e directoryError) Unwrap() error { return e.error }

// deliveryFailed ends the attempts to deliver: the status stays, and integrators
// get an event. refused is the buyer's refusal, if there is one.
func (p *Plan) deliveryFailed(reason string, refused *fiscal.Acknowledgement) pipeline.Result {
	failure := pipeline.Finding{Item: evidence.Item{Kind: evidence.DeliveryFailed, Note: reason, At: p.now()}}
	if refused != nil {
		failure.Signer, failure.Answered, failure.Raw = refused.Signer, true, refused.XML
	}
	return delivered(failure)
}

// delivered is the result of the last attempt to deliver a document.
func delivered(f pipeline.Finding) pipeline.Result {
	return pipeline.Result{Findings: []pipeline.Finding{f}, Stay: &pipeline.Move{}}
}
