package dgii

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	seedLimit  = 256 << 10
	tokenLimit = 16 << 10
)

// token returns a token of the authority for a signer.
func (c *Client) token(ctx context.Context, id *xmlsig.Identity) (token, error) {
	signer := fingerprint(id)
	tok, err := c.tokens.get(ctx, tokenKey{"", signer}, 2*c.timeouts.Total, func(ctx context.Context) (token, error) {
		if refusal, wait := c.refusals.stops(refusalKey{signer, ""}); wait != nil {
			return token{}, c.refused(c.auth, refusal, wait)
		}
		return c.fetchToken(ctx, id, signer)
	})
	if _, ok := errors.AsType[*fault](err); err != nil && !ok {
		return token{}, &fault{kind: fiscal.ErrNotReceived, service: c.auth.name, cause: err}
	}
	return tok, err
}

// fetchToken has a seed signed and turns it into a token.
func (c *Client) fetchToken(ctx context.Context, id *xmlsig.Identity, signer string) (token, error) {
	auth := c.auth
	probe, wait := auth.breaker.enter()
	if wait != nil {
		return token{}, auth.open(wait)
	}
	tok, err := c.askToken(ctx, id, signer)
	result := worked
	if f, ok := errors.AsType[*fault](err); ok && f.sick {
		result = failed
	} else if ctx.Err() != nil {
		result = neutral
	}
	auth.breaker.report(result, probe)
	return tok, err
}

func (c *Client) askToken(ctx context.Context, id *xmlsig.Identity, signer string) (token, error) {
	auth, key := c.auth, refusalKey{signer, ""}
	desk := desk{
		seed: auth.base + "semilla", validation: auth.base + "validarsemilla",
		ask: func(r request) (*reply, error) {
			r.service, r.transport, r.total = auth.name, c.authority, c.timeouts.Total
			release, err := c.slots.take(ctx, auth.origin)
			if err != nil {
				return nil, err
			}
			defer release()
			rep, err := c.exchange(ctx, r)
			if err == nil && !rep.at.IsZero() {
				c.sawDate(rep.at)
			}
			return rep, err
		},
	}
	tok, rep, err := desk.token(id, c.now)
	switch {
	case err == nil:
		c.refusals.clear(key)
		return tok, nil
	case rep == nil:
		return token{}, &fault{kind: fiscal.ErrNotReceived, service: auth.name, cause: err, sick: true}
	case rep.status == http.StatusTooManyRequests:
		return token{}, c.toldToWait(auth, rep)
	case rep.status == http.StatusBadRequest, rep.status == http.StatusUnauthorized, rep.status == http.StatusForbidden,
		rep.status == http.StatusUnprocessableEntity:
		// A sentence is the authority's own; it concerns this signer and not
		// the service.
		messages, ok := rep.refusal()
		if !ok {
			break
		}
		reason := messages[0].Text
		refusal := c.refusals.add(key, reason, aboutDelegation(messages))
		c.log.Warn("the tax authority gives a signer no token", "signer", id, "reason", reason)
		return token{}, c.refused(auth, refusal, &RetryAfter{refusal.Until.Sub(c.now())})
	}
	return token{}, auth.sick(fiscal.ErrNotReceived, "no token: HTTP %d: %v", rep.status, err)
}

// refusal reads the messages of a refusal that is DGII's: an object of its
// keys, a string of JSON or a plain sentence.
func (r *reply) refusal() ([]fiscal.Message, bool) {
	var messages []fiscal.Message
	if v, err := r.read(); err == nil {
		messages = v.messages()
	} else if s, ok := r.sentence(); ok {
		messages = value{kind: kindString, text: s}.messages()
	}
	return messages, len(messages) > 0
}

// refused is the fault of a call that a remembered refusal stops.
func (c *Client) refused(s *service, r Refusal, wait *RetryAfter) error {
	kind := fiscal.ErrNotReceived
	if r.Delegation {
		kind = fiscal.ErrNotDelegated
	}
	return &fault{kind: kind, service: s.name, text: r.Reason, cause: wait}
}

// A desk is where signed seeds become tokens: the authority's, or that of a
// buyer who asks for one.
type desk struct {
	seed, validation string
	ask              func(request) (*reply, error)
}

// token asks for a token. An error comes with the last reply, if there was one;
// neither holds the seed.
func (d desk) token(id *xmlsig.Identity, now func() time.Time) (token, *reply, error) {
	rep, err := d.ask(request{url: d.seed, accept: "application/xml, text/xml", limit: seedLimit})
	if err != nil {
		return token{}, nil, err
	}
	signed, secret, err := signSeed(id, rep)
	if err != nil {
		rep.body = nil
		return token{}, rep, err
	}
	body, err := newUpload("semilla.xml", signed)
	if err != nil {
		return token{}, nil, err
	}
	rep, err = d.ask(request{url: d.validation, accept: "application/json", limit: seedLimit, upload: body})
	if err != nil {
		return token{}, nil, err
	}
	rep.body = []byte(strings.ReplaceAll(string(rep.body), secret, "[seed]"))
	if rep.status != http.StatusOK {
		return token{}, rep, errors.New("the seed was not taken")
	}
	tok, err := readToken(rep, now())
	rep.body = nil
	return tok, rep, err
}

// signSeed signs a seed and nothing else: whoever could have another document
// signed in its place would have our signature on it.
func signSeed(id *xmlsig.Identity, rep *reply) (signed []byte, secret string, err error) {
	if rep.status != http.StatusOK {
		return nil, "", errors.New("there is no seed")
	}
	if rep.torn != nil {
		return nil, "", rep.torn
	}
	doc, err := xmlsig.Parse(rep.body, xmlsig.SmallLimits())
	if err != nil {
		return nil, "", errors.New("the seed cannot be read") // the error may repeat a part of it
	}
	root := doc.Root()
	secret = strings.TrimSpace(root.Child("valor").Text())
	if root.Name() != "SemillaModel" || secret == "" {
		return nil, "", errors.New("the seed is none")
	}
	for e := range root.Children() {
		if e.Name() != "valor" && e.Name() != "fecha" || e.HasChildren() {
			return nil, "", errors.New("the seed holds more than a seed")
		}
	}
	signed, err = id.SignDocument(doc)
	if err != nil {
		return nil, "", fmt.Errorf("sign the seed: %w", err)
	}
	return signed, secret, nil
}

func readToken(rep *reply, now time.Time) (token, error) {
	v, err := rep.read()
	if err != nil {
		return token{}, errors.New("the token cannot be read")
	}
	text := v.of("token").scalar()
	if text == "" || len(text) > tokenLimit || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return token{}, errors.New("there is no token in the answer")
	}
	expires, err := time.Parse(time.RFC3339, v.of("expira").scalar())
	if err != nil {
		return token{}, errors.New("the token has no end")
	}
	issued, err := time.Parse(time.RFC3339, v.of("expedido").scalar())
	if err != nil {
		issued = time.Time{}
	}
	return newToken(text, issued, expires, now), nil
}
