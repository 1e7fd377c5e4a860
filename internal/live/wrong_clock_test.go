package live

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// The store takes an instant that lies further ahead than any pause for that of a wrong
// clock. The bounds are the longest pauses of the tables, with their jitter.
func TestTheStoreKnowsTheLongestPauses(t *testing.T) {
	t.Parallel()
	p := &Plan{random: func(n int64) int64 { return n - 1 }}
	longest := func(pauses []time.Duration) time.Duration {
		return p.pause([]time.Duration{0, slices.Max(pauses)}, 1)
	}
	const asked = time.Hour // the longest wait that the authority may ask for
	main := slices.Max([]time.Duration{longest(pollPauses), longest(reconcilePauses), sendMax, readinessPause, failedPause, clockPause, asked})
	if got := store.LongestPause(store.QueueMain); got != main {
		t.Errorf("the store expects jobs to wait for %s, they wait for %s", got, main)
	}
	if got, want := store.LongestPause(store.QueueDeliver), longest(deliverPauses); got != want {
		t.Errorf("the store expects deliveries to wait for %s, they wait for %s", got, want)
	}
}

// A document that was registered while the clock was a day ahead is issued and sent as soon
// as the clock is right.
func TestADocumentOfAClockThatWasAheadIsSent(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		right := w.now()
		w.clock.Advance(24 * time.Hour)
		inv := w.createOn(fiscal.DateOf(right).String(), fiscal.Consumer, 100)
		w.clock.Set(right)
		w.drive(time.Minute)
		if got := w.read(inv).Status; got != fiscal.Accepted {
			t.Errorf("a minute after the correction the document is %s", got)
		}
	})
}

// neverSends is an authority that takes no document.
type neverSends struct{ Authority }

func (neverSends) Reserve(context.Context, *xmlsig.Identity, string, bool) (func(context.Context, fiscal.Shipment) (fiscal.Answer, error), func(), error) {
	return nil, nil, fiscal.ErrNotReceived
}

// A document whose signature is in the authority's future waits until it has passed,
// however far away that is: no worker takes it again and again.
func TestADocumentFromTheFutureWaits(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		right := w.now()
		submitted := func() (n int) {
			w.engine.OnStage = func(r pipeline.StageResult) {
				if r.Stage == stageSubmit {
					n++
				}
			}
			w.start()
			w.drive(10 * time.Hour)
			return n
		}
		w.clock.Advance(12 * time.Hour)
		inv := w.createOn(fiscal.DateOf(right).String(), fiscal.Consumer, 100)
		w.options.Authority = neverSends{w.client}
		w.start()
		w.drive(time.Second)
		if w.read(inv).ENCF == "" {
			t.Fatal("the document was not signed")
		}
		w.clock.Set(right)
		w.options.Authority = w.client
		if n := submitted(); n > 20 {
			t.Errorf("in ten hours the document was taken %d times", n)
		}
		if got := w.read(inv).Status; got != fiscal.Queued {
			t.Errorf("the document from the future is %s", got)
		}
		w.drive(4 * time.Hour)
		if got := w.read(inv).Status; got != fiscal.Accepted {
			t.Errorf("after its time has come the document is %s", got)
		}
	})
}

// A document with a lower number was to be tried again by a clock that was a day ahead. It
// goes first as soon as the clock is right, and the next one follows at once.
func TestADocumentOfAClockThatWasAheadHoldsNoOther(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		right := w.now()
		w.options.Authority = neverSends{w.client}
		w.start()
		first := w.create(fiscal.Consumer, 100)
		w.drive(time.Millisecond)
		w.clock.Advance(24 * time.Hour)
		w.drive(time.Millisecond) // it is tried again, in vain
		w.clock.Set(right.Add(time.Minute))
		w.options.Authority = w.client
		w.start()
		second := w.create(fiscal.Consumer, 100)
		jobs, err := w.Claim(t.Context(), 1) // the second comes first: it is new
		w.must(err)
		for _, job := range jobs {
			w.RunJob(t.Context(), job)
		}
		w.drive(time.Minute)
		for _, inv := range []store.Invoice{first, second} {
			if got := w.read(inv); got.Status != fiscal.Accepted {
				t.Errorf("a minute after the correction %s is %s", got.ENCF, got.Status)
			}
		}
	})
}
