package fence_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A copy is restored on the same server, so its timeline is the same, and the rows of its
// nodes look like those of nodes that run. The witness of each node may know numbers that
// the others do not: a release needs all of them.
func TestARestoreNeedsTheWitnessOfEveryNode(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	a, dir := newEnv(t, address), t.TempDir()
	a.Guard(filepath.Join(dir, "a"))
	b := a.from(address)
	a.Create(fiscal.FiscalCredit, 1000)
	a.Drive(time.Hour)
	a.Must(a.Options.Fence.Beat(t.Context()))
	stop := a.beat(a)
	b.Guard(filepath.Join(dir, "b"))
	stop()
	b.Must(b.Options.Fence.Beat(t.Context()))
	copied := backup(t, address)
	a.Create(fiscal.FiscalCredit, 1000)
	a.Drive(time.Hour)
	a.Maintain(true)
	var sales []store.Invoice
	for range 3 {
		sales = append(sales, a.Create(fiscal.FiscalCredit, 1000))
	}
	b.Pass(3)
	b.Equal("printed", []string{"E310000000003", "E310000000004", "E310000000005"}, b.printed(sales))

	a = a.from(copied)
	a.Guard(filepath.Join(dir, "a"))
	a.Equal("fenced", []string{"31 at 2", "32 at 1"}, a.Fenced()) // the other node may have used numbers of both
	a.Maintain(false)
	a.Pass(1)
	if released, err := a.Releaser().Release(t.Context(), a.Scope); !errors.Is(err, fence.ErrNotStated) || len(released) != 0 {
		t.Errorf("without the other node: %+v, %v", released, err)
	}
	b = b.from(copied)
	b.Guard(filepath.Join(dir, "b"))
	defer a.beat(b)()
	a.Equal("released", []string{"31 2–5: 1 found, 3 absent, 0 unknown", "32 1–0: 0 found, 0 absent, 0 unknown"}, a.release())
}

// A node with the same witness inspects its ranges while a release writes to the witness. That
// does not disturb the release.
func TestANodeDoesNotDisturbARelease(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		copied := backup(t, address)
		w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		w = w.from(copied)
		w.Guard(path)
		node := w.from(copied)
		node.Guard(path)
		stating := w.Releaser()
		stating.Stated = []fence.Stated{{Type: fiscal.FiscalCredit, Number: 7}}
		inspect := false
		stating.Store = storetest.OpenPoints(t, copied, w.Now, func(string) error {
			if !inspect {
				return nil
			}
			inspect = false
			defer func() { inspect = true }()
			ranges, err := node.Store().NumberRangesOf(t.Context(), w.Scope, fiscal.FiscalCredit)
			if err == nil {
				_, err = node.Options.Fence.Inspect(t.Context(), livetest.IssuerRNC, ranges)
			}
			return err
		})
		inspect = true
		if released, err := stating.Release(t.Context(), w.Scope); err != nil || len(released) == 0 || released[0].To != 7 {
			t.Errorf("%+v, %v", released, err)
		}
	})
}

// beat lets a node report that it is alive until the returned function is called.
func (w *env) beat(node *env) (end func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				w.Clock.Advance(time.Millisecond)
				if err := node.Options.Fence.Beat(w.T.Context()); err != nil {
					w.T.Errorf("heartbeat: %v", err)
				}
			}
		}
	}()
	return func() { close(stop); <-done }
}
