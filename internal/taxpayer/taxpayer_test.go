package taxpayer_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
)

func fields(err error) (names []string) {
	var problems fiscal.Problems
	errors.As(err, &problems)
	for _, p := range problems {
		names = append(names, p.Field)
	}
	return names
}

func TestCheckNamesEveryWrongField(t *testing.T) {
	t.Parallel()
	one := store.Taxpayer{RNC: "199000013", LegalName: "Palma Clara, SRL", IncomeType: "01"}
	if err := taxpayer.Check(one); err != nil {
		t.Errorf("a taxpayer without an address: %v", err)
	}
	one.RNC, one.LegalName, one.Phones, one.ElectronicSince, one.PageFormat = "12", "", []string{"x"}, "yesterday", "poster"
	if diff := cmp.Diff([]string{"rnc", "legal_name", "phones.0", "electronic_since", "page_format"}, fields(taxpayer.Check(one))); diff != "" {
		t.Error(diff)
	}
	if err := taxpayer.CheckLogo([]byte("GIF89a")); !errors.Is(err, taxpayer.ErrLogo) {
		t.Errorf("a GIF: %v", err)
	}
}

func TestAddRangeChecksTheRange(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	s := storetest.Open(t, storetest.Address(t, "sqlite"), func() time.Time { return now })
	made := store.Taxpayer{ID: store.NewID(), RNC: "199000013", LegalName: "Uno", Phones: []string{}, CreatedAt: now, UpdatedAt: now}
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), made) }); err != nil {
		t.Fatal(err)
	}
	scope := store.Scope{Environment: fiscal.Certification, TaxpayerID: made.ID}
	add := func(scope store.Scope, spec taxpayer.RangeSpec) error {
		_, err := taxpayer.AddRange(t.Context(), s, scope, spec, now)
		return err
	}
	for name, test := range map[string]struct {
		spec taxpayer.RangeSpec
		want []string
	}{
		"31 without a day": {taxpayer.RangeSpec{Type: "31", From: 1, To: 9}, []string{"expires"}},
		"day after 2099":   {taxpayer.RangeSpec{Type: "31", From: 1, To: 9, Expires: "2100-01-01"}, []string{"expires"}},
		"day in the past":  {taxpayer.RangeSpec{Type: "32", From: 1, To: 9, Expires: "2026-11-14"}, []string{"expires"}},
		"wrong type":       {taxpayer.RangeSpec{Type: "33", From: 1, To: 9}, []string{"type"}},
		"from 0":           {taxpayer.RangeSpec{Type: "32", From: 0, To: 9}, []string{"from"}},
		"to before from":   {taxpayer.RangeSpec{Type: "32", From: 9, To: 1}, []string{"to"}},
		"eleven digits":    {taxpayer.RangeSpec{Type: "31", From: 1, To: 10_000_000_000}, []string{"to", "expires"}},
	} {
		if diff := cmp.Diff(test.want, fields(add(scope, test.spec))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	good := taxpayer.RangeSpec{Type: "31", From: 1, To: 100, Expires: "2026-11-15"}
	if err := add(scope, good); err != nil {
		t.Errorf("a range that ends today: %v", err)
	}
	if err := add(scope, good); !errors.Is(err, store.ErrOverlap) {
		t.Errorf("the same range: %v", err)
	}
	if err := add(store.Scope{Environment: fiscal.Sandbox, TaxpayerID: made.ID}, good); !errors.Is(err, taxpayer.ErrSandboxNumbers) {
		t.Errorf("in the sandbox: %v", err)
	}
	if err := add(store.Scope{Environment: fiscal.Certification, TaxpayerID: "none"}, good); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("of nobody: %v", err)
	}
}
