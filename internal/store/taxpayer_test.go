package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestATaxpayerReadsBackAsItWasWritten(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		full, bare := sampleTaxpayer(), sampleTaxpayer()
		bare.Phones, bare.Logo, bare.ElectronicSince, bare.PageFormat = []string{}, nil, "", ""
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateTaxpayer(ctx, full), tx.CreateTaxpayer(ctx, bare))
		})
		for _, want := range []store.Taxpayer{full, bare} {
			got, err := s.Taxpayer(t.Context(), want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("read back (-want +got):\n%s", diff)
			}
		}
		all, err := s.Taxpayers(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]store.Taxpayer{full, bare}, all); diff != "" {
			t.Errorf("the list, the oldest first (-want +got):\n%s", diff)
		}
	})
}

func TestAnUpdateReplacesTheFieldsOfATaxpayer(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		made, other := sampleTaxpayer(), sampleTaxpayer()
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateTaxpayer(ctx, made), tx.CreateTaxpayer(ctx, other))
		})
		want := store.Taxpayer{
			ID: made.ID, RNC: "00100000002", LegalName: "Otra, SRL", TradeName: "b", Branch: "c", Address: "d",
			Municipality: "020100", Province: "020000", Phones: []string{"849-555-0100"}, Email: "e", Website: "f",
			EconomicActivity: "g", IncomeType: "02", ElectronicSince: "2026-02-02", Logo: []byte{1}, PageFormat: "receipt58",
			CreatedAt: made.CreatedAt, UpdatedAt: noon.Add(time.Hour),
		}
		changed := want
		changed.CreatedAt = noon.Add(time.Minute) // an update does not change it
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.UpdateTaxpayer(ctx, changed) })
		for _, want := range []store.Taxpayer{want, other} {
			got, err := s.Taxpayer(t.Context(), want.ID)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("after the update (-want +got):\n%s", diff)
			}
		}
	})
}

// The authority authorises ranges for an RNC, and two taxpayers with the same RNC must not
// have the same numbers.
func TestATaxpayerWithRangesKeepsItsRNC(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		made := sampleTaxpayer()
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateTaxpayer(ctx, made), tx.AddNumberRange(ctx, store.NumberRange{
				Scope: store.Scope{Environment: fiscal.Production, TaxpayerID: made.ID}, ID: store.NewID(),
				Type: fiscal.Consumer, First: 1, Next: 1, Last: 9, CreatedAt: noon,
			}))
		})
		changed := made
		changed.RNC = "00100000002"
		err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.UpdateTaxpayer(t.Context(), changed) })
		if !errors.Is(err, store.ErrRNCHasRanges) {
			t.Errorf("another RNC: %v, want ErrRNCHasRanges", err)
		}
		if got, err := s.Taxpayer(t.Context(), made.ID); err != nil || got.RNC != made.RNC {
			t.Errorf("the RNC is %s, want %s (%v)", got.RNC, made.RNC, err)
		}
		changed.RNC, changed.LegalName = made.RNC, "Otra, SRL"
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.UpdateTaxpayer(ctx, changed) })
	})
}

func TestAnUnknownTaxpayerIsNotFound(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if _, err := s.Taxpayer(t.Context(), store.NewID()); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("reading: %v, want ErrNotFound", err)
		}
		all, err := s.Taxpayers(t.Context())
		if err != nil || len(all) != 0 {
			t.Errorf("an empty database lists %v, %v", all, err)
		}
	})
}

func TestTaxpayerByRNCPrefersTheCertificateThatExpiresLast(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		first, second, third, other := sampleTaxpayer(), sampleTaxpayer(), sampleTaxpayer(), sampleTaxpayer()
		other.RNC = "00100000002"
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(tx.CreateTaxpayer(ctx, first), tx.CreateTaxpayer(ctx, second), tx.CreateTaxpayer(ctx, third), tx.CreateTaxpayer(ctx, other))
		})
		certify := func(id, der string, env fiscal.Environment, left time.Duration) {
			c := sampleCertificate(store.Scope{Environment: env, TaxpayerID: id}, der)
			c.NotAfter = noon.Add(left)
			addCertificate(t, s, c)
		}
		want := func(env fiscal.Environment, want store.Taxpayer) {
			t.Helper()
			got, err := s.TaxpayerByRNC(t.Context(), env, want.RNC)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", env, diff)
			}
		}
		want(fiscal.Production, first) // without certificates: the oldest taxpayer
		certify(second.ID, "one", fiscal.Production, time.Hour)
		want(fiscal.Production, second)
		want(fiscal.Certification, first)
		certify(third.ID, "two", fiscal.Production, 2*time.Hour)
		want(fiscal.Production, third)
		want(fiscal.Production, other)
		if _, err := s.TaxpayerByRNC(t.Context(), fiscal.Production, "199000099"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("an unknown RNC: %v, want ErrNotFound", err)
		}
	})
}
