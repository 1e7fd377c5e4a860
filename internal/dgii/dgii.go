// Package dgii owns the conversation with the tax authority's web services and
// with the receivers of other taxpayers: seeds and tokens, submissions,
// look-ups, the directory and deliveries. It says what became of an exchange and
// never decides what follows from it. It builds and signs no document but seeds.
package dgii

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/netguard"
)

// Timeouts bound one call. They are never scaled: a time-out that is shorter
// than the authority needs makes outcomes unknown.
type Timeouts struct {
	Connect, TLS, FirstByte, Total time.Duration
	// Delivery bounds each call to a buyer's receiver.
	Delivery time.Duration
}

// A Call is one finished exchange, for metrics.
type Call struct {
	Service string // auth, reception, rfce, result, state, trackids, consultarfce, directory, peer
	Status  int    // of HTTP, 0 without an answer
	Took    time.Duration
}

// Options say what a Client talks to. Zero fields have the defaults that are
// named; Hosts and Now are needed.
type Options struct {
	Hosts Hosts
	Now   func() time.Time
	// Roots vouch for those who sign acknowledgements. Without roots nothing
	// is trusted.
	Roots *x509.CertPool
	// Log receives what happens to the client as a whole, such as a circuit
	// that opens; what happens to a call is in its error. Silent when nil.
	Log *slog.Logger
	// Observe, when given, is told of every exchange. It must not block.
	Observe func(Call)
	// MaxInFlight is how many calls one host gets at once: 8.
	MaxInFlight int
	// Pace divides the waits of circuits and refusals: 1.
	Pace float64
	// AllowOrigin is the one origin (scheme, host and port) where receivers
	// may be called although it is not public: the simulator's.
	AllowOrigin string
	// Refuse are addresses beyond the special ones that no receiver may have,
	// such as our own.
	Refuse []netip.Prefix
	// TLS is what servers are verified with; the system's roots when nil.
	TLS *tls.Config
	// Timeouts are 5 s, 5 s, 30 s, 60 s and 20 s.
	Timeouts Timeouts
}

// A Client talks to the authority in one environment. Many goroutines may use
// it at once.
type Client struct {
	hosts    Hosts
	now      func() time.Time
	roots    *x509.CertPool
	log      *slog.Logger
	observe  func(Call)
	pace     float64
	timeouts Timeouts
	allowed  string
	guard    netguard.Guard

	authority, peers *http.Transport

	auth, reception, rfce, result, state, trackIDs, summary, directory *service

	slots    *slots
	tokens   *tokens
	refusals *refusals
	budget   *budget

	mu     sync.Mutex
	offset time.Duration
	known  bool
}

// New makes a client. Close ends it.
func New(o Options) (*Client, error) {
	if o.Now == nil {
		return nil, errors.New("dgii: a clock is needed")
	}
	hosts, err := o.Hosts.check()
	if err != nil {
		return nil, err
	}
	allowed := ""
	if o.AllowOrigin != "" {
		if allowed, err = originOf(o.AllowOrigin); err != nil {
			return nil, err
		}
	}
	if o.MaxInFlight <= 0 {
		o.MaxInFlight = 8
	}
	if o.Pace <= 0 {
		o.Pace = 1
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Observe == nil {
		o.Observe = func(Call) {}
	}
	c := &Client{
		hosts: hosts, now: o.Now, roots: o.Roots, log: o.Log, observe: o.Observe, pace: o.Pace,
		timeouts: o.Timeouts.orDefault(), allowed: allowed, guard: netguard.Guard{Refuse: o.Refuse},
		slots: newSlots(o.MaxInFlight), tokens: newTokens(o.Now), budget: newBudget(float64(max(10, o.MaxInFlight))),
	}
	c.refusals = newRefusals(o.Now, c.paced(refusalWait))
	c.authority = c.transport(o, nil)
	c.peers = c.transport(o, c.guard.Control)
	c.wire()
	return c, nil
}

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

// paced is a wait of the background as the pace has it.
func (c *Client) paced(d time.Duration) time.Duration { return time.Duration(float64(d) / c.pace) }

// Close ends refreshes of tokens that are under way, waits for them and closes
// idle connections. Calls of others must have ended.
func (c *Client) Close() {
	c.tokens.close()
	c.authority.CloseIdleConnections()
	c.peers.CloseIdleConnections()
}

// Down tells since when documents cannot be sent: the earliest of the open
// circuits of authentication, reception and summary reception. The first answer
// closes a circuit.
func (c *Client) Down() (since time.Time, down bool) {
	for _, s := range []*service{c.auth, c.reception, c.rfce} {
		if at, open := s.breaker.since(); open && (!down || at.Before(since)) {
			since, down = at, true
		}
	}
	return since, down
}

// Clock tells how far the authority's clock is ahead of ours, by the last
// answer that named a date. It is good to a second.
func (c *Client) Clock() (offset time.Duration, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset, c.known
}

func (c *Client) sawDate(at time.Time) {
	offset := at.Sub(c.now()).Round(time.Second)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset, c.known = offset, true
}
