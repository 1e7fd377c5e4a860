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

// promptly is how long a request that waits for nothing may take on a machine
// that is busy with the other tests.
const promptly = 5 * time.Second

// wantServed asks as a normal client does, and wants an answer soon.
func (e *env) wantServed(t *testing.T, key string) {
	t.Helper()
	began := time.Now()
	a := e.send(request{path: "invoices?limit=1", key: key})
	if took := time.Since(began); a.status != http.StatusOK || took > promptly {
		t.Errorf("a normal client got %s after %s", a, took)
	}
}

// The slow of every kind come at the same time, so that one test waits for all.
func TestSlowClientsDoNotBlockOthers(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		headersCutOff := e.slowHeaders(t, 300)
		e.slowStrangers(t, 300)
		e.slowBodies(t, 300)
		headersCutOff()
		e.wantServed(t, "")
	})
}

// slowHeaders opens connections whose headers do not end; the result waits for
// them to be cut off.
func (e *env) slowHeaders(t *testing.T, crowd int) (cutOff func()) {
	t.Helper()
	slow := make([]*rawConn, crowd)
	began := time.Now()
	for i := range slow {
		slow[i] = e.dial(t)
		_, err := io.WriteString(slow[i], "GET /v1/taxpayers/x/invoices HTTP/1.1\r\nHost: a\r\nX-Slow: ")
		e.must(err)
	}
	var waiting sync.WaitGroup
	for _, c := range slow {
		waiting.Go(func() {
			e.must(c.SetReadDeadline(began.Add(15 * time.Second)))
			_, err := c.answer(http.MethodGet)
			took := time.Since(began)
			if ended := err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF); !ended || took < 3*time.Second || took > 12*time.Second {
				t.Errorf("after %s, want about 5: %v", took, err)
			}
		})
	}
	e.wantServed(t, "")
	return waiting.Wait
}

// slowBodies sends creations whose body does not end. The service waits 30 s
// for one; here it waits less.
func (e *env) slowBodies(t *testing.T, crowd int) {
	t.Helper()
	hasty := e.withService(t, func(_ *api.Options, s *http.Server) { s.ReadTimeout = 1500 * time.Millisecond })
	slowKey := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
	head := e.rawRequest(http.MethodPost, "/v1/taxpayers/"+e.taxpayer+"/invoices", slowKey,
		"Content-Type: application/json", "Content-Length: 1000", "Idempotency-Key: k")
	slow := make([]*rawConn, crowd)
	for i := range slow {
		slow[i] = hasty.dial(t)
		_, err := io.WriteString(slow[i], head+`{"external_id": "slow`)
		e.must(err)
	}
	hasty.wantServed(t, e.key)
	told := make(map[int]int)
	for _, c := range slow {
		a, err := c.answer(http.MethodPost)
		switch {
		case err != nil:
			t.Error(err)
			continue
		case a.status == http.StatusRequestTimeout && a.code() == "bad_request" && a.header.Get("Connection") == "close" && c.closed():
		case a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "1": // its credential has 64 others under way
		default:
			t.Errorf("%s %v", a, a.header)
		}
		wantCommonHeaders(t, e.clock.now(), a)
		told[a.status]++
	}
	if told[http.StatusRequestTimeout] < 64 {
		t.Errorf("answers by status: %v", told)
	}
	// All places are free again, and nothing of it was stored.
	hasty.wantServed(t, slowKey)
	if a := hasty.send(request{path: "fiscal-documents?external_id=slow"}); !bytes.Contains(a.body, []byte(`"data":[]`)) {
		t.Error(a)
	}
}

// slowStrangers do the same without a credential. They are judged before their
// body comes: they hold their own connections and no place in the service.
func (e *env) slowStrangers(t *testing.T, crowd int) {
	t.Helper()
	hasty := e.withService(t, func(_ *api.Options, s *http.Server) { s.ReadTimeout = time.Second })
	slow := make([]*rawConn, crowd)
	for i := range slow {
		slow[i] = hasty.dial(t)
		_, err := io.WriteString(slow[i], e.rawRequest(http.MethodPost, "/v1/taxpayers/"+e.taxpayer+"/invoices", "",
			"Content-Type: application/json", "Content-Length: 1000"))
		e.must(err)
	}
	hasty.wantServed(t, e.key)
	for _, c := range slow {
		// The server waits for the body before it says what it decided.
		if a, err := c.answer(http.MethodPost); err != nil || a.status != http.StatusUnauthorized || !c.closed() {
			t.Errorf("%v %s", err, a)
		}
	}
}

// outcome is what became of one creation.
type outcome struct {
	externalID, idem string
	response
	took time.Duration
}

// createMany sends creations at the same time, one for each key of the list, and
// tells of each that the service has no room for.
func (e *env) createMany(t *testing.T, keys []string, externalID string, refused ...func()) (wait func() []outcome) {
	t.Helper()
	results := make([]outcome, len(keys))
	var clients sync.WaitGroup
	for i, key := range keys {
		clients.Go(func() {
			o := outcome{externalID: fmt.Sprintf("%s-%d", externalID, i), idem: fmt.Sprintf("%s-key-%d", externalID, i)}
			began := time.Now()
			var err error
			o.response, err = e.try(request{method: http.MethodPost, path: "invoices", key: key, idem: o.idem, body: invoiceBody(o.externalID)})
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

// checkOutcomes checks the answers of a flood: each is a 202 that is stored as it was
// answered, or a refusal that came soon, says when to come back and left
// nothing behind. It returns how many there are of each status.
func (e *env) checkOutcomes(t *testing.T, results []outcome, soon time.Duration) map[int]int {
	t.Helper()
	scope := store.Scope{Environment: e.opt.environment, TaxpayerID: e.taxpayer}
	invoices, err := e.store.ListInvoices(t.Context(), scope, store.InvoiceFilter{Limit: 10_000})
	e.must(err)
	stored := make(map[string]string)
	for _, inv := range invoices {
		stored[inv.ExternalID] = inv.ID
	}
	count := make(map[int]int)
	for _, o := range results {
		count[o.status]++
		switch o.status {
		case http.StatusAccepted:
			known, err := e.store.Answer(t.Context(), scope, pipeline.CreateInvoice, o.idem)
			if made := e.created(o.response); err != nil || made.ID != stored[o.externalID] || !bytes.Equal(known.Body, o.body) {
				t.Errorf("a 202 is lost: %s; %v, stored %s", o.response, err, known.Body)
			}
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			if n, err := strconv.Atoi(o.header.Get("Retry-After")); err != nil || n < 1 {
				t.Errorf("Retry-After %q in %s", o.header.Get("Retry-After"), o.response)
			}
			if o.took > soon {
				t.Errorf("refused after %s: %s", o.took, o.response)
			}
			if id := stored[o.externalID]; id != "" {
				t.Errorf("%s, and yet it is stored as %s", o.response, id)
			}
		default:
			t.Errorf("%s: %s", o.externalID, o.response)
		}
	}
	return count
}

func TestOverloadIsRefusedAndLosesNothing(t *testing.T) {
	eachEngineBlocking(t, envOptions{}, func(t *testing.T, e *env, h *blockingPlan) {
		// Five times what fits, from enough credentials to fill the service.
		keys := make([]string, 5*256)
		own := make([]string, 16)
		for i := range own {
			own[i] = e.newKey(e.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		}
		for i := range keys {
			keys[i] = own[i%len(own)]
		}
		wait := e.createMany(t, keys, "slow")
		h.await(t, 256)
		began := time.Now()
		a := e.send(request{path: "invoices"}) // with the service full, even a good key is told so
		if took := time.Since(began); a.status != http.StatusServiceUnavailable || took > promptly {
			t.Errorf("%s after %s", a, took)
		}
		close(h.release)
		count := e.checkOutcomes(t, wait(), 2*promptly)
		if count[http.StatusAccepted] < 256 || count[http.StatusServiceUnavailable] < 1 {
			t.Errorf("answers by status: %v", count)
		}
		e.wantServed(t, "")
	})
}

// P-80: slow queries hold every connection to the database. Those for whom there
// is no room are told soon, nobody opens more connections, and all goes on once
// they are free.
func TestAllDatabaseConnectionsInUse(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "postgres"), envOptions{})
	own := make([]string, 16)
	for i := range own {
		own[i] = e.newKey(e.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		e.wantServed(t, own[i]) // it is known, and needs no look at the database
	}
	const pool = 16
	taken, release := make(chan struct{}, pool), make(chan struct{})
	var slow sync.WaitGroup
	for range pool {
		slow.Go(func() {
			err := e.store.Update(t.Context(), func(*store.Tx) error {
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
	wait := e.createMany(t, keys, "pool", func() {
		if refused.Add(1) == int64(len(keys)-256) {
			close(enough)
		}
	})
	select {
	case <-enough: // all but those that the service has room for
	case <-time.After(2 * promptly):
		t.Errorf("%d of %d were refused, and 256 fit", refused.Load(), len(keys))
	}
	var connections int
	e.must(e.database(t).QueryRowContext(t.Context(),
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fiscalhub'`).Scan(&connections))
	if connections != pool {
		t.Errorf("%d connections, want %d", connections, pool)
	}
	close(release)
	slow.Wait()
	count := e.checkOutcomes(t, wait(), 2*promptly)
	if count[http.StatusAccepted] != 256 {
		t.Errorf("answers by status: %v", count)
	}
	e.wantServed(t, "")
}

// readMany sends reads at the same time and counts those that were answered.
func (e *env) readMany(t *testing.T, key string, n int) int {
	t.Helper()
	var ok atomic.Int64
	var clients sync.WaitGroup
	for range n {
		clients.Go(func() {
			switch a, err := e.try(request{path: "invoices?limit=1", key: key}); {
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

// eachEngineBlocking runs a test on a world of every engine whose plan keeps slow creations.
func eachEngineBlocking(t *testing.T, opt envOptions, test func(t *testing.T, e *env, h *blockingPlan)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		own, h := opt, newBlockingPlan()
		own.plan = h.plan()
		test(t, newEnv(t, address, own), h)
	})
}

func TestOneCredentialCannotTakeAllSlots(t *testing.T) {
	eachEngineBlocking(t, envOptions{rateLimit: 10_000}, func(t *testing.T, e *env, h *blockingPlan) {
		greedy := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		keys := make([]string, 400)
		for i := range keys {
			keys[i] = greedy
		}
		wait := e.createMany(t, keys, "slow")
		h.await(t, 64)
		for range 5 {
			e.wantServed(t, e.key)
		}
		select {
		case <-h.entered:
			t.Error("a credential has 65 requests under way")
		case <-time.After(1500 * time.Millisecond): // longer than any of them waits for a slot
		}
		close(h.release)
		count := e.checkOutcomes(t, wait(), promptly)
		if count[http.StatusAccepted] != 64 || count[http.StatusTooManyRequests] != 336 {
			t.Errorf("answers by status: %v", count)
		}
		// A 429 cost nothing: 64 creations, and this question.
		if limit, remaining, _ := rateLimitHeaders(t, e.send(request{path: "invoices", key: greedy})); limit-remaining != 65 {
			t.Errorf("64 creations and 336 refusals cost %d", limit-remaining-1)
		}
		// A burst of quick ones finds its places within the second, unless the
		// machine is too busy with other tests to answer a hundred in that time.
		var served int
		for try := 0; try < 5 && served < 100; try++ {
			served = e.readMany(t, greedy, 100)
		}
		if served < 100 {
			t.Errorf("%d of 100 quick ones were served", served)
		}
	})
}

// The process as a whole, with its signals, is tested where its main is.
func TestStoppingAndDraining(t *testing.T) {
	eachEngineBlocking(t, envOptions{}, func(t *testing.T, e *env, h *blockingPlan) {
		probe := func(path string, status int, state string) {
			t.Helper()
			a, err := e.getPlain(t, path)
			if err != nil || a.status != status || !bytes.Contains(a.body, []byte(`"`+state+`"`)) {
				t.Errorf("%s: %v %s", path, err, a)
			}
		}
		probe("/readyz", http.StatusOK, "ok")
		wait := e.createMany(t, []string{e.key, e.key, e.key}, "slow")
		h.await(t, 3)

		e.api.Stopping()
		probe("/readyz", http.StatusServiceUnavailable, "stopping")
		probe("/livez", http.StatusOK, "ok")
		e.wantServed(t, "") // those who have not looked yet are still served

		e.api.Drain()
		probe("/readyz", http.StatusServiceUnavailable, "stopping")
		probe("/livez", http.StatusOK, "ok")
		c := e.dial(t)
		a := c.exchange(t, http.MethodGet, e.rawRequest(http.MethodGet, "/v1/taxpayers/"+e.taxpayer+"/invoices", e.key))
		if a.status != http.StatusServiceUnavailable || a.code() != "service_unavailable" || a.header.Get("Retry-After") != "1" ||
			a.header.Get("Connection") != "close" || !c.closed() {
			t.Errorf("while draining: %s %v", a, a.header)
		}
		wantCommonHeaders(t, e.clock.now(), a)
		refused := e.create("late", invoiceBody("late"))
		if refused.status != http.StatusServiceUnavailable {
			t.Errorf("while draining: %s", refused)
		}

		close(h.release) // what was under way is finished
		next := e.withService(t, func(*api.Options, *http.Server) {})
		if count := next.checkOutcomes(t, wait(), promptly); count[http.StatusAccepted] != 3 {
			t.Errorf("under way: %v", count)
		}
		if a := next.create("late", invoiceBody("late")); a.status != http.StatusAccepted || a.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("sent again elsewhere: %s", a)
		}
	})
}

func TestProbesWithoutTheDatabase(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		s, cut := e.breakableStore(t)
		half := e.withService(t, func(o *api.Options, _ *http.Server) { o.Store = s })
		want := func(path string, status int) {
			t.Helper()
			began := time.Now()
			a, err := half.getPlain(t, path)
			if took := time.Since(began); err != nil || a.status != status || took > promptly {
				t.Errorf("%s: %v %s after %s", path, err, a, took)
			}
		}
		want("/livez", http.StatusOK)
		want("/readyz", http.StatusOK)
		half.wantServed(t, e.key)
		cut()
		want("/livez", http.StatusOK)
		want("/readyz", http.StatusServiceUnavailable)
		// Reads are told to come back; the credential is known from before.
		for _, r := range []request{
			{path: "invoices"}, {path: "invoices/" + store.NewID()}, {path: "fiscal-documents?external_id=a"},
			{path: "invoices", key: unknownKey(t, fiscal.Sandbox)},
		} {
			a := half.send(r)
			if a.status != http.StatusServiceUnavailable || a.code() != "service_unavailable" || a.header.Get("Retry-After") == "" {
				t.Errorf("%s: %s", r.path, a)
			}
			wantCommonHeaders(t, e.clock.now(), a)
		}
		e.wantServed(t, "")
	})
}
