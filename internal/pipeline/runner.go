package pipeline

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	workers   = 8
	leaseTime = 30 * time.Second
	pollEvery = time.Second // how soon work that another node left behind is seen
	stepTime  = 20 * time.Second
	retryBase = time.Second
	retryMax  = 5 * time.Minute
)

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
	err = p.Store.Update(ctx, func(tx *store.Tx) error {
		jobs, err = tx.Claim(ctx, p.Env, store.NewID(), now, now.Add(leaseTime), limit)
		return err
	})
	if err != nil {
		return nil, err // what was claimed may not have been committed
	}
	return jobs, nil
}

// run does one stage and commits its result. A failure gives the job back for
// later; a lost lease means that somebody else has it.
func (p *Pipeline) run(ctx context.Context, job store.Job) {
	bounded, cancel := context.WithTimeout(ctx, stepTime)
	failure := p.step(bounded, job)
	cancel()
	if failure == nil || errors.Is(failure, store.ErrLeaseLost) {
		return
	}
	p.Log.Warn("stage failed", "document_id", job.DocumentID, "stage", job.Stage, "attempt", job.Attempt, "error", failure.Error())
	delay := min(retryBase<<min(job.Attempt, 16), retryMax)
	reason := strings.ReplaceAll(strings.ToValidUTF8(failure.Error(), "�"), "\x00", "") // as text can be stored
	err := p.Store.Update(ctx, func(tx *store.Tx) error {
		return tx.RetryJob(ctx, job, p.Now().Add(delay), reason)
	})
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		// The lease runs out and the job comes due by itself.
		p.Log.Warn("job could not be given back", "document_id", job.DocumentID, "error", err.Error())
	}
}

func (p *Pipeline) step(ctx context.Context, job store.Job) error {
	before, err := p.Store.InvoiceOfDocument(ctx, job.Scope, job.DocumentID)
	if err != nil {
		return err
	}
	step, err := p.attempt(ctx, Work{job, before})
	if err != nil {
		return err
	}
	return p.Store.Update(ctx, func(tx *store.Tx) error {
		now := p.Now()
		if err := moveJob(ctx, tx, job, step, now); err != nil {
			return err
		}
		return changeStatus(ctx, tx, before, step, now)
	})
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

func moveJob(ctx context.Context, tx *store.Tx, job store.Job, step Step, now time.Time) error {
	if step.Next == "" {
		return tx.FinishJob(ctx, job)
	}
	return tx.MoveJob(ctx, job, step.Next, now.Add(step.After))
}

func changeStatus(ctx context.Context, tx *store.Tx, before store.Invoice, step Step, now time.Time) error {
	after := before
	after.Status, after.Messages = step.Status, step.Messages
	after.UpdatedAt = later(before.UpdatedAt, now)
	if err := tx.MoveInvoice(ctx, before, after); err != nil {
		return err
	}
	return tx.AddEvent(ctx, store.Event{
		Scope: before.Scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt,
		Kind: "status_changed", Status: after.Status, Detail: step.Cause,
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
