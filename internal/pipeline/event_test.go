package pipeline

import (
	"errors"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Two changes of a document were prepared from the same state. The one with the later
// time is committed first. The other one has to be made again, and its event comes
// after the first one in the feed.
func TestEventsOfADocumentAreInTheOrderOfTheirRevisions(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		inv := b.add("A", "x", "y")
		early, late := b.o.Now().Add(time.Second), b.o.Now().Add(time.Minute)
		submit := func(before store.Invoice) error {
			rows := new(store.Batch)
			Document{Invoice: before}.addRows(rows, Move{Status: fiscal.Submitted}, true, early)
			return b.o.Store.Commit(t.Context(), rows)
		}
		rows := new(store.Batch)
		Document{Invoice: inv}.addRows(rows, Move{ExtraEvents: []ExtraEvent{{Kind: event.VerdictOverdue}}}, true, late)
		b.must(b.o.Store.Commit(t.Context(), rows))
		if err := submit(inv); !errors.Is(err, store.ErrInvoiceChanged) {
			t.Errorf("a change of an older state: %v", err)
		}
		now, err := b.o.Store.Invoice(t.Context(), b.scope, inv.ID)
		b.must(err)
		b.must(submit(now))
		feed, err := b.o.Store.Feed(t.Context(), b.scope, 0, 10)
		b.must(err)
		if len(feed) != 2 || feed[0].Revision != 1 || feed[1].Revision != 2 || !feed[1].At.After(feed[0].At) {
			for _, e := range feed {
				t.Errorf("%s has revision %d and is of %s", e.Kind, e.Revision, e.At)
			}
		}
	})
}
