package notify

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// addHistory stores n events without deliveries, as they are from before the creation of
// an endpoint.
func (e *env) addHistory(n int) {
	e.t.Helper()
	_, err := storetest.OpenSQL(e.t, e.address).ExecContext(e.t.Context(), `
		INSERT INTO events (environment, taxpayer_id, id, kind, document_id, revision, at, body)
		WITH RECURSIVE numbers (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM numbers WHERE i + 1 < $4)
		SELECT cast($1 AS text), cast($2 AS text), 'evt_' || cast(1000000 + i AS text), 'a', '', 0, cast($3 AS bigint) + i, $5 FROM numbers`,
		string(e.scope.Environment), e.scope.TaxpayerID, e.now().UnixMicro(), n, []byte("{}"))
	e.must(err)
}

// countRows returns the result of a query of one number.
func (e *env) countRows(query string) (n int) {
	e.t.Helper()
	e.must(storetest.OpenSQL(e.t, e.address).QueryRowContext(e.t.Context(), query).Scan(&n))
	return n
}

// A replay answers before it has changed a delivery. The sender works it off in batches;
// after a stop the next sender goes on with the rest, and no event is sent twice.
func TestTheSenderWorksOffAReplay(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		const events = 500
		hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
		e.addHistory(events)
		e.advance(events * time.Microsecond)
		since := e.now().Add(-events * time.Microsecond)
		plan, err := e.Replay(t.Context(), e.scope, hook.ID, Replay{Since: &since})
		if n := e.countRows(`SELECT count(*) FROM webhook_deliveries`); err != nil || plan != (store.ReplayPlan{Events: events}) || n != 0 {
			t.Fatalf("the answer: %+v, %v; %d deliveries", plan, err, n)
		}
		var mu sync.Mutex
		sent := map[string]int{}
		post := func(s *Sender) {
			s.poster = posterFunc(func(m webhook.Message) webhook.Result {
				mu.Lock()
				defer mu.Unlock()
				sent[m.ID]++
				return webhook.Result{Status: 200}
			})
		}
		first := e.newSender()
		post(first)
		// The clock moves before each batch, so that its deliveries have a time of their own.
		ticking := first.now
		first.now = func() (at time.Time) { e.advance(time.Microsecond); return ticking() }
		if !first.replayRound(t.Context()) {
			t.Fatal("no batch")
		}
		if n := e.countRows(`SELECT count(*) FROM webhook_deliveries`); n != store.ReplayBatch {
			t.Fatalf("the first batch has %d deliveries", n)
		}
		next := e.newSender()
		post(next)
		next.now = first.now
		stop := e.run(next)
		eventually(t, "all events are sent", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(sent) == events
		})
		eventually(t, "the replay ends", func() bool { return e.countRows(`SELECT count(*) FROM replays`) == 0 })
		stop()
		for id, n := range sent {
			if n != 1 {
				t.Errorf("%s was sent %d times", id, n)
			}
		}
		if n := e.countRows(`SELECT max(n) FROM (SELECT count(*) AS n FROM webhook_deliveries GROUP BY created_at) AS batches`); n > store.ReplayBatch {
			t.Errorf("a transaction has made %d deliveries due", n)
		}
	})
}

// Events of kinds that the endpoint does not ask for do not stop a replay.
func TestAReplaySkipsOtherKinds(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hook, _ := e.endpoint("https://hooks.example.com/x", "fiscal_document.accepted")
		since := e.now()
		e.addHistory(2 * store.ReplayBatch)
		e.advance(time.Hour)
		wanted := e.addEvent(e.scope, "fiscal_document.accepted")
		plan, err := e.Replay(t.Context(), e.scope, hook.ID, Replay{Since: &since})
		if err != nil || plan != (store.ReplayPlan{Events: 1}) {
			t.Errorf("the answer: %+v, %v", plan, err)
		}
		s := e.newSender()
		var sent []string
		s.poster = posterFunc(func(m webhook.Message) webhook.Result { sent = append(sent, m.ID); return webhook.Result{Status: 200} })
		if e.sendDue(s) != 1 || sent[0] != wanted.ID || e.countRows(`SELECT count(*) FROM replays`) != 0 {
			t.Errorf("sent %v, want %s", sent, wanted.ID)
		}
	})
}

func TestAReplayAcceptsAnyInstant(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
		e.addEvent(e.scope, "fiscal_document.accepted")
		for want, instants := range map[int64][]time.Time{
			1: {{}, time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Unix(-1<<62, 0), e.now()},
			0: {e.now().Add(time.Microsecond), time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), time.Unix(1<<62, 0)},
		} {
			for _, since := range instants {
				plan, err := e.Replay(t.Context(), e.scope, hook.ID, Replay{Since: &since})
				if err != nil || plan != (store.ReplayPlan{Events: want}) {
					t.Errorf("since %v: %+v, %v; want %d", since, plan, err, want)
				}
			}
		}
	})
}

// A command prepares the deliveries of a replay itself. When it is interrupted, a sender
// continues, and no event is sent twice.
func TestAnInterruptedReplayContinues(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		const events = 500
		hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
		e.addHistory(events)
		e.advance(events * time.Microsecond)
		since := e.now().Add(-events * time.Microsecond)
		if _, err := e.Replay(t.Context(), e.scope, hook.ID, Replay{Since: &since}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		err := e.RunReplay(ctx, e.scope, hook.ID, func(due int64) {
			if due != store.ReplayBatch {
				t.Errorf("%d events are due after the first batch", due)
			}
			cancel()
		})
		if n := e.countRows(`SELECT count(*) FROM webhook_deliveries`); !errors.Is(err, context.Canceled) || n != store.ReplayBatch {
			t.Errorf("interrupted: %v with %d deliveries", err, n)
		}
		if !e.newSender().replayRound(t.Context()) {
			t.Error("the sender does not continue")
		}
		last := int64(0)
		if err := e.RunReplay(t.Context(), e.scope, hook.ID, func(due int64) { last = due }); err != nil || last != events {
			t.Errorf("%v, %d events are due", err, last)
		}
		if n := e.countRows(`SELECT count(*) FROM webhook_deliveries`); n != events {
			t.Errorf("%d deliveries", n)
		}
	})
}

// The replay of a disabled endpoint waits, and a command does not wait with it.
func TestAReplayOfADisabledEndpointWaits(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		hook, _ := e.endpoint("https://hooks.example.com/x", event.All)
		e.addHistory(3)
		e.advance(time.Second)
		_, err := storetest.OpenSQL(t, e.address).ExecContext(t.Context(), `UPDATE endpoints SET status = 'disabled'`)
		e.must(err)
		since := e.now().Add(-time.Hour)
		_, err = e.Replay(t.Context(), e.scope, hook.ID, Replay{Since: &since})
		e.must(err)
		e.must(e.RunReplay(t.Context(), e.scope, hook.ID, func(due int64) {
			if due != 0 {
				t.Errorf("%d events are due", due)
			}
		}))
	})
}
