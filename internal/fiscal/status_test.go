package fiscal_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestStatusTransitions(t *testing.T) {
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
		t.Error("an unknown status has a transition or is final")
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
