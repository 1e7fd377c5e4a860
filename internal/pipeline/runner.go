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
	signal, shares, front := p.signals[q], newShares(capacity(q), mostOfOne(q), p.o.Now), new(store.Front)
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
			if p.limit.Allow("claim "+string(q), p.o.Now()) {
				p.o.Log.Warn("Cannot claim jobs. The runner tries again within a second.", "queue", string(q), "error", err.Error())
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
		now := p.o.Now()
		next, err := p.o.Store.NextJobAfter(ctx, p.o.Env, store.Claim{Queue: q, Now: now, Front: front})
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
	now := p.o.Now()
	wanted.Lease, wanted.Now, wanted.Until = store.NewID(), now, now.Add(p.o.Pace.Lease())
	wanted.Suspended = min(wanted.Limit, p.o.Plan.Resumes(wanted.Queue))
	copy(wanted.Except[:], except)
	// A read is cheap and a claim is a commit, so look first.
	due, err := p.o.Store.DueJobs(ctx, p.o.Env, wanted)
	if err != nil || len(due) == 0 || wanted.Limit == 0 {
		return nil, err
	}
	var jobs []store.Job
	err = p.commit("claim", func() error {
		return p.o.Store.Update(ctx, func(tx *store.Tx) error {
			jobs, err = tx.Claim(ctx, p.o.Env, wanted, due)
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
	if err := p.o.Point("before " + what); err != nil {
		return err
	}
	if err := write(); err != nil {
		return err
	}
	return p.o.Point("after " + what)
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
	return wake.Retry(ctx, p.o.Pace.Of(commitRetryFirst, gatherTime), p.o.Pace.Of(commitRetryMost, retryLeast), func(err error) bool {
		retry := errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrBroken)
		if retry && !failed {
			failed = true
			if p.limit.Allow("commit", p.o.Now()) {
				p.o.Log.Warn("The database is unavailable. The result of a stage is committed as soon as it answers.", "commit", what, "error", err.Error())
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
		stop := wake.Heartbeat(ctx, p.o.Pace.Lease(), func(ctx context.Context) {
			if err := p.hold(ctx, job, new(store.Batch)); err != nil && ctx.Err() == nil && p.limit.Allow("lease "+err.Error(), p.o.Now()) {
				p.o.Log.Warn("Cannot extend the lease of a job.", "document_id", job.DocumentID, "error", err.Error())
			}
		})
		began := p.o.Now()
		next, move, failure := p.runStage(ctx, &w)
		stop()
		p.report(ctx, w, began, job, move, failure)
		switch {
		case failure == nil && next == "":
			return
		case failure == nil:
			w.Job.Stage, w.Job.Attempt, w.Job.Cause = next, 1, ""
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
	rows.HoldJob(job, p.o.Now().Add(p.o.Pace.Lease()))
	return p.commit("holding "+job.Stage, func() error { return p.o.Store.Commit(ctx, rows) })
}

// giveBack lets a job wait at its stage after an error.
func (p *Pipeline) giveBack(ctx context.Context, job store.Job, failure error) {
	wait, failed := p.waitAfter(job, failure)
	if failed && p.limit.Allow("stage "+job.Stage+" "+failure.Error(), p.o.Now()) {
		p.o.Log.Warn("A stage failed. It is tried again.", "document_id", job.DocumentID, "stage", job.Stage,
			"attempt", job.Attempt, "retry_in", wait.After.String(), "error", failure.Error())
	}
	back := new(store.Batch)
	addWait(back, job, wait, p.o.Now())
	err := p.commit("giving back "+job.Stage, func() error { return p.o.Store.Commit(ctx, back) })
	if err != nil && !errors.Is(err, store.ErrLeaseLost) && p.limit.Allow("give back "+err.Error(), p.o.Now()) {
		p.o.Log.Warn("Cannot give a job back. It is claimed again when its lease ends.", "document_id", job.DocumentID, "error", err.Error())
	}
}

// runStage does one stage and commits it. It returns the stage to continue with at
// once, if there is one, and what was committed, and updates w to what is known then.
func (p *Pipeline) runStage(ctx context.Context, w *Work) (next string, m Move, err error) {
	if err := p.load(ctx, w); err != nil {
		return "", m, err
	}
	job := w.Job
	w.before = w.Invoice.Status
	w.Hold = func(ctx context.Context, rows *store.Batch) error { return p.hold(ctx, job, rows) }
	// A stage has no time of its own: each exchange has, from its start on, and a wait for
	// a slot is no part of it. The heartbeat keeps the lease meanwhile.
	result, err := p.attempt(p.startSpan(ctx, w), *w)
	if err != nil {
		return "", m, err
	}
	if result.Issued != nil {
		w.Request, w.Issued, w.Fresh = nil, result.Issued, true
		return result.Move.Next, *result.Move, nil
	}
	if w.Issued != nil {
		w.Invoice.ENCF = w.Issued.ENCF // a stage shows the number before it ends
	}
	next, m, err = p.finish(ctx, w, result)
	if err == nil {
		w.Request, w.Fresh = nil, false
	}
	return next, m, err
}

// finish commits the result of a stage. It decides again for as long as other
// transactions change the invoice between the decision and its commit.
func (p *Pipeline) finish(ctx context.Context, w *Work, r Result) (next string, m Move, err error) {
	d := Document{Stage: w.Job.Stage, Known: w.Evidence, Attempt: r.Attempt}
	if w.Issued != nil {
		d.Issued = *w.Issued
	}
	d.learn(r.Findings)
	stale := false
	err = store.RetryInvoiceChanged(ctx, func() error {
		if stale {
			if err := p.readInvoice(ctx, w); err != nil {
				return err
			}
		}
		stale = true
		d.Invoice = w.Invoice
		next, m, err = p.commitStage(ctx, w, d, r)
		return err
	})
	if errors.Is(err, store.ErrLeaseLost) && r.Move == nil {
		err = errors.Join(err, p.commitLate(ctx, w, d))
	}
	if err != nil {
		return "", m, err
	}
	w.Evidence = d.Evidence()
	return next, m, nil
}

// decide returns where the result of a stage moves a document.
func (p *Pipeline) decide(d Document, r Result) Move {
	if r.Move != nil {
		return *r.Move
	}
	m := p.o.Plan.Settle(d)
	if r.Stay != nil && m.Next == d.Stage {
		m.Next, m.After, m.Wait, m.Cause = r.Stay.Next, r.Stay.After, r.Stay.Wait, cmp.Or(r.Stay.Cause, m.Cause)
	}
	return m
}

// commitStage commits the result of a stage for the document as it is in d.
func (p *Pipeline) commitStage(ctx context.Context, w *Work, d Document, r Result) (next string, m Move, err error) {
	m = p.decide(d, r)
	// The job's row comes first: it is the row that nodes lock in common.
	now, rows := p.o.Now(), new(store.Batch)
	if m.Wait == nil && m.Next != "" && m.After == 0 && store.QueueOf(m.Next) == store.QueueOf(w.Job.Stage) {
		next = m.Next // this worker continues; the worker of another queue does a stage of that queue
		rows.CarryJob(w.Job, next, now.Add(p.o.Pace.Lease()))
	} else {
		addMove(rows, w.Job, m, now)
	}
	after, notified := d.addRows(rows, m, p.o.Plan.Notifies(), now)
	err = p.commitResult(ctx, "the end of "+w.Job.Stage, func(ctx context.Context) error { return p.o.Store.Commit(ctx, rows) })
	if err != nil {
		return "", m, err
	}
	w.Invoice = after
	p.Publish(after, notified)
	if next == "" && m.Wait == nil && m.Next != "" && m.After == 0 {
		p.notifyQueue(m.Next)
	}
	return next, m, nil
}

// readInvoice reads the invoice again that another transaction has changed.
func (p *Pipeline) readInvoice(ctx context.Context, w *Work) error {
	return p.persist(ctx, "reading the invoice", func(ctx context.Context) error {
		changed, err := p.o.Store.Invoice(ctx, w.Invoice.Scope, w.Invoice.ID)
		if err == nil {
			w.Invoice = changed
		}
		return err
	})
}

// commitLate commits what a stage learnt although another worker has the job. Other
// transactions may change the invoice meanwhile: then it is committed again.
func (p *Pipeline) commitLate(ctx context.Context, w *Work, d Document) error {
	var after store.Invoice
	var notified bool
	err := store.RetryInvoiceChanged(ctx, func() error {
		return p.commitResult(ctx, "late "+w.Job.Stage, func(ctx context.Context) error {
			return p.o.Store.Update(ctx, func(tx *store.Tx) error {
				t, err := TakeOver(ctx, tx, d.Issued, p.o.Now(), d.Findings...)
				if err != nil {
					return err
				}
				t.Attempt = d.Attempt
				after, notified, err = t.Commit(ctx, tx, p.o.Plan.Settle(t.Document))
				return err
			})
		})
	})
	switch {
	case err == nil:
		w.Invoice = after
		p.Publish(after, notified)
	case errors.Is(err, ErrNotIssued), errors.Is(err, store.ErrNotFound):
		p.o.Log.Error("The database does not have a document that was sent to the authority: it is an older copy. Compare the sale with the integrator.",
			"document_id", d.Issued.DocumentID, "encf", d.Issued.ENCF)
	}
	return err
}

// attempt does the work of a stage. A panic becomes an error of this stage, so
// that other documents go on.
func (p *Pipeline) attempt(ctx context.Context, w Work) (_ Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			p.o.Log.Error("A stage panicked. It is tried again.", "document_id", w.Job.DocumentID, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
			err = fmt.Errorf("pipeline: panic in stage %s", w.Job.Stage)
		}
	}()
	return p.o.Plan.Do(ctx, w)
}
