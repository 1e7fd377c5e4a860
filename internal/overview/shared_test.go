package overview

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// countedReads is a Shared that counts how often an overview is read. A read waits while
// the test holds the gate.
type countedReads struct {
	*Shared
	clock *storetest.Clock
	reads atomic.Int64
	gate  sync.RWMutex
	fails atomic.Bool
}

func newCountedReads() *countedReads {
	c := &countedReads{clock: storetest.NewClock()}
	c.Shared = &Shared{now: c.clock.Now, all: map[string]sharedOverview{}, read: func(ctx context.Context, _ store.Within) (Overview, error) {
		c.gate.RLock()
		defer c.gate.RUnlock()
		c.reads.Add(1)
		if c.fails.Load() {
			return Overview{}, errors.New("the database does not answer")
		}
		return Overview{At: c.clock.Now()}, ctx.Err()
	}}
	return c
}

// wantReads fails the test unless the overview was read so often.
func (c *countedReads) wantReads(t *testing.T, want int64) {
	t.Helper()
	if got := c.reads.Load(); got != want {
		t.Errorf("the overview was read %d times, want %d", got, want)
	}
}

func (c *countedReads) look(t *testing.T, within store.Within) {
	t.Helper()
	if _, err := c.Overview(t.Context(), within); err != nil {
		t.Error(err)
	}
}

var (
	everyTaxpayer = store.Within{Environment: fiscal.Production, All: true}
	oneTwo        = store.Within{Environment: fiscal.Production, Taxpayers: []string{"1", "2"}}
	twoOne        = store.Within{Environment: fiscal.Production, Taxpayers: []string{"2", "1", "2"}}
)

// Ten viewers of the same taxpayers cost one read in two seconds. Viewers of other
// taxpayers get an overview of their own.
func TestViewersOfTheSameTaxpayersShareAnOverview(t *testing.T) {
	t.Parallel()
	c := newCountedReads()
	for range 3 {
		c.gate.Lock() // all ten wait for the first one
		var viewers sync.WaitGroup
		for range 10 {
			viewers.Go(func() { c.look(t, everyTaxpayer) })
		}
		c.gate.Unlock()
		viewers.Wait()
		c.look(t, everyTaxpayer)
		c.clock.Advance(sharedFor)
	}
	c.wantReads(t, 3)
	c.look(t, oneTwo)
	c.look(t, twoOne)
	c.wantReads(t, 4)
	for _, other := range []store.Within{
		{Environment: fiscal.Production, Taxpayers: []string{"1"}}, {Environment: fiscal.Production},
		{Environment: fiscal.Sandbox, Taxpayers: []string{"1", "2"}}, {Environment: fiscal.Sandbox, All: true},
	} {
		before := c.reads.Load()
		c.look(t, other)
		c.wantReads(t, before+1)
	}
	c.clock.Advance(-sharedFor)
	c.look(t, oneTwo)
	c.wantReads(t, 9)
}

// A viewer who leaves neither waits nor takes the overview from the others.
func TestAViewerWhoLeavesDoesNotEndTheRead(t *testing.T) {
	t.Parallel()
	c := newCountedReads()
	c.gate.Lock()
	left, leave := context.WithCancel(t.Context())
	leave()
	if _, err := c.Overview(left, everyTaxpayer); !errors.Is(err, context.Canceled) {
		t.Errorf("the viewer who left got %v", err)
	}
	c.gate.Unlock()
	c.look(t, everyTaxpayer)
	c.wantReads(t, 1)
}

func TestAFailedOverviewIsReadAgain(t *testing.T) {
	t.Parallel()
	c := newCountedReads()
	c.fails.Store(true)
	if _, err := c.Overview(t.Context(), everyTaxpayer); err == nil {
		t.Error("the viewer got no error")
	}
	c.fails.Store(false)
	c.look(t, everyTaxpayer)
	c.wantReads(t, 2)
}

func TestOverviewsInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	c := newCountedReads()
	for i := range 3 * maxShared {
		c.look(t, store.Within{Environment: fiscal.Production, Taxpayers: []string{fmt.Sprint(i)}})
	}
	if n := len(c.all); n > maxShared {
		t.Errorf("%d overviews are in memory", n)
	}
}
