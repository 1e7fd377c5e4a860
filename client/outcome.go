package client

import (
	"context"
	"fmt"
	"time"
)

const (
	maxOutcomeWait = 20 * time.Second // the longest wait that the service allows
	maxPollWait    = 5 * time.Second
)

// Decided reports whether the status is an outcome: the document was accepted, rejected
// or delivered, or failed its validation. OutcomeUnknown is no outcome: the service finds
// out what happened.
func (s Status) Decided() bool {
	switch s {
	case Accepted, AcceptedConditional, Rejected, Delivered, ValidationFailed:
		return true
	default:
		return false
	}
}

// WaitForOutcome waits until the status of an invoice is Decided. The service answers
// when the status changes, so this needs few requests. Bound the wait by the deadline of
// ctx: an authority that is out of reach may decide only days later. When ctx ends first,
// or a request fails for good, the response has the invoice as it was last seen, if at
// all, and the invoice continues without you.
func (c *Client) WaitForOutcome(ctx context.Context, invoiceID string) (Response[Invoice], error) {
	ask := maxOutcomeWait
	if t := c.http.Timeout; t > 0 && t < 2*ask {
		ask = t / 2 // the answer must arrive within the time-out of an attempt
	}
	var last Response[Invoice]
	for pause := firstWait; ; pause = min(2*pause, maxPollWait) {
		got, err := c.Invoice(ctx, invoiceID, WithWait(ask))
		if err != nil {
			return last, err
		}
		if last = got; got.Data.Status.Decided() {
			return got, nil
		}
		// Usually the service has waited. It does not while it stops or is busy.
		if err := c.wait(ctx, pause); err != nil {
			return last, fmt.Errorf("client: invoice %s is %s: %w", invoiceID, got.Data.Status, err)
		}
	}
}
