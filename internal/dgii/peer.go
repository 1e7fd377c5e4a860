package dgii

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A PeerOutcome is the outcome of a demand of a buyer's receiver for a token.
type PeerOutcome string

// The outcomes of a demand for a token.
const (
	PeerToken     PeerOutcome = "token"      // a seed was signed, and the receiver gave a token for it
	PeerNoToken   PeerOutcome = "no_token"   // a seed was signed, and the receiver gave no token for it
	PeerNotSigned PeerOutcome = "not_signed" // no seed was signed
)

var (
	errPeerTokensOff = errors.New("the receiver demands a token, and the client authenticates to no receiver")
	errNoPeerService = errors.New("the receiver demands a token, and the directory lists no authentication service for it")
	errAuthorityHost = errors.New("the directory lists the tax authority as the authentication service of a receiver elsewhere")
)

// A peer is a buyer's receiver to which a taxpayer delivers.
//
// To get a token from it, the taxpayer signs a seed that the receiver chooses. The
// receiver may choose a seed of the tax authority, which looks like any other, and
// exchange the signed seed for a token of the authority. So a seed is signed only when
// a receiver demands a token, and every signature is logged.
type peer struct {
	client   *Client
	id       *xmlsig.Identity
	endpoint fiscal.BuyerEndpoint
	key      tokenKey
}

func (c *Client) newPeer(id *xmlsig.Identity, to fiscal.BuyerEndpoint, taxpayer string) peer {
	return peer{c, id, to, tokenKey{fingerprint(id), to.Authentication, to.Reception, to.RNC, taxpayer}}
}

// storedToken returns the token that the receiver gave earlier, or an empty one.
func (p peer) storedToken() token {
	if p.client.noPeerTokens {
		return token{}
	}
	return p.client.tokens.stored(p.key)
}

// authenticate gets a new token, because the receiver has answered 401 to a delivery
// with refused, which is empty when it had no token.
func (p peer) authenticate(ctx context.Context, refused token) (token, error) {
	c := p.client
	if refused.value != "" {
		c.tokens.invalidate(p.key, refused)
	}
	client, err := p.service()
	if err != nil {
		c.onPeer(PeerNotSigned)
		return token{}, err
	}
	return c.tokens.get(ctx, p.key, func(ctx context.Context) (token, error) {
		outcome := PeerNotSigned
		a := authenticator{
			seedURL: "/fe/autenticacion/api/semilla", validationURL: "/fe/autenticacion/api/validacioncertificado",
			send: func(r request) (*response, error) { return client.send(ctx, r) },
			onSigned: func() {
				outcome = PeerNoToken
				to, leave := c.endpoints.join(client.key)
				defer leave()
				c.log.Info("A buyer's receiver demanded a token. The service signed its seed for a taxpayer.",
					"receiver", client.key, "buyer_rnc", p.endpoint.RNC, "taxpayer_rnc", p.key.taxpayer, "signer", p.id, "signatures", to.signed.Add(1))
			},
		}
		tok, res, err := a.authenticate(p.id, c.now)
		if err == nil {
			outcome = PeerToken
		} else if res != nil {
			err = fmt.Errorf("status_%d: %w", res.status, err)
		}
		c.onPeer(outcome)
		return tok, err
	})
}

// service returns the client of the authentication service. It fails when no seed of
// it may be signed.
func (p peer) service() (endpointClient, error) {
	c := p.client
	switch {
	case c.noPeerTokens:
		return endpointClient{}, errPeerTokensOff
	case p.endpoint.Authentication == "":
		return endpointClient{}, errNoPeerService
	}
	client, err := c.newEndpointClient(p.endpoint.Authentication)
	if err != nil {
		return endpointClient{}, err
	}
	if c.isAuthority(client) {
		reception, err := c.newEndpointClient(p.endpoint.Reception)
		if err != nil || !c.isAuthority(reception) {
			return endpointClient{}, errAuthorityHost // its token would go to the receiver
		}
	}
	return client, nil
}

// isAuthority reports whether a client calls a host of the tax authority. It compares the
// host that is called, not the address of the directory: one host has many spellings. It
// is false for the addresses of a simulator, which has the authority and receivers on one
// host.
func (c *Client) isAuthority(r endpointClient) bool {
	if origin, err := originOf(r.base); err == nil && origin == c.allowedOrigin {
		return false
	}
	host := hostOf(r.base)
	return host == "" || host == hostOf(c.hosts.ECF) || host == hostOf(c.hosts.FC)
}

// hostOf returns the host name of an address in lower case and without a final dot, or
// "" when the address is not a URL.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
}
