package pipeline

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A thousand changes within one millisecond, while the clock stands
// still, and then more with a clock that was set back.
func TestUpdatedAtGrowsWithinAMillisecond(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		inv := b.add("A", "x", "y")
		ctx := t.Context()
		change := func(n int) {
			b.must(b.o.Store.Update(ctx, func(tx *store.Tx) error {
				for range n {
					before, err := tx.Invoice(ctx, b.scope, inv.ID)
					if err != nil {
						return err
					}
					to := fiscal.Submitted
					if before.Status == fiscal.Submitted {
						to = fiscal.OutcomeUnknown
					}
					rows := new(store.Batch)
					Document{Invoice: before}.addRows(rows, Move{Status: to}, false, b.o.Now())
					if err := tx.Do(ctx, rows); err != nil {
						return err
					}
				}
				return nil
			}))
		}
		for range 20 { // a transaction has a time limit, which a busy machine may reach
			change(50)
		}
		b.clock.Advance(-time.Hour)
		change(10)
		events, err := b.o.Store.History(ctx, b.scope, inv.ID)
		b.must(err)
		if len(events) != 1011 {
			t.Fatalf("%d events", len(events))
		}
		last := inv.UpdatedAt
		for i, e := range events[1:] {
			if !e.At.After(last) || e.At.Nanosecond()%int(time.Millisecond) != 0 {
				t.Fatalf("change %d is at %s after %s", i, e.At, last)
			}
			last = e.At
		}
		now, err := b.o.Store.Invoice(ctx, b.scope, inv.ID)
		b.must(err)
		if !now.UpdatedAt.Equal(last) || now.Revision != 1011 {
			t.Errorf("updated at %s with %d changes, want %s", now.UpdatedAt, now.Revision, last)
		}
		// Once the clock is ahead again it is the clock's time.
		b.clock.Advance(2 * time.Hour)
		change(1)
		if now, err = b.o.Store.Invoice(ctx, b.scope, inv.ID); err != nil || !now.UpdatedAt.Equal(b.o.Now().Truncate(time.Millisecond)) {
			t.Errorf("updated at %s, %v, want %s", now.UpdatedAt, err, b.o.Now())
		}
	})
}

// Every scenario goes from queued to the status of its name, by steps that the
// table of states allows.
func TestScenariosFollowTheStatusTable(t *testing.T) {
	t.Parallel()
	for name, path := range scenarioPaths {
		at := fiscal.Queued
		for _, next := range path {
			if !at.MayBecome(next) {
				t.Errorf("%s goes from %s to %s", name, at, next)
			}
			at = next
		}
		if string(at) != string(name) {
			t.Errorf("%s ends at %s", name, at)
		}
	}
	for _, status := range fiscal.Statuses() {
		if _, ok := ParseScenario(string(status)); ok == (status == fiscal.Queued) {
			t.Errorf("scenario %s: %t", status, ok)
		}
	}
	if Scenario("delivered").Fits(fiscal.Consumer) || !Scenario("delivered").Fits(fiscal.FiscalCredit) || !Scenario("").Fits(fiscal.Consumer) {
		t.Error("delivered is for type 31 alone")
	}
}
