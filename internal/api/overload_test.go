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

// promptly is how long a request may take that does not wait, on a machine that
// runs other tests.
const promptly = 15 * time.Second

// wantServed sends the request of a normal client and checks that it is answered
// promptly.
func (e *env) wantServed(t *testing.T, key string) {
	t.Helper()
	began := time.Now()
	a := e.send(request{path: "invoices?limit=1", key: key})
	if took := time.Since(began); a.status != http.StatusOK || took > promptly {
		t.Errorf("a normal client got %s after %s", a, took)
	}
}

// All kinds of slow clients come at the same time, so that only one test waits.
func TestSlowClientsDoNotBlockOthers(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		headersCutOff := e.slowHeaders(t, 300)
		e.slowAnonymous(t, 300)
		e.slowBodies(t, 300)
		headersCutOff()
		e.wantServed(t, "")
	})
}

// slowHeaders opens connections whose headers do not end. The returned function
// waits until the server has closed them.
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
				t.Errorf("closed after %s, want about 5 s: %v", took, err)
			}
		})
	}
	e.wantServed(t, "")
	return waiting.Wait
}

// slowBodies sends creations whose body does not end. The service waits 30 s for a
// body; here it waits less.
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
	byStatus := make(map[int]int)
	for _, c := range slow {
		a, err := c.answer(http.MethodPost)
		switch {
		case err != nil:
			t.Error(err)
			continue
		case a.status == http.StatusRequestTimeout && a.code() == "bad_request" && a.header.Get("Connection") == "close" && c.closed():
		case a.status == http.StatusTooManyRequests && a.header.Get("Retry-After") == "1": // its credential has used its 64 slots
		default:
			t.Errorf("%s %v", a, a.header)
		}
		wantCommonHeaders(t, e.clock.now(), a)
		byStatus[a.status]++
	}
	if byStatus[http.StatusRequestTimeout] < 64 {
		t.Errorf("answers by status: %v", byStatus)
	}
	// All slots are free again, and nothing is stored.
	hasty.wantServed(t, slowKey)
	if a := hasty.send(request{path: "fiscal-documents?external_id=slow"}); !bytes.Contains(a.body, []byte(`"data":[]`)) {
		t.Error(a)
	}
}

// slowAnonymous does the same without a credential. The service refuses these
// requests before their body arrives, so they hold connections but no slots.
func (e *env) slowAnonymous(t *testing.T, crowd int) {
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
		// net/http waits for the body before it sends the answer.
		if a, err := c.answer(http.MethodPost); err != nil || a.status != http.StatusUnauthorized || !c.closed() {
			t.Errorf("%v %s", err, a)
		}
	}
}

// outcome is the answer to one creation.
type outcome struct {
	externalID, idem string
	response
	took time.Duration
}

// createMany sends creations at the same time, one for each key, and calls refused
// for each one that is answered 503. The returned function waits for all answers.
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
				for _, call := range refused {
					call()
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

// checkOutcomes checks the answers of createMany. Each is either a 202 that is
// stored as it was answered, or a refusal that came soon, has Retry-After and
// stored nothing. It returns the number of answers by status.
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
				t.Errorf("%s, but it is stored as %s", o.response, id)
			}
		default:
			t.Errorf("%s: %s", o.externalID, o.response)
		}
	}
	return count
}

func TestOverloadIsRefusedAndLosesNothing(t *testing.T) {
	eachEngineBlocking(t, envOptions{}, func(t *testing.T, e *env, h *blockingPlan) {
		// Five times as many requests as slots, from enough credentials to take all slots.
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
		a := e.send(request{path: "invoices"}) // all slots are taken, also for other credentials
		if took := time.Since(began); a.status != http.StatusServiceUnavailable || took > promptly {
			t.Errorf("%s after %s", a, took)
		}
		close(h.release)
		count := e.checkOutcomes(t, wait(), 2*promptly)
		// 256 requests execute. On a busy machine some of them wait too long for a
		// connection to the database, and are refused.
		if count[http.StatusAccepted] < 128 || count[http.StatusServiceUnavailable] < 1 {
			t.Errorf("answers by status: %v", count)
		}
		e.wantServed(t, "")
	})
}

// Slow transactions hold every connection to the database. Requests without a slot
// are refused soon, no more connections are opened, and the service continues when
// the connections are free.
func TestAllDatabaseConnectionsInUse(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "postgres"), envOptions{})
	own := make([]string, 16)
	for i := range own {
		own[i] = e.newKey(e.taxpayer, fiscal.Sandbox, apikey.AllScopes()...)
		e.wantServed(t, own[i]) // now the node has the credential in its cache
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
	began := time.Now()
	enough := make(chan struct{})
	wait := e.createMany(t, keys, "pool", func() {
		if refused.Add(1) == int64(len(keys)-256) {
			close(enough)
		}
	})
	select {
	case <-enough: // all requests without a slot
	case <-time.After(2 * promptly):
		t.Errorf("%d of %d were refused, want all but 256", refused.Load(), len(keys))
	}
	var connections int
	e.must(e.database(t).QueryRowContext(t.Context(),
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fiscalhub'`).Scan(&connections))
	if connections != pool {
		t.Errorf("%d connections, want %d", connections, pool)
	}
	held := time.Since(began)
	close(release)
	slow.Wait()
	count := e.checkOutcomes(t, wait(), 2*promptly)
	// A request waits five seconds for a connection. On a machine that needs longer for
	// the refusals some of the 256 are refused, too.
	if accepted := count[http.StatusAccepted]; accepted == 0 || accepted > 256 || accepted < 256 && held < 4*time.Second {
		t.Errorf("answers by status after %s: %v", held, count)
	}
	e.wantServed(t, "")
}

// readMany sends n reads at the same time and counts those answered 200.
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

// eachEngineBlocking runs a test with a blockingPlan on each database engine.
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
			t.Error("65 requests of a credential execute")
		case <-time.After(1500 * time.Millisecond): // longer than a request waits for a slot
		}
		close(h.release)
		count := e.checkOutcomes(t, wait(), promptly)
		// A request that reached the service only after the release gets a slot.
		accepted := count[http.StatusAccepted]
		if accepted < 64 || count[http.StatusTooManyRequests] != 400-accepted || accepted > 100 {
			t.Errorf("answers by status: %v", count)
		}
		// Refusals are not counted: the creations and this request.
		if limit, remaining, _ := rateLimitHeaders(t, e.send(request{path: "invoices", key: greedy})); limit-remaining != int64(accepted)+1 {
			t.Errorf("%d creations and %d refusals count as %d", accepted, 400-accepted, limit-remaining-1)
		}
		// A hundred short requests get their slots within a second, unless the machine
		// is too busy with other tests.
		var served int
		for try := 0; try < 5 && served < 100; try++ {
			served = e.readMany(t, greedy, 100)
		}
		if served < 100 {
			t.Errorf("%d of 100 short requests were served", served)
		}
	})
}

// The tests of cmd/fiscalhub cover signals and the whole process.
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
		e.wantServed(t, "") // requests are still served

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

		close(h.release) // requests that execute are finished
		next := e.withService(t, func(*api.Options, *http.Server) {})
		if count := next.checkOutcomes(t, wait(), promptly); count[http.StatusAccepted] != 3 {
			t.Errorf("executing requests: %v", count)
		}
		if a := next.create("late", invoiceBody("late")); a.status != http.StatusAccepted || a.header.Get("Idempotency-Replayed") != "" {
			t.Errorf("sent again to another node: %s", a)
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
		// Reads are answered 503; the credential is cached.
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
