package client

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"
)

func withStatus(status Status) http.HandlerFunc {
	return reply(http.StatusOK, one(`{"id":"`+someID+`","status":"`+string(status)+`"}`))
}

func TestWaitForOutcome(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, withStatus(Queued), withStatus(OutcomeUnknown), withStatus(Processing), withStatus(Rejected))
	got, err := c.WaitForOutcome(testContext(t), someID)
	if err != nil || got.Data.Status != Rejected || len(s.seen) != 4 || len(s.waits) != 3 {
		t.Errorf("%+v, %v after %d requests and %d pauses", got.Data, err, len(s.seen), len(s.waits))
	}
	for _, r := range s.seen {
		if r.header.Get("Prefer") != "wait=20" {
			t.Errorf("asked with Prefer %q, want the longest wait", r.header.Get("Prefer"))
		}
	}
	for status, want := range map[Status]bool{
		Queued: false, Submitted: false, Processing: false, OutcomeUnknown: false,
		ValidationFailed: true, Accepted: true, AcceptedConditional: true, Rejected: true, Delivered: true,
	} {
		if status.Decided() != want {
			t.Errorf("%s: decided is %v", status, status.Decided())
		}
	}
}

func TestWaitForOutcomeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	c, _ := start(t, nil, withStatus(Processing))
	ctx, cancel := context.WithCancel(testContext(t))
	c.wait = func(ctx context.Context, _ time.Duration) error {
		cancel()
		return ctx.Err()
	}
	got, err := c.WaitForOutcome(ctx, someID)
	if !errors.Is(err, context.Canceled) || got.Data.Status != Processing {
		t.Errorf("%+v, %v; want the last status and the error of the context", got.Data, err)
	}
	c, _ = start(t, nil, reply(http.StatusNotFound, failure(CodeNotFound)))
	if _, err := c.WaitForOutcome(testContext(t), someID); !HasCode(err, CodeNotFound) {
		t.Errorf("err = %v", err)
	}
}

func TestWaitForOutcomeFitsTheTimeoutOfAnAttempt(t *testing.T) {
	t.Parallel()
	c, s := start(t, []Option{WithHTTPClient(&http.Client{Timeout: 10 * time.Second})}, withStatus(Accepted))
	if _, err := c.WaitForOutcome(testContext(t), someID); err != nil || s.seen[0].header.Get("Prefer") != "wait=5" {
		t.Errorf("Prefer %q, %v", s.seen[0].header.Get("Prefer"), err)
	}
}

// The client makes a key once, shows it before the first request, and keeps it.
func TestANewKeyIsShownBeforeTheFirstRequest(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, drop, reply(http.StatusServiceUnavailable, failure(CodeServiceUnavailable)), reply(http.StatusAccepted, created))
	var shown []string
	got, err := c.CreateInvoiceJSON(testContext(t), "", []byte(`{"a":1}`), WithScenario(ScenarioRejected), WithNewKey(func(key string) error {
		if len(s.seen) != 0 {
			t.Error("a request was sent before the key was stored")
		}
		shown = append(shown, key)
		return nil
	}))
	if err != nil || len(shown) != 1 || len(s.seen) != 3 || got.Meta.IdempotencyKey != shown[0] || checkIdempotencyKey(shown[0]) != nil {
		t.Fatalf("%+v, %v with the keys %v after %d requests", got.Meta, err, shown, len(s.seen))
	}
	for _, r := range s.seen {
		if r.header.Get("Idempotency-Key") != shown[0] || r.header.Get("Sandbox-Scenario") != "rejected" || r.body != `{"a":1}` {
			t.Errorf("sent %+v", r)
		}
	}
	if key := NewIdempotencyKey(); key == shown[0] {
		t.Error("two keys are equal")
	}
	full := errors.New("disk full")
	_, err = c.CreateInvoiceJSON(testContext(t), "", []byte(`{}`), WithNewKey(func(string) error { return full }))
	if !errors.Is(err, full) || len(s.seen) != 3 {
		t.Errorf("err = %v after %d requests, want nothing sent", err, len(s.seen))
	}
	got, err = c.CreateInvoiceJSON(testContext(t), "mine", []byte(`{}`), WithNewKey(func(string) error { return full }))
	if err != nil || got.Meta.IdempotencyKey != "mine" {
		t.Errorf("a given key: %+v, %v", got.Meta, err)
	}
}
