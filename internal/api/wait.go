package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	maxPreferredWait = 20 // seconds
	maxFeedWait      = 30
)

// waits are the requests that wait for an event, a verdict or the server of an
// endpoint. They hold no slots. The zero value is ready to use.
type waits struct {
	mu      sync.Mutex
	cancels map[*context.CancelFunc]struct{} // of all current waits
	ended   bool
}

// begin starts a wait. Its context ends after d, or when end is called; the
// caller must call done. begin returns false after end.
func (w *waits) begin(ctx context.Context, d time.Duration) (waiting context.Context, done func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return nil, nil, false
	}
	if w.cancels == nil {
		w.cancels = make(map[*context.CancelFunc]struct{})
	}
	waiting, cancel := context.WithTimeout(ctx, d)
	w.cancels[&cancel] = struct{}{}
	return waiting, func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.cancels, &cancel)
	}, true
}

// end ends all waits and allows no more.
func (w *waits) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for cancel := range w.cancels {
		(*cancel)()
	}
}

// wait gives back what a request holds and calls do, whose context ends after d or
// when the service drains. It fails, without calling do, when too many requests of the
// credential or the taxpayer wait, and when the service drains already.
func (a *API) wait(x *exchange, d time.Duration, do func(context.Context)) error {
	hold, err := a.o.Capacity.TakeWait(x.holder())
	if err != nil {
		return err
	}
	defer hold.Release()
	ctx, done, ok := a.waits.begin(x.r.Context(), d)
	if !ok {
		return stopping()
	}
	defer done()
	x.held.Release()
	x.extendDeadlines(d)
	do(ctx)
	return nil
}

// extendDeadlines extends the deadlines of the connection by d. When the read
// deadline passes, net/http cancels the context of the request.
func (x *exchange) extendDeadlines(d time.Duration) {
	now := time.Now() //nolint:forbidigo // the deadlines of a connection use the clock of the machine
	c := http.NewResponseController(x.w)
	// These fail only for a writer that is not a connection and has no deadlines.
	_ = c.SetReadDeadline(now.Add(d + readTime))
	_ = c.SetWriteDeadline(now.Add(d + writeTime))
}

// awaitInvoice waits for the verdict on an invoice if the client asks for it with
// Prefer: wait, and returns the invoice as it is then. It returns false when the
// client does not ask, when too many requests wait, when the invoice cannot be read, and
// when the credential was taken away meanwhile: the caller then answers with what it has.
func (a *API) awaitInvoice(x *exchange, id string) (inv store.Invoice, ok bool) {
	seconds, ok := preferredWait(x.r.Header)
	if !ok {
		return store.Invoice{}, false
	}
	var err error
	refused := a.wait(x, time.Duration(seconds)*time.Second, func(ctx context.Context) {
		inv, err = a.o.Pipeline.Await(ctx, x.scope, id)
	})
	if refused != nil || err != nil {
		return store.Invoice{}, false
	}
	credential, authenticated := x.credential, x.authenticated
	if a.stillAllowed(x) != nil {
		// The answer belongs to the credential with which the request began: the log names it.
		x.credential, x.authenticated = credential, authenticated
		return store.Invoice{}, false
	}
	x.w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(seconds))
	return inv, true
}

// preferredWait returns the seconds of the preference wait (RFC 7240 §4.3), at
// most maxPreferredWait. Of several the first one counts. It returns false when
// there is none or when it is malformed.
func preferredWait(h http.Header) (seconds int, ok bool) {
	for _, preference := range splitUnquoted(strings.Join(h.Values("Prefer"), ","), ',') {
		main := splitUnquoted(preference, ';')[0] // without the parameters of the preference
		name, value, _ := strings.Cut(main, "=")
		if !strings.EqualFold(strings.Trim(name, " \t"), "wait") {
			continue
		}
		value = strings.Trim(value, " \t")
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		if value == "" || strings.Trim(value, "0123456789") != "" {
			return 0, false
		}
		n, err := strconv.Atoi(value)
		if err != nil { // larger than an int
			n = maxPreferredWait
		}
		return min(n, maxPreferredWait), true
	}
	return 0, false
}

// splitUnquoted splits the value of a header at separators outside quotes.
func splitUnquoted(s string, separator byte) []string {
	var parts []string
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == separator && !quoted:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	return append(parts, s[from:])
}
