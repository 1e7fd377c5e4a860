package wake

import (
	"fmt"
	"testing"
	"time"
)

func TestACauseIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var l LogLimit
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	for second := range 3 * 3600 {
		want := second%3600 == 0 // an hour passes while it lasts
		if got := l.Allow("clock", now.Add(time.Duration(second)*time.Second)); got != want {
			t.Fatalf("after %d s: %t, want %t", second, got, want)
		}
	}
	now = now.Add(3 * time.Hour)
	if !l.Allow("certificate", now) {
		t.Error("another cause is not logged")
	}
	if !l.End("clock") || l.End("clock") {
		t.Error("a condition ends once")
	}
	if !l.Allow("clock", now) {
		t.Error("a condition that begins again is not logged")
	}
	if l.Allow("clock", now.Add(logQuiet)) {
		t.Error("a condition that lasts is logged")
	}
	if !l.Allow("clock", now.Add(3*logQuiet)) {
		t.Error("a condition that was over is not logged")
	}
	if !l.Allow("clock", now) {
		t.Error("after the clock went back, the condition is not logged")
	}
}

func TestALogLimitIsBounded(t *testing.T) {
	t.Parallel()
	var l LogLimit
	for i := range 3 * maxConditions {
		l.Allow(fmt.Sprint(i), time.Unix(0, 0))
	}
	if len(l.conditions) > maxConditions {
		t.Errorf("%d conditions", len(l.conditions))
	}
}
