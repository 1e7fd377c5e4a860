// Package otlp sends spans to an OpenTelemetry collector over HTTP.
package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// maxAnswer is how much of an answer is read, so that its connection can be used again.
const maxAnswer = 64 << 10

// Sender posts encoded spans. It is a trace.Sender.
type Sender struct {
	target trace.Target
	http   *http.Client
}

// New returns a sender that uses h. It follows no redirect, because the headers may have a
// secret.
func New(target trace.Target, h *http.Client) *Sender {
	own := *h
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Sender{target, &own}
}

// Send makes one attempt. Its errors do not quote the address, which may have a secret.
func (s *Sender) Send(ctx context.Context, body []byte) (wait time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.target.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.target.URL, bytes.NewReader(body))
	if err != nil {
		return -1, errors.New("the address of the collector is not valid")
	}
	for name, value := range s.target.Header {
		req.Header.Set(name, value)
	}
	res, err := s.http.Do(req)
	var quoted *url.Error
	if errors.As(err, &quoted) {
		err = quoted.Err
	}
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, maxAnswer)) // the status says everything
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return 0, nil
	case res.StatusCode == http.StatusTooManyRequests, res.StatusCode == http.StatusBadGateway,
		res.StatusCode == http.StatusServiceUnavailable, res.StatusCode == http.StatusGatewayTimeout:
		if seconds, err := strconv.ParseUint(res.Header.Get("Retry-After"), 10, 16); err == nil {
			wait = time.Duration(seconds) * time.Second
		}
	default:
		wait = -1
	}
	return wait, fmt.Errorf("the collector answered %d", res.StatusCode)
}
