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

// vault is a node's secrets.
func (d *desk) vault() Secrets { return Secrets{Store: d.Store, Keys: seal.NewKeys(d.master.File())} }

// keep stores an endpoint and a source that were rotated once, and an answer.
func (d *desk) keep(ctx context.Context) (endpoint, source string, err error) {
	scope := d.production()
	endpoint, source = store.NewID(), store.NewID()
	err = d.vault().Update(ctx, func(tx *store.Tx, seal Sealer) error {
		var failed error
		sealed := func(at Place, text string) store.SealedSecret {
			s, err := seal(at, []byte(text))
			failed = errors.Join(failed, err)
			return s
		}
		e := store.Endpoint{Scope: scope, ID: endpoint, Kinds: []string{"*"}, Secret: sealed(EndpointSecret(scope, endpoint, 1), "endpoint 1")}
		failed = errors.Join(failed, tx.CreateEndpoint(ctx, e))
		failed = errors.Join(failed, tx.RotateEndpoint(ctx, e, sealed(EndpointSecret(scope, endpoint, 2), "endpoint 2"), d.Now().Add(time.Hour), d.Now()))
		s := store.Source{Scope: scope, ID: source, Secret: sealed(SourceSecret(scope, source, 1), "source 1")}
		failed = errors.Join(failed, tx.CreateSource(ctx, s))
		failed = errors.Join(failed, tx.RotateSource(ctx, s, sealed(SourceSecret(scope, source, 2), "source 2"), d.Now().Add(time.Hour)))
		fresh, err := tx.RememberAnswer(ctx, store.Answer{
			Scope: scope, Operation: "make", Key: endpoint, Fingerprint: []byte{1}, RawDigest: []byte{2}, CreatedAt: d.Now(),
		}, sealed(AnswerSecret(scope, "make", endpoint), "answer"))
		if !fresh {
			failed = errors.Join(failed, errors.New("the answer is not new"))
		}
		return errors.Join(failed, err)
	})
	return endpoint, source, err
}

// wantKept fails unless all that keep has stored opens, and is under a key.
func (d *desk) wantKept(when, endpoint, source, under string) {
	d.t.Helper()
	ctx, scope, vault := d.t.Context(), d.production(), d.vault()
	e, err := d.Store.Endpoint(ctx, scope, endpoint)
	d.must(err)
	s, err := d.Store.AnySource(ctx, source)
	d.must(err)
	a, err := d.Store.SealedAnswer(ctx, scope, "make", endpoint)
	d.must(err)
	for _, one := range []struct {
		at     Place
		sealed []byte
		want   string
	}{
		{EndpointSecret(scope, endpoint, 2), e.Secret.Sealed, "endpoint 2"},
		{EndpointSecret(scope, endpoint, 1), e.OldSecret.Sealed, "endpoint 1"},
		{SourceSecret(scope, source, 2), s.Secret.Sealed, "source 2"},
		{SourceSecret(scope, source, 1), s.OldSecret.Sealed, "source 1"},
		{AnswerSecret(scope, "make", endpoint), a.Secret.Sealed, "answer"},
	} {
		if got, err := vault.Open(one.at, one.sealed); err != nil || string(got) != one.want {
			d.t.Errorf("%s: %q, %v; want %s", when, got, err, one.want)
		}
		if id, err := seal.KeyID(one.sealed); err != nil || id != under {
			d.t.Errorf("%s: %s is under %s, %v; want %s", when, one.want, id, err, under)
		}
	}
}

func TestRotationMovesTheSecretsOfTaxpayers(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		endpoint, source, err := d.keep(t.Context())
		d.must(err)
		d.wantKept("before", endpoint, source, inUse(t, d.master))
		done, err := RotateMaster(t.Context(), d.Store, d.master)
		d.must(err)
		all := done.Rewrapped
		d.wantKept("after", endpoint, source, done.New)
		// Deleted ones have nothing to be moved.
		d.must(d.Store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.DeleteEndpoint(t.Context(), d.production(), endpoint, d.Now())
		}))
		done, err = RotateMaster(t.Context(), d.Store, d.master)
		if err != nil || done.Rewrapped != all-1 {
			t.Errorf("without the endpoint: %+v, %v; want one less than %d", done, err, all)
		}
	})
}

// What is sealed while the master key is rotated is under the new one.
func TestRotationsAndSecretsTogether(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		d := newDesk(t, address)
		type kept struct{ endpoint, source string }
		var mu sync.Mutex
		var made []kept
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				endpoint, source, err := d.keep(t.Context())
				if err != nil {
					t.Errorf("keep: %v", err)
				}
				mu.Lock()
				defer mu.Unlock()
				made = append(made, kept{endpoint, source})
			})
			all.Go(func() {
				if _, err := RotateMaster(t.Context(), d.Store, seal.NewKeys(d.master.File())); err != nil {
					t.Errorf("rotate: %v", err)
				}
			})
		}
		all.Wait()
		needs, err := masterID(t.Context(), d.Store)
		d.must(err)
		for _, k := range made {
			d.wantKept("afterwards", k.endpoint, k.source, needs)
		}
	})
}

// A secret opens in its own place alone.
func TestASecretIsBoundToItsPlace(t *testing.T) {
	t.Parallel()
	d := newDesk(t, storetest.Address(t, "sqlite"))
	scope := d.production()
	at := EndpointSecret(scope, "a", 1)
	var kept store.SealedSecret
	d.must(d.vault().Update(t.Context(), func(_ *store.Tx, seal Sealer) (err error) {
		kept, err = seal(at, []byte("x"))
		return err
	}))
	elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: scope.TaxpayerID}
	foreign := store.Scope{Environment: fiscal.Production, TaxpayerID: "b"}
	for _, other := range []Place{
		EndpointSecret(elsewhere, "a", 1), EndpointSecret(foreign, "a", 1), EndpointSecret(scope, "b", 1),
		EndpointSecret(scope, "a", 2), SourceSecret(scope, "a", 1), AnswerSecret(scope, "", "a"),
	} {
		if _, err := d.vault().Open(other, kept.Sealed); !errors.Is(err, seal.ErrTampered) {
			t.Errorf("%+v: %v, want ErrTampered", other, err)
		}
	}
	if kept.Version != 1 {
		t.Errorf("version %d", kept.Version)
	}
	if _, err := d.vault().Open(at, kept.Sealed); err != nil {
		t.Error(err)
	}
	empty := Secrets{Store: storetest.Open(t, storetest.Address(t, "sqlite"), d.Now), Keys: newMaster(t)}
	err := empty.Update(t.Context(), func(*store.Tx, Sealer) error { return nil })
	if !errors.Is(err, ErrNoKeyring) {
		t.Errorf("on an empty database: %v, want ErrNoKeyring", err)
	}
}
