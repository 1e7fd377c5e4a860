package live_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// eachReception runs a test for both ways to the authority.
func eachReception(t *testing.T, test func(*testing.T, *doubt)) {
	t.Helper()
	for kind, reception := range map[string]simulator.Service{"31": simulator.Reception, "summary": simulator.RFCE} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			test(t, &doubt{env: newEnv(t, storetest.Address(t, "sqlite"), envOptions{}), reception: reception})
		})
	}
}

// unsent lets fn run while the authority takes no document.
func (d *doubt) unsent(fn func()) {
	d.Options.Authority = neverSends{d.Client}
	d.Start()
	fn()
	d.Options.Authority = d.Client
	d.Start()
}

// The clock was a day ahead when an answer was lost. Look-ups after the correction are about
// that attempt, although its time lies ahead: when they find nothing, the document is sent
// again.
func TestLookUpsFollowAnAttemptOfAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	eachReception(t, func(t *testing.T, d *doubt) {
		d.Rule(1, d.reception, simulator.Action{Fault: "F02", Store: livetest.No()})
		d.unsent(func() { d.send(); d.Drive(time.Millisecond) })
		right := d.Now()
		d.Clock.Advance(24 * time.Hour)
		d.Drive(3 * time.Second)
		d.unknown()
		d.Clock.Set(right.Add(time.Minute))
		d.Drive(30 * time.Minute)
		if got := d.Read(d.inv).Status; got != fiscal.Accepted {
			t.Errorf("half an hour after the correction the document is %s: %s", got, d.Story(d.inv))
		}
		wantPosts(2)(t, d.env, d.inv)
	})
}

// The clock was ahead while look-ups found nothing. It is right when the second copy is
// sent, whose answer is lost too. What look-ups found before says nothing about that copy,
// although their times lie ahead: there is no third one for it.
func TestAbsencesOfAClockThatWasAheadProveNothing(t *testing.T) {
	t.Parallel()
	eachReception(t, func(t *testing.T, d *doubt) {
		d.Rule(2, d.reception, simulator.Action{Fault: "F02"})
		d.hide()
		d.send()
		d.Drive(3 * time.Second)
		right := d.Now()
		d.unsent(func() {
			d.Clock.Advance(2 * time.Hour)
			d.Drive(20 * time.Minute)
		})
		wantPosts(1)(t, d.env, d.inv)
		d.Clock.Set(right.Add(30 * time.Minute))
		d.Drive(time.Minute)
		wantPosts(2)(t, d.env, d.inv)
	})
}
