package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// A finding is evidence with the answer that it was read from.
type finding struct {
	Evidence
	raw []byte
}

// submit sends the stored bytes. That it is about to is committed before the
// first byte leaves, so that an attempt is known whatever happens next.
func (l *Live) submit(ctx context.Context, w Work) (Step, error) {
	issued, err := l.Store.IssuedDocument(ctx, w.Job.Scope, w.Job.DocumentID)
	if err != nil {
		return Step{}, err
	}
	attempts, err := l.Store.Attempts(ctx, w.Job.Scope, w.Job.DocumentID)
	if err != nil {
		return Step{}, err
	}
	for _, a := range attempts {
		if a.ClosedAt.IsZero() {
			// Whoever opened it is gone, and with it the answer.
			a.Detail = "the worker ended before the answer"
			return l.learn(issued, closed(a, store.Inconclusive, l.Now()), finding{Evidence: Evidence{Kind: KindInconclusive, Attempt: a.Number, At: l.Now()}}), nil
		}
	}
	if reason := unlike(issued, attempts); reason != "" {
		l.Log.Error("a document was altered and is not sent", "document_id", issued.DocumentID, "encf", issued.ENCF, "reason", reason)
		return Step{}, &Later{l.paced(sendMax, time.Second), reason}
	}
	id, err := l.identity(ctx, w.Job.Scope)
	if err != nil {
		return Step{}, err
	}
	attempt := store.Attempt{
		Scope: w.Job.Scope, DocumentID: w.Job.DocumentID, Number: int64(len(attempts)) + 1, Kind: stageSubmit,
		Digest: issued.SentDigest, OpenedAt: l.Now(),
	}
	// The witness before the attempt: if it cannot be kept nothing was sent, and
	// nothing looks as if it had been.
	l.point("before witnessing")
	err = l.Fence.sending(ctx, issued)
	l.point("after witnessing")
	if err != nil {
		return Step{}, err
	}
	if err := w.Hold(ctx, func(tx *store.Tx) error { return tx.OpenAttempt(ctx, attempt) }); err != nil {
		return Step{}, err
	}
	send := l.Authority.Submit
	if issued.Summary != nil {
		send = l.Authority.SubmitSummary
	}
	answer, err := send(ctx, id, fiscal.Shipment{RNC: issued.RNC, ENCF: issued.ENCF, XML: issued.Sent()})
	now := l.Now()
	switch {
	case err == nil:
		return l.learn(issued, closed(attempt, store.Conclusive, now), conclusion(answer, now)), nil
	case errors.Is(err, fiscal.ErrNotReceived), errors.Is(err, fiscal.ErrNotDelegated):
		attempt.Detail = err.Error()
		return l.notReceived(w, closed(attempt, store.NotReceived, now), err), nil
	}
	attempt.Detail = err.Error()
	return l.learn(issued, closed(attempt, store.Inconclusive, now), finding{Evidence: Evidence{Kind: KindInconclusive, Attempt: attempt.Number, At: now}}), nil
}

// unlike tells how what would be sent differs from what was signed, or was sent
// before: a number never stands for two contents. Empty: it does not.
func unlike(issued store.Issued, attempts []store.Attempt) string {
	if sent := sha256.Sum256(issued.Sent()); !bytes.Equal(sent[:], issued.SentDigest) {
		return "the stored bytes are not those that were signed"
	}
	for _, a := range attempts {
		if !bytes.Equal(a.Digest, issued.SentDigest) {
			return "other bytes were sent before"
		}
	}
	return ""
}

func closed(a store.Attempt, class store.Class, at time.Time) *store.Attempt {
	a.Class, a.ClosedAt = class, at
	a.Detail = strings.ReplaceAll(strings.ToValidUTF8(a.Detail, "�"), "\x00", "")
	return &a
}

// conclusion is the evidence in an answer to a submission.
func conclusion(a fiscal.Answer, at time.Time) finding {
	e := Evidence{Kind: KindTrack, TrackID: a.TrackID, At: at}
	if a.Known {
		e.Kind, e.Verdict, e.Messages = KindVerdict, a.Verdict, a.Messages
		e.SequenceFree = a.SequenceStated && !a.SequenceUsed
	}
	return finding{e, a.Raw}
}

// notReceived keeps the document where it is, to be sent again: nothing of it
// can have arrived.
func (l *Live) notReceived(w Work, attempt *store.Attempt, cause error) Step {
	wait := min(sendBase<<min(w.Job.Attempt, 12), sendMax)
	pause := l.paced(wait, time.Second)
	var told interface{ Wait() time.Duration }
	if errors.As(cause, &told) {
		pause = max(pause, told.Wait()) // what the authority asks for is not scaled
	}
	return Step{
		Within: func(ctx context.Context, tx *store.Tx, _ store.Invoice) (Change, error) {
			return Change{Next: stageSubmit, Again: true, After: pause, Cause: attempt.Detail}, tx.CloseAttempt(ctx, *attempt)
		},
	}
}

// The pauses between attempts of which nothing arrived.
const (
	sendBase = time.Second
	sendMax  = 5 * time.Minute
)

// learn commits what was learnt and moves the document to where all that is
// known puts it. If the job has gone to somebody else meanwhile, what was learnt
// is kept all the same.
func (l *Live) learn(issued store.Issued, attempt *store.Attempt, findings ...finding) Step {
	keep := func(ctx context.Context, tx *store.Tx) error {
		for _, f := range findings {
			record, err := f.record(issued.Scope, issued.DocumentID, f.raw)
			if err != nil {
				return err
			}
			if _, err := tx.AddEvidence(ctx, record); err != nil {
				return err
			}
		}
		if attempt != nil {
			return tx.CloseAttempt(ctx, *attempt)
		}
		return nil
	}
	return Step{
		Late: keep,
		Within: func(ctx context.Context, tx *store.Tx, before store.Invoice) (Change, error) {
			if err := keep(ctx, tx); err != nil {
				return Change{}, err
			}
			return l.settle(ctx, tx, issued, before)
		},
	}
}

// settle folds everything that is known and says what to do next.
func (l *Live) settle(ctx context.Context, tx *store.Tx, issued store.Issued, before store.Invoice) (Change, error) {
	stored, err := tx.EvidenceOf(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return Change{}, err
	}
	evidence, err := decodeEvidence(stored)
	if err != nil {
		return Change{}, err
	}
	outcome := Fold(evidence)
	if outcome.Alarm != "" {
		l.Log.Error(outcome.Alarm, "document_id", issued.DocumentID, "encf", issued.ENCF)
	}
	if outcome.Freeze {
		if err := tx.FenceSequence(ctx, store.Sequence{Scope: issued.Scope, ID: issued.SequenceID}, l.Now()); err != nil {
			return Change{}, err
		}
	}
	status := outcome.Status
	if status != before.Status && !before.Status.MayBecome(status) {
		// What is known now came too late to change what was said before.
		status = before.Status
	}
	change := Change{Status: status, TrackID: outcome.TrackID, Messages: statusMessages(status, outcome.Verdict, before.Messages), Cause: cause(outcome)}
	if issued.Summary != nil {
		change.TrackID = ""
	}
	if err := l.settleNumber(ctx, tx, issued, status, outcome.Verdict); err != nil {
		return Change{}, err
	}
	return l.next(change, issued), nil
}

func (l *Live) settleNumber(ctx context.Context, tx *store.Tx, issued store.Issued, status fiscal.Status, verdict *Evidence) error {
	if verdict == nil || !status.Final() {
		return nil
	}
	state := store.NumberUsed
	if status == fiscal.Rejected && verdict.SequenceFree {
		state = store.NumberReusable
	}
	return tx.SettleNumber(ctx, issued.Scope, issued.DocumentID, state)
}

// next is the stage that belongs to a status.
func (l *Live) next(c Change, issued store.Issued) Change {
	switch c.Status {
	case fiscal.Queued:
		c.Next, c.After = stageSubmit, l.paced(sendBase, 0)
	case fiscal.Submitted, fiscal.Processing:
		c.Next, c.After = stagePoll, l.paced(pollPauses[0], time.Second)
	case fiscal.OutcomeUnknown:
		c.Next, c.After = stageReconcile, l.paced(reconcilePauses[0], 100*time.Millisecond)
	case fiscal.Accepted, fiscal.AcceptedConditional:
		if issued.BuyerRNC != "" && issued.Summary == nil && strings.HasPrefix(issued.ENCF, "E31") {
			c.Next = stageDeliver
		}
	case fiscal.Rejected, fiscal.Delivered, fiscal.ValidationFailed:
	}
	return c
}

// statusMessages are what the integrator reads: of a conditional acceptance
// first that it is one, then the authority's words, then our own notes.
func statusMessages(status fiscal.Status, verdict *Evidence, before []string) []string {
	var messages []string
	if status == fiscal.AcceptedConditional {
		messages = append(messages, "[4] Aceptado Condicional")
	}
	if verdict != nil {
		for _, m := range verdict.Messages {
			messages = append(messages, strings.TrimSpace("["+m.Code+"] "+m.Text))
		}
	}
	if status == fiscal.Delivered {
		return before // it says what the acceptance said
	}
	for _, m := range before {
		if !strings.HasPrefix(m, "[") { // the authority's of before
			messages = append(messages, m)
		}
	}
	return messages
}

func cause(o Outcome) string {
	switch {
	case o.Alarm != "":
		return o.Alarm
	case o.Verdict != nil && o.Verdict.Kind == KindOperator:
		return "decided by an operator: " + o.Verdict.Note
	case o.Verdict != nil:
		return "the authority's verdict"
	case o.Status == fiscal.Submitted:
		return "the authority gave a track id"
	case o.Status == fiscal.Processing:
		return "the authority is at it"
	case o.Status == fiscal.OutcomeUnknown:
		return "it may have reached the authority; it will be asked"
	}
	return ""
}
