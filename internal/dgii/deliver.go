package dgii

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	maxReceiptResponse = 256 << 10
	// endpointService names all receivers in errors and metrics.
	endpointService = "peer"
)

// Deliver sends a document to a buyer's receiver and returns the buyer's
// acknowledgement. It fails with ErrUnavailable unless the response is a verified
// acknowledgement of this document; with netguard.ErrAddress too when the address
// must not be called; with a RetryAfterError in its chain when nothing was sent
// because the circuit of this receiver is open or all of its slots are taken. The
// caller may repeat a delivery: receivers know a document by its number.
//
// The first call has no token, unless the receiver demanded one earlier. Deliver
// authenticates to the receiver only when it answers 401.
func (c *Client) Deliver(ctx context.Context, id *xmlsig.Identity, to fiscal.BuyerEndpoint, s fiscal.Shipment) (fiscal.Acknowledgement, error) {
	if !isFileNamePart(s.RNC) || !isFileNamePart(s.ENCF) || len(s.XML) == 0 {
		return fiscal.Acknowledgement{}, deliveryError("the document has no valid RNC, e-NCF or content", nil)
	}
	client, err := c.newEndpointClient(to.Reception)
	if err != nil {
		return fiscal.Acknowledgement{}, deliveryError(netguard.ClassRefused, err)
	}
	if wait := client.check(); wait != nil {
		return fiscal.Acknowledgement{}, deliveryError("the receiver is not called for now", wait)
	}
	c.retries.countCall()
	peer := c.newPeer(id, to, s.RNC)
	tok := peer.storedToken() // of an earlier delivery for which the receiver demanded one
	for retried := false; ; retried = true {
		body, err := newUpload(s.RNC+s.ENCF+".xml", s.XML)
		if err != nil {
			return fiscal.Acknowledgement{}, deliveryError("the document cannot be sent", err)
		}
		res, err := client.send(ctx, request{
			url: "/fe/recepcion/api/ecf", token: tok.value, upload: body,
			accept: "application/xml, text/xml", maxResponse: maxReceiptResponse,
		})
		if _, ok := errors.AsType[*RetryAfterError](err); ok {
			return fiscal.Acknowledgement{}, deliveryError("the receiver is not called for now", err)
		}
		if err != nil {
			return fiscal.Acknowledgement{}, deliveryError("", err)
		}
		receipt, err := c.readReceipt(res, to, s)
		if err == nil {
			return receipt, nil
		}
		if res.status != http.StatusUnauthorized {
			return fiscal.Acknowledgement{}, deliveryError(fmt.Sprintf("status_%d", res.status), err)
		}
		if retried || tok.value != "" && !c.retries.takeRetry() {
			return fiscal.Acknowledgement{}, deliveryError("status_401", err)
		}
		if tok, err = peer.authenticate(ctx, tok); err != nil {
			return fiscal.Acknowledgement{}, deliveryError("status_401", fmt.Errorf("no token: %w", err))
		}
	}
}

func deliveryError(text string, cause error) error {
	if errors.Is(cause, netguard.ErrAddress) {
		cause = fmt.Errorf("%w: %w", fiscal.ErrBlocked, cause)
	}
	return &callError{kind: fiscal.ErrUnavailable, service: endpointService, text: text, cause: cause}
}

// readReceipt reads the acknowledgement (ARECF) of a shipment. The HTTP status
// does not matter: the acknowledgement is signed.
func (c *Client) readReceipt(res *response, to fiscal.BuyerEndpoint, s fiscal.Shipment) (fiscal.Acknowledgement, error) {
	if res.bodyErr != nil {
		return fiscal.Acknowledgement{}, res.bodyErr
	}
	r, err := reply.ReadAcknowledgement(res.body, c.roots, c.now())
	if err != nil {
		return fiscal.Acknowledgement{}, fmt.Errorf("read the acknowledgement: %w", err)
	}
	if r.RNC != s.RNC || r.ENCF != s.ENCF || r.BuyerRNC != to.RNC {
		return fiscal.Acknowledgement{}, fmt.Errorf("read the acknowledgement: %w", errOtherDocument)
	}
	return r, nil
}
