package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	workers    = 32
	leaseTime  = 30 * time.Second
	minLease   = 2 * time.Second
	pollEvery  = time.Second // how soon work that another node left behind is seen
	gatherTime = 5 * time.Millisecond
	stepTime   = 75 * time.Second // longer than any exchange with the authority may take
	retryBase  = time.Second
	retryMax   = 5 * time.Minute
)

// lease is how long a job is held without a sign of life.
func lease(pace float64) time.Duration {
	return max(time.Duration(float64(leaseTime)/max(pace, 1)), minLease)
}

// rouse tells the runner that a job has been made.
func (p *Pipeline) rouse() {
	select {
	case p.wake <- struct{}{}:
	default: // it has been told
	}
}

// work claims due jobs and runs them until ctx ends; what is under way then is
// finished.
func (p *Pipeline) work(ctx context.Context) {
	var busy sync.WaitGroup
	defer busy.Wait()
	free := make(chan struct{}, workers)
	for ctx.Err() == nil {
		if workers-len(free) < workers/4 {
			// A claim is a commit: a moment later there is room for more jobs.
			wait(ctx, gatherTime)
		}
		jobs, err := p.claim(ctx, workers-len(free))
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("jobs could not be claimed", "error", err.Error())
		}
		for _, job := range jobs {
			free <- struct{}{}
			busy.Go(func() {
				defer func() { <-free; p.rouse() }()
				p.run(context.WithoutCancel(ctx), job)
			})
		}
		if len(jobs) > 0 && len(free) < workers {
			continue
		}
		pause := time.NewTimer(p.pause(ctx))
		select {
		case <-ctx.Done():
		case <-p.wake:
		case <-pause.C:
		}
		pause.Stop()
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// pause is how long to wait for the next job to come due.
func (p *Pipeline) pause(ctx context.Context) time.Duration {
	now := p.Now()
	next, err := p.Store.NextJob(ctx, p.Env, now)
	if err != nil {
		return pollEvery
	}
	return min(max(next.Sub(now), 10*time.Millisecond), pollEvery)
}

func (p *Pipeline) claim(ctx context.Context, limit int) ([]store.Job, error) {
	now := p.Now()
	// Looking is cheap, claiming is a commit: look first.
	next, err := p.Store.NextJob(ctx, p.Env, now)
	if errors.Is(err, store.ErrNotFound) || limit == 0 || (err == nil && next.After(now)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var jobs []store.Job
	err = p.commit(ctx, "claim", func(tx *store.Tx) error {
		jobs, err = tx.Claim(ctx, p.Env, store.NewID(), now, now.Add(lease(p.Pace)), limit)
		return err
	})
	if err != nil {
		return nil, err // what was claimed may not have been committed
	}
	slices.SortFunc(jobs, func(a, b store.Job) int { // the oldest first, whatever the engine's order
		return cmp.Or(a.RunAt.Compare(b.RunAt), strings.Compare(a.DocumentID, b.DocumentID))
	})
	return jobs, nil
}

// commit is an update between two points where a test may end the process.
func (p *Pipeline) commit(ctx context.Context, what string, fn func(*store.Tx) error) error {
	p.point("before " + what)
	err := p.Store.Update(ctx, fn)
	p.point("after " + what)
	return err
}

func (p *Pipeline) point(name string) {
	if p.Point != nil {
		p.Point(name)
	}
}

// run does stages of a job and commits their results, until the job has to wait
// or is done. A failure gives the job back for later; a lost lease means that
// somebody else has it.
func (p *Pipeline) run(ctx context.Context, job store.Job) {
	for {
		bounded, cancel := context.WithTimeout(ctx, stepTime)
		beat := p.heartbeat(bounded, job)
		next, failure := p.step(bounded, job)
		cancel()
		<-beat
		switch {
		case failure == nil && next == "":
			return
		case failure == nil:
			job.Stage, job.Attempt, job.LastError = next, 1, ""
			continue
		case !errors.Is(failure, store.ErrLeaseLost):
			p.giveBack(ctx, job, failure)
		}
		return
	}
}

// heartbeat goes on holding a job whose stage takes long.
func (p *Pipeline) heartbeat(ctx context.Context, job store.Job) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(lease(p.Pace) / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if err := p.hold(ctx, job, func(*store.Tx) error { return nil }); err != nil && ctx.Err() == nil {
					p.Log.Warn("job could not be held", "document_id", job.DocumentID, "error", err.Error())
				}
			}
		}
	}()
	return done
}

// hold commits rows for as long as the job is ours.
func (p *Pipeline) hold(ctx context.Context, job store.Job, fn func(*store.Tx) error) error {
	return p.commit(ctx, "holding "+job.Stage, func(tx *store.Tx) error {
		if err := tx.HoldJob(ctx, job, p.Now().Add(lease(p.Pace))); err != nil {
			return err
		}
		return fn(tx)
	})
}

// giveBack lets a job go on later: soon when numbers were taken by others, when
// the stage said so, and with growing pauses when it failed.
func (p *Pipeline) giveBack(ctx context.Context, job store.Job, failure error) {
	delay := min(retryBase<<min(job.Attempt, 16), retryMax)
	var later *Later
	switch {
	case errors.As(failure, &later):
		delay = later.After
	case errors.Is(failure, store.ErrNumbersMoved):
		delay = 0
	default:
		p.Log.Warn("stage failed", "document_id", job.DocumentID, "stage", job.Stage, "attempt", job.Attempt, "error", failure.Error())
	}
	reason := strings.ReplaceAll(strings.ToValidUTF8(failure.Error(), "�"), "\x00", "") // as text can be stored
	err := p.commit(ctx, "giving back "+job.Stage, func(tx *store.Tx) error {
		return tx.RetryJob(ctx, job, p.Now().Add(delay), reason)
	})
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		// The lease runs out and the job comes due by itself.
		p.Log.Warn("job could not be given back", "document_id", job.DocumentID, "error", err.Error())
	}
}

// step does one stage and commits it. It returns the stage to go on with at
// once, if there is one.
func (p *Pipeline) step(ctx context.Context, job store.Job) (next string, err error) {
	before, err := p.Store.InvoiceOfDocument(ctx, job.Scope, job.DocumentID)
	if err != nil {
		return "", err
	}
	step, err := p.attempt(ctx, Work{Job: job, Invoice: before, Hold: func(ctx context.Context, fn func(*store.Tx) error) error {
		return p.hold(ctx, job, fn)
	}})
	if err != nil || step.Committed {
		return step.Next, err
	}
	// What was done is committed whatever becomes of the time that it was given.
	ctx = context.WithoutCancel(ctx)
	err = p.commit(ctx, "the end of "+job.Stage, func(tx *store.Tx) error {
		next = ""
		change := step.Change
		if step.Within != nil {
			current, err := tx.Invoice(ctx, before.Scope, before.ID)
			if err != nil {
				return err
			}
			before = current
			if change, err = step.Within(ctx, tx, before); err != nil {
				return err
			}
		}
		now := p.Now()
		if next, err = p.moveJob(ctx, tx, job, change, now); err != nil {
			return err
		}
		return changeStatus(ctx, tx, before, change, now)
	})
	if errors.Is(err, store.ErrLeaseLost) && step.Late != nil {
		err = errors.Join(err, p.commit(ctx, "late "+job.Stage, func(tx *store.Tx) error { return step.Late(ctx, tx) }))
	}
	return next, err
}

// attempt does the work of a stage. A panic is the stage's failure and nobody
// else's.
func (p *Pipeline) attempt(ctx context.Context, w Work) (step Step, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.Log.Error("panic in a stage", "document_id", w.Job.DocumentID, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			err = fmt.Errorf("pipeline: panic in stage %s", w.Job.Stage)
		}
	}()
	return p.Plan.Step(ctx, w)
}

// moveJob puts the job where the change says, and returns the stage that the
// same worker goes on with at once.
func (p *Pipeline) moveJob(ctx context.Context, tx *store.Tx, job store.Job, c Change, now time.Time) (string, error) {
	switch {
	case c.Next == "":
		return "", tx.FinishJob(ctx, job)
	case c.Again:
		return "", tx.RetryJob(ctx, job, now.Add(c.After), c.Cause)
	case c.After == 0:
		return c.Next, tx.CarryJob(ctx, job, c.Next, now.Add(lease(p.Pace)))
	}
	return "", tx.MoveJob(ctx, job, c.Next, now.Add(c.After))
}

func changeStatus(ctx context.Context, tx *store.Tx, before store.Invoice, c Change, now time.Time) error {
	if c.Status == "" || c.Status == before.Status {
		return nil
	}
	after := before
	after.Status, after.Messages = c.Status, c.Messages
	if c.TrackID != "" {
		after.TrackID = c.TrackID
	}
	after.UpdatedAt = later(before.UpdatedAt, now)
	if err := tx.MoveInvoice(ctx, before, after); err != nil {
		return err
	}
	return tx.AddEvent(ctx, store.Event{
		Scope: before.Scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt,
		Kind: "status_changed", Status: after.Status, Detail: c.Cause,
	})
}

// later is the moment of a change that follows another one. Integrators see
// milliseconds, and two changes never show the same one.
func later(before, now time.Time) time.Time {
	now = now.UTC().Truncate(time.Millisecond)
	if next := before.Add(time.Millisecond); now.Before(next) {
		return next
	}
	return now
}
