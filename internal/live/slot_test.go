package live_test

import (
	"errors"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A document waits for longer than the authority's clock is known, and all slots of the
// authority's host belong to documents that are about to be sent. The question about the
// time needs a slot too; it must not wait for one that only its own answer sets free.
func TestAQuestionAboutTheTimeNeedsNoSecondSlot(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.DGII.MaxInFlight = 1
		fail := true
		w.Options.Point = func(name string) error {
			if name == "before witnessing" && fail {
				fail = false
				return errors.New("the disk is full")
			}
			return nil
		}
		w = w.otherClient()
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(0)
		w.Want(inv, "queued")
		w.Clock.Advance(11 * time.Minute)
		began := time.Now()
		w.Drive(time.Minute)
		w.Want(inv, "queued submitted accepted")
		if took := time.Since(began); took > time.Minute {
			t.Errorf("it took %s: a worker has waited for its own slot", took)
		}
		w.Clean()
	})
}
