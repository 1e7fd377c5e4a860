package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

func intent(key, fingerprint string) Intent {
	return Intent{Key: key, Fingerprint: []byte(fingerprint), RawDigest: []byte{1}, RequestID: "req_1"}
}

// newEndpoint describes a valid endpoint of the taxpayer.
func (e *env) newEndpoint() EndpointSpec {
	return EndpointSpec{Scope: e.scope, URL: "https://hooks.example.com/x?y=z", Kinds: []string{event.All}, Description: "«ñ»"}
}

// A repeated creation gets the same bytes as the first, with the secret, even after the
// endpoint or the rules have changed. The database holds the secret only sealed.
func TestARepeatedCreationReturnsTheStoredAnswer(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		made, err := e.Create(t.Context(), e.newEndpoint(), intent("k", "f"))
		e.must(err)
		if made.Replayed || !bytes.Contains(made.Answer.Body, []byte(made.Secret.Reveal())) || made.Answer.HTTPStatus != http.StatusCreated ||
			made.Answer.ObjectID != made.Endpoint.ID {
			t.Errorf("Create returned %+v", made)
		}
		stored := e.read(made.Endpoint)
		if diff := cmp.Diff(made.Endpoint, stored); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		raw, err := e.store.StoredReply(t.Context(), e.scope, CreateEndpoint, "k")
		e.must(err)
		sealed, err := e.store.SealedAnswer(t.Context(), e.scope, CreateEndpoint, "k")
		e.must(err)
		for _, kept := range [][]byte{raw.Body, sealed.Secret.Sealed, stored.Secret.Sealed} {
			if bytes.Contains(kept, []byte(made.Secret.Reveal()[6:20])) {
				t.Error("a secret is stored in the clear")
			}
		}
		again := func(when string) {
			t.Helper()
			got, err := e.Create(t.Context(), e.newEndpoint(), intent("k", "f"))
			if diff := cmp.Diff(made.Answer, got.Answer); diff != "" || err != nil || !got.Replayed {
				t.Errorf("%s: %v, replayed %v (-want +got):\n%s", when, err, got.Replayed, diff)
			}
		}
		again("at once")
		_, err = access.RotateMaster(t.Context(), e.store, seal.NewKeys(e.keys.File()), nil)
		e.must(err)
		again("after a rotation of the master key")
		if secrets, err := endpointSecrets(e.secrets, e.read(made.Endpoint), e.now()); err != nil || secrets[0].Reveal() != made.Secret.Reveal() {
			t.Errorf("the secret after a rotation of the master key: %v", err)
		}
		for range store.MaxEndpoints - 1 {
			_, err := e.Create(t.Context(), e.newEndpoint(), Intent{})
			e.must(err)
		}
		again("when the limit of endpoints is reached")
		_, err = e.Create(t.Context(), e.newEndpoint(), intent("other", "f"))
		if !errors.Is(err, store.ErrTooManyEndpoints) {
			t.Errorf("the eleventh: %v, want ErrTooManyEndpoints", err)
		}
		if _, err := e.store.StoredReply(t.Context(), e.scope, CreateEndpoint, "other"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the key of a refused creation: %v, want ErrNotFound", err)
		}
		if _, err := e.Create(t.Context(), e.newEndpoint(), intent("k", "g")); !errors.Is(err, ErrMismatch) {
			t.Errorf("another request with the key: %v, want ErrMismatch", err)
		}
		e.guard = netguard.Guard{Refuse: nil}
		strict := e.newEndpoint()
		strict.URL = "http://refused.example.com"
		if got, err := e.Create(t.Context(), strict, intent("k", "f")); err != nil || !got.Replayed {
			t.Errorf("when the rules have changed: %+v, %v", got, err)
		}
		e.must(e.Delete(t.Context(), e.scope, made.Endpoint.ID))
		again("when the endpoint is deleted")
		foreign := e.newEndpoint()
		foreign.Scope = e.taxpayer()
		if got, err := e.Create(t.Context(), foreign, intent("k", "f")); err != nil || got.Replayed {
			t.Errorf("another taxpayer's key: %+v, %v", got, err)
		}
	})
}

// The key of a creation exists. Then the database fails over to a copy that lacks it,
// before the stored answer is read. The caller must try again.
func TestAStoredAnswerThatVanishesIsUnavailable(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		_, err := e.Create(t.Context(), e.newEndpoint(), intent("k", "f"))
		e.must(err)
		failover := `DROP TRIGGER idempotency_no_delete; DELETE FROM idempotency`
		if e.store.Engine() == "postgres" {
			failover = `SET session_replication_role = replica; DELETE FROM idempotency`
		}
		db := storetest.OpenSQL(t, e.address)
		e.store.OnCommit(func(_ time.Duration, err error) {
			if errors.Is(err, errKnownKey) {
				_, err = db.ExecContext(t.Context(), failover)
				e.must(err)
			}
		})
		if got, err := e.Create(t.Context(), e.newEndpoint(), intent("k", "f")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("got %+v, %v, want ErrUnavailable", got, err)
		}
	})
}

func TestConcurrentEqualCreationsMakeOneEndpoint(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		var mu sync.Mutex
		answers := map[string]int{}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				got, err := e.Create(t.Context(), e.newEndpoint(), intent("k", "f"))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				answers[string(got.Answer.Body)]++
			})
		}
		all.Wait()
		list, err := e.store.Endpoints(t.Context(), e.scope, "", 10)
		if err != nil || len(list) != 1 || len(answers) != 1 {
			t.Errorf("%d endpoints, %d answers, %v", len(list), len(answers), err)
		}
	})
}

func TestCreateChecksTheEndpoint(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	e.guard = netguard.Guard{}
	for _, tt := range []struct {
		name   string
		change func(*EndpointSpec)
		want   []string // field and code
	}{
		{"valid", func(*EndpointSpec) {}, nil},
		{"no URL", func(n *EndpointSpec) { n.URL = "" }, []string{"url required"}},
		{"http", func(n *EndpointSpec) { n.URL = "http://example.com" }, []string{"url invalid_format"}},
		{"an IP address", func(n *EndpointSpec) { n.URL = "https://127.0.0.1" }, []string{"url invalid_format"}},
		{"another port", func(n *EndpointSpec) { n.URL = "https://example.com:8443/" }, []string{"url invalid_format"}},
		{"blanks", func(n *EndpointSpec) { n.URL = " https://example.com/" }, []string{"url invalid_format"}},
		{"too long", func(n *EndpointSpec) { n.URL = "https://example.com/" + strings.Repeat("x", 2048) }, []string{"url too_long"}},
		{"no kinds", func(n *EndpointSpec) { n.Kinds = nil }, []string{"events too_few_items"}},
		{"unknown kind", func(n *EndpointSpec) { n.Kinds = []string{event.All, "invoice.paid"} }, []string{"events.1 invalid_enum"}},
		{"a kind twice", func(n *EndpointSpec) { n.Kinds = []string{event.WebhookTest, event.WebhookTest} }, []string{"events.1 duplicated"}},
		{"a long description", func(n *EndpointSpec) { n.Description = strings.Repeat("ñ", 201) }, []string{"description too_long"}},
		{"a description of the greatest length", func(n *EndpointSpec) { n.Description = strings.Repeat("ñ", 200) }, nil},
		{"a control character", func(n *EndpointSpec) { n.Description = "a\x00b" }, []string{"description invalid_characters"}},
		{"several problems", func(n *EndpointSpec) { *n = EndpointSpec{Scope: n.Scope, Description: "\x01", URL: "x"} },
			[]string{"description invalid_characters", "events too_few_items", "url invalid_format"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := e.newEndpoint()
			tt.change(&n)
			made, err := e.Create(t.Context(), n, Intent{})
			var problems fiscal.Problems
			if (err == nil) != (tt.want == nil) || err != nil && !errors.As(err, &problems) {
				t.Fatalf("err = %v", err)
			}
			var got []string
			for _, p := range problems {
				got = append(got, p.Field+" "+p.Code)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err == nil {
				e.must(e.Delete(t.Context(), e.scope, made.Endpoint.ID))
			}
		})
	}
	sandbox := e.newEndpoint()
	sandbox.Scope.Environment = fiscal.Sandbox
	if _, err := e.Create(t.Context(), sandbox, Intent{}); !errors.Is(err, ErrSandbox) {
		t.Errorf("in the sandbox: %v, want ErrSandbox", err)
	}
	unknown := e.newEndpoint()
	unknown.Scope.TaxpayerID = store.NewID()
	if _, err := e.Create(t.Context(), unknown, Intent{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("for an unknown taxpayer: %v, want ErrNotFound", err)
	}
}

// Test posts one signed event, even to a disabled endpoint. The attempt is in the log and
// does not count as a failure.
func TestTestPostsOneEvent(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n == 1 {
				w.WriteHeader(http.StatusTeapot)
				_, _ = w.Write([]byte("short and stout"))
			}
		})
		hook, secret := e.endpoint(r.URL, "fiscal_document.accepted")
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.DisableEndpoint(t.Context(), e.scope, hook.ID, store.DisabledGone, e.now())
		}))
		result, err := e.Test(t.Context(), e.scope, hook.ID)
		if err != nil || result.Status != http.StatusTeapot || result.Error != "status_418" {
			t.Errorf("the first: %+v, %v", result, err)
		}
		e.advance(time.Hour)
		if e.sendDue(e.newSender()) != 0 {
			t.Error("the sender retried a test event")
		}
		if result, err := e.Test(t.Context(), e.scope, hook.ID); err != nil || !result.OK() {
			t.Errorf("the second: %+v, %v", result, err)
		}
		got := r.requests()
		if len(got) != 2 || got[0].id() == got[1].id() {
			t.Fatalf("the receiver got %v", got)
		}
		if err := webhook.Verify(got[1].header, got[1].body, e.now(), secret); err != nil {
			t.Error(err)
		}
		var body map[string]any
		e.must(json.Unmarshal(got[1].body, &body))
		want := map[string]any{
			"id": got[1].id(), "type": "webhook.test", "timestamp": "2026-11-15T13:00:00.000Z", "api_version": "v1",
			"environment": "production", "taxpayer_id": e.scope.TaxpayerID,
			"data": map[string]any{"object": "webhook_endpoint", "id": hook.ID, "url": r.URL},
		}
		if diff := cmp.Diff(want, body); diff != "" {
			t.Errorf("the body (-want +got):\n%s", diff)
		}
		log := e.log(hook)
		if len(log) != 2 || log[1].Kind != "webhook.test" || log[1].Error != "status_418" || string(log[1].Answer) != "short and stout" || log[0].Error != "" {
			t.Errorf("the log: %+v", log)
		}
		if id := got[1].header.Get("X-Request-Id"); !requestIDForm.MatchString(id) || len(log) > 0 && id != AttemptRequestID(log[0].ID) {
			t.Errorf("the request id is %s, and the log has %+v", id, log)
		}
		if hook := e.read(hook); hook.Failures != 0 || hook.Status != store.EndpointDisabled {
			t.Errorf("the test counted as a failure: %+v", hook)
		}
		feed, err := e.store.Feed(t.Context(), e.scope, 0, 10)
		if err != nil || len(feed) != 0 {
			t.Errorf("the test event is in the feed: %v, %v", feed, err)
		}
	})
}

func TestEndpointsOfOtherScopesAreNotFound(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hook, _ := e.endpoint("https://hooks.example.com/", event.All)
		foreign := e.taxpayer()
		elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: e.scope.TaxpayerID}
		for _, scope := range []store.Scope{foreign, elsewhere} {
			for name, call := range map[string]func() error{
				"rotate": func() error { _, _, err := e.Rotate(t.Context(), scope, hook.ID, Overlap); return err },
				"enable": func() error { _, err := e.Enable(t.Context(), scope, hook.ID); return err },
				"delete": func() error { return e.Delete(t.Context(), scope, hook.ID) },
				"test":   func() error { _, err := e.Test(t.Context(), scope, hook.ID); return err },
				"replay": func() error { _, err := e.Replay(t.Context(), scope, hook.ID, Replay{Failed: true}); return err },
				"log":    func() error { _, err := e.Log(t.Context(), scope, hook.ID, "", 1); return err },
			} {
				if err := call(); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s in %v: %v, want ErrNotFound", name, scope, err)
				}
			}
		}
		if got := e.read(hook); got.Status != store.EndpointEnabled || got.Secret.Version != 1 {
			t.Errorf("the endpoint was changed: %+v", got)
		}
	})
}

func TestNewEndpointsRequiresItsOptions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	for name, change := range map[string]func(*EndpointsOptions){
		"no store":   func(o *EndpointsOptions) { o.Store = nil },
		"no secrets": func(o *EndpointsOptions) { o.Secrets = nil },
		"no poster":  func(o *EndpointsOptions) { o.Poster = nil },
		"no clock":   func(o *EndpointsOptions) { o.Now = nil },
	} {
		o := EndpointsOptions{Store: e.store, Secrets: e.secrets, Poster: e.poster, Now: e.now}
		change(&o)
		if _, err := NewEndpoints(o); err == nil {
			t.Errorf("%s: NewEndpoints returned no error", name)
		}
	}
}
