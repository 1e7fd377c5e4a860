package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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
	return Intent{
		Key: key, Fingerprint: []byte(fingerprint), RawDigest: []byte{1}, RequestID: "req_1",
		Answer: func(e store.Endpoint, secret webhook.Secret) (string, []byte, error) {
			return "/x/" + e.ID, []byte(`{"id":"` + e.ID + `","secret":"` + secret.Reveal() + `"}`), nil
		},
	}
}

func (o *office) wanted() NewEndpoint {
	return NewEndpoint{Scope: o.scope, URL: "https://hooks.example.com/x?y=z", Kinds: []string{event.All}, Description: "«ñ»"}
}

// A creation is answered byte for byte as it was, with its secret, whatever has
// happened since; the secret is nowhere in the clear.
func TestACreationIsAnsweredAgain(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		made, err := o.Create(t.Context(), o.wanted(), intent("k", "f"))
		o.must(err)
		if made.Replayed || !bytes.Contains(made.Answer.Body, []byte(made.Secret.Reveal())) || made.Answer.HTTPStatus != http.StatusCreated ||
			made.Answer.ObjectID != made.Endpoint.ID {
			t.Errorf("made %+v", made)
		}
		stored := o.read(made.Endpoint)
		if diff := cmp.Diff(made.Endpoint, stored); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
		raw, err := o.store.Answer(t.Context(), o.scope, CreateEndpoint, "k")
		o.must(err)
		sealed, err := o.store.SealedAnswer(t.Context(), o.scope, CreateEndpoint, "k")
		o.must(err)
		for _, kept := range [][]byte{raw.Body, sealed.Secret.Sealed, stored.Secret.Sealed} {
			if bytes.Contains(kept, []byte(made.Secret.Reveal()[6:20])) {
				t.Error("a secret is stored in the clear")
			}
		}
		again := func(when string) {
			t.Helper()
			got, err := o.Create(t.Context(), o.wanted(), intent("k", "f"))
			if diff := cmp.Diff(made.Answer, got.Answer); diff != "" || err != nil || !got.Replayed {
				t.Errorf("%s: %v, replayed %v (-want +got):\n%s", when, err, got.Replayed, diff)
			}
		}
		again("at once")
		_, err = access.RotateMaster(t.Context(), o.store, seal.NewKeys(o.keys.File()))
		o.must(err)
		again("after a rotation of the master key")
		if secrets, err := endpointSecrets(o.secrets, o.read(made.Endpoint), o.now()); err != nil || secrets[0].Reveal() != made.Secret.Reveal() {
			t.Errorf("the secret after a rotation of the master key: %v", err)
		}
		for range store.MaxEndpoints - 1 {
			_, err := o.Create(t.Context(), o.wanted(), Intent{})
			o.must(err)
		}
		again("when no more may be made")
		_, err = o.Create(t.Context(), o.wanted(), intent("other", "f"))
		if !errors.Is(err, store.ErrTooManyEndpoints) {
			t.Errorf("the eleventh: %v, want ErrTooManyEndpoints", err)
		}
		if _, err := o.store.Answer(t.Context(), o.scope, CreateEndpoint, "other"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the key of a refused creation: %v, want ErrNotFound", err)
		}
		if _, err := o.Create(t.Context(), o.wanted(), intent("k", "g")); !errors.Is(err, ErrMismatch) {
			t.Errorf("another request with the key: %v, want ErrMismatch", err)
		}
		o.Guard = netguard.Guard{Refuse: nil}
		strict := o.wanted()
		strict.URL = "http://refused.example.com"
		if got, err := o.Create(t.Context(), strict, intent("k", "f")); err != nil || !got.Replayed {
			t.Errorf("when the rules have changed: %+v, %v", got, err)
		}
		o.must(o.Delete(t.Context(), o.scope, made.Endpoint.ID))
		again("when the endpoint is deleted")
		foreign := o.wanted()
		foreign.Scope = o.taxpayer()
		if got, err := o.Create(t.Context(), foreign, intent("k", "f")); err != nil || got.Replayed {
			t.Errorf("another taxpayer's key: %+v, %v", got, err)
		}
	})
}

// Of equal creations that come together one is made, and all get its answer.
func TestCreationsThatComeTogether(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		var mu sync.Mutex
		answers := map[string]int{}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				got, err := o.Create(t.Context(), o.wanted(), intent("k", "f"))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				answers[string(got.Answer.Body)]++
			})
		}
		all.Wait()
		list, err := o.store.Endpoints(t.Context(), o.scope, "", 10)
		if err != nil || len(list) != 1 || len(answers) != 1 {
			t.Errorf("%d endpoints, %d answers, %v", len(list), len(answers), err)
		}
	})
}

func TestWhatAnEndpointMustBe(t *testing.T) {
	t.Parallel()
	o := newOffice(t, storetest.Address(t, "sqlite"))
	o.Guard = netguard.Guard{}
	for _, tt := range []struct {
		name   string
		change func(*NewEndpoint)
		want   []string // field and code
	}{
		{"good", func(*NewEndpoint) {}, nil},
		{"no address", func(n *NewEndpoint) { n.URL = "" }, []string{"url required"}},
		{"http", func(n *NewEndpoint) { n.URL = "http://example.com" }, []string{"url invalid_format"}},
		{"a number", func(n *NewEndpoint) { n.URL = "https://127.0.0.1" }, []string{"url invalid_format"}},
		{"another port", func(n *NewEndpoint) { n.URL = "https://example.com:8443/" }, []string{"url invalid_format"}},
		{"blanks", func(n *NewEndpoint) { n.URL = " https://example.com/" }, []string{"url invalid_format"}},
		{"too long", func(n *NewEndpoint) { n.URL = "https://example.com/" + strings.Repeat("x", 2048) }, []string{"url too_long"}},
		{"no kinds", func(n *NewEndpoint) { n.Kinds = nil }, []string{"events too_few_items"}},
		{"unknown kind", func(n *NewEndpoint) { n.Kinds = []string{event.All, "invoice.paid"} }, []string{"events.1 invalid_enum"}},
		{"twice", func(n *NewEndpoint) { n.Kinds = []string{event.WebhookTest, event.WebhookTest} }, []string{"events.1 duplicated"}},
		{"a long description", func(n *NewEndpoint) { n.Description = strings.Repeat("ñ", 201) }, []string{"description too_long"}},
		{"just not too long", func(n *NewEndpoint) { n.Description = strings.Repeat("ñ", 200) }, nil},
		{"a control character", func(n *NewEndpoint) { n.Description = "a\x00b" }, []string{"description invalid_characters"}},
		{"all at once", func(n *NewEndpoint) { *n = NewEndpoint{Scope: n.Scope, Description: "\x01", URL: "x"} },
			[]string{"description invalid_characters", "events too_few_items", "url invalid_format"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := o.wanted()
			tt.change(&n)
			made, err := o.Create(t.Context(), n, Intent{})
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
				o.must(o.Delete(t.Context(), o.scope, made.Endpoint.ID))
			}
		})
	}
	sandbox := o.wanted()
	sandbox.Scope.Environment = fiscal.Sandbox
	if _, err := o.Create(t.Context(), sandbox, Intent{}); !errors.Is(err, ErrSandbox) {
		t.Errorf("in the sandbox: %v, want ErrSandbox", err)
	}
	nobody := o.wanted()
	nobody.Scope.TaxpayerID = store.NewID()
	if _, err := o.Create(t.Context(), nobody, Intent{}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("for nobody: %v, want ErrNotFound", err)
	}
}

// A test is posted once, signed, whatever the endpoint's state, and counts for
// nothing but the log.
func TestATestEvent(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		r := newReceiver(t, func(w http.ResponseWriter, n int) {
			if n == 1 {
				w.WriteHeader(http.StatusTeapot)
				_, _ = w.Write([]byte("short and stout"))
			}
		})
		e, secret := o.endpoint(r.URL, "fiscal_document.accepted")
		o.must(o.store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.DisableEndpoint(t.Context(), o.scope, e.ID, store.DisabledGone, o.now())
		}))
		result, err := o.Test(t.Context(), o.scope, e.ID)
		if err != nil || result.Status != http.StatusTeapot || result.Error != "status_418" {
			t.Errorf("the first: %+v, %v", result, err)
		}
		o.advance(time.Hour)
		if o.round(o.node()) != 0 {
			t.Error("a test was tried again")
		}
		if result, err := o.Test(t.Context(), o.scope, e.ID); err != nil || !result.OK() {
			t.Errorf("the second: %+v, %v", result, err)
		}
		got := r.letters()
		if len(got) != 2 || got[0].id() == got[1].id() {
			t.Fatalf("the receiver got %v", got)
		}
		if err := webhook.Verify(got[1].header, got[1].body, o.now(), secret); err != nil {
			t.Error(err)
		}
		var body map[string]any
		o.must(json.Unmarshal(got[1].body, &body))
		want := map[string]any{
			"id": got[1].id(), "type": "webhook.test", "timestamp": "2026-11-15T13:00:00.000Z", "api_version": "v1",
			"environment": "production", "taxpayer_id": o.scope.TaxpayerID,
			"data": map[string]any{"object": "webhook_endpoint", "id": e.ID, "url": r.URL},
		}
		if diff := cmp.Diff(want, body); diff != "" {
			t.Errorf("the body (-want +got):\n%s", diff)
		}
		log := o.log(e)
		if len(log) != 2 || log[1].Kind != "webhook.test" || log[1].Error != "status_418" || string(log[1].Answer) != "short and stout" || log[0].Error != "" {
			t.Errorf("the log: %+v", log)
		}
		if e := o.read(e); e.Failures != 0 || e.Status != store.EndpointDisabled {
			t.Errorf("it counted: %+v", e)
		}
		feed, err := o.store.Feed(t.Context(), o.scope, 0, 10)
		if err != nil || len(feed) != 0 {
			t.Errorf("it is in the feed: %v, %v", feed, err)
		}
	})
}

// Nobody reaches another's endpoint.
func TestEndpointsOfOthers(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		e, _ := o.endpoint("https://hooks.example.com/", event.All)
		foreign := o.taxpayer()
		elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: o.scope.TaxpayerID}
		for _, scope := range []store.Scope{foreign, elsewhere} {
			for name, call := range map[string]func() error{
				"rotate": func() error { _, _, err := o.Rotate(t.Context(), scope, e.ID); return err },
				"enable": func() error { _, err := o.Enable(t.Context(), scope, e.ID); return err },
				"delete": func() error { return o.Delete(t.Context(), scope, e.ID) },
				"test":   func() error { _, err := o.Test(t.Context(), scope, e.ID); return err },
				"replay": func() error { _, err := o.Replay(t.Context(), scope, e.ID, Replay{Failed: true}); return err },
				"log":    func() error { _, err := o.Log(t.Context(), scope, e.ID, "", 1); return err },
			} {
				if err := call(); !errors.Is(err, store.ErrNotFound) {
					t.Errorf("%s in %v: %v, want ErrNotFound", name, scope, err)
				}
			}
		}
		if got := o.read(e); got.Status != store.EndpointEnabled || got.Secret.Version != 1 {
			t.Errorf("it was changed: %+v", got)
		}
	})
}

func TestASourceIsFoundWithItsSecrets(t *testing.T) {
	eachOffice(t, func(t *testing.T, o *office) {
		s := Sources{Store: o.store, Secrets: o.secrets, Now: o.now}
		made, first, err := s.Create(t.Context(), o.scope)
		o.must(err)
		secrets := func() string {
			source, secrets, err := s.Find(t.Context(), fiscal.Production, made.ID)
			if err != nil {
				return err.Error()
			}
			all := source.TaxpayerID
			for _, one := range secrets {
				all += " " + one.Reveal()
			}
			return all
		}
		want := func(when, want string) {
			t.Helper()
			if got := secrets(); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		want("made", o.scope.TaxpayerID+" "+first.Reveal())
		_, second, err := s.Rotate(t.Context(), made.ID)
		o.must(err)
		want("rotated", fmt.Sprint(o.scope.TaxpayerID, " ", second.Reveal(), " ", first.Reveal()))
		_, err = access.RotateMaster(t.Context(), o.store, o.keys)
		o.must(err)
		want("under another master key", fmt.Sprint(o.scope.TaxpayerID, " ", second.Reveal(), " ", first.Reveal()))
		o.advance(Overlap)
		want("a day later", o.scope.TaxpayerID+" "+second.Reveal())
		o.must(s.Revoke(t.Context(), made.ID))
		want("revoked", store.ErrNotFound.Error())
		if _, _, err := s.Rotate(t.Context(), made.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("rotate a revoked one: %v", err)
		}
		if all, err := s.List(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("the list: %v, %v", all, err)
		}
		sandbox := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: o.scope.TaxpayerID}
		if _, _, err := s.Create(t.Context(), sandbox); !errors.Is(err, ErrSandbox) {
			t.Errorf("in the sandbox: %v, want ErrSandbox", err)
		}
	})
}
