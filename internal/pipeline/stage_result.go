package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
)

// StageOutcome is how a stage ended.
type StageOutcome string

// The outcomes of a stage.
const (
	StageDone      StageOutcome = "done"       // the next stage follows, or the document needs no more work
	StageWaiting   StageOutcome = "waiting"    // it continues later, and nothing failed
	StageSuspended StageOutcome = "suspended"  // it waits until the tax authority answers
	StageFailed    StageOutcome = "failed"     // it is tried again
	StageLeaseLost StageOutcome = "lease_lost" // another worker has the document
)

// StageResult is what a worker did for one document in one stage. It has nothing of the
// contents of the document.
type StageResult struct {
	store.Scope
	DocumentID    string
	Stage         string
	Attempt       int64
	Outcome       StageOutcome
	Next          string        // the next stage, if it is known
	Before, After fiscal.Status // of the document
	CreatedAt     time.Time     // of the invoice; zero when it could not be read
	EndedAt       time.Time
	Took          time.Duration
}

// SinceCreation returns the time from the creation of the invoice to the end of the stage.
func (r StageResult) SinceCreation() time.Duration { return r.EndedAt.Sub(r.CreatedAt) }

// Verdict reports whether the stage has brought the verdict of the document.
func (r StageResult) Verdict() bool {
	return r.After != r.Before && r.After.Final() && !r.Before.Final()
}

// report logs the result of a stage in one line, and passes it to OnStage. While a
// document only waits, for example for a certificate, the repetitions have the level debug. job is the job
// at the stage, and w what is known after it.
func (p *Pipeline) report(ctx context.Context, w Work, began time.Time, job store.Job, m Move, failure error) {
	ended := p.o.Now()
	r := StageResult{
		Scope: job.Scope, DocumentID: job.DocumentID, Stage: job.Stage, Attempt: job.Attempt,
		Outcome: stageOutcome(m, failure), Next: m.Next, Before: w.before, After: w.Invoice.Status,
		CreatedAt: w.Invoice.CreatedAt, EndedAt: ended, Took: ended.Sub(began),
	}
	switch {
	case failure != nil:
		r.Next = "" // the move was not committed
	case m.Wait != nil:
		r.Next = job.Stage
	}
	attrs := []slog.Attr{
		slog.String("document_id", r.DocumentID), slog.String("taxpayer_id", r.TaxpayerID), slog.String("stage", r.Stage),
		slog.Int64("attempt", r.Attempt), slog.String("outcome", string(r.Outcome)), slog.Int64("duration_us", r.Took.Microseconds()),
		slog.String("status", string(r.After)),
	}
	if r.Next != "" {
		attrs = append(attrs, slog.String("next", r.Next))
	}
	if w.trace != "" {
		attrs = append(attrs, slog.String("trace_id", w.trace))
	}
	level := slog.LevelInfo
	if asked, ok := errors.AsType[*WaitError](failure); ok && asked.Wait.Untried && job.Cause != "" {
		level = slog.LevelDebug // nothing was tried, and an earlier line says what the document waits for
	}
	p.o.Log.LogAttrs(ctx, level, "A stage of a document has ended.", attrs...)
	endSpan(w.span, w.Invoice.ID, r)
	p.o.OnStage(r)
}

// startSpan begins the span of a stage, under the request that created the document. It
// returns the context of the work.
func (p *Pipeline) startSpan(ctx context.Context, w *Work) context.Context {
	w.trace, w.span = "", nil
	parent, ok := trace.Parse(w.Invoice.Trace)
	if !ok {
		return ctx // an invoice of a time when traces were off
	}
	w.trace, w.span = parent.ID(), p.o.Tracer.Start(parent, trace.Internal)
	return trace.With(ctx, w.span)
}

// endSpan ends the span of a stage with its result.
func endSpan(s *trace.Span, invoiceID string, r StageResult) {
	if !s.Recording() {
		return
	}
	s.Describe("stage "+r.Stage,
		trace.String("fiscalhub.environment", string(r.Environment)), trace.String("fiscalhub.taxpayer_id", r.TaxpayerID),
		trace.String("fiscalhub.invoice_id", invoiceID), trace.String("fiscalhub.document_id", r.DocumentID),
		trace.String("fiscalhub.stage", r.Stage), trace.Int("fiscalhub.attempt", r.Attempt),
		trace.String("fiscalhub.outcome", string(r.Outcome)), trace.String("fiscalhub.status", string(r.After)))
	if r.Outcome == StageFailed {
		s.Fail()
	}
	s.End()
}

// stageOutcome returns how a stage ended that returned a move or an error.
func stageOutcome(m Move, err error) StageOutcome {
	var wait *Wait
	if asked, ok := errors.AsType[*WaitError](err); ok {
		wait = &asked.Wait
	} else if err == nil {
		wait = m.Wait
	}
	switch {
	case errors.Is(err, store.ErrLeaseLost):
		return StageLeaseLost
	case wait != nil && wait.For == WaitAuthority:
		return StageSuspended
	case wait != nil, errors.Is(err, store.ErrNumbersTaken):
		return StageWaiting
	case err != nil:
		return StageFailed
	}
	return StageDone
}
