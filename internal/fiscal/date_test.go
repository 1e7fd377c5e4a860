package fiscal_test

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestDatesCompareAndFollowTheZone(t *testing.T) {
	t.Parallel()
	a, _ := fiscal.ParseDate("2026-01-31")
	b, _ := fiscal.ParseDate("2026-02-01")
	if !a.Before(b) || !b.After(a) || a.Compare(a) != 0 || a.Before(a) || !(fiscal.Date{}).IsZero() || a.IsZero() || (fiscal.Date{}).String() != "" {
		t.Error("dates are compared or written wrong")
	}
	if got := fiscal.DateOf(time.Date(2026, 2, 1, 3, 59, 59, 0, time.UTC)); got != a {
		t.Errorf("03:59:59Z is %s", got)
	}
	if got := fiscal.DateOf(time.Date(2026, 2, 1, 12, 0, 0, 0, time.FixedZone("x", 9*3600))); got != a {
		t.Errorf("noon in Tokyo is %s", got)
	}
	if got := fiscal.DateOf(time.Date(2026, 2, 1, 4, 0, 0, 0, time.UTC)); got != b {
		t.Errorf("04:00Z is %s", got)
	}
}
