package live

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
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
	d.options.Authority = neverSends{d.client}
	d.start()
	fn()
	d.options.Authority = d.client
	d.start()
}

// The clock was a day ahead when an answer was lost. Look-ups after the correction are about
// that attempt, although its time lies ahead: when they find nothing, the document is sent
// again.
func TestLookUpsFollowAnAttemptOfAClockThatWasAhead(t *testing.T) {
	t.Parallel()
	eachReception(t, func(t *testing.T, d *doubt) {
		d.rule(1, d.reception, simulator.Action{Fault: "F02", Store: no()})
		d.unsent(func() { d.send(); d.drive(time.Millisecond) })
		right := d.now()
		d.clock.Advance(24 * time.Hour)
		d.drive(3 * time.Second)
		d.unknown()
		d.clock.Set(right.Add(time.Minute))
		d.drive(30 * time.Minute)
		if got := d.read(d.inv).Status; got != fiscal.Accepted {
			t.Errorf("half an hour after the correction the document is %s: %s", got, d.story(d.inv))
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
		d.rule(2, d.reception, simulator.Action{Fault: "F02"})
		d.hide()
		d.send()
		d.drive(3 * time.Second)
		right := d.now()
		d.unsent(func() {
			d.clock.Advance(2 * time.Hour)
			d.drive(20 * time.Minute)
		})
		wantPosts(1)(t, d.env, d.inv)
		d.clock.Set(right.Add(30 * time.Minute))
		d.drive(time.Minute)
		wantPosts(2)(t, d.env, d.inv)
	})
}
