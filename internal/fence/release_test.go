package fence_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// An authority that does not answer releases nothing; what it has answered
// before is not asked again.
func TestReleaseNeedsTheAuthoritysAnswers(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
	w.Guard(path)
	copied := backup(t, address)
	for range 4 {
		w.Create(fiscal.Consumer, 1000)
	}
	w.Drive(time.Hour)
	w = w.from(copied)
	w.Guard(path)
	_, err := w.Sim.AddRule(simulator.Rule{
		Match: simulator.Match{Service: simulator.StateLookup, ENCF: "E320000000003"}, Action: simulator.Action{Fault: "F05"}, Count: 1,
	})
	w.Must(err)
	if _, err := w.Releaser().Release(t.Context(), w.Scope); !errors.Is(err, fiscal.ErrUnavailable) || !strings.Contains(err.Error(), "2 numbers answered") {
		t.Errorf("%v", err)
	}
	w.Equal("fenced", []string{"32 at 1"}, w.Fenced())
	w.Refused(fiscal.Consumer)
	w.Equal("released", []string{"32 1–4: 4 found, 0 absent, 0 unknown"}, w.release())
	w.Ledger()
}

// An interrupted release keeps the answers that it has. The next one asks only about the
// other numbers.
func TestAnInterruptedReleaseContinues(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		copied := backup(t, address)
		for range 4 {
			w.Create(fiscal.Consumer, 1000)
		}
		w.Drive(time.Hour)
		w = w.from(copied)
		w.Guard(path)
		ctx, cancel := context.WithCancel(t.Context())
		first := w.Releaser()
		first.Progress = func(_ store.NumberRange, answered, total int64) {
			if total < 4 || answered > total {
				t.Errorf("%d of %d numbers are answered", answered, total)
			}
			if answered == 3 {
				cancel()
			}
		}
		if released, err := first.Release(ctx, w.Scope); !errors.Is(err, context.Canceled) || len(released) != 0 {
			t.Fatalf("interrupted: %v, %v", released, err)
		}
		asked := &countingAuthority{Authority: w.Options.Authority}
		second := w.Releaser()
		second.Authority = asked
		released, err := second.Release(t.Context(), w.Scope)
		if err != nil || len(released) != 1 || released[0].Found != 4 {
			t.Errorf("the second release: %+v, %v", released, err)
		}
		for _, number := range asked.numbers {
			if number < "E320000000004" {
				t.Errorf("the authority was asked about %s again", number)
			}
		}
		w.Ledger()
	})
}

// countingAuthority keeps the numbers that it is asked about.
type countingAuthority struct {
	live.Authority
	numbers []string
}

func (a *countingAuthority) TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.AuthorityAnswer, error) {
	a.numbers = append(a.numbers, q.ENCF)
	return a.Authority.TrackIDs(ctx, id, q)
}

// Where the look-ups do not exist the numbers up to the mark are given up; with
// no mark an operator has to state one.
func TestReleaseWithoutALookUp(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
	w.Guard(path)
	copied := backup(t, address)
	w.Create(fiscal.Consumer, 1000)
	w.Create(fiscal.Consumer, 1000)
	w.Drive(time.Hour)
	deaf := func(w *env) { w.Options.Authority = deafAuthority{w.Options.Authority} }
	known := w.from(copied)
	known.Guard(path)
	deaf(known)
	known.Equal("released", []string{"32 1–2: 0 found, 0 absent, 2 unknown"}, known.release())
	known.Ledger()

	w.Must(os.Remove(path))
	w.Guard(path)
	deaf(w)
	if _, err := w.Releaser().Release(t.Context(), w.Scope); !errors.Is(err, fence.ErrNotStated) {
		t.Errorf("%v", err)
	}
	w.Equal("fenced", []string{"31 at 1", "32 at 3"}, w.Fenced())
	stating := w.Releaser()
	stating.Stated = []fence.Stated{{Type: fiscal.Consumer, Number: 2}, {Type: fiscal.Consumer, Number: 5}}
	released, err := stating.Release(t.Context(), w.Scope)
	if !errors.Is(err, fence.ErrNotStated) || len(released) != 1 || released[0].From != 3 || released[0].To != 5 || released[0].Unknown != 3 {
		t.Errorf("stated: %+v, %v", released, err)
	}
	w.Equal("what nobody stated", []string{"31 at 1"}, w.Fenced())
	w.Ledger()
}

// Another witness, such as the new one of a command with an empty data folder, does not know
// which numbers were used. It releases nothing.
func TestReleaseWithAnotherWitness(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	w, dir := newEnv(t, address), t.TempDir()
	w.Guard(filepath.Join(dir, "node"))
	w.Create(fiscal.Consumer, 1000)
	w.Drive(time.Hour)
	copied := backup(t, address)
	w.Create(fiscal.Consumer, 1000)
	w.Drive(time.Hour)
	w = w.from(copied)
	w.Guard(filepath.Join(dir, "node"))
	w.Guard(filepath.Join(dir, "operator"))
	if released, err := w.Releaser().Release(t.Context(), w.Scope); !errors.Is(err, fence.ErrNotStated) || len(released) > 0 {
		t.Errorf("%+v, %v, want ErrNotStated", released, err)
	}
}

// Nodes with witnesses of their own know each what it has sent. The numbers of
// the others are found beyond the mark.
func TestReleaseFindsNumbersOfOtherNodes(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
	w.Guard(path)
	copied := backup(t, address)
	ours := w.Options.Fence
	for n := range 5 {
		if n == 3 {
			w.Options.Fence = nil // another node
		}
		w.Create(fiscal.Consumer, 1000)
		w.Drive(time.Hour)
	}
	w.Must(ours.Close())
	w = w.from(copied)
	w.Guard(path)
	w.Equal("fenced", []string{"32 at 1"}, w.Fenced())
	w.Equal("released", []string{"32 1–5: 5 found, 0 absent, 0 unknown"}, w.release())
	w.Ledger()
}

// deafAuthority has no look-up.
type deafAuthority struct{ live.Authority }

func (deafAuthority) TrackIDs(context.Context, *xmlsig.Identity, fiscal.Query) ([]fiscal.AuthorityAnswer, error) {
	return nil, fiscal.ErrAbsent
}

func (deafAuthority) State(context.Context, *xmlsig.Identity, fiscal.Query) (fiscal.AuthorityAnswer, error) {
	return fiscal.AuthorityAnswer{}, fiscal.ErrAbsent
}
