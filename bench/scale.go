package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	scaleTurn  = 400 // documents of one turn
	scaleReads = 50  // requests of one turn
	scaleRate  = 50  // creations per second
	scaleTime  = time.Second
	scaleSpan  = 90 * 24 * time.Hour // the documents are from this time
	scaleGoal  = "≤ 1.5"
	scaleParts = 6 // largest tables that are named
)

// scale compares a service that has many documents and waiting jobs with a service that has
// one document, in turns. Every tenth document has a job that waits. The environment variable
// FISCALHUB_BENCH_DOCUMENTS sets another number of documents than a million.
func (b *bench) scale(ctx context.Context) error {
	documents, err := documentsWanted()
	if err != nil {
		return err
	}
	return b.onEngines(ctx, func(ctx context.Context, engine string) error { return b.scaleOf(ctx, engine, documents) })
}

// scaleOf measures one engine.
func (b *bench) scaleOf(ctx context.Context, engine string, documents int) (err error) {
	large, err := b.startWith(ctx, engine, "large", documents)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, large.stop()) }()
	small, err := b.startWith(ctx, engine, "small", 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, small.stop()) }()
	of := func(what string) string { return fmt.Sprintf("%s, %d documents, %s", what, documents, engine) }
	const about = "the same with one document, in turns"

	b.say("live documents on %s", engine)
	many, one, ratio, err := inTurns(
		func() (float64, error) { return large.finish(ctx, scaleTurn) },
		func() (float64, error) { return small.finish(ctx, scaleTurn) })
	if err != nil {
		return err
	}
	b.row(of("documents finished/s"), rateText(many), rateText(one), ratio, "≥ 0.67", about)

	for _, read := range []struct {
		name string
		take func(w *liveService) (time.Duration, error)
	}{
		{"creation p50 at 50/s", func(w *liveService) (time.Duration, error) { return w.creationTime(ctx) }},
		{"an invoice by its id", func(w *liveService) (time.Duration, error) { return w.readTime(ctx, "invoices/"+w.sample) }},
		{"newest invoices", func(w *liveService) (time.Duration, error) { return w.readTime(ctx, "invoices") }},
		{"newest accepted invoices", func(w *liveService) (time.Duration, error) { return w.readTime(ctx, "invoices?status=accepted") }},
		{"metrics", func(w *liveService) (time.Duration, error) { return w.metricsTime(ctx) }},
	} {
		b.say("%s on %s", read.name, engine)
		in := func(w *liveService) func() (float64, error) {
			return func() (float64, error) {
				took, err := read.take(w)
				return took.Seconds(), err
			}
		}
		many, one, ratio, err := inTurns(in(large), in(small))
		if err != nil {
			return fmt.Errorf("%s: %w", read.name, err)
		}
		b.row(of(read.name), seconds(many), seconds(one), ratio, scaleGoal, about)
	}
	b.row(of("start of the service"), milliseconds(large.began), milliseconds(small.began), float64(large.began)/float64(small.began), "", about)
	b.scaleSizes(large.sizes, of, documents)
	return nil
}

func seconds(s float64) string { return milliseconds(time.Duration(s * float64(time.Second))) }

// scaleSizes adds the size of the database for each document, and its largest parts.
func (b *bench) scaleSizes(sizes map[string]int64, of func(string) string, documents int) {
	total := int64(0)
	for _, size := range sizes {
		total += size
	}
	b.fact(of("bytes on disk for each document"), fmt.Sprint(total/int64(documents)), "")
	names := slices.SortedFunc(maps.Keys(sizes), func(x, y string) int { return cmp.Compare(sizes[y], sizes[x]) })
	for _, name := range names[:scaleParts] {
		b.fact("  "+of(name), fmt.Sprint(sizes[name]/int64(documents)), "")
	}
}

// startWith starts a live service, finishes one document, adds copies of it, and starts the
// service again.
func (b *bench) startWith(ctx context.Context, engine, name string, documents int) (*liveService, error) {
	b.say("%d documents on %s", documents, engine)
	w, err := b.startLive(ctx, engine, name, 0)
	if err != nil {
		return nil, err
	}
	var page invoicePage
	err = w.createAll(ctx, 0, 1, w.newInvoices(w.key))
	if err == nil {
		err = w.wait(ctx, time.Minute)
	}
	if err == nil {
		err = w.getJSON(ctx, "invoices", &page)
	}
	if err := errors.Join(err, w.service.stop()); err != nil {
		return nil, err
	}
	w.sample = page.Data[0].ID
	err = storetest.CopyDocuments(ctx, w.database, storetest.Copies{Documents: documents, Waiting: documents / 10, Span: scaleSpan, Progress: func(n int) {
		if n > 0 && n%100_000 == 0 {
			b.say("  %d copied", n)
		}
	}})
	if err == nil && engine == "postgres" {
		err = b.postgres.Analyze(name)
	}
	if err == nil {
		w.sizes, err = storetest.TableSizes(ctx, w.database)
	}
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	again, err := b.startAlone(ctx, w.environment, w.database, w.flags...)
	if err != nil {
		return nil, err
	}
	w.began, again.taxpayer, again.key = time.Since(begin), w.taxpayer, w.key
	w.service = again
	return w, nil
}

// creationTime returns the median time of a creation at a steady rate, and waits until the
// documents are finished.
func (w *liveService) creationTime(ctx context.Context) (time.Duration, error) {
	next := w.newInvoices(w.key)
	w.clients++
	client := w.clients
	got, err := w.open(ctx, 8, scaleRate, scaleTime, func(n int) []byte { return next(client, n) })
	if err == nil {
		err = w.wait(ctx, time.Minute)
	}
	return got.quantile(http.StatusAccepted, 0.5), err
}

// readTime returns the median time of a read request.
func (w *liveService) readTime(ctx context.Context, path string) (time.Duration, error) {
	c, err := dial(ctx, w.address)
	if err != nil {
		return 0, err
	}
	defer func() { _ = c.Close() }()
	request := w.get(path)
	read := median(scaleReads, func() error { return c.expect(http.StatusOK, request) })
	return read.took, read.err
}

// metricsTime returns the median time of a request for the metrics.
func (w *liveService) metricsTime(ctx context.Context) (time.Duration, error) {
	read := median(scaleReads, func() error {
		_, err := w.metric(ctx, "go_goroutines")
		return err
	})
	return read.took, read.err
}
