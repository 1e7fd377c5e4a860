package live

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Attempts begin in the order of the numbers. If the database and the witness are lost, the
// authority then has all numbers up to the highest one that it has, but for those under way.
// Nothing waits for an answer: a document whose attempt has begun lets the next one go.

const (
	// turnGrace is how long a document waits for one with a lower number that a worker
	// has, and that has not begun yet. The worker may be gone.
	turnGrace = 200 * time.Millisecond
	// turnPause is how soon a document tries again that waits for one that is due.
	turnPause = 20 * time.Millisecond
	// maxAhead is how many documents with lower numbers are looked at, and sent first.
	maxAhead = 32
)

// A line has the documents of one taxpayer and type that workers of this node are about to
// send.
type line struct {
	mu      sync.Mutex
	waiting map[string]bool   // numbers that wait for their turn
	begun   map[string]bool   // numbers whose attempts are not committed yet
	passed  map[string]string // numbers that others no longer wait for, with their leases
	moved   chan struct{}     // closed when a number comes or goes
	users   int               // guarded by Plan.mu
}

// A turn is the place of a document in its line.
type turn struct {
	plan *Plan
	key  queueKey
	line *line
	encf string
	left bool
}

// enterLine puts a number into the line of its taxpayer and type.
func (p *Plan) enterLine(key queueKey, encf string) *turn {
	p.mu.Lock()
	l := p.lines[key]
	if l == nil {
		l = &line{waiting: map[string]bool{}, begun: map[string]bool{}, passed: map[string]string{}, moved: make(chan struct{})}
		p.lines[key] = l
	}
	l.users++
	p.mu.Unlock()
	l.change(func() { l.waiting[encf] = true })
	return &turn{plan: p, key: key, line: l, encf: encf}
}

// change changes the line and wakes those that wait in it.
func (l *line) change(fn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fn()
	close(l.moved)
	l.moved = make(chan struct{})
}

// begin lets the next document take its turn.
func (t *turn) begin() {
	t.line.change(func() { delete(t.line.waiting, t.encf); t.line.begun[t.encf] = true })
}

// leave takes the document out of its line. It may be called more than once.
func (t *turn) leave() {
	if t.left {
		return
	}
	t.left = true
	t.line.change(func() { delete(t.line.waiting, t.encf); delete(t.line.begun, t.encf) })
	t.plan.mu.Lock()
	defer t.plan.mu.Unlock()
	if t.line.users--; t.line.users == 0 {
		delete(t.plan.lines, t.key)
	}
}

// first waits until no document with a lower number waits in the line.
func (t *turn) first(ctx context.Context) error {
	for {
		t.line.mu.Lock()
		first, moved := true, t.line.moved
		for encf := range t.line.waiting {
			first = first && t.encf <= encf
		}
		t.line.mu.Unlock()
		if first {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// takeTurn waits until a document may begin its attempt. It returns a *pipeline.WaitError
// when documents with lower numbers wait that no worker has: they go first. The caller
// must leave the line.
func (p *Plan) takeTurn(ctx context.Context, w pipeline.Work, issued store.Issued) (_ *turn, err error) {
	encf, err := fiscal.ParseENCF(issued.ENCF)
	if err != nil {
		return nil, err
	}
	t := p.enterLine(queueKey{issued.Scope, encf.Type()}, issued.ENCF)
	defer func() {
		if err != nil {
			t.leave()
		}
	}()
	for {
		if err := t.first(ctx); err != nil {
			return nil, err
		}
		t.line.mu.Lock()
		begun, passed, moved := maps.Clone(t.line.begun), maps.Clone(t.line.passed), t.line.moved
		t.line.mu.Unlock()
		lower, err := p.store.ToSendBefore(ctx, issued.Scope, encf, maxAhead+len(begun))
		if err != nil {
			return nil, err
		}
		now, working := p.now(), []store.ToSend(nil)
		for _, one := range lower {
			switch {
			case begun[one.ENCF], one.DocumentID == w.Job.DocumentID:
			case one.Leased(now):
				if passed[one.ENCF] != one.Lease {
					working = append(working, one)
				}
			case one.Summarized != issued.Summarized && one.Wait(now) > 0:
				// The authority receives summaries elsewhere, and was just tried there.
			default:
				return nil, p.letFirst(ctx, issued.Scope, lower, one, now)
			}
		}
		if len(working) == 0 {
			return t, nil
		}
		grace := time.NewTimer(turnGrace)
		select {
		case <-moved:
		case <-grace.C:
			t.line.change(func() {
				for _, one := range working {
					t.line.passed[one.ENCF] = one.Lease
				}
			})
		case <-ctx.Done():
			err = ctx.Err()
		}
		grace.Stop()
		if err != nil {
			return nil, err
		}
	}
}

// letFirst returns the error of a document that waits until the first of others with lower
// numbers was sent. Suspended ones are moved to the front.
func (p *Plan) letFirst(ctx context.Context, scope store.Scope, lower []store.ToSend, first store.ToSend, now time.Time) error {
	if !first.Suspended {
		return waitForTurn(pipeline.WaitTime, max(turnPause, first.Wait(now)))
	}
	var ids []string
	for _, one := range lower {
		if one.Suspended && !one.Leased(now) {
			ids = append(ids, one.DocumentID)
		}
	}
	if err := p.effect("letting lower numbers go first", func() error { return p.store.LetGoFirst(ctx, scope, ids, now) }); err != nil {
		return err
	}
	return waitForTurn(pipeline.WaitTurn, 0)
}
