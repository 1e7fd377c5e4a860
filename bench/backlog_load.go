package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	authorityCalls   = 8                        // that a host of the authority takes at a time
	authorityLatency = 17500 * time.Microsecond // the simulator's mean
	loadTime         = 10 * time.Second
)

// A backlogQueue is a database with jobs that wait for the authority.
type backlogQueue struct {
	*store.Store
	scope store.Scope
	front store.Front
	added int64
	start time.Time
}

// attachBacklog opens a database that has a backlog.
func attachBacklog(ctx context.Context, address string) (*backlogQueue, error) {
	s, err := openStore(ctx, address)
	return &backlogQueue{Store: s, scope: store.Scope{Environment: fiscal.Production, TaxpayerID: "backlog"}, start: time.Now().Add(-3 * time.Hour)}, err
}

// openBacklog makes a database in which a contingency lasts and jobs are suspended.
func openBacklog(ctx context.Context, address string, size int64) (*backlogQueue, error) {
	q, err := attachBacklog(ctx, address)
	if err != nil {
		return nil, err
	}
	err = q.Update(ctx, func(tx *store.Tx) error {
		if err := tx.ReportFailure(ctx, q.scope.Environment, q.start); err != nil {
			return err
		}
		_, err := tx.StartContingency(ctx, q.scope.Environment, q.start)
		return err
	})
	if err == nil {
		err = q.add(ctx, size)
	}
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// add adds suspended jobs at the end of the queue.
func (q *backlogQueue) add(ctx context.Context, count int64) error {
	first := q.added
	q.added += count
	return q.ImportJobs(ctx, q.scope, "submit", first, count, q.start)
}

// claim looks for jobs and claims them, as the runner does.
func (q *backlogQueue) claim(ctx context.Context, limit int) (jobs []store.Job, err error) {
	now := time.Now()
	c := store.Claim{
		Queue: store.QueueMain, Lease: store.NewID(), Now: now, Until: now.Add(time.Minute), Limit: limit, Suspended: limit, Front: &q.front,
	}
	due, err := q.DueJobs(ctx, q.scope.Environment, c)
	if err != nil || len(due) == 0 {
		return nil, err
	}
	err = q.Update(ctx, func(tx *store.Tx) error {
		jobs, err = tx.Claim(ctx, q.scope.Environment, c, due)
		return err
	})
	return jobs, err
}

// A backlogLoad is what goes on while a contingency ends: jobs are worked off at the
// pace of the authority, and invoices are created at a steady rate.
type backlogLoad struct {
	all     sync.WaitGroup
	longest atomic.Int64
	jobs    atomic.Int64

	mu        sync.Mutex
	creations []time.Duration
	err       error
}

// timed runs a call of the database and records how long it took.
func (l *backlogLoad) timed(call func() error) time.Duration {
	start := time.Now()
	err := call()
	took := time.Since(start)
	for known := l.longest.Load(); int64(took) > known && !l.longest.CompareAndSwap(known, int64(took)); known = l.longest.Load() {
	}
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.err = errors.Join(l.err, err)
	}
	return took
}

// startLoad starts the load, which ends after loadTime.
func (q *backlogQueue) startLoad(ctx context.Context) *backlogLoad {
	l := &backlogLoad{}
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	l.all.Go(func() { q.workOff(ctx, l) })
	l.all.Go(func() {
		defer cancel()
		l.create(ctx, q.Store)
	})
	return l
}

// workOff claims jobs and moves each of them on after a call of the authority.
func (q *backlogQueue) workOff(ctx context.Context, l *backlogLoad) {
	slots := make(chan struct{}, authorityCalls)
	var workers sync.WaitGroup
	defer workers.Wait()
	for ctx.Err() == nil {
		var jobs []store.Job
		l.timed(func() (err error) {
			jobs, err = q.claim(context.WithoutCancel(ctx), authorityCalls)
			return err
		})
		if len(jobs) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		for _, job := range jobs {
			slots <- struct{}{}
			workers.Go(func() {
				defer func() { <-slots }()
				time.Sleep(authorityLatency)
				l.timed(func() error {
					return q.Commit(context.WithoutCancel(ctx), new(store.Batch).MoveJob(job, "poll", time.Now().Add(time.Hour)))
				})
				l.jobs.Add(1)
			})
		}
	}
}

// create commits the rows of a creation at a steady rate until ctx ends. A creation
// that has to wait delays no other one.
func (l *backlogLoad) create(ctx context.Context, s *store.Store) {
	rows, err := newRows(ctx, s)
	if err != nil {
		l.timed(func() error { return err })
		return
	}
	rows.stage = "issue"
	tick := time.NewTicker(time.Second / steadyRate)
	defer tick.Stop()
	var under sync.WaitGroup
	defer under.Wait()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		under.Go(func() {
			took := l.timed(func() error { return rows.commit(context.WithoutCancel(ctx), s) })
			l.mu.Lock()
			defer l.mu.Unlock()
			l.creations = append(l.creations, took)
		})
	}
}

// wait waits for the end of the load and adds its figures.
func (l *backlogLoad) wait(f *backlogFigures) error {
	l.all.Wait()
	if l.err != nil || len(l.creations) == 0 {
		return errors.Join(l.err, errors.New("the load failed"))
	}
	slices.Sort(l.creations)
	f.creation = l.creations[len(l.creations)*99/100]
	f.longest, f.jobsDone = max(time.Duration(l.longest.Load()), f.end), int(l.jobs.Load())
	return nil
}

// idleCreations returns the p99 of creations in a database without a backlog.
func (b *bench) idleCreations(ctx context.Context, engine string) (p99 time.Duration, err error) {
	address, err := b.database(engine, "backlog_none")
	if err != nil {
		return 0, err
	}
	s, err := openStore(ctx, address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	l := &backlogLoad{}
	limited, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	l.create(limited, s)
	var f backlogFigures
	err = l.wait(&f)
	return f.creation, err
}
