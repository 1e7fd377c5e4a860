package dgii

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const minTLS = tls.VersionTLS12

// A service is one of the authority's, with a circuit of its own.
type service struct {
	name    string
	base    string // its address
	origin  string // of the host, which several services share
	breaker *breaker
}

// wire lays out the services.
func (c *Client) wire() {
	lay := func(name, host, path string) *service {
		origin, _ := originOf(host) // checked by Hosts.check
		return &service{name: name, base: host + "/" + c.hosts.Environment + "/" + path, origin: origin, breaker: &breaker{
			now: c.now, wait: c.paced(breakerWait),
			turned: func(open bool) {
				if open {
					c.log.Warn("a service of the tax authority does not work: its circuit is open", "service", name)
				} else {
					c.log.Info("a service of the tax authority works again", "service", name)
				}
			},
		}}
	}
	c.auth = lay("auth", c.hosts.ECF, "autenticacion/api/autenticacion/")
	c.reception = lay("reception", c.hosts.ECF, "recepcion/api/facturaselectronicas")
	c.rfce = lay("rfce", c.hosts.FC, "recepcionfc/api/recepcion/ecf")
	c.result = lay("result", c.hosts.ECF, "consultaresultado/api/consultas/estado")
	c.state = lay("state", c.hosts.ECF, "consultaestado/api/consultas/estado")
	c.trackIDs = lay("trackids", c.hosts.ECF, "consultatrackids/api/trackids/consulta")
	c.summary = lay("consultarfce", c.hosts.FC, "consultarfce/api/consultas/consulta")
	c.directory = lay("directory", c.hosts.ECF, "consultadirectorio/api/consultas/obtenerdirectorioporrnc")
}

// fingerprint names a signer.
func fingerprint(id *xmlsig.Identity) string {
	sum := sha256.Sum256(id.Certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// A call is one question to a service. Parse reads the reply; its error tells
// by its fault what the reply means.
type call struct {
	service *service
	query   string           // of a look-up
	ship    *fiscal.Shipment // of a submission
	parse   func(*reply) error
}

// open is the fault of a call that a circuit stops.
func (s *service) open(wait *RetryAfter) error {
	return &fault{kind: fiscal.ErrNotReceived, service: s.name, text: "the service is not being called", cause: wait}
}

// do makes a call, and once more with a new token where the first was refused:
// what answers 401 has not looked at the document.
func (c *Client) do(ctx context.Context, id *xmlsig.Identity, q call) error {
	s := q.service
	key := tokenKey{"", fingerprint(id)}
	hold := refusalKey{key.signer, "service " + s.name}
	c.budget.earn()
	if wait := s.breaker.peek(); wait != nil {
		return s.open(wait)
	}
	if refusal, wait := c.refusals.stops(hold); wait != nil {
		return c.refused(s, refusal, wait)
	}
	for again := false; ; again = true {
		tok, err := c.attempt(ctx, id, key, q)
		if !errors.Is(err, errUnauthorised) {
			if err == nil {
				c.refusals.clear(hold)
			}
			return err
		}
		c.tokens.spoil(key, tok)
		if again {
			// A new token is refused as the old one was: it is not the token.
			refusal := c.refusals.add(hold, "a new token is refused", false)
			c.log.Warn("the tax authority refuses a new token", "service", s.name, "signer", id)
			return c.refused(s, refusal, &RetryAfter{refusal.Until.Sub(c.now())})
		}
		if !c.budget.spend() {
			return s.fault(fiscal.ErrNotReceived, "the token is refused, and there have been too many repeats")
		}
	}
}

var errUnauthorised = errors.New("401")

// attempt makes a call once, with a token that is still the one to use when the
// call's turn has come: of a thousand that wait, none leaves with a token that
// the first has seen refused.
func (c *Client) attempt(ctx context.Context, id *xmlsig.Identity, key tokenKey, q call) (token, error) {
	for {
		tok, err := c.token(ctx, id)
		if err != nil {
			return token{}, err
		}
		release, err := c.slots.take(ctx, q.service.origin)
		if err != nil {
			return token{}, &fault{kind: fiscal.ErrNotReceived, service: q.service.name, text: "no turn", cause: err}
		}
		if !c.tokens.current(key, tok) {
			release()
			continue
		}
		err = c.exchangeOne(ctx, tok, q)
		release()
		return tok, err
	}
}

// exchangeOne makes the exchange under the service's circuit.
func (c *Client) exchangeOne(ctx context.Context, tok token, q call) error {
	s := q.service
	probe, wait := s.breaker.enter()
	if wait != nil {
		return s.open(wait)
	}
	result := neutral
	defer func() { s.breaker.report(result, probe) }()
	if probe && q.ship != nil {
		// A document is a poor probe: its outcome would be unknown.
		if err := c.reachable(ctx, s); err != nil {
			if ctx.Err() == nil {
				result = failed
			}
			return &fault{kind: fiscal.ErrNotReceived, service: s.name, text: "the tax authority cannot be reached", cause: err}
		}
	}
	r := request{
		service: s.name, transport: c.authority, url: s.base, token: tok.value,
		accept: "application/json", limit: answerLimit, total: c.timeouts.Total,
	}
	if q.query != "" {
		r.url += "?" + q.query
	}
	if q.ship != nil {
		var err error
		if r.upload, err = newUpload(q.ship.RNC+q.ship.ENCF+".xml", q.ship.XML); err != nil {
			return &fault{kind: fiscal.ErrNotReceived, service: s.name, cause: err}
		}
	}
	rep, err := c.exchange(ctx, r)
	if err != nil {
		if ctx.Err() == nil {
			result = failed
		}
		kind := fiscal.ErrInconclusive
		if l, ok := errors.AsType[*lost](err); ok && l.unsent {
			kind = fiscal.ErrNotReceived
		}
		return &fault{kind: kind, service: s.name, cause: err}
	}
	if !rep.at.IsZero() {
		c.sawDate(rep.at)
	}
	switch rep.status {
	case http.StatusUnauthorized:
		result = worked
		return errUnauthorised
	case http.StatusTooManyRequests:
		return c.toldToWait(s, rep)
	}
	err = q.parse(rep)
	result = worked
	if f, ok := errors.AsType[*fault](err); ok && f.sick {
		result = failed
	}
	return err
}

// reachable asks for a seed, which costs the authority nothing and needs no
// token.
func (c *Client) reachable(ctx context.Context, s *service) error {
	if s.origin != c.auth.origin {
		release, err := c.slots.take(ctx, c.auth.origin)
		if err != nil {
			return err
		}
		defer release()
	}
	rep, err := c.exchange(ctx, request{
		service: c.auth.name, transport: c.authority, url: c.auth.base + "semilla",
		accept: "application/xml, text/xml", limit: seedLimit, total: c.timeouts.Total,
	})
	if err != nil {
		return err
	}
	if rep.status != http.StatusOK {
		return fmt.Errorf("HTTP %d", rep.status)
	}
	return nil
}

// toldToWait honours a 429: nobody calls the service until the wait is over.
func (c *Client) toldToWait(s *service, rep *reply) error {
	wait := c.paced(breakerWait)
	if n, err := strconv.Atoi(rep.retryAfter); err == nil && n >= 0 {
		wait = time.Duration(min(n, int(time.Hour/time.Second))) * time.Second
	} else if at, err := http.ParseTime(rep.retryAfter); err == nil {
		from := rep.at
		if from.IsZero() {
			from = c.now()
		}
		wait = min(max(at.Sub(from), 0), time.Hour)
	}
	s.breaker.hold(wait)
	return &fault{kind: fiscal.ErrNotReceived, service: s.name, text: "HTTP 429", cause: &RetryAfter{wait}}
}

// Refused tells whether the authority refuses a signer, or the signer for a
// taxpayer, so that sending pauses. It is so until something is taken again.
func (c *Client) Refused(id *xmlsig.Identity, rnc string) (Refusal, bool) {
	signer := fingerprint(id)
	for _, scope := range []string{"", "taxpayer " + rnc, "service " + c.reception.name, "service " + c.rfce.name} {
		if r, ok := c.refusals.find(refusalKey{signer, scope}); ok {
			return r, true
		}
	}
	return Refusal{}, false
}

// Undelegated tells whether the authority has just said that a taxpayer has not
// delegated a signer. After a while it is so no longer, for nobody would find
// out that it was mended.
func (c *Client) Undelegated(id *xmlsig.Identity, rnc string) (reason string, is bool) {
	r, ok := c.Refused(id, rnc)
	if !ok || !r.Delegation || !c.now().Before(r.Until) {
		return "", false
	}
	return r.Reason, true
}
