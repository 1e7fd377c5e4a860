package store_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func sampleEvent(scope store.Scope, kind string, at time.Time) store.Event {
	return store.Event{Scope: scope, ID: event.NewID(), Kind: kind, At: at, Body: []byte("{\"é\":\"\x00\"}")}
}

func addEvent(t *testing.T, s *store.Store, e store.Event) store.Event {
	t.Helper()
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.AddEvent(ctx, e) })
	return e
}

func readFeed(t *testing.T, s *store.Store, scope store.Scope, after int64, limit int) []store.Event {
	t.Helper()
	got, err := s.Feed(t.Context(), scope, after, limit)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAnEventReadsBackAndGetsItsPositionOnce(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope, other := addLiveScope(t, s), addLiveScope(t, s)
		elsewhere := store.Scope{Environment: fiscal.Certification, TaxpayerID: scope.TaxpayerID}
		later := addEvent(t, s, sampleEvent(scope, "b", noon.Add(time.Second)))
		first := sampleEvent(scope, "a", noon)
		first.DocumentID, first.Revision = store.NewID(), 4
		if err := s.Commit(t.Context(), new(store.Batch).AddEvent(first)); err != nil {
			t.Fatal(err)
		}
		foreign := addEvent(t, s, sampleEvent(other, "a", noon))
		addEvent(t, s, sampleEvent(elsewhere, "a", noon))

		if got, err := s.Event(t.Context(), scope, first.ID); err != nil || !cmp.Equal(got, first) {
			t.Errorf("before it has a position: %v\n%s", err, cmp.Diff(first, got))
		}
		if _, err := s.Event(t.Context(), scope, foreign.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("of another taxpayer: %v, want ErrNotFound", err)
		}
		first.Number, later.Number = 1, 2
		want := []store.Event{first, later}
		if diff := cmp.Diff(want, readFeed(t, s, scope, 0, 10)); diff != "" {
			t.Errorf("the feed (-want +got):\n%s", diff)
		}
		late := addEvent(t, s, sampleEvent(scope, "c", noon.Add(-time.Hour)))
		late.Number = 3
		if diff := cmp.Diff([]store.Event{late}, readFeed(t, s, scope, 2, 10)); diff != "" {
			t.Errorf("an event that is committed late comes after those that were read (-want +got):\n%s", diff)
		}
		if got := readFeed(t, s, scope, 0, 2); len(got) != 2 || got[1].Number != 2 {
			t.Errorf("a page of two: %+v", got)
		}
		if got := readFeed(t, s, scope, 3, 10); len(got) != 0 {
			t.Errorf("after the end: %+v", got)
		}
	})
}

func TestEventsNeverChange(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		addEvent(t, s, sampleEvent(scope, "a", noon))
		fresh := addEvent(t, s, sampleEvent(scope, "a", noon))
		for _, statement := range []string{
			`UPDATE events SET body = 'x' WHERE environment <> '' AND taxpayer_id <> ''`,
			`UPDATE events SET number = 7, kind = 'b' WHERE environment <> '' AND taxpayer_id <> ''`,
			`DELETE FROM events WHERE environment <> '' AND taxpayer_id <> ''`,
		} {
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(t.Context(), statement) }); err == nil {
				t.Errorf("the engine accepted: %s", statement)
			}
		}
		readFeed(t, s, scope, 0, 1)
		err := s.Update(t.Context(), func(tx *store.Tx) error {
			return tx.Exec(t.Context(), `UPDATE events SET number = 9 WHERE environment <> '' AND taxpayer_id <> '' AND id = $1`, fresh.ID)
		})
		if err == nil {
			t.Error("an event got a second position")
		}
	})
}

// Readers on two nodes see every event once and in the same order, while writers commit
// events in another order than their times.
func TestTheFeedNeitherSkipsNorRepeats(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		nodes := []*store.Store{storetest.Open(t, address, time.Now), storetest.Open(t, address, time.Now)}
		scopes := []store.Scope{addLiveScope(t, nodes[0]), addLiveScope(t, nodes[0])}
		const writers, each, readers = 3, 8, 4
		var writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := range each {
					for _, scope := range scopes {
						n := sampleEvent(scope, "a", noon.Add(time.Duration(rand.IntN(1000))*time.Second))
						err := nodes[(w+i)%2].Update(t.Context(), func(tx *store.Tx) error {
							if err := tx.AddEvent(t.Context(), n); err != nil {
								return err
							}
							time.Sleep(time.Duration(rand.IntN(1000)) * time.Microsecond) // lets other transactions commit first
							return nil
						})
						if err != nil {
							t.Errorf("write: %v", err)
						}
					}
				}
			})
		}
		written := make(chan struct{})
		go func() { writing.Wait(); close(written) }()
		seen := make([][]string, readers)
		var reading sync.WaitGroup
		for r := range readers {
			reading.Go(func() {
				scope, after := scopes[r%2], int64(0)
				for last := false; ; {
					got, err := nodes[r/2].Feed(t.Context(), scope, after, 1+rand.IntN(5))
					if err != nil {
						t.Errorf("read: %v", err)
						return
					}
					for _, n := range got {
						if n.Number != after+1 || n.Scope != scope {
							t.Errorf("number %d of %s after %d", n.Number, n.TaxpayerID, after)
						}
						after = n.Number
						seen[r] = append(seen[r], n.ID)
					}
					if len(got) > 0 {
						continue
					}
					if last {
						return
					}
					select {
					case <-written:
						last = true // the writers are done, so the next read is the last one
					default:
					}
				}
			})
		}
		reading.Wait()
		for r := range readers {
			if len(seen[r]) != writers*each || !slices.Equal(seen[r], seen[r%2]) {
				t.Errorf("reader %d saw %d of %d, or in another order", r, len(seen[r]), writers*each)
			}
		}
	})
}

// A client of the feed may have read further than an older copy of the database goes. It
// gets every event that comes after the copy was restored.
func TestTheFeedOfAnOlderCopySkipsNothing(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addLiveScope(t, s)
		addEvent(t, s, sampleEvent(scope, "a", noon))
		readFeed(t, s, scope, 0, 10)
		const read = 7 // of the database that was lost
		n := addEvent(t, s, sampleEvent(scope, "b", noon.Add(time.Minute)))
		for _, after := range []int64{read, 1} {
			if got := readFeed(t, s, scope, after, 10); len(got) != 1 || got[0].ID != n.ID || got[0].Number <= read {
				t.Errorf("after %d: %+v, want the new event", after, got)
			}
		}
	})
}

// While Feed cannot number new events, it returns those that have a position.
func TestTheFeedIsReadWhileTheDatabaseCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Address(t, "sqlite"), time.Now)
	scope := addLiveScope(t, s)
	known := addEvent(t, s, sampleEvent(scope, "a", noon))
	readFeed(t, s, scope, 0, 10)
	addEvent(t, s, sampleEvent(scope, "b", noon))
	held, release := make(chan struct{}), make(chan struct{})
	var blocking sync.WaitGroup
	blocking.Go(func() {
		err := s.Update(context.WithoutCancel(t.Context()), func(*store.Tx) error { close(held); <-release; return nil })
		if err != nil {
			t.Errorf("block: %v", err)
		}
	})
	<-held
	got, err := s.Feed(t.Context(), scope, 0, 10)
	if err != nil || len(got) != 1 || got[0].ID != known.ID {
		t.Errorf("%v, %v; want only the event with a position", got, err)
	}
	close(release)
	blocking.Wait()
	if got := readFeed(t, s, scope, 0, 10); len(got) != 2 {
		t.Errorf("afterwards %d, want both", len(got))
	}
}

func TestHasEventsReportsUnreadEvents(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope, other := addLiveScope(t, s), addLiveScope(t, s)
		unread := func(scope store.Scope, after int64) bool {
			t.Helper()
			some, err := s.HasEvents(t.Context(), scope, after)
			if err != nil {
				t.Fatal(err)
			}
			return some
		}
		addEvent(t, s, sampleEvent(scope, "a", noon))
		if !unread(scope, 0) || unread(other, 0) {
			t.Error("an event without a position must be unread for its taxpayer only")
		}
		readFeed(t, s, scope, 0, 10)
		if !unread(scope, 0) || unread(scope, 1) {
			t.Error("an event must be unread before its position, and read from its position on")
		}
	})
}

// On PostgreSQL it costs the same to number events while 1,000 or 10,000 have no number
// yet.
func TestNumberingEventsDoesNotReadTheHistory(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	s := storetest.Open(t, address, time.Now)
	tx := store.TxOn(connection(t, address), "postgres")
	explained := tx.Explain()
	blocks := map[int]int{}
	for _, events := range []int{1_000, 10_000} {
		scope := addLiveScope(t, s)
		addHistory(t, s, scope, events)
		execute(t, tx, `ANALYZE events`) // as the server does some time after many inserts
		execute(t, tx, `BEGIN`)
		explained.Reset()
		if err := tx.NumberEvents(t.Context(), scope); err != nil {
			t.Fatal(err)
		}
		blocks[events] = explained.Blocks
		execute(t, tx, `COMMIT`)
		if page := readFeed(t, s, scope, 0, 100); len(page) != 100 {
			t.Errorf("the feed of %d events has a page of %d", events, len(page))
		}
	}
	t.Logf("blocks by the number of events: %v", blocks)
	if blocks[10_000] >= 2*blocks[1_000] {
		t.Errorf("numbering reads %v blocks", blocks)
	}
}
