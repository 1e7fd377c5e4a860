package live_test

import (
	"context"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A document that was registered while the clock was a day ahead is issued and sent as soon
// as the clock is right.
func TestADocumentOfAClockThatWasAheadIsSent(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		right := w.Now()
		w.Clock.Advance(24 * time.Hour)
		inv := w.CreateOn(fiscal.DateOf(right).String(), fiscal.Consumer, 100)
		w.Clock.Set(right)
		w.Drive(time.Minute)
		if got := w.Read(inv).Status; got != fiscal.Accepted {
			t.Errorf("a minute after the correction the document is %s", got)
		}
	})
}

// neverSends is an authority that takes no document.
type neverSends struct{ live.Authority }

func (neverSends) Reserve(context.Context, *xmlsig.Identity, string, bool) (func(context.Context, fiscal.Shipment) (fiscal.AuthorityAnswer, error), func(), error) {
	return nil, nil, fiscal.ErrNotReceived
}

// A document whose signature is in the authority's future waits until it has passed,
// however far away that is: no worker takes it again and again.
func TestADocumentFromTheFutureWaits(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		right := w.Now()
		submitted := func() (n int) {
			w.Engine.OnStage = func(r pipeline.StageResult) {
				if r.Stage == live.StageSubmit {
					n++
				}
			}
			w.Start()
			w.Drive(10 * time.Hour)
			return n
		}
		w.Clock.Advance(12 * time.Hour)
		inv := w.CreateOn(fiscal.DateOf(right).String(), fiscal.Consumer, 100)
		w.Options.Authority = neverSends{w.Client}
		w.Start()
		w.Drive(time.Second)
		if w.Read(inv).ENCF == "" {
			t.Fatal("the document was not signed")
		}
		w.Clock.Set(right)
		w.Options.Authority = w.Client
		if n := submitted(); n > 20 {
			t.Errorf("in ten hours the document was taken %d times", n)
		}
		if got := w.Read(inv).Status; got != fiscal.Queued {
			t.Errorf("the document from the future is %s", got)
		}
		w.Drive(4 * time.Hour)
		if got := w.Read(inv).Status; got != fiscal.Accepted {
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
		right := w.Now()
		w.Options.Authority = neverSends{w.Client}
		w.Start()
		first := w.Create(fiscal.Consumer, 100)
		w.Drive(time.Millisecond)
		w.Clock.Advance(24 * time.Hour)
		w.Drive(time.Millisecond) // it is tried again, in vain
		w.Clock.Set(right.Add(time.Minute))
		w.Options.Authority = w.Client
		w.Start()
		second := w.Create(fiscal.Consumer, 100)
		jobs, err := w.Claim(t.Context(), 1) // the second comes first: it is new
		w.Must(err)
		for _, job := range jobs {
			w.RunJob(t.Context(), job)
		}
		w.Drive(time.Minute)
		for _, inv := range []store.Invoice{first, second} {
			if got := w.Read(inv); got.Status != fiscal.Accepted {
				t.Errorf("a minute after the correction %s is %s", got.ENCF, got.Status)
			}
		}
	})
}
