package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

// overload sends five times the requests that the service can process. It compares
// the rate of accepted requests with the best rate.
func (b *bench) overload(ctx context.Context) error {
	const times, connections = 5, 1500
	return b.onEngines(ctx, func(ctx context.Context, engine string) error {
		s, err := b.startService(ctx, engine, "overload")
		if err != nil {
			return err
		}
		best, err := s.closed(ctx, measureTime, s.newInvoices(s.key))
		if err != nil {
			return errors.Join(err, s.stop())
		}
		next := s.newInvoices(s.key)
		offered := times * best.rate(http.StatusAccepted)
		got, err := s.open(ctx, connections, offered, measureTime, func(n int) []byte { return next(1000, n) })
		if err := errors.Join(err, s.stop()); err != nil {
			return err
		}
		refused := got.rate(http.StatusTooManyRequests) + got.rate(http.StatusServiceUnavailable)
		b.row("creations/s at 5 times the load, "+engine, rateText(got.rate(http.StatusAccepted)),
			rateText(best.rate(http.StatusAccepted)), got.rate(http.StatusAccepted)/best.rate(http.StatusAccepted), "≥ 0.8",
			"the best rate, with 64 clients")
		b.fact("  refused/s, p50 and p99 for clients that ignore Retry-After", fmt.Sprintf("%.0f, %s, %s", refused,
			milliseconds(got.quantile(http.StatusTooManyRequests, 0.5)), milliseconds(got.quantile(http.StatusTooManyRequests, 0.99))), "")
		b.fact("  p99 of an accepted one", milliseconds(got.quantile(http.StatusAccepted, 0.99)), "")
		return nil
	})
}
