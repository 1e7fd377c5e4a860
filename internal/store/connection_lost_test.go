package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// All connections of the pool die while nobody uses them. The next use of each operation
// finds a connection that works.
func TestConnectionsThatDieInThePoolCostNothing(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	s, db := storetest.Open(t, address, time.Now), storetest.OpenSQL(t, address)
	scope := addScope(t, s)
	made := sampleInvoice(scope, "known")
	if _, err := s.Register(t.Context(), sampleRegistration(made)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for name, do := range map[string]func(context.Context) error{
		"read a row":  func(ctx context.Context) error { _, err := s.Invoice(ctx, scope, made.ID); return err },
		"read a list": func(ctx context.Context) error { _, err := s.Taxpayers(ctx); return err },
		"update": func(ctx context.Context) error {
			return s.Update(ctx, func(tx *store.Tx) error { return tx.CreateTaxpayer(ctx, sampleTaxpayer()) })
		},
		"register": func(ctx context.Context) error {
			n++
			_, err := s.Register(ctx, sampleRegistration(sampleInvoice(scope, fmt.Sprint("new ", n))))
			return err
		},
		"commit": func(ctx context.Context) error {
			after := made
			after.UpdatedAt = made.UpdatedAt.Add(time.Second)
			err := s.Commit(ctx, new(store.Batch).UpdateInvoice(made, after))
			made = after
			return err
		},
		"claim": func(ctx context.Context) error {
			_, err := s.DueJobs(ctx, fiscal.Sandbox, store.Claim{Now: noon, Limit: 1})
			return err
		},
	} {
		storetest.Warm(t, s.Reader())
		storetest.TerminateAll(t, db)
		if err := do(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// All connections die again and again while clients write and read. Nothing fails but
// commits that were under way.
func TestConnectionsThatDieUnderLoad(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	s, db := storetest.Open(t, address, time.Now), storetest.OpenSQL(t, address)
	scope := addScope(t, s)
	for i := range 200 {
		if _, err := s.Register(t.Context(), sampleRegistration(sampleInvoice(scope, fmt.Sprint("old ", i)))); err != nil {
			t.Fatal(err)
		}
	}
	var stop atomic.Bool
	var done atomic.Int64
	var clients sync.WaitGroup
	for client := range 12 {
		clients.Go(func() {
			for n := 0; !stop.Load(); n++ {
				var err error
				switch client % 3 {
				case 0:
					_, err = s.Register(t.Context(), sampleRegistration(sampleInvoice(scope, fmt.Sprint(client, "-", n))))
				case 1:
					_, err = s.Taxpayer(t.Context(), scope.TaxpayerID)
				default:
					_, err = s.WaitingDocuments(t.Context(), store.Scope{})
					if err == nil {
						_, err = s.ListInvoices(t.Context(), scope, store.InvoiceFilter{Limit: 100})
					}
				}
				if err != nil && !errors.Is(err, store.ErrOutcomeUnknown) {
					t.Errorf("client %d: %v", client, err)
				}
				done.Add(1)
			}
		})
	}
	for range 10 {
		time.Sleep(200 * time.Millisecond)
		storetest.TerminateAll(t, db)
	}
	stop.Store(true)
	clients.Wait()
	if done.Load() < 100 {
		t.Errorf("only %d operations were done", done.Load())
	}
}
