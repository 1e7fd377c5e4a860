package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/watch"
)

const (
	backlogClaim  = 8   // jobs of one claim
	backlogClaims = 500 // claims that are timed
	blockClaims   = 50  // claims whose blocks are counted
)

// backlogSizes are how many jobs wait. The first is the baseline: no more than one
// claim takes.
func backlogSizes() []int64 { return []int64{backlogClaim, 1_000, 100_000, 1_000_000} }

// backlogFigures are the measurements at one size of the backlog.
type backlogFigures struct {
	blocks   float64 // of a claim; 0: not counted
	p50, p99 time.Duration
	end      time.Duration // of a contingency
	longest  time.Duration // of all calls of the store
	creation time.Duration // p99 of a creation
	jobsDone int
}

// backlog measures claims, the end of a contingency, and the creations meanwhile, while
// many jobs wait for the authority. The jobs of a claim are committed one by one, as the
// runner does, at the pace of an authority that takes eight calls at a time.
func (b *bench) backlog(ctx context.Context) error {
	for _, engine := range storetest.Engines() {
		all := make([]backlogFigures, 0, len(backlogSizes()))
		for _, size := range backlogSizes() {
			b.say("%d waiting jobs on %s", size, engine)
			f, err := b.backlogOf(ctx, engine, size)
			if err != nil {
				return err
			}
			all = append(all, f)
		}
		idle, err := b.idleCreations(ctx, engine)
		if err != nil {
			return err
		}
		b.backlogRows(engine, all, idle)
	}
	return nil
}

func (b *bench) backlogRows(engine string, all []backlogFigures, idle time.Duration) {
	ratio := func(a, b time.Duration) float64 { return float64(a) / float64(b) }
	for i, size := range backlogSizes()[1:] {
		f, base, about, goal := all[i+1], all[0], fmt.Sprintf("a claim while %d jobs wait", backlogClaim), ""
		if i > 0 {
			base, about, goal = all[1], "a claim while 1000 jobs wait", "< 2"
		}
		name := fmt.Sprintf(", %d waiting, %s", size, engine)
		if f.blocks > 0 {
			b.row("blocks of a claim"+name, fmt.Sprintf("%.0f", f.blocks), fmt.Sprintf("%.0f", base.blocks), f.blocks/base.blocks, goal, about)
		}
		b.row("claim p50"+name, milliseconds(f.p50), milliseconds(base.p50), ratio(f.p50, base.p50), goal, about)
		b.row("claim p99"+name, milliseconds(f.p99), milliseconds(base.p99), ratio(f.p99, base.p99), "", about)
		b.row("end of a contingency"+name, milliseconds(f.end), milliseconds(all[0].end), ratio(f.end, all[0].end), "≤ 1 s", fmt.Sprintf("the end while %d jobs wait", backlogClaim))
		b.row("creation p99 meanwhile"+name, milliseconds(f.creation), milliseconds(idle), ratio(f.creation, idle), "≤ 50 ms",
			fmt.Sprintf("a creation at %d/s without a backlog", steadyRate))
		b.fact("  longest call of the database"+name, milliseconds(f.longest), "≤ 1 s")
		b.fact("  jobs done meanwhile"+name, fmt.Sprint(f.jobsDone), "")
	}
}

// backlogOf measures one engine and size.
func (b *bench) backlogOf(ctx context.Context, engine string, size int64) (f backlogFigures, err error) {
	name := fmt.Sprintf("backlog_%d", size)
	address, err := b.database(engine, name)
	if err != nil {
		return f, err
	}
	q, err := openBacklog(ctx, address, size)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, q.Close()) }()
	if engine == "postgres" {
		if err := b.postgres.Analyze(name); err != nil {
			return f, err
		}
		if f.blocks, err = b.claimBlocks(ctx, name, address, q, size); err != nil {
			return f, err
		}
	}
	if f.p50, f.p99, err = q.timeClaims(ctx); err != nil {
		return f, err
	}
	err = q.endContingency(ctx, &f)
	return f, err
}

// claimBlocks returns how many blocks of the table and its indexes a claim reads, its
// writes included. It claims in sessions of its own, because the server counts their
// blocks when they end.
func (b *bench) claimBlocks(ctx context.Context, name, address string, q *backlogQueue, size int64) (float64, error) {
	before, err := b.postgres.Blocks(name, "jobs")
	if err != nil {
		return 0, err
	}
	counted, err := attachBacklog(ctx, address)
	if err != nil {
		return 0, err
	}
	var claimed []store.Job
	claims := min(blockClaims, int(size)/backlogClaim)
	for range claims {
		jobs, claimErr := counted.claim(ctx, backlogClaim)
		claimed, err = append(claimed, jobs...), errors.Join(err, claimErr)
	}
	if err := errors.Join(err, counted.Close()); err != nil {
		return 0, err
	}
	time.Sleep(time.Second) // until the sessions have ended
	after, err := b.postgres.Blocks(name, "jobs")
	return float64(after-before) / float64(claims), errors.Join(err, q.replace(ctx, claimed))
}

// replace finishes jobs and adds as many new ones.
func (q *backlogQueue) replace(ctx context.Context, jobs []store.Job) error {
	for _, job := range jobs {
		if err := q.Commit(ctx, new(store.Batch).FinishJob(job)); err != nil {
			return err
		}
	}
	return q.add(ctx, int64(len(jobs)))
}

// timeClaims times claims of jobs. The jobs are finished and replaced in between.
func (q *backlogQueue) timeClaims(ctx context.Context) (p50, p99 time.Duration, err error) {
	var taken []time.Duration
	for range backlogClaims {
		start := time.Now()
		jobs, err := q.claim(ctx, backlogClaim)
		if err != nil {
			return 0, 0, err
		}
		taken = append(taken, time.Since(start))
		if err := q.replace(ctx, jobs); err != nil {
			return 0, 0, err
		}
	}
	slices.Sort(taken)
	return taken[len(taken)/2], taken[len(taken)*99/100], nil
}

// answering is an authority that has answered a moment ago.
type answering struct{ at time.Time }

func (a answering) Down() (time.Time, bool)       { return time.Time{}, false }
func (a answering) Failing() (time.Time, bool)    { return time.Time{}, false }
func (a answering) LastAnswer() (time.Time, bool) { return a.at, true }
func (a answering) Probe(context.Context) error   { return nil }

// endContingency ends the contingency of the backlog with the watcher of the service,
// and works off jobs and creates invoices meanwhile.
func (q *backlogQueue) endContingency(ctx context.Context, f *backlogFigures) error {
	watcher, err := watch.New(watch.Options{
		Store: q.Store, Env: fiscal.Production, Authority: answering{time.Now()}, Now: time.Now, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	load := q.startLoad(ctx)
	start := time.Now()
	err = watcher.CheckOutage(ctx, pipeline.Signals{Wake: func() {}, Notify: func(store.Scope) {}})
	f.end = time.Since(start)
	var last store.Contingency
	if err == nil {
		last, err = q.Contingency(ctx, fiscal.Production)
	}
	if err == nil && last.EndedAt.IsZero() {
		err = errors.New("the contingency did not end")
	}
	return errors.Join(err, load.wait(f))
}
