package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// conn is a small HTTP/1.1 client. It uses little CPU, which it shares with the
// service that it measures.
type conn struct {
	net.Conn
	r *bufio.Reader
}

func dial(ctx context.Context, address string) (*conn, error) {
	c, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return &conn{c, bufio.NewReaderSize(c, 16<<10)}, nil
}

// exchange sends a prepared request and returns the status of its answer.
func (c *conn) exchange(request []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		return 0, err
	}
	if _, err := c.Write(request); err != nil {
		return 0, err
	}
	line, err := c.r.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if len(line) < 12 {
		return 0, fmt.Errorf("answer %q", line)
	}
	status, err := strconv.Atoi(string(line[9:12]))
	if err != nil {
		return 0, err
	}
	length := 0
	for {
		line, err := c.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		if len(line) <= 2 {
			break
		}
		if name := []byte("Content-Length: "); bytes.HasPrefix(line, name) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(line[len(name):]))); err != nil {
				return 0, err
			}
		}
	}
	_, err = io.CopyN(io.Discard, c.r, int64(length))
	return status, err
}

// expect sends a request, and fails when the answer has another status than want.
func (c *conn) expect(want int, request []byte) error {
	status, err := c.exchange(request)
	if err == nil && status != want {
		err = fmt.Errorf("answer %d", status)
	}
	return err
}

// post returns the bytes of a creation request.
func (s *service) post(key, idempotencyKey string, body []byte) []byte {
	return fmt.Appendf(nil, "POST /v1/taxpayers/%s/invoices HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Idempotency-Key: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		s.taxpayer, s.address, key, idempotencyKey, len(body), body)
}

// get returns the bytes of a read request.
func (s *service) get(path string) []byte { return s.getWith(s.key, path) }

// getWith returns the bytes of a read request with a key.
func (s *service) getWith(key, path string) []byte {
	return fmt.Appendf(nil, "GET /v1/taxpayers/%s/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", s.taxpayer, path, s.address, key)
}

// result is the count and the durations of the answers to a load.
type result struct {
	took      time.Duration
	statuses  map[int]int
	durations map[int][]time.Duration // by status
}

func (r result) rate(status int) float64 { return float64(r.statuses[status]) / r.took.Seconds() }

// quantile returns a quantile of the durations of the answers with a status.
func (r result) quantile(status int, q float64) time.Duration {
	d := r.durations[status]
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(len(d)-1, int(q*float64(len(d))))]
}

// closed runs clients for a time. Each sends its next request after the answer to
// the last one.
func (s *service) closed(ctx context.Context, d time.Duration, next func(client, n int) []byte) (result, error) {
	return s.drive(ctx, clients, d, func(client int) func() ([]byte, time.Duration) {
		n := 0
		return func() ([]byte, time.Duration) { n++; return next(client, n), 0 }
	})
}

// open sends requests at a steady rate over some connections. It does not wait for
// the answers to earlier requests.
func (s *service) open(ctx context.Context, connections int, perSecond float64, d time.Duration, next func(n int) []byte) (result, error) {
	var count atomic.Int64
	start := time.Now()
	return s.drive(ctx, connections, d, func(int) func() ([]byte, time.Duration) {
		return func() ([]byte, time.Duration) {
			n := count.Add(1)
			due := start.Add(time.Duration(float64(n) / perSecond * float64(time.Second)))
			return next(int(n)), time.Until(due)
		}
	})
}

// drive sends requests over connections for a time. A source returns the next request
// and how long to wait before it.
func (s *service) drive(ctx context.Context, connections int, d time.Duration, source func(client int) func() ([]byte, time.Duration)) (result, error) {
	var mu sync.Mutex
	var failure error
	total := result{statuses: make(map[int]int), durations: make(map[int][]time.Duration)}
	start := time.Now()
	deadline := start.Add(d)
	var all sync.WaitGroup
	for client := range connections {
		all.Go(func() {
			own, err := s.client(ctx, deadline, source(client))
			mu.Lock()
			defer mu.Unlock()
			if err != nil && failure == nil {
				failure = err
			}
			for status, d := range own {
				total.statuses[status] += len(d)
				total.durations[status] = append(total.durations[status], d...)
			}
		})
	}
	all.Wait()
	total.took = time.Since(start)
	return total, failure
}

func (s *service) client(ctx context.Context, deadline time.Time, next func() ([]byte, time.Duration)) (map[int][]time.Duration, error) {
	own := make(map[int][]time.Duration)
	c, err := dial(ctx, s.address)
	if err != nil {
		return own, err
	}
	defer func() { _ = c.Close() }()
	for ctx.Err() == nil {
		request, wait := next()
		if time.Now().Add(wait).After(deadline) {
			return own, nil
		}
		time.Sleep(wait)
		start := time.Now()
		status, err := c.exchange(request)
		if err != nil {
			return own, err
		}
		own[status] = append(own[status], time.Since(start))
	}
	return own, ctx.Err()
}
