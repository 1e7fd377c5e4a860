package pipeline

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Any number of deliveries to buyers whose servers hang does not delay an invoice.
func TestHangingDeliveriesDoNotDelayInvoices(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		const deliveries, invoices = 100, 40
		release := make(chan struct{})
		var hanging, issued atomic.Int64
		b := newEnv(t, address, scripted{step: func(_ context.Context, w Work) (Result, error) {
			if w.Job.Stage == "deliver" {
				hanging.Add(1)
				<-release
				return Result{Move: &Move{}}, nil
			}
			issued.Add(1)
			return Result{Move: &Move{Status: fiscal.Submitted, Cause: "test"}}, nil
		}})
		for i := range deliveries {
			b.add(fmt.Sprint("delivery ", i), "test", "deliver")
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		defer func() { cancel(); close(release); running.Wait() }()
		reaches(t, "workers that deliver", &hanging, deliverers/4)
		for i := range invoices {
			b.add(fmt.Sprint("invoice ", i), "test", "issue")
		}
		b.notifyAll()
		reaches(t, "issued invoices", &issued, invoices)
		if n := hanging.Load(); n != deliverers/4 {
			t.Errorf("%d workers deliver for one taxpayer, want %d", n, deliverers/4)
		}
		// The delivery of another taxpayer begins at once.
		other := *b
		other.scope.TaxpayerID = store.NewID()
		b.must(b.o.Store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.CreateTaxpayer(t.Context(), store.Taxpayer{ID: other.scope.TaxpayerID, RNC: "199000021", LegalName: "x", CreatedAt: b.o.Now(), UpdatedAt: b.o.Now()})
		}))
		other.add("delivery of another", "test", "deliver")
		b.notifyAll()
		reaches(t, "workers that deliver", &hanging, deliverers/4+1)
	})
}

// reaches waits until a counter has reached a number.
func reaches(t *testing.T, what string, counter *atomic.Int64, want int64) {
	t.Helper()
	deadline := time.After(time.Minute)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for counter.Load() < want {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("%s: %d, want %d", what, counter.Load(), want)
		}
	}
}

// A worker that has polled an invoice does not deliver it: a worker of the other queue
// does.
func TestAWorkerHandsTheDeliveryOver(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		var done []string
		b := newEnv(t, address, scripted{step: func(_ context.Context, w Work) (Result, error) {
			done = append(done, w.Job.Stage)
			next := map[string]string{"submit": "poll", "poll": "deliver"}[w.Job.Stage]
			return Result{Move: &Move{Next: next}}, nil
		}})
		inv := b.add("A", "test", "submit")
		b.RunJob(t.Context(), b.claimOne())
		if got := fmt.Sprint(done); got != "[submit poll]" {
			t.Errorf("the worker did %s", got)
		}
		job, err := b.o.Store.JobOf(t.Context(), b.scope, inv.DocumentID)
		if err != nil || job.Stage != "deliver" || job.Lease != "" || job.Attempt != 0 || job.RunAt.After(b.o.Now()) {
			t.Errorf("the job is %+v, %v", job, err)
		}
		jobs, err := b.claim(t.Context(), store.Claim{Queue: store.QueueMain, Limit: workers}, nil)
		if err != nil || len(jobs) != 0 {
			t.Errorf("the main queue has %v, %v", jobs, err)
		}
		b.RunJob(t.Context(), b.claimOne())
		if got := fmt.Sprint(done); got != "[submit poll deliver]" {
			t.Errorf("the workers did %s", got)
		}
	})
}

// When all workers are busy, the jobs that remain start as soon as workers finish.
func TestJobsWaitForAFreeWorker(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		const jobs = workers + 10
		release := make(chan struct{})
		var started atomic.Int64
		b := newEnv(t, address, scripted{step: func(context.Context, Work) (Result, error) {
			started.Add(1)
			<-release
			return Result{Move: &Move{}}, nil
		}})
		for i := range jobs {
			b.add(fmt.Sprint(i), "test", "issue")
		}
		ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
		var running sync.WaitGroup
		running.Go(func() { b.Run(ctx) })
		defer func() { cancel(); running.Wait() }()
		reaches(t, "busy workers", &started, workers)
		close(release)
		reaches(t, "finished jobs", &started, jobs)
	})
}
