package wake

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// waited returns how long fn takes, by the clock of the test's bubble.
func waited(fn func()) time.Duration {
	start := time.Now()
	fn()
	return time.Since(start)
}

func TestNotifyWakesALoopThatWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSignal()
		time.AfterFunc(time.Minute, s.Notify)
		if d := waited(func() { s.Wait(t.Context(), time.Hour) }); d != time.Minute {
			t.Errorf("Wait returned after %s, want %s", d, time.Minute)
		}
	})
}

// A loop that is busy sees one wake-up when it waits next, however many there were.
func TestNotifyIsRememberedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewSignal()
		for range 3 {
			s.Notify() // must not block
		}
		for i, want := range []time.Duration{0, time.Hour} {
			if d := waited(func() { s.Wait(t.Context(), time.Hour) }); d != want {
				t.Errorf("Wait %d returned after %s, want %s", i+1, d, want)
			}
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for name, wait := range map[string]func(context.Context){
			"Wait":  func(ctx context.Context) { NewSignal().Wait(ctx, time.Hour) },
			"Sleep": func(ctx context.Context) { Sleep(ctx, time.Hour) },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if d := waited(func() { wait(ctx) }); d != time.Second {
				t.Errorf("%s returned after %s, want %s", name, d, time.Second)
			}
			cancel()
		}
	})
}

func TestSleepReturnsAfterItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		if d := waited(func() { Sleep(t.Context(), time.Hour) }); d != time.Hour {
			t.Errorf("Sleep returned after %s, want %s", d, time.Hour)
		}
	})
}

func TestUntil(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name string
		next time.Time
		err  error
		want time.Duration
	}{
		{"due soon", now.Add(300 * time.Millisecond), nil, 300 * time.Millisecond},
		{"due now", now, nil, minPause},
		{"overdue", now.Add(-time.Hour), nil, minPause},
		{"due in less than the shortest pause", now.Add(time.Microsecond), nil, minPause},
		{"due later than the next poll", now.Add(time.Hour), nil, PollEvery},
		{"unknown", time.Time{}, errors.New("no row"), PollEvery},
	} {
		if got := Until(tt.next, now, tt.err); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestHeartbeatBeatsThreeTimesPerLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		var beats []time.Duration
		stop := Heartbeat(t.Context(), 30*time.Second, func(context.Context) { beats = append(beats, time.Since(start)) })
		time.Sleep(35 * time.Second) // of the bubble's clock
		stop()
		want := []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second}
		if len(beats) != len(want) {
			t.Fatalf("beats at %v, want %v", beats, want)
		}
		for i := range want {
			if beats[i] != want[i] {
				t.Errorf("beats at %v, want %v", beats, want)
			}
		}
		time.Sleep(time.Minute)
		if len(beats) != len(want) {
			t.Errorf("beats after stop: %v", beats)
		}
	})
}

// stop cancels a beat that is under way and waits until it has returned.
func TestStopWaitsForTheLastBeat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		entered, returned := make(chan struct{}), false
		stop := Heartbeat(t.Context(), 3*time.Second, func(ctx context.Context) {
			close(entered)
			<-ctx.Done()
			returned = true
		})
		<-entered
		stop()
		if !returned {
			t.Error("stop returned before the beat")
		}
	})
}

func TestHeartbeatEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		beats := 0
		stop := Heartbeat(ctx, 3*time.Second, func(context.Context) { beats++ })
		cancel()
		synctest.Wait()
		time.Sleep(time.Minute)
		stop()
		if beats != 0 {
			t.Errorf("%d beats after the end of the context", beats)
		}
	})
}
