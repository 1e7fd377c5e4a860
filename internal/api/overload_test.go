package api_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// promptly is how long a request may take that does not wait, on a machine that
// runs other tests.
const promptly = 5 * time.Second

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

// factor multiplies the sizes of these tests. With OVERLOAD_FACTOR=16, as in make
// soak, the limits are those of the service.
func factor() int {
	if n, err := strconv.Atoi(os.Getenv("OVERLOAD_FACTOR")); err == nil {
		return n
	}
	return 1
}

// fewSlots are limits that a test reaches with few requests. A request waits only
// for a short time.
func fewSlots() capacity.Limits {
	l, f := capacity.DefaultLimits(1<<30, 2), factor()
	l.Slots, l.TaxpayerSlots, l.CredentialSlots, l.Waiting, l.CredentialWaiting = 16*f, 8*f, 4*f, 32*f, 16*f
	l.SlotPatience = 50 * time.Millisecond
	return l
}

// withLimits starts another API of the environment with these limits.
func (e *env) withLimits(t *testing.T, l capacity.Limits) *env {
	t.Helper()
	return e.withService(t, func(o *api.Options, _ *http.Server) { o.Capacity = capacity.New(l) })
}

// tenant is a taxpayer with some credentials.
type tenant struct {
	*env
	keys []string
}

// newTenant creates a taxpayer with credentials that have all scopes.
func (e *env) newTenant(keys int) tenant {
	e.t.Helper()
	other := *e
	other.taxpayer = e.newTaxpayer()
	n := tenant{env: &other}
	for range keys {
		n.keys = append(n.keys, e.newKey(other.taxpayer, e.opt.environment, apikey.AllScopes()...))
	}
	other.key = n.keys[0]
	return n
}

// outcome is the answer to one creation, or the error of the client.
type outcome struct {
	externalID, idem string
	response
	err  error
	took time.Duration
}

// creations are creations that were sent at the same time.
type creations struct {
	results  []outcome
	clients  sync.WaitGroup
	answered atomic.Int64
}

// wait waits for all answers.
func (c *creations) wait() []outcome {
	c.clients.Wait()
	return c.results
}

// createMany sends creations at the same time, count with each key.
func (n tenant) createMany(count int, externalID string) *creations {
	c := &creations{results: make([]outcome, count*len(n.keys))}
	for i := range c.results {
		c.clients.Go(func() {
			o := outcome{externalID: fmt.Sprintf("%s-%d", externalID, i), idem: fmt.Sprintf("%s-key-%d", externalID, i)}
			began := time.Now()
			o.response, o.err = n.try(request{
				method: http.MethodPost, path: "invoices", key: n.keys[i%len(n.keys)], idem: o.idem, body: invoiceBody(o.externalID),
			})
			o.took = time.Since(began)
			c.results[i] = o
			c.answered.Add(1)
		})
	}
	return c
}

// checkOutcomes checks the answers of createMany. Each is either a 202 that is
// stored as it was answered, or a refusal that came soon, has Retry-After and
// stored nothing. It returns the number of answers by status.
func (e *env) checkOutcomes(t *testing.T, results []outcome) map[int]int {
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
			known, err := e.store.StoredReply(t.Context(), scope, pipeline.CreateInvoice, o.idem)
			if made := e.created(o.response); err != nil || made.ID != stored[o.externalID] || !bytes.Equal(known.Body, o.body) {
				t.Errorf("a 202 is lost: %s; %v, stored %s", o.response, err, known.Body)
			}
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			if o.header.Get("Retry-After") != "1" || o.took > promptly {
				t.Errorf("Retry-After %q after %s in %s", o.header.Get("Retry-After"), o.took, o.response)
			}
			wantCommonHeaders(t, e.clock.now(), o.response)
			if id := stored[o.externalID]; id != "" {
				t.Errorf("%s, but it is stored as %s", o.response, id)
			}
		default:
			t.Errorf("%s: %v %s", o.externalID, o.err, o.response)
		}
	}
	return count
}

// wantStatuses compares the number of answers by status.
func wantStatuses(t *testing.T, name string, got, want map[int]int) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: answers by status (-want +got):\n%s", name, diff)
	}
}

// The slots stay taken until every refusal has arrived, so the numbers are exact.
func TestOverloadIsRefusedAndLosesNothing(t *testing.T) {
	eachEngineBlocking(t, envOptions{}, func(t *testing.T, e *env, h *blockingPlan) {
		limited, f := e.withLimits(t, fewSlots()), factor()
		first, second, third := limited.newTenant(2), limited.newTenant(2), limited.newTenant(5)
		executing := []*creations{first.createMany(4*f, "slow"), second.createMany(4*f, "slow")}
		h.await(t, 16*f)

		// A credential that uses its own slots up gets 429, all others get 503.
		wantStatuses(t, "first", first.checkOutcomes(t, first.createMany(20*f, "more").wait()), map[int]int{429: 40 * f})
		wantStatuses(t, "third", third.checkOutcomes(t, third.createMany(8*f, "slow").wait()), map[int]int{503: 40 * f})
		wantStatus(t, "a read", third.send(request{path: "invoices"}), http.StatusServiceUnavailable)
		close(h.release)
		for i, n := range []tenant{first, second} {
			wantStatuses(t, "executing", n.checkOutcomes(t, executing[i].wait()), map[int]int{202: 8 * f})
		}
		third.wantServed(t, "")
	})
}

// Slow transactions hold every connection to the database. Requests without a slot
// are refused soon, no more connections are opened, and the service continues when
// the connections are free.
func TestAllDatabaseConnectionsInUse(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "postgres"), envOptions{})
	limited, f := e.withLimits(t, fewSlots()), factor()
	tenants := []tenant{limited.newTenant(2), limited.newTenant(2)}
	for _, n := range tenants {
		for _, key := range n.keys {
			n.wantServed(t, key) // now the node has the credential in its cache
		}
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
	var executing []*creations
	for _, n := range tenants {
		executing = append(executing, n.createMany(4*f, "pool"))
	}
	eventually(t, "all slots are taken", func() bool { return limited.used("slots") == int64(16*f) })
	for _, n := range tenants {
		wantStatuses(t, "without a slot", n.checkOutcomesLater(t, n.createMany(8*f, "more").wait()), map[int]int{429: 16 * f})
	}
	var connections int
	e.must(e.database(t).QueryRowContext(t.Context(),
		`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'fiscalhub'`).Scan(&connections))
	if connections != pool {
		t.Errorf("%d connections, want %d", connections, pool)
	}
	close(release)
	slow.Wait()
	for i, n := range tenants {
		wantStatuses(t, "with a slot", n.checkOutcomes(t, executing[i].wait()), map[int]int{202: 8 * f})
		n.wantServed(t, "")
	}
}

// used returns how much of a part of the capacity is held.
func (e *env) used(part string) int64 {
	for _, u := range e.capacity.Usage() {
		if u.Name == part {
			return u.Used
		}
	}
	e.t.Fatalf("there is no part %s", part)
	return 0
}

// checkOutcomesLater is checkOutcomes for refusals, while the database cannot be
// read.
func (e *env) checkOutcomesLater(t *testing.T, results []outcome) map[int]int {
	t.Helper()
	count := make(map[int]int)
	for _, o := range results {
		count[o.status]++
		if o.err != nil || o.took > promptly {
			t.Errorf("%v %s after %s", o.err, o.response, o.took)
		}
	}
	return count
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
		limited, f := e.withLimits(t, fewSlots()), factor()
		greedy := limited.newTenant(1)
		executing := greedy.createMany(4*f, "slow")
		h.await(t, 4*f)
		wantStatuses(t, "more", greedy.checkOutcomes(t, greedy.createMany(40*f, "more").wait()), map[int]int{429: 40 * f})
		for range 5 {
			limited.wantServed(t, e.key)
		}
		close(h.release)
		wantStatuses(t, "executing", greedy.checkOutcomes(t, executing.wait()), map[int]int{202: 4 * f})
		// Refusals are not counted: the creations and this request.
		if limit, remaining, _ := rateLimitHeaders(t, greedy.send(request{path: "invoices"})); limit-remaining != int64(4*f+1) {
			t.Errorf("%d creations and %d refusals count as %d", 4*f, 40*f, limit-remaining-1)
		}
	})
}

// A burst of short requests waits for slots and is served.
func TestBurstOfShortRequestsIsServed(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		limits := fewSlots()
		limits.SlotPatience, limits.Waiting, limits.CredentialWaiting = time.Minute, 512, 256
		burst := e.withLimits(t, limits).newTenant(1)
		wantStatuses(t, "burst", burst.checkOutcomes(t, burst.createMany(100, "burst").wait()), map[int]int{202: 100})
	})
}

// However many keys a taxpayer has, others keep half of the slots.
func TestKeysOfOneTaxpayerCannotStarveAnother(t *testing.T) {
	eachEngineBlocking(t, envOptions{}, func(t *testing.T, e *env, h *blockingPlan) {
		limited, f := e.withLimits(t, fewSlots()), factor()
		greedy, modest := limited.newTenant(4), limited.newTenant(1)
		executing := greedy.createMany(4*f, "slow") // as many as the service has slots
		h.await(t, 8*f)
		for i := range 10 {
			modest.created(modest.create(fmt.Sprint("k", i), invoiceBody(fmt.Sprint("A", i))))
		}
		eventually(t, "the refusals beyond the limit of the taxpayer", func() bool { return executing.answered.Load() == int64(8*f) })
		close(h.release)
		wantStatuses(t, "greedy", greedy.checkOutcomes(t, executing.wait()), map[int]int{202: 8 * f, 429: 8 * f})
	})
}

// The tests of systemtest cover signals and the whole process.
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
		executing := tenant{e, []string{e.key}}.createMany(3, "slow")
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
		if count := next.checkOutcomes(t, executing.wait()); count[http.StatusAccepted] != 3 {
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
