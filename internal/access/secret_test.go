package access

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// secrets returns the secrets as a starting node has them.
func (e *env) secrets() *Secrets { return NewSecrets(e.store, seal.NewKeys(e.master.File())) }

// storeSecrets stores an endpoint and a source with an old and a new secret each, and
// an answer.
func (e *env) storeSecrets(ctx context.Context) (endpoint, source string, err error) {
	scope := e.production()
	endpoint, source = store.NewID(), store.NewID()
	err = e.secrets().Update(ctx, func(tx *store.Tx, seal Sealer) error {
		var failed error
		sealed := func(row Binding, text string) store.SealedSecret {
			s, err := seal(row, []byte(text))
			failed = errors.Join(failed, err)
			return s
		}
		hook := store.Endpoint{Scope: scope, ID: endpoint, Kinds: []string{"*"}, Secret: sealed(EndpointBinding(scope, endpoint, 1), "endpoint 1")}
		failed = errors.Join(failed, tx.CreateEndpoint(ctx, hook))
		failed = errors.Join(failed, tx.RotateEndpoint(ctx, hook, sealed(EndpointBinding(scope, endpoint, 2), "endpoint 2"), e.now().Add(time.Hour), e.now()))
		s := store.Source{Scope: scope, ID: source, Secret: sealed(SourceBinding(scope, source, 1), "source 1")}
		failed = errors.Join(failed, tx.CreateSource(ctx, s))
		failed = errors.Join(failed, tx.RotateSource(ctx, s, sealed(SourceBinding(scope, source, 2), "source 2"), e.now().Add(time.Hour)))
		fresh, err := tx.RememberReply(ctx, store.StoredReply{
			Scope: scope, Operation: "make", Key: endpoint, Fingerprint: []byte{1}, RawDigest: []byte{2}, CreatedAt: e.now(),
		}, sealed(AnswerBinding(scope, "make", endpoint), "answer"))
		if !fresh {
			failed = errors.Join(failed, errors.New("the answer is not new"))
		}
		return errors.Join(failed, err)
	})
	return endpoint, source, err
}

// wantSecrets fails unless everything that storeSecrets has stored opens and is sealed
// under the master key with this id.
func (e *env) wantSecrets(when, endpoint, source, under string) {
	e.t.Helper()
	ctx, scope, secrets := e.t.Context(), e.production(), e.secrets()
	hook, err := e.store.Endpoint(ctx, scope, endpoint)
	e.must(err)
	s, err := e.store.AnySource(ctx, source)
	e.must(err)
	a, err := e.store.SealedAnswer(ctx, scope, "make", endpoint)
	e.must(err)
	for _, one := range []struct {
		row    Binding
		sealed []byte
		want   string
	}{
		{EndpointBinding(scope, endpoint, 2), hook.Secret.Sealed, "endpoint 2"},
		{EndpointBinding(scope, endpoint, 1), hook.OldSecret.Sealed, "endpoint 1"},
		{SourceBinding(scope, source, 2), s.Secret.Sealed, "source 2"},
		{SourceBinding(scope, source, 1), s.OldSecret.Sealed, "source 1"},
		{AnswerBinding(scope, "make", endpoint), a.Secret.Sealed, "answer"},
	} {
		if got, err := secrets.Open(one.row, one.sealed); err != nil || string(got) != one.want {
			e.t.Errorf("%s: %q, %v; want %s", when, got, err, one.want)
		}
		if id, err := seal.KeyID(one.sealed); err != nil || id != under {
			e.t.Errorf("%s: %s is under %s, %v; want %s", when, one.want, id, err, under)
		}
	}
}

func TestRotateMasterMovesTheSecretsOfTaxpayers(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		endpoint, source, err := e.storeSecrets(t.Context())
		e.must(err)
		e.wantSecrets("before", endpoint, source, inUse(t, e.master))
		done, err := RotateMaster(t.Context(), e.store, e.master, nil)
		e.must(err)
		all := done.Rewrapped
		e.wantSecrets("after", endpoint, source, done.New)
		// A deleted endpoint has no secret to move.
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.DeleteEndpoint(t.Context(), e.production(), endpoint, e.now())
		}))
		done, err = RotateMaster(t.Context(), e.store, e.master, nil)
		if err != nil || done.Rewrapped != all-1 {
			t.Errorf("without the endpoint: %+v, %v; want one less than %d", done, err, all)
		}
	})
}

// Secrets that are stored during a rotation end under the new master key.
func TestConcurrentRotationsMissNoSecret(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		type ids struct{ endpoint, source string }
		var mu sync.Mutex
		var made []ids
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				endpoint, source, err := e.storeSecrets(t.Context())
				if err != nil {
					t.Errorf("store secrets: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				made = append(made, ids{endpoint, source})
			})
			all.Go(func() {
				if _, err := RotateMaster(t.Context(), e.store, seal.NewKeys(e.master.File()), nil); err != nil {
					t.Errorf("rotate: %v", err)
				}
			})
		}
		all.Wait()
		needs, err := masterID(t.Context(), e.store)
		e.must(err)
		for _, k := range made {
			e.wantSecrets("afterwards", k.endpoint, k.source, needs)
		}
	})
}

func TestASecretOpensOnlyInItsOwnRow(t *testing.T) {
	t.Parallel()
	e := newEnv(t, storetest.Address(t, "sqlite"))
	scope := e.production()
	row := EndpointBinding(scope, "a", 1)
	var kept store.SealedSecret
	e.must(e.secrets().Update(t.Context(), func(_ *store.Tx, seal Sealer) (err error) {
		kept, err = seal(row, []byte("x"))
		return err
	}))
	elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: scope.TaxpayerID}
	foreign := store.Scope{Environment: fiscal.Production, TaxpayerID: "b"}
	for _, other := range []Binding{
		EndpointBinding(elsewhere, "a", 1), EndpointBinding(foreign, "a", 1), EndpointBinding(scope, "b", 1),
		EndpointBinding(scope, "a", 2), SourceBinding(scope, "a", 1), AnswerBinding(scope, "", "a"),
	} {
		if _, err := e.secrets().Open(other, kept.Sealed); !errors.Is(err, seal.ErrTampered) {
			t.Errorf("%+v: %v, want ErrTampered", other, err)
		}
	}
	if kept.Version != 1 {
		t.Errorf("version %d", kept.Version)
	}
	if _, err := e.secrets().Open(row, kept.Sealed); err != nil {
		t.Error(err)
	}
	empty := NewSecrets(storetest.Open(t, storetest.Address(t, "sqlite"), e.now), newMaster(t))
	err := empty.Update(t.Context(), func(*store.Tx, Sealer) error { return nil })
	if !errors.Is(err, ErrNoKeyring) {
		t.Errorf("on an empty database: %v, want ErrNoKeyring", err)
	}
}
