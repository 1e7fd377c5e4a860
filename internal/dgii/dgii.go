// Package dgii is the client of the tax authority's web services and of the
// receivers of other taxpayers. It gets tokens, submits documents, looks documents
// up, reads the directory of receivers and delivers documents to buyers. It
// reports the result of each call and leaves the decision to the caller. It signs
// nothing but the seeds of the authentication.
package dgii

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// Timeouts bound one call. The pace does not shorten them: with a timeout that is
// shorter than the authority needs, the outcome of calls would be unknown.
type Timeouts struct {
	Connect, TLS, FirstByte, Total time.Duration
	// Delivery bounds each call to a buyer's receiver.
	Delivery time.Duration
}

// Options configure a Client. Hosts and Now are required; the other fields have
// defaults.
type Options struct {
	// Hosts name the authority's environment, too. It says which services exist:
	// in production all of them do.
	Hosts Hosts
	Now   func() time.Time
	// Monotonic returns the time since a fixed instant. Setting the wall clock does
	// not change it, so that the client detects that the wall clock was set. By
	// default it is the monotonic reading of the times that Now returns.
	Monotonic func() time.Duration
	// Roots are the certificate authorities that the client trusts for the
	// signatures of acknowledgements. Without roots it trusts no signature.
	Roots *x509.CertPool
	// Log receives the events of the client as a whole, for example that a
	// circuit opens. Errors of single calls are returned, not logged. Nothing is
	// logged when Log is nil.
	Log *slog.Logger
	// OnExchange, if set, is called after every HTTP exchange, for metrics. It must
	// not block.
	OnExchange func(Exchange)
	// MaxInFlight is how many calls one host of the authority receives at the same
	// time; 8 by default.
	MaxInFlight int
	// Pace divides the waits after failures and refusals, and those for the clock; 1 by
	// default.
	Pace wake.Pace
	// AllowOrigin is the one origin (scheme, host and port) that may be called as
	// a receiver although its address is not public. It is for the simulator.
	AllowOrigin string
	// NoPeerAuthentication makes the client deliver without a token to every receiver.
	// A receiver that demands one gets no document.
	NoPeerAuthentication bool
	// OnPeerAuthentication, if set, is called after every demand of a receiver for a
	// token, for metrics. It must not block.
	OnPeerAuthentication func(PeerOutcome)
	// BlockedPrefixes are addresses that are never called as a buyer's receiver: our
	// own public ones. Private and other special addresses are always blocked.
	BlockedPrefixes []netip.Prefix
	// TLS verifies the servers; the roots of the system when nil.
	TLS *tls.Config
	// Timeouts default to 5 s (Connect), 5 s (TLS), 30 s (FirstByte), 60 s (Total)
	// and 20 s (Delivery).
	Timeouts Timeouts
	// Dial, for tests, opens every connection instead of the network. The addresses of
	// receivers are then not checked.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Client calls the authority in one of its environments. It is safe for
// concurrent use.
type Client struct {
	hosts         Hosts
	now           func() time.Time
	roots         *x509.CertPool
	log           *slog.Logger
	onExchange    func(Exchange)
	onPeer        func(PeerOutcome)
	noPeerTokens  bool
	pace          wake.Pace
	timeouts      Timeouts
	allowedOrigin string
	guard         netguard.Guard

	authorityTransport, endpointTransport *http.Transport

	auth, reception, rfce, result, state, trackIDs, rfceLookup, directory *service

	services   []*service // all of them
	endpoints  *endpointPool
	tokens     *tokenCache
	refusals   *refusalCache
	retries    *retryBudget
	clock      *authorityClock
	outage     outage
	background *background

	checkMu   sync.Mutex
	lastCheck *clockCheck // of CheckClock
}

// New returns a client. It fails when Now is nil or an address in the options is
// not valid. The caller calls Close when it no longer needs the client.
func New(o Options) (*Client, error) {
	if o.Now == nil {
		return nil, errors.New("dgii: Options.Now is required")
	}
	hosts, err := o.Hosts.check()
	if err != nil {
		return nil, err
	}
	allowedOrigin := ""
	if o.AllowOrigin != "" {
		if allowedOrigin, err = originOf(o.AllowOrigin); err != nil {
			return nil, err
		}
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 8
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.OnExchange == nil {
		o.OnExchange = func(Exchange) {}
	}
	if o.OnPeerAuthentication == nil {
		o.OnPeerAuthentication = func(PeerOutcome) {}
	}
	c := &Client{
		hosts: hosts, now: o.Now, roots: o.Roots, log: o.Log, onExchange: o.OnExchange, pace: o.Pace,
		onPeer: o.OnPeerAuthentication, noPeerTokens: o.NoPeerAuthentication,
		timeouts: o.Timeouts.orDefault(), allowedOrigin: allowedOrigin, guard: netguard.Guard{Refuse: o.BlockedPrefixes},
		tokens: newTokenCache(o.Now), refusals: newRefusalCache(o.Now, o.Pace.Scale(refusalWait)),
		retries: newRetryBudget(float64(max(10, o.MaxInFlight))),
		clock:   newAuthorityClock(newReader(o.Now, o.Monotonic), o.Log, o.Pace), background: newBackground(),
	}
	c.endpoints = newEndpointPool(maxEndpoints, c.newEndpoint)
	c.authorityTransport = c.newTransport(o, nil)
	c.endpointTransport = c.newTransport(o, c.guard.Control)
	c.initServices(o.MaxInFlight)
	return c, nil
}

// orDefault sets the timeouts that are zero to their defaults.
func (t Timeouts) orDefault() Timeouts {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&t.Connect, 5 * time.Second},
		{&t.TLS, 5 * time.Second},
		{&t.FirstByte, 30 * time.Second},
		{&t.Total, 60 * time.Second},
		{&t.Delivery, 20 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	return t
}

// Close cancels the requests that the client makes in the background, waits for
// them and closes idle connections. No other method may be running.
func (c *Client) Close() {
	c.background.close()
	c.tokens.close()
	c.authorityTransport.CloseIdleConnections()
	c.endpointTransport.CloseIdleConnections()
}
