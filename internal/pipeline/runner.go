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
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

const (
	workers    = 32 // for every queue but that of deliveries
	deliverers = 64 // for deliveries to buyers
	gatherTime = 5 * time.Millisecond
	retryBase  = time.Second
	retryLeast = 100 * time.Millisecond // with a pace
	retryMax   = 5 * time.Minute

	// The pauses between attempts to commit a result while the database stalls, and
	// how long a stop waits for them.
	commitRetryFirst = 100 * time.Millisecond
	commitRetryMost  = 5 * time.Second
	commitGrace      = 20 * time.Second
)

// capacity returns how many workers a queue has. Each queue has workers of its own: a
// buyer whose server hangs occupies no worker that numbers, signs and submits.
func capacity(q store.Queue) int {
	if q == store.QueueDeliver {
		return deliverers
	}
	return workers
}

// mostOfOne returns how many workers of a queue one taxpayer may have while no other waits.
// Buyers whose servers hang occupy a worker for as long as a delivery may take, and another
// taxpayer may need one meanwhile.
func mostOfOne(q store.Queue) int {
	if q == store.QueueDeliver {
		return deliverers / 4
	}
	return workers
}

// work claims due jobs of every queue and does them until ctx ends. It returns when
// the stages that were under way have finished.
func (p *Pipeline) work(ctx context.Context) {
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(commitGrace, cancel) })()
	var queues sync.WaitGroup
	for _, q := range store.Queues() {
		queues.Go(func() { p.workQueue(ctx, life, q) })
	}
	queues.Wait()
}

// workQueue claims due jobs of a queue until ctx ends, and returns when their stages
// have finished. life is the context of the stages.
func (p *Pipeline) workQueue(ctx, life context.Context, q store.Queue) {
	var busy sync.WaitGroup
	defer busy.Wait()
	signal, shares, front := p.signals[q], newShares(capacity(q), mostOfOne(q), p.now), new(store.Front)
	for ctx.Err() == nil {
		if shares.free() == 0 {
			signal.Wait(ctx, wake.PollEvery) // a worker that finishes notifies
			continue
		}
		if shares.free() < capacity(q)/4 {
			// A claim costs a commit. A moment later it can claim more jobs.
			wake.Sleep(ctx, gatherTime)
		}
		limit, except := shares.offer()
		jobs, err := p.claim(ctx, store.Claim{Queue: q, Limit: limit, Front: front}, except)
		if err != nil && ctx.Err() == nil {
			if p.limit.Allow("claim "+string(q), p.now()) {
				p.log.Warn("Cannot claim jobs. The runner tries again within a second.", "queue", string(q), "error", err.Error())
			}
		} else if err == nil {
			p.limit.End("claim " + string(q))
		}
		shares.take(jobs)
		for _, w := range p.prepare(ctx, jobs) {
			busy.Go(func() {
				defer func() { shares.giveBack(w.Job.TaxpayerID); signal.Notify() }()
				p.runStages(life, w)
			})
		}
		if err == nil && (len(jobs) > 0 || len(except) > 0) {
			continue
		}
		now := p.now()
		next, err := p.store.NextJobAfter(ctx, p.env, store.Claim{Queue: q, Now: now, Front: front})
		signal.Wait(ctx, wake.Until(next, now, err))
	}
}

// notifyQueue wakes the workers of a stage.
func (p *Pipeline) notifyQueue(stage string) { p.signals[store.QueueOf(stage)].Notify() }

// notifyAll wakes the workers of every queue.
func (p *Pipeline) notifyAll() {
	for _, signal := range p.signals {
		signal.Notify()
	}
}

// Claim leases up to limit due jobs of all queues, oldest first. Jobs of the taxpayers
// in except stay where they are.
func (p *Pipeline) Claim(ctx context.Context, limit int, except ...string) ([]store.Job, error) {
	return p.claim(ctx, store.Claim{Limit: limit}, except)
}

// claim is Claim for the queue, the limit and the front of wanted.
func (p *Pipeline) claim(ctx context.Context, wanted store.Claim, except []string) ([]store.Job, error) {
	now := p.now()
	wanted.Lease, wanted.Now, wanted.Until = store.NewID(), now, now.Add(p.pace.Lease())
	wanted.Suspended = min(wanted.Limit, p.plan.Resumes(wanted.Queue))
	copy(wanted.Except[:], except)
	// A read is cheap and a claim is a commit, so look first.
	due, err := p.store.DueJobs(ctx, p.env, wanted)
	if err != nil || len(due) == 0 || wanted.Limit == 0 {
		return nil, err
	}
	var jobs []store.Job
	err = p.commit("claim", func() error {
		return p.store.Update(ctx, func(tx *store.Tx) error {
			jobs, err = tx.Claim(ctx, p.env, wanted, due)
			return err
		})
	})
	if err != nil {
		return nil, err // the claim may not have been committed
	}
	slices.SortFunc(jobs, func(a, b store.Job) int { // engines return them in different orders
		return cmp.Or(a.RunAt.Compare(b.RunAt), strings.Compare(a.DocumentID, b.DocumentID))
	})
	return jobs, nil
}

// commit runs write between two points at which a test may stop the process or make
// the commit fail.
func (p *Pipeline) commit(what string, write func() error) error {
	if err := p.onPoint("before " + what); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return p.onPoint("after " + what)
}

// commitResult commits the result of a stage, as persist does.
func (p *Pipeline) commitResult(ctx context.Context, what string, write func(context.Context) error) error {
	return p.persist(ctx, what, func(ctx context.Context) error {
		return p.commit(what, func() error { return write(ctx) })
	})
}

// persist runs a part of the commit of a stage's result. While the database is
// unavailable it tries again, for as long as the process lives: an answer of the authority
// must not be lost, and nothing else happens to the document before it is committed. An
// answer that comes when ctx has ended, because the process stops, is committed too.
func (p *Pipeline) persist(ctx context.Context, what string, do func(context.Context) error) error {
	failed := false
	return wake.Retry(ctx, p.pace.Of(commitRetryFirst, gatherTime), p.pace.Of(commitRetryMost, retryLeast), func(err error) bool {
		retry := errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBroken)
		if retry && !failed {
			failed = true
			if p.limit.Allow("commit", p.now()) {
				p.log.Warn("The database is unavailable. The result of a stage is committed as soon as it answers.", "commit", what, "error", err.Error())
			}
		}
		return retry
	}, func() error { return do(context.WithoutCancel(ctx)) })
}

// RunJob does the stages of a claimed job until the job has to wait or is done. Tests and
// the simulation call Claim and RunJob instead of Run, because they decide themselves
// which worker acts when.
func (p *Pipeline) RunJob(ctx context.Context, job store.Job) { p.runStages(ctx, Work{Job: job}) }

// runStages does stages of a job and commits their results. After a failure the
// job is given back for later. After a lost lease another worker has the job.
func (p *Pipeline) runStages(ctx context.Context, w Work) {
	for {
		job := w.Job
		stop := wake.Heartbeat(ctx, p.pace.Lease(), func(ctx context.Context) {
			if err := p.hold(ctx, job, new(store.Batch)); err != nil && ctx.Err() == nil && p.limit.Allow("lease "+err.Error(), p.now()) {
				p.log.Warn("Cannot extend the lease of a job.", "document_id", job.DocumentID, "error", err.Error())
			}
		})
		began := p.now()
		next, change, failure := p.step(ctx, &w)
		stop()
		p.report(ctx, w, began, job, change, failure)
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

// hold commits rows and extends the lease of the job. It fails with
// store.ErrLeaseLost when another worker has the job.
func (p *Pipeline) hold(ctx context.Context, job store.Job, rows *store.Batch) error {
	rows.HoldJob(job, p.now().Add(p.pace.Lease()))
	return p.commit("holding "+job.Stage, func() error { return p.store.Commit(ctx, rows) })
}

// giveBack schedules the next attempt of a job: at once when another node took the
// numbers, when the stage says so, or with growing pauses after failures. It suspends
// the job when the authority is out of reach.
func (p *Pipeline) giveBack(ctx context.Context, job store.Job, failure error) {
	delay, outSince, rest := p.pace.Of(min(retryBase<<min(job.Attempt, 16), retryMax), retryLeast), time.Time{}, time.Duration(0)
	var later *LaterError
	switch {
	case errors.As(failure, &later):
		delay, outSince, rest = boundedPause(later.After, job.Stage), later.OutSince, later.Rest
		if later.Uncounted {
			job.Attempt--
		}
	case errors.Is(failure, store.ErrNumbersTaken):
		delay = 0
	case p.limit.Allow("stage "+job.Stage+" "+failure.Error(), p.now()):
		p.log.Warn("A stage failed. It is tried again.", "document_id", job.DocumentID, "stage", job.Stage,
			"attempt", job.Attempt, "retry_in", delay.String(), "error", failure.Error())
	}
	reason := strings.ReplaceAll(strings.ToValidUTF8(failure.Error(), "�"), "\x00", "") // as text can be stored
	if later != nil && later.Held {
		reason = store.HeldJob + reason
	}
	back := new(store.Batch)
	switch {
	case !outSince.IsZero():
		back.SuspendJob(job, outSince, p.now().Add(rest), reason)
	case later != nil && later.Behind:
		back.QueueJob(job, reason)
	case later == nil && !errors.Is(failure, store.ErrNumbersTaken), later != nil && (later.Aside || later.Held):
		back.SetAsideJob(job, p.now().Add(delay), reason)
	default:
		back.RetryJob(job, p.now().Add(delay), reason)
	}
	err := p.commit("giving back "+job.Stage, func() error { return p.store.Commit(ctx, back) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) && p.limit.Allow("give back "+err.Error(), p.now()) {
		p.log.Warn("Cannot give a job back. It is claimed again when its lease ends.", "document_id", job.DocumentID, "error", err.Error())
	}
}

// step does one stage and commits it. It returns the stage to continue with at
// once, if there is one, and what was committed, and updates w to what is known then.
func (p *Pipeline) step(ctx context.Context, w *Work) (next string, change Change, err error) {
	if err := p.load(ctx, w); err != nil {
		return "", change, err
	}
	job := w.Job
	w.before = w.Invoice.Status
	w.Hold = func(ctx context.Context, rows *store.Batch) error { return p.hold(ctx, job, rows) }
	// A stage has no time of its own: each exchange has, from its start on, and a wait for
	// a slot is no part of it. The heartbeat keeps the lease meanwhile.
	step, err := p.attempt(p.startSpan(ctx, w), *w)
	if err != nil {
		return "", change, err
	}
	if w.Issued != nil {
		w.Invoice.ENCF = w.Issued.ENCF // a stage shows the number before it ends
	}
	next, change = step.Next, step.Change
	if !step.Committed {
		if next, change, err = p.finish(ctx, w, step); err != nil {
			return "", change, err
		}
	}
	w.Request, w.Fresh = nil, step.Issued != nil
	if step.Issued != nil {
		w.Issued = step.Issued
	}
	if step.Evidence != nil {
		w.Evidence = step.Evidence
	}
	return next, change, nil
}

// finish commits the result of a stage. It decides again for as long as other
// transactions change the invoice between the decision and its commit.
func (p *Pipeline) finish(ctx context.Context, w *Work, step Step) (next string, change Change, err error) {
	stale := false
	err = store.RetryInvoiceChanged(ctx, func() error {
		if stale {
			if err := p.readInvoice(ctx, w); err != nil {
				return err
			}
		}
		stale = true
		next, change, err = p.commitStep(ctx, w, step)
		return err
	})
	if err == nil {
		return next, change, nil
	}
	if errors.Is(err, store.ErrLeaseLost) && step.CommitLate != nil {
		err = errors.Join(err, p.commitLate(ctx, w, step))
	}
	return "", change, err
}

// commitStep commits the result of a stage for the invoice as it is in w.
func (p *Pipeline) commitStep(ctx context.Context, w *Work, step Step) (next string, change Change, err error) {
	decided := new(store.Batch)
	change = step.Change
	if step.Decide != nil {
		if change, err = step.Decide(decided, w.Invoice); err != nil {
			return "", change, err
		}
	}
	// The job's row comes first: it is the row that nodes lock in common.
	now, rows := p.now(), new(store.Batch)
	next = p.moveJob(rows, w.Job, change, now)
	rows.Append(decided)
	after, notified := change.Apply(rows, w.Invoice, p.plan.Notifies(), now)
	err = p.commitResult(ctx, "the end of "+w.Job.Stage, func(ctx context.Context) error { return p.store.Commit(ctx, rows) })
	if err != nil {
		return "", change, err
	}
	w.Invoice = after
	p.Publish(after, notified)
	if next == "" && change.Next != "" && change.After == 0 {
		p.notifyQueue(change.Next)
	}
	return next, change, nil
}

// readInvoice reads the invoice again that another transaction has changed.
func (p *Pipeline) readInvoice(ctx context.Context, w *Work) error {
	return p.persist(ctx, "reading the invoice", func(ctx context.Context) error {
		changed, err := p.store.Invoice(ctx, w.Invoice.Scope, w.Invoice.ID)
		if err == nil {
			w.Invoice = changed
		}
		return err
	})
}

// commitLate commits what must not be lost although another worker has the job. Other
// transactions may change the invoice meanwhile: then it is committed again.
func (p *Pipeline) commitLate(ctx context.Context, w *Work, step Step) error {
	var after store.Invoice
	err := store.RetryInvoiceChanged(ctx, func() error {
		return p.commitResult(ctx, "late "+w.Job.Stage, func(ctx context.Context) error {
			return p.Update(ctx, func(ctx context.Context, tx *store.Tx) (_ store.Invoice, notified bool, err error) {
				after, notified, err = step.CommitLate(ctx, tx)
				return after, notified, err
			})
		})
	})
	if err == nil {
		w.Invoice = after
	}
	return err
}

// Update commits a change of an invoice and publishes it.
func (p *Pipeline) Update(ctx context.Context, write func(context.Context, *store.Tx) (after store.Invoice, notified bool, err error)) error {
	var after store.Invoice
	var notified bool
	err := p.store.Update(ctx, func(tx *store.Tx) (err error) {
		after, notified, err = write(ctx, tx)
		return err
	})
	if err == nil {
		p.Publish(after, notified)
	}
	return err
}

// attempt does the work of a stage. A panic becomes an error of this stage, so
// that other documents go on.
func (p *Pipeline) attempt(ctx context.Context, w Work) (step Step, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.log.Error("A stage panicked. It is tried again.", "document_id", w.Job.DocumentID, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			err = fmt.Errorf("pipeline: panic in stage %s", w.Job.Stage)
		}
	}()
	return p.plan.Step(ctx, w)
}

// moveJob adds the rows that move the job, and returns the stage that the same
// worker continues with at once. The worker of another queue does a stage that
// belongs to that queue.
func (p *Pipeline) moveJob(rows *store.Batch, job store.Job, c Change, now time.Time) string {
	switch {
	case c.Next == "":
		rows.FinishJob(job)
	case c.Again && !c.OutSince.IsZero():
		rows.SuspendJob(job, c.OutSince, now, c.Cause)
	case c.Again:
		rows.RetryJob(job, now.Add(boundedPause(c.After, job.Stage)), c.Cause)
	case c.After == 0 && store.QueueOf(c.Next) == store.QueueOf(job.Stage):
		rows.CarryJob(job, c.Next, now.Add(p.pace.Lease()))
		return c.Next
	default:
		rows.MoveJob(job, c.Next, now.Add(boundedPause(c.After, c.Next)))
	}
	return ""
}

// boundedPause returns how long a job waits at a stage that asks for a pause. No job waits
// for longer than the store expects: the store takes a later instant for that of a wrong
// clock.
func boundedPause(pause time.Duration, stage string) time.Duration {
	return min(pause, store.LongestPause(store.QueueOf(stage)))
}
