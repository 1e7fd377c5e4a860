package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const steadyRate = 100 // creations per second

// latency compares the time of a creation at a steady rate with the time of only a
// commit of its rows at the same rate.
func (b *bench) latency(ctx context.Context) error {
	return b.onEngines(ctx, func(ctx context.Context, engine string) error {
		s, err := b.startService(ctx, engine, "latency")
		if err != nil {
			return err
		}
		next := s.newInvoices(s.key)
		got, err := s.open(ctx, 16, steadyRate, measureTime, func(n int) []byte { return next(0, n) })
		if err := errors.Join(err, s.stop()); err != nil {
			return err
		}
		plain, err := b.commitLatency(ctx, engine)
		if err != nil {
			return err
		}
		for _, q := range []struct {
			name string
			at   float64
		}{{"p50", 0.50}, {"p99", 0.99}} {
			measured, baseline := got.quantile(http.StatusAccepted, q.at), plain.quantile(http.StatusAccepted, q.at)
			b.row(fmt.Sprintf("creation %s at %d/s, %s", q.name, steadyRate, engine), milliseconds(measured), milliseconds(baseline),
				float64(measured)/float64(baseline), "", "only a commit of the same rows at the same rate")
		}
		return nil
	})
}

// commitLatency commits the rows of a creation at the steady rate.
func (b *bench) commitLatency(ctx context.Context, engine string) (r result, err error) {
	address, err := b.database(engine, "commit_latency")
	if err != nil {
		return r, err
	}
	s, err := openStore(ctx, address)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rows, err := newRows(ctx, s)
	if err != nil {
		return r, err
	}
	tick := time.NewTicker(time.Second / steadyRate)
	defer tick.Stop()
	var taken []time.Duration
	for range steadyRate * int(measureTime/time.Second) {
		<-tick.C
		start := time.Now()
		if err := rows.commit(ctx, s); err != nil {
			return r, err
		}
		taken = append(taken, time.Since(start))
	}
	slices.Sort(taken)
	return result{durations: map[int][]time.Duration{http.StatusAccepted: taken}}, nil
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
