package store_test

import (
	"errors"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A form creates one object, however often it is sent. A form without a token is not
// limited, and a transaction that fails does not use the form up.
func TestAFormIsUsedOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: "a"}
		use := func(f store.Form, scope store.Scope, operation, id string, fail error) error {
			return s.Update(t.Context(), func(tx *store.Tx) error {
				if err := tx.UseForm(t.Context(), scope, f, operation, id, noon); err != nil {
					return err
				}
				return fail
			})
		}
		form, failure := store.Form{Token: "one"}, errors.New("failure")
		if err := use(form, scope, "create", "lost", failure); !errors.Is(err, failure) {
			t.Fatal(err)
		}
		if err := use(form, scope, "create", "first", nil); err != nil {
			t.Fatal(err)
		}
		var used *store.FormUsedError
		if err := use(form, scope, "create", "second", nil); !errors.As(err, &used) || used.ID != "first" {
			t.Errorf("the second time: %v, %+v", err, used)
		}
		for name, err := range map[string]error{
			"another token": use(store.Form{Token: "two"}, scope, "create", "x", nil), "another operation": use(form, scope, "rotate", "x", nil),
			"another taxpayer": use(form, store.Scope{Environment: fiscal.Sandbox, TaxpayerID: "b"}, "create", "x", nil),
			"no token":         errors.Join(use(store.Form{}, scope, "create", "x", nil), use(store.Form{}, scope, "create", "y", nil)),
		} {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestTaxpayersWithoutLogos(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for i, logo := range [][]byte{nil, []byte("picture")} {
			made := store.Taxpayer{ID: store.NewID(), RNC: "199000013", LegalName: "Uno", Logo: logo, Phones: []string{}, CreatedAt: noon, UpdatedAt: noon}
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), made) }); err != nil {
				t.Fatal(err)
			}
			all, err := s.TaxpayersWithoutLogos(t.Context())
			if err != nil || len(all) != i+1 || len(all[i].Logo) != i || all[i].LegalName != "Uno" {
				t.Errorf("%+v, %v", all, err)
			}
		}
	})
}
