package api_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// rateLimitHeaders reads the RateLimit headers.
func rateLimitHeaders(t *testing.T, a response) (limit, remaining, reset int64) {
	t.Helper()
	for name, into := range map[string]*int64{"RateLimit-Limit": &limit, "RateLimit-Remaining": &remaining, "RateLimit-Reset": &reset} {
		n, err := strconv.ParseInt(a.header.Get(name), 10, 64)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		*into = n
	}
	return limit, remaining, reset
}

func TestRateLimitOfAWindow(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 20}, func(t *testing.T, e *env) {
		var reset int64
		for i := range int64(20) {
			a := e.send(request{path: "invoices"})
			limit, remaining, end := rateLimitHeaders(t, a)
			if a.status != http.StatusOK || limit != 20 || remaining > 19-i {
				t.Errorf("request %d: %s, %d of %d", i+1, a, remaining, limit)
			}
			wantCommonHeaders(t, e.clock.now(), a)
			reset = end
		}
		refused := func() {
			t.Helper()
			a := e.send(request{path: "invoices"})
			if a.status != http.StatusTooManyRequests || a.code() != "rate_limited" {
				t.Errorf("want 429, got %s", a)
			}
			limit, remaining, end := rateLimitHeaders(t, a)
			if limit != 20 || remaining != 0 || end != reset {
				t.Errorf("shows %d of %d until %d, want 0 of 20 until %d", remaining, limit, end, reset)
			}
			if retry, want := a.header.Get("Retry-After"), strconv.FormatInt(max(1, reset-e.clock.now().Unix()), 10); retry != want {
				t.Errorf("Retry-After %s, want %s", retry, want)
			}
		}
		for range 30 { // refusals are not counted
			refused()
		}
		e.clock.set(time.Unix(reset, 0).Add(-time.Millisecond))
		refused()
		e.clock.set(time.Unix(reset, 0))
		a := e.send(request{path: "invoices"})
		if _, _, end := rateLimitHeaders(t, a); a.status != http.StatusOK || end != reset+60 {
			t.Errorf("at the reset: %s until %d", a, end)
		}
	})
}

// Every request with a valid credential counts once, whatever its answer is.
func TestWhichRequestsAreCounted(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 100}, func(t *testing.T, e *env) {
		e.created(e.create("k", invoiceBody("A")))
		left := func() int64 {
			_, remaining, _ := rateLimitHeaders(t, e.send(request{path: "invoices"}))
			return remaining + 1 // without this request
		}
		scopeless := e.newKey(e.taxpayer, fiscal.Sandbox, apikey.WebhooksManage)
		for name, r := range map[string]request{
			"HEAD":               {method: http.MethodHead, path: "invoices"},
			"a replay":           {method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A")},
			"400":                {path: "invoices?limit=0"},
			"403":                {path: "/v1/taxpayers/00000000-0000-0000-0000-000000000000/invoices"},
			"404":                {path: "invoices/00000000-0000-0000-0000-000000000000"},
			"415":                {method: http.MethodPost, path: "invoices", idem: "x", header: http.Header{"Content-Type": {"text/plain"}}},
			"422":                {method: http.MethodPost, path: "invoices", idem: "x", body: []byte(`{}`)},
			"a page of the list": {path: "invoices?limit=1"},
		} {
			before := left()
			e.send(r)
			if after := left(); before-after != 2 { // the request and one call of left
				t.Errorf("%s counts as %d", name, before-after-1)
			}
		}
		for name, r := range map[string]request{
			"no key":            {path: "invoices", key: "-"},
			"a forged key":      {path: "invoices", key: forgeKey(t, e.key)},
			"another key":       {path: "invoices", key: scopeless},
			"an unknown path":   {path: "/v1/nothing"},
			"an unknown method": {method: http.MethodPut, path: "invoices"},
		} {
			before := left()
			e.send(r)
			if after := left(); before-after != 1 {
				t.Errorf("%s costs the credential %d", name, before-after-1)
			}
		}
	})
}

func TestCredentialMayHaveItsOwnRateLimit(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 5}, func(t *testing.T, e *env) {
		for _, own := range []int64{2, 9} {
			key, _, err := e.credentials().Issue(t.Context(), access.Terms{
				TaxpayerID: e.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(), RateLimit: own,
			})
			e.must(err)
			for i := range own + 2 {
				a := e.send(request{path: "invoices", key: key.Reveal()})
				if limit, _, _ := rateLimitHeaders(t, a); (a.status == http.StatusOK) != (i < own) || limit != own {
					t.Errorf("request %d of %d: %s, limit %d", i+1, own, a, limit)
				}
			}
		}
		if a := e.send(request{path: "invoices"}); a.status != http.StatusOK || a.header.Get("RateLimit-Limit") != "5" {
			t.Errorf("another credential: %s", a)
		}
	})
}

func TestRateLimitThatIsOff(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 0}, func(t *testing.T, e *env) {
		key, _, err := e.credentials().Issue(t.Context(), access.Terms{
			TaxpayerID: e.taxpayer, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(), RateLimit: 1,
		})
		e.must(err)
		for i := range 310 { // more failures than an address may have
			a := e.send(request{path: "invoices", key: "-"})
			if limit, remaining, _ := rateLimitHeaders(t, a); a.status != http.StatusUnauthorized || limit != 1000000 || remaining != 1000000 {
				t.Fatalf("failure %d: %s %v", i+1, a, a.header)
			}
		}
		for range 3 {
			a := e.send(request{path: "invoices", key: key.Reveal()})
			if limit, remaining, _ := rateLimitHeaders(t, a); a.status != http.StatusOK || limit != 1000000 || remaining != 1000000 {
				t.Errorf("%s %v", a, a.header)
			}
		}
	})
}

func TestAddressMayFailThreeHundredTimes(t *testing.T) {
	oneEngine(t, envOptions{rateLimit: 100}, func(t *testing.T, e *env) {
		fails := []request{
			{path: "invoices", key: "-"},
			{path: "invoices", key: "fh_nonsense"},
			{path: "invoices", key: forgeKey(t, e.key)},
			{path: "/v1/nothing"},
			{method: http.MethodDelete, path: "invoices"},
		}
		for i := range int64(300) {
			a := e.send(fails[i%int64(len(fails))])
			limit, remaining, _ := rateLimitHeaders(t, a)
			if a.status == http.StatusTooManyRequests || limit != 300 || remaining != 299-i {
				t.Fatalf("failure %d: %s, %d of %d", i+1, a, remaining, limit)
			}
		}
		var reset int64
		for _, r := range fails[:3] {
			a := e.send(r)
			_, remaining, end := rateLimitHeaders(t, a)
			if a.status != http.StatusTooManyRequests || a.code() != "rate_limited" || remaining != 0 || a.header.Get("WWW-Authenticate") != "" {
				t.Errorf("want 429 instead of 401, got %s %v", a, a.header)
			}
			if retry := a.header.Get("Retry-After"); retry != strconv.FormatInt(end-e.clock.now().Unix(), 10) {
				t.Errorf("Retry-After %s, reset in %d", retry, end-e.clock.now().Unix())
			}
			reset = end
		}
		wantStatus(t, "an unknown path", e.send(fails[3]), http.StatusNotFound)
		if a := e.send(request{path: "invoices"}); a.status != http.StatusOK || a.header.Get("RateLimit-Limit") != "100" {
			t.Errorf("a valid key from the same address: %s", a)
		}
		e.clock.set(time.Unix(reset, 0))
		wantStatus(t, "after the reset", e.send(fails[0]), http.StatusUnauthorized)
	})
}

// Each client behind a configured proxy has a window of its own, and cannot use
// that of another client.
func TestClientsBehindAProxyAreCountedSeparately(t *testing.T) {
	oneEngine(t, envOptions{rateLimit: 100}, func(t *testing.T, e *env) {
		proxied := e.withService(t, func(o *api.Options, _ *http.Server) {
			o.Clients = capacity.NewClientFinder([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, o.Now, o.Log)
		})
		fail := func(e *env, forwarded string) int {
			return e.send(request{path: "invoices", key: "-", header: http.Header{"X-Forwarded-For": {forwarded}}}).status
		}
		for i := range 301 {
			// Addresses that the client adds itself are ignored.
			want := http.StatusUnauthorized
			if i == 300 {
				want = http.StatusTooManyRequests
			}
			if got := fail(proxied, fmt.Sprintf("198.51.100.%d, 203.0.113.1", i%250)); got != want {
				t.Fatalf("failure %d: %d", i+1, got)
			}
			if got := fail(e, fmt.Sprintf("203.0.113.%d", i%250)); got != want {
				t.Fatalf("failure %d with X-Forwarded-For of an unknown proxy: %d", i+1, got)
			}
		}
		if got := fail(proxied, "203.0.113.2"); got != http.StatusUnauthorized {
			t.Errorf("another client of the proxy: %d", got)
		}
	})
}

// Two nodes share one window: together they allow exactly the limit.
func TestTwoNodesShareARateLimit(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	const limit = 200
	opt := envOptions{rateLimit: limit, masterKey: filepath.Join(t.TempDir(), "master.key"), clock: newClock()}
	one := newEnv(t, address, opt)
	two := newNode(t, address, opt)
	two.taxpayer, two.key = one.taxpayer, one.key

	// A trigger counts the writes of the rate limiter.
	db := one.database(t)
	for _, statement := range []string{
		`CREATE TABLE lease_marks (n INT)`,
		`CREATE FUNCTION mark_lease() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN INSERT INTO lease_marks VALUES (1); RETURN NULL; END'`,
		`CREATE TRIGGER mark_lease AFTER INSERT OR UPDATE ON rate_windows FOR EACH ROW EXECUTE FUNCTION mark_lease()`,
	} {
		_, err := db.ExecContext(t.Context(), statement)
		one.must(err)
	}
	load := func() (in int64, reset int64) {
		var accepted atomic.Int64
		var clients sync.WaitGroup
		for i := range 8 {
			e := []*env{one, two}[i%2]
			clients.Go(func() {
				for range limit / 4 { // twice the limit in total
					switch a, err := e.try(request{path: "invoices"}); {
					case err != nil:
						t.Error(err)
					case a.status == http.StatusOK:
						accepted.Add(1)
					case a.status != http.StatusTooManyRequests:
						t.Error(a)
					}
				}
			})
		}
		clients.Wait()
		for _, e := range []*env{one, two} {
			a := e.send(request{path: "invoices"})
			if _, remaining, end := rateLimitHeaders(t, a); a.status != http.StatusTooManyRequests || remaining != 0 {
				t.Errorf("a node whose window is full: %s, %d remaining", a, remaining)
			} else {
				reset = end
			}
		}
		return accepted.Load(), reset
	}
	for range 2 {
		in, reset := load()
		if in != limit {
			t.Errorf("two nodes allow %d, want %d", in, limit)
		}
		opt.clock.set(time.Unix(reset, 0))
	}
	var marks int
	one.must(db.QueryRowContext(t.Context(), `SELECT count(*) FROM lease_marks`).Scan(&marks))
	if marks == 0 || marks > limit { // two windows, 800 requests
		t.Errorf("the limiter wrote %d times for 800 requests", marks)
	}
}

// A clock that was an hour ahead and is corrected must not leave a full window in
// the future.
func TestSharedWindowRecoversWhenTheClockIsSetBack(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 10}, func(t *testing.T, e *env) {
		e.clock.advance(time.Hour)
		for range 12 {
			e.send(request{path: "invoices"})
		}
		e.clock.advance(-time.Hour)
		for window := range 3 {
			for i := range 10 {
				if a := e.send(request{path: "invoices"}); a.status != http.StatusOK {
					t.Fatalf("window %d after the clock was corrected, request %d: %s", window+1, i+1, a)
				}
			}
			e.clock.advance(time.Minute)
		}
	})
}

// Guessing keys is limited by address and does not affect other clients.
func TestGuessingKeysDoesNotAffectOthers(t *testing.T) {
	eachEngine(t, envOptions{rateLimit: 1000}, func(t *testing.T, e *env) {
		var unauthorized, limited atomic.Int64
		var guessers sync.WaitGroup
		keys := make([]string, 700)
		for i := range keys {
			if keys[i] = unknownKey(t, fiscal.Sandbox); i%2 == 0 {
				keys[i] = forgeKey(t, e.key)
			}
		}
		for g := range 8 {
			guessers.Go(func() {
				for i := g; i < len(keys); i += 8 {
					switch a, err := e.try(request{path: "invoices", key: keys[i]}); {
					case err != nil:
						t.Error(err)
					case a.status == http.StatusUnauthorized:
						unauthorized.Add(1)
					case a.status == http.StatusTooManyRequests:
						limited.Add(1)
					default:
						t.Error(a)
					}
				}
			})
		}
		for range 50 {
			wantStatus(t, "a valid key meanwhile", e.send(request{path: "invoices"}), http.StatusOK)
		}
		guessers.Wait()
		if unauthorized.Load() != 300 || limited.Load() != 400 {
			t.Errorf("%d got 401 and %d got 429", unauthorized.Load(), limited.Load())
		}
	})
}
