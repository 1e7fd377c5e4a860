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

// work claims due jobs and does them until ctx ends; what is under way then is
// finished.
func (p *Pipeline) work(ctx context.Context) {
	var busy sync.WaitGroup
	defer busy.Wait()
	shares := newShares(p.Now)
	for ctx.Err() == nil {
		if shares.free() < workers/4 {
			// A claim is a commit: a moment later there is room for more jobs.
			wait(ctx, gatherTime)
		}
		limit, except := shares.offer()
		jobs, err := p.claim(ctx, limit, except...)
		if err != nil && ctx.Err() == nil {
			p.Log.Warn("jobs could not be claimed", "error", err.Error())
		}
		shares.take(jobs)
		for _, w := range p.open(ctx, jobs) {
			busy.Go(func() {
				defer func() { shares.giveBack(w.Job.TaxpayerID); p.rouse() }()
				p.do(context.WithoutCancel(ctx), w)
			})
		}
		if shares.free() > 0 && (len(jobs) > 0 || len(except) > 0) {
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

func (p *Pipeline) claim(ctx context.Context, limit int, except ...string) ([]store.Job, error) {
	now := p.Now()
	// Looking is cheap, claiming is a commit: look first.
	next, err := p.Store.NextJob(ctx, p.Env, now)
	if errors.Is(err, store.ErrNotFound) || limit == 0 || (err == nil && next.After(now)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	wanted := store.Claim{Lease: store.NewID(), Now: now, Until: now.Add(lease(p.Pace)), Limit: limit}
	copy(wanted.Except[:], except)
	var jobs []store.Job
	err = p.commit("claim", func() error {
		return p.Store.Update(ctx, func(tx *store.Tx) error {
			jobs, err = tx.Claim(ctx, p.Env, wanted)
			return err
		})
	})
	if err != nil {
		return nil, err // what was claimed may not have been committed
	}
	slices.SortFunc(jobs, func(a, b store.Job) int { // the oldest first, whatever the engine's order
		return cmp.Or(a.RunAt.Compare(b.RunAt), strings.Compare(a.DocumentID, b.DocumentID))
	})
	return jobs, nil
}

// open reads what is known of the documents of claimed jobs, of all at once.
// What cannot be read now is read again by whoever does the job.
func (p *Pipeline) open(ctx context.Context, jobs []store.Job) []Work {
	all := make([]Work, len(jobs))
	ids := make([]string, len(jobs))
	for i, job := range jobs {
		all[i].Job, ids[i] = job, job.DocumentID
	}
	files, err := p.Store.Files(ctx, p.Env, ids)
	if err != nil && ctx.Err() == nil {
		p.Log.Warn("documents could not be read", "error", err.Error())
	}
	for i := range all {
		if f := files[ids[i]]; f != nil && err == nil {
			all[i].file = f
		}
	}
	return all
}

// known reads what is known of a document, unless that has been done.
func (p *Pipeline) known(ctx context.Context, w *Work) (err error) {
	if w.Invoice.ID != "" {
		return nil
	}
	if w.file == nil {
		files, err := p.Store.Files(ctx, p.Env, []string{w.Job.DocumentID})
		if err != nil {
			return err
		}
		if w.file = files[w.Job.DocumentID]; w.file == nil {
			return store.ErrNotFound
		}
	}
	w.Invoice, w.Request, w.Issued = w.file.Invoice, w.file.Request, w.file.Issued
	w.Evidence, err = decodeEvidence(w.file.Evidence)
	w.file = nil
	return err
}

// update commits what changes an invoice, and tells those who wait for that.
func (p *Pipeline) update(ctx context.Context, write func(context.Context, *store.Tx) (after store.Invoice, told bool, err error)) error {
	var after store.Invoice
	var told bool
	err := p.Store.Update(ctx, func(tx *store.Tx) (err error) {
		after, told, err = write(ctx, tx)
		return err
	})
	if err == nil {
		p.changed(after, told)
	}
	return err
}

// commit is a commit between two points where a test may end the process.
func (p *Pipeline) commit(what string, write func() error) error {
	p.point("before " + what)
	err := write()
	p.point("after " + what)
	return err
}

func (p *Pipeline) point(name string) {
	if p.Point != nil {
		p.Point(name)
	}
}

// run does the stages of a claimed job.
func (p *Pipeline) run(ctx context.Context, job store.Job) { p.do(ctx, Work{Job: job}) }

// do does stages of a job and commits their results, until the job has to wait
// or is done. A failure gives the job back for later; a lost lease means that
// somebody else has it.
func (p *Pipeline) do(ctx context.Context, w Work) {
	for {
		bounded, cancel := context.WithTimeout(ctx, stepTime)
		beat := p.heartbeat(bounded, w.Job)
		next, failure := p.step(bounded, &w)
		cancel()
		<-beat
		switch {
		case failure == nil && next == "":
			return
		case failure == nil:
			w.Job.Stage, w.Job.Attempt, w.Job.LastError = next, 1, ""
			continue
		case !errors.Is(failure, store.ErrLeaseLost):
			p.giveBack(ctx, w.Job, failure)
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
				if err := p.hold(ctx, job, new(store.Batch)); err != nil && ctx.Err() == nil {
					p.Log.Warn("job could not be held", "document_id", job.DocumentID, "error", err.Error())
				}
			}
		}
	}()
	return done
}

// hold commits rows for as long as the job is ours.
func (p *Pipeline) hold(ctx context.Context, job store.Job, rows *store.Batch) error {
	rows.HoldJob(job, p.Now().Add(lease(p.Pace)))
	return p.commit("holding "+job.Stage, func() error { return p.Store.Commit(ctx, rows) })
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
	back := new(store.Batch).RetryJob(job, p.Now().Add(delay), reason)
	err := p.commit("giving back "+job.Stage, func() error { return p.Store.Commit(ctx, back) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) {
		// The lease runs out and the job comes due by itself.
		p.Log.Warn("job could not be given back", "document_id", job.DocumentID, "error", err.Error())
	}
}

// maxMoves is how often a change is decided anew because something else was said
// about its invoice meanwhile.
const maxMoves = 5

// step does one stage and commits it. It returns the stage to go on with at
// once, if there is one, and leaves in w what is known then.
func (p *Pipeline) step(ctx context.Context, w *Work) (next string, err error) {
	if err := p.known(ctx, w); err != nil {
		return "", err
	}
	job := w.Job
	w.Hold = func(ctx context.Context, rows *store.Batch) error { return p.hold(ctx, job, rows) }
	step, err := p.attempt(ctx, *w)
	if err != nil {
		return "", err
	}
	next = step.Next
	if !step.Committed {
		// What was done is committed whatever becomes of the time that it was given.
		if next, err = p.finish(context.WithoutCancel(ctx), w, step); err != nil {
			return "", err
		}
	}
	w.Request, w.Fresh = nil, step.Issued != nil
	if step.Issued != nil {
		w.Issued, w.Invoice.ENCF = step.Issued, step.Issued.ENCF
	}
	if step.Evidence != nil {
		w.Evidence = step.Evidence
	}
	return next, nil
}

// finish commits the result of a stage.
func (p *Pipeline) finish(ctx context.Context, w *Work, step Step) (next string, err error) {
	for range maxMoves {
		change, rows := step.Change, new(store.Batch)
		now := p.Now()
		if step.Within != nil {
			// The rows of the change come behind the job's: it is what nodes meet at.
			within := new(store.Batch)
			if change, err = step.Within(within, w.Invoice); err != nil {
				return "", err
			}
			next = p.moveJob(rows, w.Job, change, now)
			rows.Append(within)
		} else {
			next = p.moveJob(rows, w.Job, change, now)
		}
		after, told := change.apply(rows, w.Invoice, p.Plan.Tells(), now)
		err = p.commit("the end of "+w.Job.Stage, func() error { return p.Store.Commit(ctx, rows) })
		if err == nil {
			w.Invoice = after
			p.changed(after, told)
			return next, nil
		}
		if !errors.Is(err, store.ErrMoved) {
			break
		}
		if w.Invoice, err = p.Store.Invoice(ctx, w.Invoice.Scope, w.Invoice.ID); err != nil {
			return "", err
		}
	}
	if errors.Is(err, store.ErrLeaseLost) && step.Late != nil {
		err = errors.Join(err, p.commit("late "+w.Job.Stage, func() error { return p.update(ctx, step.Late) }))
	}
	return "", err
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
func (p *Pipeline) moveJob(rows *store.Batch, job store.Job, c Change, now time.Time) string {
	switch {
	case c.Next == "":
		rows.FinishJob(job)
	case c.Again:
		rows.RetryJob(job, now.Add(c.After), c.Cause)
	case c.After == 0:
		rows.CarryJob(job, c.Next, now.Add(lease(p.Pace)))
		return c.Next
	default:
		rows.MoveJob(job, c.Next, now.Add(c.After))
	}
	return ""
}

// apply adds the rows of a change of status, and what integrators are told of
// it. It returns the invoice as it is then.
func (c Change) apply(rows *store.Batch, before store.Invoice, tells bool, now time.Time) (after store.Invoice, told bool) {
	after = before
	if changed := c.Status != "" && c.Status != before.Status; changed {
		after.Status, after.Messages, after.Sequence = c.Status, c.Messages, before.Sequence+1
		if c.TrackID != "" {
			after.TrackID = c.TrackID
		}
		after.UpdatedAt = later(before.UpdatedAt, now)
		rows.MoveInvoice(before, after).AddEvent(store.Event{
			Scope: before.Scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt,
			Kind: "status_changed", Status: after.Status, Detail: c.Cause,
		})
	}
	return after, tells && announce(rows, before, after, c.Tell, now)
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
