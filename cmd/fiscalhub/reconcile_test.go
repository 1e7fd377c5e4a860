package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/witness"
)

// A release with the folder of another installation changes neither the witness there nor
// the ranges here.
func TestReconcileRefusesTheWitnessOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s, other := storetest.Open(t, address, time.Now), t.TempDir()
		path := filepath.Join(other, "witness-certification")
		file, err := witness.Create(path, "certification", "another", false)
		must(t, err)
		must(t, file.Close())
		before, err := os.ReadFile(path)
		must(t, err)
		term := &terminal{ctx: t.Context(), cli: &cli{Data: t.TempDir(), Database: address}, out: io.Discard, errOut: io.Discard, now: time.Now, language: lang.English}
		taxpayer := store.Taxpayer{ID: store.NewID(), RNC: "199000102", LegalName: "Comercial Demostración, SRL", IncomeType: "01", CreatedAt: s.Now(), UpdatedAt: s.Now()}
		must(t, s.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), taxpayer) }))
		addHeld(t, s, store.Scope{Environment: fiscal.Certification, TaxpayerID: taxpayer.ID})
		c := reconcileCmd{Taxpayer: taxpayer.ID, Environment: "certification", liveFlags: liveFlags{Witness: other, Pace: 1}}
		if err := c.Run(term); err == nil || !strings.Contains(err.Error(), "belongs to another database") {
			t.Errorf("reconcile: %v", err)
		}
		if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the witness of the other database was changed: %v", err)
		}
		ranges, err := s.NumberRanges(t.Context())
		if err != nil || len(ranges) != 1 || !ranges[0].FencedAt.IsZero() {
			t.Errorf("%+v, %v", ranges, err)
		}
	})
}
