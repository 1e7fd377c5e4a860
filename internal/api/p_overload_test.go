package api_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// prompt is how long a request that waits for nothing may take on a machine
// that is busy with the other tests.
const prompt = 5 * time.Second

// served asks as a normal client does, and wants an answer soon.
func (w *world) served(t *testing.T, key string) {
	t.Helper()
	began := time.Now()
	a := w.send(request{path: "invoices?limit=1", key: key})
	if took := time.Since(began); a.status != http.StatusOK || took > prompt {
		t.Errorf("a normal client got %s after %s", a, took)
	}
}

// The slow of every kind come at the same time, so that one test waits for all.
func TestP61SlowClients(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		headersCutOff := w.slowHeaders(t, 300)
		w.slowStrangers(t, 300)
		w.slowBodies(t, 300)
		headersCutOff()
		w.served(t, "")
	})
}

// slowHeaders opens connections whose headers do not end; the result waits for
// them to be cut off.
func (w *world) slowHeaders(t *testing.T, crowd int) (cutOff func()) {
	t.Helper()
	slow := make([]*wire, crowd)
	began := time.Now()
	for i := range slow {
		slow[i] = w.dial(t)
		_, err := io.WriteString(slow[i], "GET /v1/taxpayers/x/invoices HTTP/1.1\r\nHost: a\r\nX-Slow: ")
		w.must(err)
	}
	var waiting sync.WaitGroup
	for _, c := range slow {
		waiting.Go(func() {
			w.must(c.SetReadDeadline(began.Add(15 * time.Second)))
			_, err := c.answer(http.MethodGet)
			took := time.Since(began)
			if ended := err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); !ended || took < 3*time.Second || took > 12*time.Second {
				t.Errorf("after %s, want about 5: %v", took, err)
			}
		})
	}
	w.served(t, "")
	return waiting.Wait
}

// slowBodies sends creations whose body does not end. The service waits 30 s
// for one; here it waits less.
func (w *world) slowBodies(t *testing.T, crowd int) {
	t.Helper()
	hasty := w.beside(t, func(_ *api.Options, s *http.Server) { s.ReadTimeout = 1500 * time.Millisecond })
	slowKey := w.newKey(w.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
	head := w.sentText(http.MethodPost, "/v1/taxpayers/"+w.taxpayer+"/invoices", slowKey,
		"Content-Type: application/json", "Content-Length: 1000", "Idempotency-Key: k")
	slow := make([]*wire, crowd)
	for i := range slow {
		slow[i] = hasty.dial(t)
		_, err := io.WriteString(slow[i], head+`{"external_id": "slow`)
		w.must(err)
	}
	hasty.served(t, w.key)
	told := make(map[int]int)
	for _, c := range slow {
		a, err := c.answer(http.MethodPost)
		switch {
		case err != nil:
			t.Error(err)
			continue
		case a.status == http.StatusRequestTimeout && a.code() == "bad_request" && a.header.Get("Connection") == "close" && c.over():
		case a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "1": // its credential has 64 others under way
		default:
			t.Errorf("%s %v", a, a.header)
		}
		wantCommon(t, w.clock.now(), a)
		told[a.status]++
	}
	if told[http.StatusRequestTimeout] < 64 {
		t.Errorf("answers by status: %v", told)
	}
	// All places are free again, and nothing of it was stored.
	hasty.served(t, slowKey)
	if a := hasty.send(request{path: "fiscal-documents?external_id=slow"}); !bytes.Contains(a.body, []byte(`"data":[]`)) {
		t.Error(a)
	}
}

// slowStrangers do the same without a credential. They are judged before their
// body comes: they hold their own connections and no place in the service.
func (w *world) slowStrangers(t *testing.T, crowd int) {
	t.Helper()
	hasty := w.beside(t, func(_ *api.Options, s *http.Server) { s.ReadTimeout = time.Second })
	slow := make([]*wire, crowd)
	for i := range slow {
		slow[i] = hasty.dial(t)
		_, err := io.WriteString(slow[i], w.sentText(http.MethodPost, "/v1/taxpayers/"+w.taxpayer+"/invoices", "",
			"Content-Type: application/json", "Content-Length: 1000"))
		w.must(err)
	}
	hasty.served(t, w.key)
	for _, c := range slow {
		// The server waits for the body before it says what it decided.
		if a, err := c.answer(http.MethodPost); err != nil || a.status != http.StatusUnauthorized || !c.over() {
			t.Errorf("%v %s", err, a)
		}
	}
}

// outcome is what became of one creation.
type outcome struct {
	externalID, idem string
	answer
	took time.Duration
}

// flood sends creations at the same time, one for each key of the list, and
// tells of each that the service has no room for.
func (w *world) flood(t *testing.T, keys []string, externalID string, refused ...func()) (wait func() []outcome) {
	t.Helper()
	results := make([]outcome, len(keys))
	var clients sync.WaitGroup
	for i, key := range keys {
		clients.Go(func() {
			o := outcome{externalID: fmt.Sprintf("%s-%d", externalID, i), idem: fmt.Sprintf("%s-key-%d", externalID, i)}
			began := time.Now()
			var err error
			o.answer, err = w.try(request{method: http.MethodPost, path: "invoices", key: key, idem: o.idem, body: body(o.externalID)})
			o.took = time.Since(began)
			if err != nil {
				t.Error(err)
			}
			if o.status == http.StatusServiceUnavailable {
				for _, tell := range refused {
					tell()
				}
			}
			results[i] = o
		})
	}
	return func() []outcome {
		clients.Wait()
		return results
	}
}

// settle checks the answers of a flood: each is a 202 that is stored as it was
// answered, or a refusal that came soon, says when to come back and left
// nothing behind. It returns how many there are of each status.
func (w *world) settle(t *testing.T, results []outcome, soon time.Duration) map[int]int {
	t.Helper()
	scope := store.Scope{Environment: w.opt.env, TaxpayerID: w.taxpayer}
	invoices, err := w.store.ListInvoices(t.Context(), scope, store.InvoiceFilter{Limit: 10_000})
	w.must(err)
	stored := make(map[string]string)
	for _, inv := range invoices {
		stored[inv.ExternalID] = inv.ID
	}
	count := make(map[int]int)
	for _, o := range results {
		count[o.status]++
		switch o.status {
		case http.StatusAccepted:
			known, err := w.store.Answer(t.Context(), scope, pipeline.CreateInvoice, o.idem)
			if made := w.created(o.answer); err != nil || made.ID != stored[o.externalID] || !bytes.Equal(known.Body, o.body) {
				t.Errorf("a 202 is lost: %s; %v, stored %s", o.answer, err, known.Body)
			}
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			if n, err := strconv.Atoi(o.header.Get("Retry-After")); err != nil || n < 1 {
				t.Errorf("Retry-After %q in %s", o.header.Get("Retry-After"), o.answer)
			}
			if o.took > soon {
				t.Errorf("refused after %s: %s", o.took, o.answer)
			}
			if id := stored[o.externalID]; id != "" {
				t.Errorf("%s, and yet it is stored as %s", o.answer, id)
			}
		default:
			t.Errorf("%s: %s", o.externalID, o.answer)
		}
	}
	return count
}

func TestP63Overload(t *testing.T) {
	held(t, options{}, func(t *testing.T, w *world, h *hold) {
		// Five times what fits, from enough credentials to fill the service.
		keys := make([]string, 5*256)
		own := make([]string, 16)
		for i := range own {
			own[i] = w.newKey(w.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		}
		for i := range keys {
			keys[i] = own[i%len(own)]
		}
		wait := w.flood(t, keys, "slow")
		h.await(t, 256)
		began := time.Now()
		a := w.send(request{path: "invoices"}) // with the service full, even a good key is told so
		if took := time.Since(began); a.status != http.StatusServiceUnavailable || took > prompt {
			t.Errorf("%s after %s", a, took)
		}
		close(h.release)
		count := w.settle(t, wait(), 2*prompt)
		if count[http.StatusAccepted] < 256 || count[http.StatusServiceUnavailable] < 1 {
			t.Errorf("answers by status: %v", count)
		}
		w.served(t, "")
	})
}

// P-80: slow queries hold every connection to the database. Those for whom there
// is no room are told soon, nobody opens more connections, and all goes on once
// they are free.
func TestP80EveryConnectionIsTaken(t *testing.T) {
	t.Parallel()
	w := start(t, storetest.Address(t, "postgres"), options{})
	own := make([]string, 16)
	for i := range own {
		own[i] = w.newKey(w.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		w.served(t, own[i]) // it is known, and needs no look at the database
	}
	const pool = 16
	taken, release := make(chan struct{}, pool), make(chan struct{})
	var slow sync.WaitGroup
	for range pool {
		slow.Go(func() {
			err := w.store.Update(t.Context(), func(*store.Tx) error {
				taken <- struct{}{}
				<-release
				return nil
			})
			if err != nil {
				t.Errorf("a slow transaction: %v", err)
			}
		})
	}
	for range pool {
		<-taken
	}
	keys := make([]string, 3*256)
	for i := range keys {
		keys[i] = own[i%len(own)]
	}
	var refused atomic.Int64
	enough := make(chan struct{})
	wait := w.flood(t, keys, "pool", func() {
		if refused.Add(1) == int64(len(keys)-256) {
			close(enough)
		}
	})
	select {
	case <-enough: // all but those that the service has room for
	case <-time.After(2 * prompt):
		t.Errorf("%d of %d were refused, and 256 fit", refused.Load(), len(keys))
	}
	var connections int
	w.must(w.database(t).QueryRowContext(t.Context(),
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fiscalhub'`).Scan(&connections))
	if connections != pool {
		t.Errorf("%d connections, want %d", connections, pool)
	}
	close(release)
	slow.Wait()
	count := w.settle(t, wait(), 2*prompt)
	if count[http.StatusAccepted] != 256 {
		t.Errorf("answers by status: %v", count)
	}
	w.served(t, "")
}

// burst sends reads at the same time and counts those that were answered.
func (w *world) burst(t *testing.T, key string, n int) int {
	t.Helper()
	var ok atomic.Int64
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			switch a, err := w.try(request{path: "invoices?limit=1", key: key}); {
			case err != nil:
				t.Error(err)
			case a.status == http.StatusOK:
				ok.Add(1)
			case a.status != http.StatusTooManyRequests:
				t.Error(a)
			}
		})
	}
	clients.Wait()
	return int(ok.Load())
}

// held runs a test on a world of every engine whose plan keeps slow creations.
func held(t *testing.T, opt options, test func(t *testing.T, w *world, h *hold)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		own, h := opt, newHold()
		own.plan = h.plan()
		test(t, start(t, address, own), h)
	})
}

func TestP65OneCredentialCannotTakeAllPlaces(t *testing.T) {
	held(t, options{rateLimit: 10_000}, func(t *testing.T, w *world, h *hold) {
		greedy := w.newKey(w.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		keys := make([]string, 400)
		for i := range keys {
			keys[i] = greedy
		}
		wait := w.flood(t, keys, "slow")
		h.await(t, 64)
		for range 5 {
			w.served(t, w.key)
		}
		select {
		case <-h.entered:
			t.Error("a credential has 65 requests under way")
		case <-time.After(1500 * time.Millisecond): // longer than any of them waits for a slot
		}
		close(h.release)
		count := w.settle(t, wait(), prompt)
		if count[http.StatusAccepted] != 64 || count[http.StatusTooManyRequests] != 336 {
			t.Errorf("answers by status: %v", count)
		}
		// A 429 cost nothing: 64 creations, and this question.
		if limit, remaining, _ := shown(t, w.send(request{path: "invoices", key: greedy})); limit-remaining != 65 {
			t.Errorf("64 creations and 336 refusals cost %d", limit-remaining-1)
		}
		// A burst of quick ones finds its places within the second, unless the
		// machine is too busy with other tests to answer a hundred in that time.
		var served int
		for try := 0; try < 5 && served < 100; try++ {
			served = w.burst(t, greedy, 100)
		}
		if served < 100 {
			t.Errorf("%d of 100 quick ones were served", served)
		}
	})
}

// The process as a whole, with its signals, is tested where its main is.
func TestP67StoppingAndDraining(t *testing.T) {
	held(t, options{}, func(t *testing.T, w *world, h *hold) {
		probe := func(path string, status int, state string) {
			t.Helper()
			a, err := w.plain(t, path)
			if err != nil || a.status != status || !bytes.Contains(a.body, []byte(`"`+state+`"`)) {
				t.Errorf("%s: %v %s", path, err, a)
			}
		}
		probe("/readyz", http.StatusOK, "ok")
		wait := w.flood(t, []string{w.key, w.key, w.key}, "slow")
		h.await(t, 3)

		w.api.Stopping()
		probe("/readyz", http.StatusServiceUnavailable, "stopping")
		probe("/livez", http.StatusOK, "ok")
		w.served(t, "") // those who have not looked yet are still served

		w.api.Drain()
		probe("/readyz", http.StatusServiceUnavailable, "stopping")
		probe("/livez", http.StatusOK, "ok")
		c := w.dial(t)
		a := c.ask(t, http.MethodGet, w.sentText(http.MethodGet, "/v1/taxpayers/"+w.taxpayer+"/invoices", w.key))
		if a.status != http.StatusServiceUnavailable || a.code() != "service_unavailable" || a.header.Get("Retry-After") != "1" ||
			a.header.Get("Connection") != "close" || !c.over() {
			t.Errorf("while draining: %s %v", a, a.header)
		}
		wantCommon(t, w.clock.now(), a)
		refused := w.create("late", body("late"))
		if refused.status != http.StatusServiceUnavailable {
			t.Errorf("while draining: %s", refused)
		}

		close(h.release) // what was under way is finished
		next := w.beside(t, func(*api.Options, *http.Server) {})
		if count := next.settle(t, wait(), prompt); count[http.StatusAccepted] != 3 {
			t.Errorf("under way: %v", count)
		}
		if a := next.create("late", body("late")); a.status != http.StatusAccepted || a.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("sent again elsewhere: %s", a)
		}
	})
}

func TestP68ProbesWithoutTheDatabase(t *testing.T) {
	each(t, options{}, func(t *testing.T, w *world) {
		s, cut := w.lost(t)
		half := w.beside(t, func(o *api.Options, _ *http.Server) { o.Store = s })
		want := func(path string, status int) {
			t.Helper()
			began := time.Now()
			a, err := half.plain(t, path)
			if took := time.Since(began); err != nil || a.status != status || took > prompt {
				t.Errorf("%s: %v %s after %s", path, err, a, took)
			}
		}
		want("/livez", http.StatusOK)
		want("/readyz", http.StatusOK)
		half.served(t, w.key)
		cut()
		want("/livez", http.StatusOK)
		want("/readyz", http.StatusServiceUnavailable)
		// Reads are told to come back; the credential is known from before.
		for _, r := range []request{
			{path: "invoices"}, {path: "invoices/" + store.NewID()}, {path: "fiscal-documents?external_id=a"},
			{path: "invoices", key: stranger(t, fiscal.Sandbox)},
		} {
			a := half.send(r)
			if a.status != http.StatusServiceUnavailable || a.code() != "service_unavailable" || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %s", r.path, a)
			}
			wantCommon(t, w.clock.now(), a)
		}
		w.served(t, "")
	})
}
