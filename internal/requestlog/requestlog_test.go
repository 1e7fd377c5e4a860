package requestlog

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func newLog(t *testing.T, s *store.Store, keep int) *Log {
	t.Helper()
	l, err := New(Options{Store: s, Env: fiscal.Sandbox, Log: slog.New(slog.DiscardHandler), Keep: keep})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// dropped returns how many requests the log has dropped because its queue was full.
func dropped(t *testing.T, l *Log) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(l.dropped)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == "queue_full" {
			return m.GetCounter().GetValue()
		}
	}
	return 0
}

func entry(taxpayer string, n int, code string) store.LoggedRequest {
	return store.LoggedRequest{
		Scope: store.Scope{Environment: fiscal.Sandbox, TaxpayerID: taxpayer}, RequestID: fmt.Sprint("req_", n), At: time.Now(), Method: "GET",
		Route: "/v1/x", Path: "/v1/x", Status: 200, Code: code,
	}
}

// A request never waits for the log. When the queue is full, failed requests still have
// room, and the rest is dropped and counted.
func TestAFullQueueDropsAndCounts(t *testing.T) {
	t.Parallel()
	l := newLog(t, storetest.Open(t, storetest.Address(t, "sqlite"), time.Now), 0)
	for i := range queueSize {
		l.Add(entry("t", i, ""))
	}
	if got := dropped(t, l); got != roomForErrors {
		t.Errorf("%g requests are dropped, want %d", got, roomForErrors)
	}
	for i := range roomForErrors + 7 {
		l.Add(entry("t", i, "bad_request"))
	}
	if got := dropped(t, l); got != roomForErrors+7 {
		t.Errorf("%g requests are dropped, want %d", got, roomForErrors+7)
	}
}

func TestTheOldestRequestsOfATaxpayerAreDeleted(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		l := newLog(t, s, 300)
		for i := range 1000 {
			q := entry("busy", i, "")
			q.At = q.At.Add(time.Duration(i) * time.Millisecond)
			l.Add(q)
		}
		l.Add(entry("calm", 0, ""))
		l.Flush(t.Context())
		for taxpayer, most := range map[string]int{"busy": 300 + batchSize, "calm": 1} {
			got, _, err := s.Requests(t.Context(), store.Scope{Environment: fiscal.Sandbox, TaxpayerID: taxpayer}, store.RequestFilter{Limit: 1000})
			if err != nil || len(got) == 0 || len(got) > most {
				t.Errorf("%s has %d requests, want up to %d; %v", taxpayer, len(got), most, err)
			}
			if taxpayer == "busy" && got[0].RequestID != "req_999" {
				t.Errorf("the newest is %s", got[0].RequestID)
			}
		}
	})
}

// A stop writes what is queued.
func TestAStopWritesWhatIsQueued(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Address(t, "sqlite"), time.Now)
	l := newLog(t, s, 0)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	l.Add(entry("t", 1, ""))
	l.Run(ctx)
	got, _, err := s.Requests(t.Context(), store.Scope{Environment: fiscal.Sandbox, TaxpayerID: "t"}, store.RequestFilter{Limit: 10})
	if err != nil || len(got) != 1 {
		t.Errorf("%d requests are stored, want 1; %v", len(got), err)
	}
}
