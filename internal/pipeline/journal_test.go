package pipeline

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// noteEvent queues an event of an invoice.
func (b *env) noteEvent(inv store.Invoice, kind string) {
	b.journal.Add(func(ctx context.Context, tx *store.Tx) error {
		return tx.Do(ctx, new(store.Batch).AddHistoryEntry(store.HistoryEntry{Scope: b.scope, InvoiceID: inv.ID, ID: store.NewID(), At: b.o.Now(), Kind: kind, Status: inv.Status}))
	})
}

func (b *env) events(inv store.Invoice, kind string) int {
	b.t.Helper()
	list, err := b.o.Store.History(context.WithoutCancel(b.t.Context()), b.scope, inv.ID)
	b.must(err)
	n := 0
	for _, e := range list {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

func TestJournalIsWrittenWhenTheServiceStops(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		inv := b.add("A", "x", "y")
		const entries = 2*journalBatch + 10
		for range entries {
			b.noteEvent(inv, "noted")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		b.Run(ctx)
		if n := b.events(inv, "noted"); n != entries {
			t.Errorf("%d of %d entries were written", n, entries)
		}
	})
}

// The service stops while entries are on their way to the database: those were
// taken out of the queue and nobody else will write them.
func TestJournalUnderWayIsWrittenWhenTheServiceStops(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		inv := b.add("A", "x", "y")
		holding, release := make(chan struct{}), make(chan struct{})
		var once sync.Once
		var others sync.WaitGroup
		// On SQLite all writing waits for this; on PostgreSQL it holds nobody up.
		others.Go(func() {
			if err := b.o.Store.Update(t.Context(), func(*store.Tx) error {
				once.Do(func() { close(holding) })
				<-release
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		<-holding
		b.noteEvent(inv, "noted")
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			b.journal.run(ctx)
		}()
		deadline := time.After(time.Minute)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for len(b.journal.entries) > 0 {
			select {
			case <-tick.C:
			case <-deadline:
				t.Fatal("the entry was never taken up")
			}
		}
		cancel()
		select {
		case <-stopped: // it gave the entry up
		case <-time.After(50 * time.Millisecond): // it waits for its turn, as it should
		}
		close(release)
		<-stopped
		others.Wait()
		if n := b.events(inv, "noted"); n != 1 {
			t.Errorf("%d entries were written, want the one that was under way", n)
		}
	})
}

func TestFullJournalBlocksNobody(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		inv := b.add("A", "x", "y")
		for range journalSize + 50 { // it would never return if it waited: nobody takes them out
			b.noteEvent(inv, "noted")
		}
		b.journal.Flush(t.Context())
		if n := b.events(inv, "noted"); n != journalSize {
			t.Errorf("%d entries were written, want the %d that found room", n, journalSize)
		}
		b.noteEvent(inv, "later")
		b.journal.Flush(t.Context())
		if n := b.events(inv, "later"); n != 1 {
			t.Errorf("%d entries after it was full", n)
		}
	})
}

// What an entry speaks of may be gone; what the others say is written.
func TestJournalEntryForAMissingInvoice(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		inv := b.add("A", "x", "y")
		b.noteEvent(inv, "noted")
		b.journal.Add(func(ctx context.Context, tx *store.Tx) error {
			_, err := tx.Invoice(ctx, b.scope, store.NewID())
			if !errors.Is(err, store.ErrNotFound) {
				t.Errorf("got %v", err)
			}
			return err
		})
		b.noteEvent(inv, "noted")
		b.journal.Flush(t.Context())
		if n := b.events(inv, "noted"); n != 2 {
			t.Errorf("%d entries were written, want 2", n)
		}
	})
}
