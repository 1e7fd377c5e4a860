package dgii

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	maxSeedResponse = 256 << 10
	maxTokenLength  = 16 << 10
)

// fingerprint identifies a signer by its certificate.
func fingerprint(id *xmlsig.Identity) string {
	sum := sha256.Sum256(id.Certificate.Raw)
	return hex.EncodeToString(sum[:])
}

// token returns a token of the authority for a signer, from the cache if possible.
// Every error is a *callError.
func (c *Client) token(ctx context.Context, id *xmlsig.Identity) (token, error) {
	signer := fingerprint(id)
	tok, err := c.tokens.get(ctx, tokenKey{signer: signer}, func(ctx context.Context) (token, error) {
		if refusal, wait := c.refusals.check(refusalKey{signer, ""}); wait != nil {
			return token{}, c.refusedError(c.auth, refusal, wait)
		}
		return c.fetchToken(ctx, id, signer)
	})
	if _, ok := errors.AsType[*callError](err); err != nil && !ok {
		return token{}, &callError{kind: fiscal.ErrNotReceived, service: c.auth.name, cause: err}
	}
	return tok, err
}

// fetchToken requests a token if the circuit breaker of the authentication allows
// it, and reports the result to the circuit breaker.
func (c *Client) fetchToken(ctx context.Context, id *xmlsig.Identity, signer string) (token, error) {
	auth := c.auth
	probe, wait := auth.breaker.allow()
	if wait != nil {
		return token{}, auth.openError(wait)
	}
	tok, err := c.requestToken(ctx, id, signer)
	result := resultOf(err)
	if ctx.Err() != nil {
		result = ignored
	}
	c.record(auth, result, probe)
	return tok, err
}

func (c *Client) requestToken(ctx context.Context, id *xmlsig.Identity, signer string) (token, error) {
	auth, key := c.auth, refusalKey{signer, ""}
	a := authenticator{
		seedURL: auth.base + "semilla", validationURL: auth.base + "validarsemilla",
		send: func(r request) (*response, error) {
			r.service, r.transport, r.timeout = auth.name, c.authorityTransport, c.timeouts.Total
			free, err := auth.slots.acquire(ctx)
			if err != nil {
				return nil, err
			}
			defer free()
			res, err := c.exchange(ctx, r)
			if err == nil {
				c.clock.observe(res.date, res.receivedAt)
			}
			return res, err
		},
	}
	tok, res, err := a.authenticate(id, c.now)
	switch {
	case err == nil:
		c.refusals.clear(key)
		return tok, nil
	case res == nil:
		return token{}, &callError{kind: fiscal.ErrNotReceived, service: auth.name, cause: err, outage: true}
	case res.status == http.StatusTooManyRequests:
		return token{}, c.rateLimited(auth, res)
	case res.status == http.StatusBadRequest, res.status == http.StatusUnauthorized, res.status == http.StatusForbidden,
		res.status == http.StatusUnprocessableEntity:
		// A response with a message comes from the authority and is about this
		// signer: the service itself works.
		messages, ok := res.refusalMessages()
		if !ok {
			break
		}
		reason := messages[0].Text
		return token{}, c.addRefusal(auth, key, reason, saysNotDelegated(messages),
			"The tax authority gives a signer no token. Calls of this signer wait and are tried again.", "signer", id, "reason", reason)
	}
	return token{}, auth.outagef(fiscal.ErrNotReceived, "no token: HTTP %d: %v", res.status, err)
}

// refusalMessages returns the messages of a refusal that the authority wrote: a
// JSON object with its names, a JSON string or a plain sentence.
func (r *response) refusalMessages() ([]fiscal.Message, bool) {
	var messages []fiscal.Message
	if v, err := r.parse(); err == nil {
		messages = v.messages()
	} else if s, ok := r.plainText(); ok {
		messages = jsonValue{kind: kindString, text: s}.messages()
	}
	return messages, len(messages) > 0
}

// An authenticator exchanges signed seeds for tokens: at the authority, or at the
// receiver of a buyer that requires tokens.
type authenticator struct {
	seedURL, validationURL string
	send                   func(request) (*response, error)
	onSigned               func() // called when a seed was signed; may be nil
}

// authenticate gets a seed, signs it and exchanges it for a token. When it fails,
// it also returns the last response, if there was one. Neither the error nor the
// response contains the seed, which is a secret.
func (a authenticator) authenticate(id *xmlsig.Identity, now func() time.Time) (token, *response, error) {
	res, err := a.send(request{url: a.seedURL, accept: "application/xml, text/xml", maxResponse: maxSeedResponse})
	if err != nil {
		return token{}, nil, err
	}
	signed, secret, err := signSeed(id, res)
	if err != nil {
		res.body = nil
		return token{}, res, err
	}
	if a.onSigned != nil {
		a.onSigned()
	}
	body, err := newUpload("semilla.xml", signed)
	if err != nil {
		return token{}, nil, err
	}
	res, err = a.send(request{url: a.validationURL, accept: "application/json", maxResponse: maxSeedResponse, upload: body})
	if err != nil {
		return token{}, nil, hideInError(err, secret)
	}
	res.body = hide(res.body, secret, res.bodyErr != nil)
	if res.status != http.StatusOK {
		return token{}, res, errors.New("the signed seed was refused")
	}
	tok, err := readToken(res, now())
	res.body = nil
	return tok, res, err
}

// signSeed signs the seed in a response and returns it with its secret value. It
// fails when the response is anything but a seed: otherwise the server could make
// us sign another document.
func signSeed(id *xmlsig.Identity, res *response) (signed []byte, secret string, err error) {
	if res.status != http.StatusOK {
		return nil, "", errors.New("the service gives no seed")
	}
	if res.bodyErr != nil {
		return nil, "", res.bodyErr
	}
	doc, err := xmlsig.Parse(res.body, xmlsig.SmallLimits())
	if err != nil {
		return nil, "", errors.New("the seed cannot be read") // the error of Parse may quote the seed
	}
	root := doc.Root()
	secret = strings.TrimSpace(root.Child("valor").Text())
	if root.Name() != "SemillaModel" || secret == "" {
		return nil, "", errors.New("the response is not a seed")
	}
	for e := range root.Children() {
		if e.Name() != "valor" && e.Name() != "fecha" || e.HasChildren() {
			return nil, "", errors.New("the seed has elements besides valor and fecha")
		}
	}
	signed, err = id.SignDocument(doc)
	if err != nil {
		return nil, "", fmt.Errorf("sign the seed: %w", err)
	}
	return signed, secret, nil
}

// readToken reads a token from a response. Its errors do not quote the token.
func readToken(res *response, now time.Time) (token, error) {
	v, err := res.parse()
	if err != nil {
		return token{}, errors.New("the token cannot be read")
	}
	text := v.member("token").scalar()
	if text == "" || len(text) > maxTokenLength || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return token{}, errors.New("the response has no valid token")
	}
	expires, err := time.Parse(time.RFC3339, v.member("expira").scalar())
	if err != nil {
		return token{}, errors.New("the token has no expiry time")
	}
	issued, err := time.Parse(time.RFC3339, v.member("expedido").scalar())
	if err != nil {
		issued = time.Time{}
	}
	return newToken(text, issued, expires, now), nil
}
