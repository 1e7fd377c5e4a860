package dgii

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	replies "github.com/fiscalhub/fiscalhub/internal/reply"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	receiptLimit = 256 << 10
	peerService  = "peer"
)

// Deliver sends a document to a buyer's receiver and returns the buyer's
// acknowledgement. Whatever is not a verified acknowledgement of this document
// is no answer: the error is ErrUnavailable, with netguard.ErrAddress where the
// address must not be called. A delivery may be repeated: receivers know a
// document by its number.
func (c *Client) Deliver(ctx context.Context, id *xmlsig.Identity, to fiscal.Receiver, s fiscal.Shipment) (fiscal.Receipt, error) {
	if !isName(s.RNC) || !isName(s.ENCF) || len(s.XML) == 0 {
		return fiscal.Receipt{}, peerFault("there is no document with an RNC and an e-NCF to deliver", nil)
	}
	d, err := c.door(to.Reception)
	if err != nil {
		return fiscal.Receipt{}, peerFault(netguard.ClassRefused, err)
	}
	key := tokenKey{to.Authentication, fingerprint(id)}
	c.budget.earn()
	for again := false; ; again = true {
		// A receiver may name an authentication that does not work and yet ask
		// for no token.
		tok, tokenErr := c.peerToken(ctx, id, key)
		body, err := newUpload(s.RNC+s.ENCF+".xml", s.XML)
		if err != nil {
			return fiscal.Receipt{}, peerFault("the document cannot be sent", err)
		}
		rep, err := d.ask(ctx, request{
			url: "/fe/recepcion/api/ecf", token: tok.value, upload: body,
			accept: "application/xml, text/xml", limit: receiptLimit,
		})
		if err != nil {
			return fiscal.Receipt{}, peerFault("", err)
		}
		receipt, err := c.readReceipt(rep, to, s)
		if err == nil {
			return receipt, nil
		}
		if rep.status != http.StatusUnauthorized {
			return fiscal.Receipt{}, peerFault(fmt.Sprintf("status_%d", rep.status), err)
		}
		if tokenErr != nil {
			err = fmt.Errorf("there is no token: %w", tokenErr)
		}
		if tok.value == "" || again || !c.budget.spend() {
			return fiscal.Receipt{}, peerFault("status_401", err)
		}
		c.tokens.spoil(key, tok)
	}
}

func peerFault(text string, cause error) error {
	if errors.Is(cause, netguard.ErrAddress) {
		cause = fmt.Errorf("%w: %w", fiscal.ErrBlocked, cause)
	}
	return &fault{kind: fiscal.ErrUnavailable, service: peerService, text: text, cause: cause}
}

// A door is where a receiver is called.
type door struct {
	c         *Client
	base      string
	origin    string
	transport *http.Transport
}

// door checks an address that the directory names. The simulator's origin alone
// may be one that is not public.
func (c *Client) door(base string) (door, error) {
	if origin, err := originOf(base); err == nil && origin == c.allowed {
		return door{c, strings.TrimRight(base, "/"), origin, c.authority}, nil
	}
	u, err := c.guard.URL(base)
	if err != nil {
		return door{}, err
	}
	return door{c, strings.TrimRight(u.String(), "/"), "https://" + u.Host + ":443", c.peers}, nil
}

// ask makes one call; the address of the request is what follows the base.
func (d door) ask(ctx context.Context, r request) (*reply, error) {
	ctx, cancel := context.WithTimeout(ctx, d.c.timeouts.Delivery)
	defer cancel()
	release, err := d.c.slots.take(ctx, d.origin)
	if err != nil {
		return nil, err
	}
	defer release()
	r.service, r.transport, r.url, r.total = peerService, d.transport, d.base+r.url, d.c.timeouts.Delivery
	rep, err := d.c.exchange(ctx, r)
	if err != nil {
		return nil, &classed{netguard.Class(err), err}
	}
	return rep, nil
}

// A classed error hides what the network said, which may name addresses of ours,
// behind its class. It can still be asked what it is.
type classed struct {
	class string
	error
}

func (c *classed) Error() string { return c.class }
func (c *classed) Unwrap() error { return c.error }

// peerToken returns the token of a receiver that gives some, and nothing for
// one that does not.
func (c *Client) peerToken(ctx context.Context, id *xmlsig.Identity, key tokenKey) (token, error) {
	if key.place == "" {
		return token{}, nil
	}
	d, err := c.door(key.place)
	if err != nil {
		return token{}, err
	}
	return c.tokens.get(ctx, key, 2*c.timeouts.Delivery, func(ctx context.Context) (token, error) {
		desk := desk{
			seed: "/fe/autenticacion/api/semilla", validation: "/fe/autenticacion/api/validacioncertificado",
			ask: func(r request) (*reply, error) { return d.ask(ctx, r) },
		}
		tok, rep, err := desk.token(id, c.now)
		if err != nil && rep != nil {
			err = fmt.Errorf("status_%d: %w", rep.status, err)
		}
		return tok, err
	})
}

// readReceipt reads an acknowledgement (ARECF) of a shipment, whatever the status
// that it came with.
func (c *Client) readReceipt(rep *reply, to fiscal.Receiver, s fiscal.Shipment) (fiscal.Receipt, error) {
	if rep.torn != nil {
		return fiscal.Receipt{}, rep.torn
	}
	r, err := replies.ReadReceipt(rep.body, c.roots, c.now())
	if err != nil {
		return fiscal.Receipt{}, fmt.Errorf("the acknowledgement: %w", err)
	}
	if r.RNC != s.RNC || r.ENCF != s.ENCF || r.BuyerRNC != to.RNC {
		return fiscal.Receipt{}, fmt.Errorf("the acknowledgement: %w", errElsewhere)
	}
	return r, nil
}
