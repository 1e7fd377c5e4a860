package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
)

const (
	largeLines = 1000
	largeRuns  = 60
)

// large compares the creation of an invoice of a thousand lines with decoding the
// same bytes, and measures the memory that the service allocates for it.
func (b *bench) large(ctx context.Context) error {
	b.say("an invoice of %d lines", largeLines)
	s, err := b.startService(ctx, "sqlite", "large")
	if err != nil {
		return err
	}
	sample := invoiceBody("decode", largeLines)
	var request client.InvoiceRequest
	decode := median(largeRuns, func() error { return json.Unmarshal(sample, &request) })
	before, err := s.allocated(ctx)
	if err != nil {
		return errors.Join(err, s.stop())
	}
	c, err := dial(ctx, s.address)
	if err != nil {
		return errors.Join(err, s.stop())
	}
	requests := make([][]byte, largeRuns)
	for i := range requests {
		id := fmt.Sprintf("large-%d", i+1)
		requests[i] = s.post(s.key, id, invoiceBody(id, largeLines))
	}
	n := 0
	create := median(largeRuns, func() error {
		n++
		return c.expect(http.StatusAccepted, requests[n-1])
	})
	after, err := s.allocated(ctx)
	if err := errors.Join(err, decode.err, create.err, c.Close(), s.stop()); err != nil {
		return err
	}
	b.row(fmt.Sprintf("invoice of %d lines, %d KB", largeLines, len(sample)/1000), milliseconds(create.took), milliseconds(decode.took),
		float64(create.took)/float64(decode.took), "≤ 2", "encoding/json into structs, the same bytes")
	b.fact("  memory allocated for it", fmt.Sprintf("%.1f MiB", (after-before)/float64(n)/(1<<20)), "≤ 8 MiB")
	return nil
}

type timing struct {
	took time.Duration
	err  error
}

// median returns the median time of several runs.
func median(times int, fn func() error) timing {
	taken := make([]time.Duration, 0, times)
	for range times {
		start := time.Now()
		if err := fn(); err != nil {
			return timing{err: err}
		}
		taken = append(taken, time.Since(start))
	}
	slices.Sort(taken)
	return timing{took: taken[times/2]}
}

// allocated returns how many bytes the service has allocated since its start.
func (s *service) allocated(ctx context.Context) (float64, error) {
	return s.metric(ctx, "go_memstats_alloc_bytes_total")
}
