package watch_test

import (
	"bytes"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A document without a verdict for 15 minutes, and one whose outcome is unknown for
// 24 hours, cause one error in the log and one event each.
func TestOverdueDocumentsAreReportedOnce(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{Amb: "certecf"}) // no look-up: the outcome stays unknown
		var logged bytes.Buffer
		w.Options.Log = slog.New(slog.NewTextHandler(&logged, nil))
		w.Start()
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(48 * time.Hour) }))
		slow := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Second)
		w.Rule(0, simulator.Reception, simulator.Action{Fault: "F02", Store: livetest.No()})
		lost := w.Create(fiscal.FiscalCredit, 1000)
		reasons := func(id string) (all []string) {
			for _, e := range w.Feed() {
				if e.Type == event.VerdictOverdue && e.Data.ID == id {
					all = append(all, e.Data.Reason)
				}
			}
			return all
		}
		for range 28 * 6 {
			w.Drive(10 * time.Minute)
			w.Clock.Advance(10 * time.Minute)
			w.Must(w.Watcher.CheckOverdue(t.Context(), w.Signals()))
			w.Must(w.Watcher.CheckOverdue(t.Context(), w.Signals()))
		}
		if got := reasons(slow.DocumentID); !slices.Equal(got, []string{event.NoVerdictFor15Minutes}) {
			t.Errorf("the slow document caused %q", got)
		}
		if got := reasons(lost.DocumentID); !slices.Equal(got, []string{event.OutcomeUnknownFor24Hours}) {
			t.Errorf("the document that was lost caused %q: %s", got, w.Story(lost))
		}
		if n := strings.Count(logged.String(), "A document has no verdict for a long time."); n != 2 {
			t.Errorf("%d errors were logged, want 2", n)
		}
	})
}

// A backlog that waits to be sent does not put off the report about a document that was
// sent: one round finds it.
func TestABacklogDoesNotPutOffTheReport(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(48 * time.Hour) }))
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Second)
		w.Want(inv, "queued submitted processing")
		// The ids of these jobs come before that of the document.
		w.Must(w.Store().ImportJobs(t.Context(), w.Scope, "submit", 1, 10_000, w.Now()))
		w.Clock.Advance(16 * time.Minute)
		w.Must(w.Watcher.CheckOverdue(t.Context(), w.Signals()))
		reported := slices.ContainsFunc(w.Feed(), func(e livetest.Emitted) bool { return e.Type == event.VerdictOverdue && e.Data.ID == inv.DocumentID })
		if !reported {
			t.Error("the first round does not report the document")
		}
	})
}

// The authority gives a track id, and says after a while that it processes the document:
// that is no verdict. The document is reported 15 minutes after the track id.
func TestProcessingDoesNotPutOffTheReport(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(48 * time.Hour) }))
		_, err := w.Sim.AddRule(simulator.Rule{
			Match: simulator.Match{Service: simulator.Result, To: w.Now().Add(6 * time.Minute)}, Action: simulator.Action{Fault: "F05"},
		})
		w.Must(err)
		inv := w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Second)
		w.Want(inv, "queued submitted")
		reported := func() (n int) {
			w.Must(w.Watcher.CheckOverdue(t.Context(), w.Signals()))
			for _, e := range w.Feed() {
				if e.Type == event.VerdictOverdue {
					n++
				}
			}
			return n
		}
		end := w.Read(inv).UpdatedAt.Add(15 * time.Minute)
		w.Drive(7 * time.Minute)
		w.Clock.Advance(w.Read(inv).UpdatedAt.Add(7 * time.Minute).Sub(w.Now()))
		w.Create(fiscal.Consumer, 1000) // its answer ends the outage
		w.Drive(6 * time.Minute)
		w.Want(inv, "queued submitted processing")
		w.Clock.Advance(end.Add(-time.Second).Sub(w.Now()))
		if n := reported(); n != 0 {
			t.Errorf("%d reports before the 15 minutes are over", n)
		}
		w.Clock.Advance(2 * time.Second)
		if n := reported(); n != 1 {
			t.Errorf("%d reports after 15 minutes, want 1", n)
		}
	})
}

// After 72 hours without a verdict the authority is asked every hour.
func TestSlowVerdictsAreAskedForEveryHour(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(90 * time.Hour) }))
	asked := 0
	w.Options.Authority = livetest.WatchedAuthority{Authority: w.Client, Asked: func() { asked++ }}
	w.Start()
	inv := w.Create(fiscal.FiscalCredit, 1000)
	for _, tt := range []struct {
		span        time.Duration
		least, most int
	}{{70 * time.Hour, 240, 400}, {4 * time.Hour, 2, 18}, {12 * time.Hour, 9, 13}} {
		end := w.Now().Add(tt.span)
		asked = 0
		w.Drive(tt.span)
		w.Clock.Advance(end.Sub(w.Now()))
		if asked < tt.least || asked > tt.most {
			t.Errorf("asked %d times in %s, want %d to %d", asked, tt.span, tt.least, tt.most)
		}
	}
	w.Want(inv, "queued submitted processing")
}
