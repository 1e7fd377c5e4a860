package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// Each stage writes one line with its ids and outcome, and nothing of the document.
func TestEveryStageIsOneLogLine(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		var b *env
		steps := []func() (Result, error){
			func() (Result, error) { return Result{}, errors.New("secreto: no connection") },
			func() (Result, error) { return Result{}, &WaitError{Wait{After: time.Second, Reason: "busy"}} },
			func() (Result, error) {
				b.clock.Advance(1500 * time.Microsecond)
				return Result{Move: &Move{Status: fiscal.Submitted, Next: "poll", After: time.Second}}, nil
			},
			func() (Result, error) {
				return Result{Move: &Move{Wait: &Wait{For: WaitAuthority, Since: b.clock.Now()}}}, nil
			},
		}
		b = newEnv(t, address, scripted{step: func(context.Context, Work) (Result, error) {
			next := steps[0]
			steps = steps[1:]
			return next()
		}})
		var log bytes.Buffer
		var reported []StageResult
		b.o.Log = slog.New(slog.NewJSONHandler(&log, nil))
		b.o.OnStage = func(r StageResult) { reported = append(reported, r) }
		inv := b.add("secreto", "plan", "submit")
		for range 4 {
			b.RunJob(t.Context(), b.claimOne())
			b.clock.Advance(time.Minute)
		}
		type line struct {
			Message  string `json:"msg"`
			Document string `json:"document_id"`
			Taxpayer string `json:"taxpayer_id"`
			Stage    string `json:"stage"`
			Attempt  int64  `json:"attempt"`
			Outcome  string `json:"outcome"`
			Next     string `json:"next"`
			Status   string `json:"status"`
			Micros   int64  `json:"duration_us"`
		}
		var got []line
		for text := range strings.Lines(log.String()) {
			var l line
			b.must(json.Unmarshal([]byte(text), &l))
			if l.Message == "A stage of a document has ended." {
				l.Message = ""
				got = append(got, l)
				if strings.Contains(text, "secreto") {
					t.Errorf("the line has contents: %s", text)
				}
			}
		}
		want := []line{
			{Stage: "submit", Attempt: 1, Outcome: "failed", Status: "queued"},
			{Stage: "submit", Attempt: 2, Outcome: "waiting", Status: "queued"},
			{Stage: "submit", Attempt: 3, Outcome: "done", Next: "poll", Status: "submitted", Micros: 1500},
			{Stage: "poll", Attempt: 1, Outcome: "suspended", Next: "poll", Status: "submitted"},
		}
		for i := range want {
			want[i].Document, want[i].Taxpayer = inv.DocumentID, inv.TaxpayerID
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if len(reported) != 4 || reported[2].Before != fiscal.Queued || reported[2].After != fiscal.Submitted || reported[2].Took != 1500*time.Microsecond {
			t.Errorf("reported %+v", reported)
		}
	})
}

// Only the first final status is a verdict, also when a worker commits it late.
func TestVerdictIsTheFirstFinalStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, after fiscal.Status
		want          bool
	}{
		{fiscal.Queued, fiscal.Submitted, false}, {fiscal.Submitted, fiscal.Accepted, true}, {fiscal.OutcomeUnknown, fiscal.Rejected, true},
		{fiscal.Accepted, fiscal.Delivered, false}, {fiscal.Accepted, fiscal.Accepted, false}, {fiscal.Queued, "", false},
	} {
		if got := (StageResult{Before: tt.before, After: tt.after}).Verdict(); got != tt.want {
			t.Errorf("from %s to %s: %v", tt.before, tt.after, got)
		}
	}
	if got := stageOutcome(Move{}, errors.Join(store.ErrLeaseLost, errors.New("late"))); got != StageLeaseLost {
		t.Errorf("a lost lease is %s", got)
	}
}
