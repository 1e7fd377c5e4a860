package simulation

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// links are the connections between the nodes and the authority.
type links struct {
	accept chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newLinks() *links { return &links{accept: make(chan net.Conn), closed: make(chan struct{})} }

// Accept returns the next connection of a node.
func (l *links) Accept() (net.Conn, error) {
	select {
	case c := <-l.accept:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends the listener.
func (l *links) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr returns an address that nobody uses.
func (l *links) Addr() net.Addr { return &net.UnixAddr{Name: "authority", Net: "unix"} }

// link is the authority's end of a connection of a node.
type link struct {
	net.Conn
	n *node
}

type nodeKey struct{}

func (l *links) context(ctx context.Context, c net.Conn) context.Context {
	if one, ok := c.(link); ok {
		return context.WithValue(ctx, nodeKey{}, one.n)
	}
	return ctx
}

// dial connects a life of a node to the authority.
func (n *node) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	w := n.w
	w.mu.Lock()
	dead, cut := n.dead, n.cutUntil.After(w.now())
	w.mu.Unlock()
	if dead {
		return nil, errCrashed
	}
	if cut {
		return nil, errors.New("connection refused")
	}
	near, far := net.Pipe()
	w.mu.Lock()
	n.conns = append(n.conns, near)
	w.mu.Unlock()
	select {
	case w.links.accept <- link{far, n}:
		return near, nil
	case <-w.links.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// The fates of a message.
const (
	fateNone         = iota
	fateLost         // the request does not arrive
	fateAnswerLost   // the request arrives, and the answer does not
	fateSlow         // the answer takes seconds
	fateHang         // nothing comes, until the client gives up
	fateDoubled      // the request arrives twice
	fatePage         // a proxy answers with a page instead of the authority
	fatePageAfter    // the request arrives, and a proxy answers with a page
	fates            = iota
	gatewayPage      = "<!DOCTYPE html><html><body>Request Rejected</body></html>"
	longestTransport = 90 * time.Millisecond
)

var fileName = regexp.MustCompile(`filename="?\d{9,11}(E\d{12})\.xml`)

// carry brings a request of a node to the authority or to a buyer, and the answer back.
func (w *world) carry(rw http.ResponseWriter, r *http.Request) {
	n, ok := r.Context().Value(nodeKey{}).(*node)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	random := w.source(n.name + " " + r.URL.Path + "?" + r.URL.RawQuery)
	time.Sleep(time.Microsecond + time.Duration(random.Int64N(int64(longestTransport))))
	w.mu.Lock()
	cut, quiet := n.cutUntil.After(w.now()), w.quiet
	w.mu.Unlock()
	fate := fateNone
	if !quiet && n.index >= 0 && random.IntN(10_000) < w.plan.network {
		fate = 1 + random.IntN(fates-1)
	}
	what := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if cut {
		w.tracef(n.name, "%s is lost: the node is cut off", what)
		panic(http.ErrAbortHandler)
	}
	switch fate {
	case fateNone:
		w.forward(n, what, rw, r)
	case fateLost:
		w.tracef(n.name, "%s is lost", what)
		panic(http.ErrAbortHandler)
	case fateHang:
		w.tracef(n.name, "%s gets no answer", what)
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client gives up
		select {
		case <-r.Context().Done():
		case <-time.After(2 * time.Minute):
		}
		panic(http.ErrAbortHandler)
	case fatePage:
		w.tracef(n.name, "%s gets a page of a proxy", what)
		page(rw, w.now().Add(w.plan.authoritySkew), random)
	case fateAnswerLost, fatePageAfter, fateSlow:
		answer := httptest.NewRecorder()
		w.forward(n, what, answer, r)
		switch fate {
		case fateAnswerLost:
			w.tracef(n.name, "the answer to %s is lost", what)
			panic(http.ErrAbortHandler)
		case fatePageAfter:
			w.tracef(n.name, "the answer to %s is replaced by a page", what)
			page(rw, w.now().Add(w.plan.authoritySkew), random)
		default:
			d := time.Second + time.Duration(random.Int64N(int64(100*time.Second)))
			w.tracef(n.name, "the answer to %s takes %s", what, d)
			time.Sleep(d)
			copyAnswer(rw, answer)
		}
	case fateDoubled:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		if found := fileName.FindSubmatch(body); found != nil {
			w.mu.Lock()
			w.doubled[string(found[1])] = true
			w.mu.Unlock()
		}
		w.record(func() { w.doubled[r.URL.Query().Get("trackid")] = true })
		w.tracef(n.name, "%s arrives twice", what)
		for i, to := range []http.ResponseWriter{httptest.NewRecorder(), rw} {
			again := r.Clone(r.Context())
			again.Body = io.NopCloser(bytes.NewReader(body))
			if i == 0 {
				w.forward(n, what, to, again)
				time.Sleep(time.Microsecond + time.Duration(random.Int64N(int64(2*time.Second))))
				continue
			}
			w.forward(n, what, to, again)
		}
	}
}

// forward lets the simulator answer.
func (w *world) forward(n *node, what string, rw http.ResponseWriter, r *http.Request) {
	w.tracef(n.name, "calls %s %s", what, r.URL.RawQuery)
	w.sim.Handler().ServeHTTP(rw, r)
}

func copyAnswer(rw http.ResponseWriter, answer *httptest.ResponseRecorder) {
	for name, values := range answer.Header() {
		rw.Header()[name] = values
	}
	rw.WriteHeader(answer.Code)
	_, _ = rw.Write(answer.Body.Bytes()) // the client may have gone
}

// page answers as a proxy between the node and the authority does. It has the authority's
// clock: the service takes the Date of every answer for the authority's.
func page(rw http.ResponseWriter, now time.Time, random *rand.Rand) {
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	rw.Header().Set("Date", now.UTC().Format(http.TimeFormat))
	// 404 is the one that may mean more than an outage: that there is no such service.
	rw.WriteHeader([]int{200, 404, 403, 404, 500, 404, 503, 504}[random.IntN(8)])
	_, _ = io.WriteString(rw, gatewayPage) // the client may have gone
}

// receiver is the server of the integrator that gets the webhooks.
type receiver struct{ w *world }

// Post is one attempt of a node to deliver an event.
func (r *receiver) Post(ctx context.Context, m webhook.Message) webhook.Result {
	w := r.w
	n, _ := ctx.Value(nodeKey{}).(*node)
	random := w.source("webhook " + short(m.Body))
	time.Sleep(time.Microsecond + time.Duration(random.Int64N(int64(longestTransport))))
	w.mu.Lock()
	dead, quiet, epoch := n == nil || n.dead, w.quiet, w.epoch
	w.mu.Unlock()
	if dead {
		return webhook.Result{Error: webhook.ClassStopped}
	}
	fate := 0
	if !quiet && random.IntN(10_000) < w.plan.hook {
		fate = 1 + random.IntN(4)
	}
	switch fate {
	case 1: // it does not arrive
		w.tracef(n.name, "webhook %s is lost", short(m.Body))
		return webhook.Result{Error: webhook.ClassClosed}
	case 2: // it is refused
		w.tracef(n.name, "webhook %s is refused", short(m.Body))
		w.record(func() { w.run.Webhooks = append(w.run.Webhooks, hookOf(m, false, epoch)) })
		return webhook.Result{Status: 500, Error: "status_500"}
	}
	w.tracef(n.name, "webhook %s", short(m.Body))
	w.record(func() { w.run.Webhooks = append(w.run.Webhooks, hookOf(m, true, epoch)) })
	switch fate {
	case 3: // the answer is lost
		w.tracef(n.name, "the answer to the webhook is lost")
		return webhook.Result{Error: webhook.ClassClosed}
	case 4: // the answer takes long
		time.Sleep(time.Second + time.Duration(random.Int64N(int64(13*time.Second))))
	}
	return webhook.Result{Status: 200}
}
