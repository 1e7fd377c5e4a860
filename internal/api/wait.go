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
	maxPreferredWait   = 20 // seconds
	maxFeedWait        = 30
	maxCredentialWaits = 256
)

// waits are the requests that wait for news. They hold no place, and are bounded
// for each credential. The zero waits are none.
type waits struct {
	mu       sync.Mutex
	of       map[string]int // by the prefix of the credential
	underWay map[*context.CancelFunc]struct{}
	ended    bool
}

// begin counts a wait, whose context ends after a time or with all of them. It
// tells whether there is one: there may be too many.
func (w *waits) begin(ctx context.Context, prefix string, d time.Duration) (waiting context.Context, done func(), ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended || w.of[prefix] >= maxCredentialWaits {
		return nil, nil, false
	}
	if w.of == nil {
		w.of, w.underWay = make(map[string]int), make(map[*context.CancelFunc]struct{})
	}
	waiting, cancel := context.WithTimeout(ctx, d)
	w.of[prefix]++
	w.underWay[&cancel] = struct{}{}
	return waiting, func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.underWay, &cancel)
		if w.of[prefix]--; w.of[prefix] == 0 {
			delete(w.of, prefix)
		}
	}, true
}

// end ends all waits, and those to come.
func (w *waits) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for cancel := range w.underWay {
		(*cancel)()
	}
}

// wait gives the places of a request back and does something that takes time and
// little else, until it is done, its time is up or the service drains. It tells
// whether it was done at all: there may be too many that wait.
func (a *API) wait(x *exchange, d time.Duration, do func(context.Context)) bool {
	ctx, done, ok := a.waits.begin(x.r.Context(), x.credential.Prefix, d)
	if !ok {
		return false
	}
	defer done()
	x.places.leave()
	x.outlast(d)
	do(ctx)
	return true
}

// outlast has the connection live for so much longer. Past its time to be read
// the server takes the client for gone.
func (x *exchange) outlast(d time.Duration) {
	now := time.Now() //nolint:forbidigo // deadlines of a connection are by the clock of the machine
	c := http.NewResponseController(x.w)
	// What is not a connection has no deadline either.
	_ = c.SetReadDeadline(now.Add(d + readTime))
	_ = c.SetWriteDeadline(now.Add(d + writeTime))
}

// awaitInvoice waits until the authority has judged an invoice, if that is what
// the client prefers, and returns it as it is then. It tells whether it has
// waited: it does not when too many do, and a reading that fails is no reason to
// fail what was done before.
func (a *API) awaitInvoice(x *exchange, id string) (inv store.Invoice, ok bool) {
	seconds, ok := preferredWait(x.r.Header)
	if !ok {
		return store.Invoice{}, false
	}
	var err error
	waited := a.wait(x, time.Duration(seconds)*time.Second, func(ctx context.Context) {
		inv, err = a.Pipeline.Await(ctx, x.scope, id)
	})
	if !waited || err != nil {
		return store.Invoice{}, false
	}
	x.w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(seconds))
	return inv, true
}

// preferredWait is how many seconds a client would wait (RFC 7240 §4.3), as far
// as we go along. Of several the first counts; what cannot be read is no
// preference.
func preferredWait(h http.Header) (seconds int, ok bool) {
	for _, preference := range splitUnquoted(strings.Join(h.Values("Prefer"), ","), ',') {
		main := splitUnquoted(preference, ';')[0] // what follows are its parameters
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
		if err != nil { // more than a number holds
			n = maxPreferredWait
		}
		return min(n, maxPreferredWait), true
	}
	return 0, false
}

// splitUnquoted splits a header at a separator that is not within quotes.
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
