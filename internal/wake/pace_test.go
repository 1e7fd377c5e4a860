package wake

import (
	"testing"
	"time"
)

func TestPaceDividesWaits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pace             Pace
		d, floor         time.Duration
		wantOf, wantPace time.Duration
	}{
		{0, time.Minute, time.Second, time.Minute, time.Minute},
		{1, time.Minute, time.Second, time.Minute, time.Minute},
		{0.5, time.Minute, time.Second, time.Minute, time.Minute},
		{-3, time.Minute, time.Second, time.Minute, time.Minute},
		{10, time.Minute, time.Second, 6 * time.Second, 6 * time.Second},
		{120, time.Minute, time.Second, time.Second, 500 * time.Millisecond},
		{10, 500 * time.Millisecond, time.Second, 500 * time.Millisecond, 50 * time.Millisecond},
		{10, 0, time.Second, 0, 0},
	} {
		if got := tt.pace.Of(tt.d, tt.floor); got != tt.wantOf {
			t.Errorf("Pace(%g).Of(%s, %s) = %s, want %s", tt.pace, tt.d, tt.floor, got, tt.wantOf)
		}
		if got := tt.pace.Scale(tt.d); got != tt.wantPace {
			t.Errorf("Pace(%g).Scale(%s) = %s, want %s", tt.pace, tt.d, got, tt.wantPace)
		}
	}
}

func TestLeaseHasBounds(t *testing.T) {
	t.Parallel()
	for pace, want := range map[Pace]time.Duration{0: MaxLease, 1: MaxLease, 3: 10 * time.Second, 15: minLease, 1000: minLease} {
		if got := pace.Lease(); got != want {
			t.Errorf("Pace(%g).Lease() = %s, want %s", pace, got, want)
		}
	}
}
