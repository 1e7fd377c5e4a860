package database

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var clockStart = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// clockEnv is a clock whose node and database have clocks that the test sets.
type clockEnv struct {
	*clock
	t        *testing.T
	node     time.Time
	database time.Time
	trips    []time.Duration // round trips of the next samples; 0 when it is empty
	err      error
	log      bytes.Buffer
}

func newClockEnv(t *testing.T, skew time.Duration) *clockEnv {
	t.Helper()
	e := &clockEnv{t: t, node: clockStart.Add(skew), database: clockStart}
	c, err := newClock(t.Context(), Options{
		Now: func() time.Time { return e.node },
		Log: slog.New(slog.NewTextHandler(&e.log, nil)),
		DatabaseNow: func(context.Context) (time.Time, error) {
			if len(e.trips) == 0 {
				return e.database, e.err
			}
			trip := e.trips[0]
			e.trips = e.trips[1:]
			e.pass(trip / 4) // an asymmetric trip: the answer takes longer
			at := e.database
			e.pass(trip - trip/4)
			return at, e.err
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.close() // the test measures itself
	e.clock = c
	return e
}

// pass lets time pass on both clocks.
func (e *clockEnv) pass(d time.Duration) {
	e.node, e.database = e.node.Add(d), e.database.Add(d)
}

func (e *clockEnv) measured() {
	e.t.Helper()
	if err := e.measure(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

func (e *clockEnv) want(what string, now time.Time) {
	e.t.Helper()
	if got := e.now(); !got.Equal(now) {
		e.t.Errorf("%s: the time is %s, want %s", what, got, now)
	}
}

func TestTheClockFollowsTheDatabase(t *testing.T) {
	t.Parallel()
	for _, skew := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute, 130 * time.Second, 24 * time.Hour} {
		e := newClockEnv(t, skew)
		e.want("at the start", e.database)
		e.pass(3 * time.Second)
		e.want("later", e.database)
		if got, ok := e.skew(); got != skew || !ok {
			t.Errorf("the skew is %s, %v; want %s", got, ok, skew)
		}
		e.node = e.node.Add(time.Minute) // a step of the node's clock
		e.measured()
		e.want("after a step of the node's clock", e.database)
		e.database = e.database.Add(time.Minute)
		e.measured()
		e.want("after a step of the database's clock", e.database)
	}
}

// A step of the node's clock changes no time of the database, not even until the next
// measurement, and the skew shows it at once.
func TestAStepOfTheNodesClockShowsAtOnce(t *testing.T) {
	t.Parallel()
	node, passed := clockStart, time.Duration(0)
	c, err := newClock(t.Context(), Options{
		Now: func() time.Time { return node }, Monotonic: func() time.Duration { return passed }, Log: slog.New(slog.DiscardHandler),
		DatabaseNow: func(context.Context) (time.Time, error) { return clockStart.Add(passed), nil },
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.close() // nothing measures any more
	node, passed = clockStart.Add(94*time.Second), time.Second
	if got, want := c.now(), clockStart.Add(time.Second); !got.Equal(want) {
		t.Errorf("the time is %s, want %s", got, want)
	}
	if got, ok := c.skew(); got != 93*time.Second || !ok {
		t.Errorf("the skew is %s, %v; want 93s", got, ok)
	}
}

// The sample with the shortest round trip decides, and its error is at most half of it.
func TestTheShortestRoundTripDecides(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t, time.Hour)
	e.trips = []time.Duration{800 * time.Millisecond, 40 * time.Millisecond, time.Second, 300 * time.Millisecond, 2 * time.Second}
	e.measured()
	if off := e.now().Sub(e.database).Abs(); off > 20*time.Millisecond {
		t.Errorf("the estimate is off by %s", off)
	}
}

// A slow answer says little about the time, so it does not replace a better estimate.
func TestASlowAnswerDoesNotReplaceAnEstimate(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t, time.Hour)
	for range clockSamples {
		e.trips = append(e.trips, 4*time.Second)
	}
	e.measured()
	e.want("after slow answers", e.database)
	e.err = errors.New("no connection")
	if err := e.measure(t.Context()); !errors.Is(err, e.err) {
		t.Errorf("got %v, want the error of the database", err)
	}
	e.pass(time.Hour)
	e.want("without the database", e.database)
	if _, ok := e.skew(); !ok {
		t.Error("the skew is not known")
	}
}

// A correction of a measurement slows the clock down, and never moves it back.
func TestACorrectionDoesNotMoveTheTimeBack(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t, time.Hour)
	last := e.now()
	e.database = e.database.Add(-time.Second)
	for i := range 40 {
		if i%10 == 0 {
			e.measured()
		}
		now := e.now()
		if now.Before(last) {
			t.Fatalf("step %d: the time went from %s back to %s", i, last, now)
		}
		last = now
		e.pass(100 * time.Millisecond)
	}
	e.want("at the end", e.database)
}

// Another server took over, and its clock is 10 minutes behind. All nodes follow it at
// once, because a new node starts with its time.
func TestTheClockFollowsAServerThatIsFarBehind(t *testing.T) {
	t.Parallel()
	e := newClockEnv(t, 0)
	e.database = e.database.Add(-10 * time.Minute)
	e.measured()
	e.want("after the failover", e.database)
	if !strings.Contains(e.log.String(), "clock of the database went back") {
		t.Errorf("the log is %q", e.log.String())
	}
}

func TestSQLiteUsesTheClockOfTheNode(t *testing.T) {
	t.Parallel()
	at := clockStart
	s, err := Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "fiscalhub.db"), testMigrations(),
		Options{Now: func() time.Time { return at }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	at = at.Add(-time.Hour)
	if skew, ok := s.ClockSkew(); !s.Now().Equal(at) || skew != 0 || !ok {
		t.Errorf("the time is %s, want %s; the skew is %s, %v", s.Now(), at, skew, ok)
	}
}
