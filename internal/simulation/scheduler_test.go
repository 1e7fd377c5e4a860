package simulation

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	shipped "github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// errCrashed is what everything returns that a node does after its crash. No effect of
// the node follows.
var errCrashed = errors.New("the node has crashed")

// parked is a goroutine of a node that waits at a point until the scheduler lets it go on.
type parked struct {
	n      *node
	name   string
	label  string // of the goroutine
	order  int
	resume chan error
}

// reach parks a goroutine of a node at a point, and returns what the scheduler decides.
func (w *world) reach(n *node, name string) error {
	p := &parked{n: n, name: name, resume: make(chan error, 1)}
	id := goroutine()
	w.mu.Lock()
	if n.dead {
		w.mu.Unlock()
		return errCrashed
	}
	w.reached++
	p.order, p.label = w.reached, w.labels[id]
	w.parked = append(w.parked, p)
	w.mu.Unlock()
	w.wake()
	return <-p.resume
}

// wake lets the scheduler look again.
func (w *world) wake() {
	select {
	case w.arrived <- struct{}{}:
	default: // it will look anyway
	}
}

// goroutine returns the number of the calling goroutine. Several goroutines can reach a
// point at the same instant, in an order that no seed decides; their labels tell them
// apart.
func goroutine() string {
	var buffer [40]byte
	text := string(buffer[:runtime.Stack(buffer[:], false)])
	number, _, _ := strings.Cut(strings.TrimPrefix(text, "goroutine "), " ")
	return number
}

// labelled runs something under a label.
func (w *world) labelled(label string, do func()) {
	id := goroutine()
	w.mu.Lock()
	before := w.labels[id]
	w.labels[id] = label
	w.mu.Unlock()
	do()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.labels[id] = before; before == "" {
		delete(w.labels, id)
	}
}

// spawn starts an activity. The scheduler counts it until it ends.
func (w *world) spawn(group *sync.WaitGroup, label string, do func()) {
	w.mu.Lock()
	w.busy++
	w.mu.Unlock()
	run := func() {
		defer func() {
			w.mu.Lock()
			w.busy--
			w.mu.Unlock()
			w.wake()
		}()
		w.labelled(label, do)
	}
	if group == nil {
		go run()
		return
	}
	group.Go(run)
}

// A timetable has what happens at fixed instants of a run.
type timetable struct {
	mu      sync.Mutex
	entries []entry
	made    int
}

type entry struct {
	at    time.Time
	order int
	do    func()
}

// at schedules something.
func (w *world) at(when time.Time, do func()) {
	t := &w.timetable
	t.mu.Lock()
	defer t.mu.Unlock()
	t.made++
	e := entry{when, t.made, do}
	i, _ := slices.BinarySearchFunc(t.entries, e, func(a, b entry) int { return cmp.Or(a.at.Compare(b.at), a.order-b.order) })
	t.entries = slices.Insert(t.entries, i, e)
}

// next takes what is due from the timetable; nil: nothing is.
func (t *timetable) next(now time.Time) func() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.entries) == 0 || t.entries[0].at.After(now) {
		return nil
	}
	do := t.entries[0].do
	t.entries = t.entries[1:]
	return do
}

// after schedules something after a while.
func (w *world) after(d time.Duration, do func()) { w.at(w.now().Add(d), do) }

const (
	maxSteps = 60_000             // of the scheduler in one run; more is a violation
	maxTime  = 8 * 24 * time.Hour // of a run after the faults
)

// schedule steps the world until everything has come to its end, or the run takes too
// long. Between two steps every goroutine waits, and a little time passes, so that no
// two timers of the service end at the same instant.
func (w *world) schedule() (steps int) {
	end := w.now().Add(w.plan.span + maxTime)
	for steps = 1; steps < maxSteps; steps++ {
		synctest.Wait()
		if w.over() || !w.now().Before(end) {
			return steps
		}
		if !w.step() {
			w.rest()
			continue
		}
		synctest.Wait() // until then the goroutine that goes on may draw
		time.Sleep(time.Microsecond + time.Duration(w.draw(300))*time.Microsecond)
	}
	return steps
}

// over reports whether nothing is left to do.
func (w *world) over() bool {
	w.mu.Lock()
	idle := w.quiet && w.busy == 0 && len(w.parked) == 0
	w.mu.Unlock()
	if !idle || !w.settled() {
		return false
	}
	return true
}

// step does one thing that can be done now. It reports false when there is nothing.
func (w *world) step() bool {
	now := w.now()
	if do := w.timetable.next(now); do != nil {
		do()
		return true
	}
	w.readDue()
	w.mu.Lock()
	waiting := len(w.parked)
	w.mu.Unlock()
	if starts := w.starts(now); len(starts) > 0 && (waiting == 0 || w.draw(4) == 0) {
		starts[w.draw(len(starts))]()
		return true
	}
	if waiting == 0 {
		return false
	}
	w.resumeOne()
	return true
}

// starts are the activities that nodes can begin now.
func (w *world) starts(now time.Time) (all []func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if !n.ready || n.dead {
			continue
		}
		jobs := !w.dueJobs.IsZero() && !w.dueJobs.After(now) || w.waiting && !now.Before(n.nextTry)
		if jobs && n.working < w.plan.workers && !now.Before(n.idleUntil) {
			all = append(all, n.work)
		}
		if !w.dueHooks.IsZero() && !w.dueHooks.After(now) && !n.busy[shipped.Webhooks] && !now.Before(n.hooksIdleUntil) {
			all = append(all, n.send)
		}
	}
	return all
}

// resumeOne lets one parked goroutine go on, with or without a fault.
func (w *world) resumeOne() {
	w.mu.Lock()
	slices.SortStableFunc(w.parked, func(a, b *parked) int {
		return cmp.Or(cmp.Compare(a.n.index, b.n.index), cmp.Compare(a.label, b.label), cmp.Compare(a.order, b.order))
	})
	i := w.random.IntN(len(w.parked))
	p := w.parked[i]
	w.parked = slices.Delete(w.parked, i, i+1)
	w.mu.Unlock()
	if os.Getenv("SIMULATE_TRACE") == "steps" {
		w.tracef(p.n.name, "resumes %s %q of %d", p.label, p.name, len(w.parked)+1)
	}
	w.decide(p)
}

// decide draws what happens at a point.
func (w *world) decide(p *parked) {
	n, now := p.n, w.now()
	w.endHold(p)
	if w.pauseNext > 0 && p.label != "" && !w.quiet {
		w.tracef(n.name, "is paused for %s at %q", w.pauseNext, p.name)
		n.pausedUntil, w.pauseNext = now.Add(w.pauseNext), 0
	}
	if p.name == afterCommit {
		w.mu.Lock()
		w.dirty = true
		w.mu.Unlock()
		if w.copyIn > 0 && !w.quiet {
			if w.copyIn--; w.copyIn == 0 {
				w.copyDatabase()
			}
		}
	}
	switch {
	case n.pausedUntil.After(now):
		w.hold(p, n.pausedUntil.Sub(now))
	case p.name == beforeCommit && w.stalled.After(now):
		w.hold(p, w.stalled.Sub(now))
	case w.quiet:
		p.resume <- nil
	case w.chance(w.plan.crash):
		w.tracef(n.name, "crash at %q", p.name)
		w.mu.Lock()
		w.parked = append(w.parked, p) // the crash resumes it
		w.mu.Unlock()
		n.crash()
	case p.name == beforeCommit && w.chance(w.plan.errorBefore):
		w.tracef(n.name, "the database refuses a commit")
		p.resume <- fmt.Errorf("injected: %w", store.ErrUnavailable)
	case p.name == afterCommit && w.chance(w.plan.errorAfter):
		w.tracef(n.name, "the answer to a commit is lost")
		p.resume <- fmt.Errorf("injected: %w: %w", store.ErrUnavailable, store.ErrOutcomeUnknown)
	case p.name == "before witnessing" && w.chance(w.plan.witness):
		w.tracef(n.name, "the witness cannot be written")
		p.resume <- errors.New("injected: no space left on device")
	case w.chance(w.plan.stall):
		d := w.between(time.Millisecond, 100*time.Second)
		w.tracef(n.name, "%q takes %s", p.name, d)
		w.hold(p, d)
	default:
		p.resume <- nil
	}
}

// hold lets a parked goroutine wait, and decides again afterwards.
func (w *world) hold(p *parked, d time.Duration) {
	w.held = append(w.held, p)
	w.after(d, func() { w.goOn(p) })
}

// goOn ends the wait of a goroutine, unless it has ended already.
func (w *world) goOn(p *parked) {
	i := slices.Index(w.held, p)
	if i < 0 {
		return
	}
	w.held = slices.Delete(w.held, i, i+1)
	w.mu.Lock()
	dead := p.n.dead
	w.mu.Unlock()
	if dead {
		p.resume <- errCrashed
		return
	}
	w.decide(p)
}

// endHold sometimes lets a goroutine that waits go on when another node works on the same
// document: the worst moment for a worker that has lost its lease.
func (w *world) endHold(p *parked) {
	i := slices.IndexFunc(w.held, func(other *parked) bool { return other.n != p.n && other.label == p.label })
	if i < 0 || p.label == "" || w.quiet || w.draw(4) > 0 {
		return
	}
	other := w.held[i]
	w.tracef(other.n.name, "goes on at %q", other.name)
	other.n.pausedUntil = time.Time{}
	w.goOn(other)
}

// rest lets time pass until something can be done.
func (w *world) rest() {
	now := w.now()
	next := now.Add(time.Hour)
	soon := func(at time.Time) {
		if at.After(now) && at.Before(next) {
			next = at
		}
	}
	w.timetable.mu.Lock()
	if len(w.timetable.entries) > 0 {
		soon(w.timetable.entries[0].at)
	}
	w.timetable.mu.Unlock()
	w.mu.Lock()
	for _, n := range w.nodes {
		if !n.ready || n.dead {
			continue
		}
		if !w.dueJobs.IsZero() && n.working < w.plan.workers {
			soon(later(w.dueJobs, n.idleUntil))
		}
		if !w.dueHooks.IsZero() && !n.busy[shipped.Webhooks] {
			soon(later(w.dueHooks, n.hooksIdleUntil))
		}
		if w.waiting && n.working < w.plan.workers {
			soon(n.nextTry)
		}
	}
	w.mu.Unlock()
	timer := time.NewTimer(next.Sub(now))
	defer timer.Stop()
	select {
	case <-w.arrived:
	case <-timer.C:
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
