package notify

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestFindReturnsTheValidSecretsOfASource(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		s, err := NewSources(SourcesOptions{Store: e.store, Secrets: e.secrets, Now: e.now})
		e.must(err)
		made, first, err := s.Create(t.Context(), e.scope)
		e.must(err)
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
		want("created", e.scope.TaxpayerID+" "+first.Reveal())
		_, second, err := s.Rotate(t.Context(), made.ID, Overlap)
		e.must(err)
		want("rotated", fmt.Sprint(e.scope.TaxpayerID, " ", second.Reveal(), " ", first.Reveal()))
		_, err = access.RotateMaster(t.Context(), e.store, e.keys, nil)
		e.must(err)
		want("under another master key", fmt.Sprint(e.scope.TaxpayerID, " ", second.Reveal(), " ", first.Reveal()))
		e.advance(Overlap)
		want("a day later", e.scope.TaxpayerID+" "+second.Reveal())
		_, third, err := s.Rotate(t.Context(), made.ID, 0)
		e.must(err)
		want("rotated without an overlap", e.scope.TaxpayerID+" "+third.Reveal())
		for _, overlap := range []time.Duration{-1, maxOverlap + 1} {
			if _, _, err := s.Rotate(t.Context(), made.ID, overlap); err == nil {
				t.Errorf("Rotate accepts an overlap of %s", overlap)
			}
		}
		e.must(s.Revoke(t.Context(), made.ID))
		want("revoked", store.ErrNotFound.Error())
		if _, _, err := s.Rotate(t.Context(), made.ID, Overlap); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("rotate a revoked source: %v", err)
		}
		if all, err := e.store.Sources(t.Context()); err != nil || len(all) != 1 {
			t.Errorf("the list: %v, %v", all, err)
		}
		sandbox := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: e.scope.TaxpayerID}
		if _, _, err := s.Create(t.Context(), sandbox); !errors.Is(err, ErrSandbox) {
			t.Errorf("in the sandbox: %v, want ErrSandbox", err)
		}
	})
}

func TestNewSourcesRequiresItsOptions(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	for name, change := range map[string]func(*SourcesOptions){
		"no store":   func(o *SourcesOptions) { o.Store = nil },
		"no secrets": func(o *SourcesOptions) { o.Secrets = nil },
		"no clock":   func(o *SourcesOptions) { o.Now = nil },
	} {
		o := SourcesOptions{Store: e.store, Secrets: e.secrets, Now: e.now}
		change(&o)
		if _, err := NewSources(o); err == nil {
			t.Errorf("%s: NewSources returned no error", name)
		}
	}
}
