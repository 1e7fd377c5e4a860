package dgii

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Reserve asks for permission to send one document of a taxpayer, or the summary
// of one, and waits for it until ctx ends. It checks that the circuit is closed
// and that the authority does not refuse the signer, gets a token and waits for a
// slot. So the caller can record the attempt after Reserve has returned and before
// the first byte of the document is sent.
//
// send sends the document and may be called once. Its time-outs start when it is
// called. Its answer has a track id, or the verdict: "rejected" when the authority
// refuses a document at once, and always for a summary. It fails with
// ErrNotReceived, ErrInconclusive or ErrNotDelegated. An answer that comes with an
// error has only what the authority sent: Raw, At, Messages, and a TrackID when the
// response contradicts itself. release gives the slot back when nothing
// was sent; afterwards it does nothing. The caller must call it, and should not
// wait long before: the slot is one of few.
//
// Reserve fails with ErrNotReceived or ErrNotDelegated. The error has a
// RetryAfterError in its chain when the circuit is open or the signer is refused.
func (c *Client) Reserve(ctx context.Context, id *xmlsig.Identity, rnc string, summary bool) (
	send func(context.Context, fiscal.Shipment) (fiscal.AuthorityAnswer, error), release func(), err error,
) {
	r := &reservation{client: c, id: id, rnc: rnc, service: c.reception, read: readReception}
	if summary {
		r.service, r.read = c.rfce, readSummaryReception
	}
	if refusal, wait := c.refusals.check(r.refusalKey()); wait != nil {
		return nil, nil, c.refusedError(r.service, refusal, wait)
	}
	if r.permit, err = c.newPermit(ctx, id, r.service, true); err != nil {
		return nil, nil, err
	}
	return r.send, r.release, nil
}

// A reservation is the permission to send one document.
type reservation struct {
	client  *Client
	id      *xmlsig.Identity
	rnc     string
	service *service
	read    answerReader
	permit  *permit
	used    atomic.Bool // the permit was used or released
}

func (r *reservation) refusalKey() refusalKey {
	return refusalKey{fingerprint(r.id), "taxpayer " + r.rnc}
}

// release ends the permit unless it was used.
func (r *reservation) release() {
	if r.used.CompareAndSwap(false, true) {
		r.permit.end(ignored)
	}
}

// send sends a document and reads the response.
func (r *reservation) send(ctx context.Context, shipment fiscal.Shipment) (fiscal.AuthorityAnswer, error) {
	if err := checkShipment(r.service, shipment); err != nil {
		return fiscal.AuthorityAnswer{}, err
	}
	if shipment.RNC != r.rnc {
		return fiscal.AuthorityAnswer{}, r.service.errorf(fiscal.ErrNotReceived, "the reservation is for a document of another taxpayer")
	}
	if !r.used.CompareAndSwap(false, true) {
		return fiscal.AuthorityAnswer{}, r.service.errorf(fiscal.ErrNotReceived, "the reservation was used or released before")
	}
	c, s := r.client, r.service
	var a fiscal.AuthorityAnswer
	err := c.doWithPermit(ctx, r.id, r.permit, call{shipment: &shipment, parse: func(res *response) error {
		a = res.newAnswer()
		err := readSubmission(res, shipment, r.read, &a)
		if errors.Is(err, errDelegation) {
			return c.addRefusal(s, r.refusalKey(), a.Messages[0].Text, true,
				"The tax authority says that the taxpayer has not delegated the signer. Its documents wait and are tried again.", "signer", r.id, "rnc", r.rnc)
		}
		if err != nil {
			return s.outagef(fiscal.ErrInconclusive, "HTTP %d: %v", res.status, err)
		}
		return nil
	}})
	if err == nil {
		c.refusals.clear(r.refusalKey())
	}
	return a, err
}
