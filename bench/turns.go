package main

import (
	"context"
	"net/http"
	"slices"
	"time"
)

const (
	turnPairs = 10
	turnTime  = 2 * time.Second
)

// inTurns measures two rates in short turns, because the speed of a shared machine changes
// within seconds. It returns the median of each rate, and the median of the ratios of two
// turns that follow each other. Every second pair begins with the other rate.
func inTurns(first, second func() (float64, error)) (a, b, ratio float64, err error) {
	var as, bs, ratios []float64
	for pair := range turnPairs {
		rates, turns := [2]float64{}, [2]func() (float64, error){first, second}
		for i := range turns {
			n := (i + pair) % 2
			if rates[n], err = turns[n](); err != nil {
				return 0, 0, 0, err
			}
		}
		as, bs, ratios = append(as, rates[0]), append(bs, rates[1]), append(ratios, rates[0]/rates[1])
	}
	middle := func(all []float64) float64 {
		slices.Sort(all)
		return (all[len(all)/2-1] + all[len(all)/2]) / 2
	}
	return middle(as), middle(bs), middle(ratios), nil
}

// creationTurns returns a function that creates invoices for a turn and returns their rate.
// The turn ends when the service has no work left, so that the next turn does not begin
// with the work of this one.
func (s *service) creationTurns(ctx context.Context) func() (float64, error) {
	next, turn := s.newInvoices(s.key), 0
	return func() (float64, error) {
		turn++
		got, err := s.closed(ctx, turnTime, func(client, n int) []byte { return next(turn*clients+client, n) })
		if err != nil {
			return 0, err
		}
		return got.rate(http.StatusAccepted), s.rest(ctx)
	}
}

// rest waits until the service has used almost no processor time for a moment.
func (s *service) rest(ctx context.Context) error {
	const moment, busy = 200 * time.Millisecond, 20 * time.Millisecond
	for before, _, err := s.processTime(); ; {
		if err != nil {
			return err
		}
		select {
		case <-time.After(moment):
		case <-ctx.Done():
			return ctx.Err()
		}
		var now time.Duration
		if now, _, err = s.processTime(); err == nil && now-before <= busy {
			return nil
		}
		before = now
	}
}
