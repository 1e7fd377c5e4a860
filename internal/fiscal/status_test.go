package fiscal_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestTransitionsAreExactlyTheTable(t *testing.T) {
	t.Parallel()
	table := map[fiscal.Status][]fiscal.Status{
		fiscal.Queued:              {fiscal.ValidationFailed, fiscal.Submitted, fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Rejected, fiscal.OutcomeUnknown},
		fiscal.Submitted:           {fiscal.Processing, fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Rejected, fiscal.OutcomeUnknown},
		fiscal.Processing:          {fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Rejected, fiscal.OutcomeUnknown},
		fiscal.OutcomeUnknown:      {fiscal.Submitted, fiscal.Processing, fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Rejected},
		fiscal.Accepted:            {fiscal.Delivered},
		fiscal.AcceptedConditional: {fiscal.Delivered},
		fiscal.Rejected:            {fiscal.Accepted, fiscal.AcceptedConditional},
	}
	for _, from := range fiscal.Statuses() {
		var got []fiscal.Status
		for _, to := range fiscal.Statuses() {
			if from.MayBecome(to) {
				got = append(got, to)
			}
		}
		if diff := cmp.Diff(table[from], got); diff != "" {
			t.Errorf("from %s (-want +got):\n%s", from, diff)
		}
	}
	if fiscal.Status("x").MayBecome(fiscal.Accepted) || fiscal.Queued.MayBecome("x") || fiscal.Status("x").Final() {
		t.Error("an unknown status moves")
	}
}

func TestFinalStatuses(t *testing.T) {
	t.Parallel()
	var final []fiscal.Status
	for _, s := range fiscal.Statuses() {
		if s.Final() {
			final = append(final, s)
		}
		if got, ok := fiscal.ParseStatus(string(s)); !ok || got != s {
			t.Errorf("ParseStatus(%s) = %s, %v", s, got, ok)
		}
	}
	if diff := cmp.Diff([]fiscal.Status{fiscal.ValidationFailed, fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Rejected, fiscal.Delivered}, final); diff != "" {
		t.Error(diff)
	}
	for _, s := range []string{"", "Queued", "done"} {
		if _, ok := fiscal.ParseStatus(s); ok {
			t.Errorf("%q is a status", s)
		}
	}
}

func TestEnvironments(t *testing.T) {
	t.Parallel()
	for _, e := range []fiscal.Environment{fiscal.Sandbox, fiscal.Certification, fiscal.Production} {
		if got, err := fiscal.ParseEnvironment(string(e)); err != nil || got != e {
			t.Errorf("%s: %s, %v", e, got, err)
		}
	}
	if _, err := fiscal.ParseEnvironment("Sandbox"); err == nil {
		t.Error("Sandbox is accepted")
	}
}

func TestDates(t *testing.T) {
	t.Parallel()
	a, _ := fiscal.ParseDate("2026-01-31")
	b, _ := fiscal.ParseDate("2026-02-01")
	if !a.Before(b) || !b.After(a) || a.Compare(a) != 0 || a.Before(a) || !(fiscal.Date{}).IsZero() || a.IsZero() || (fiscal.Date{}).String() != "" {
		t.Error("dates do not compare")
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
