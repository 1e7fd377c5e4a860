package pipeline

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"slices"
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
	issued, err := l.issued(ctx, w)
	if err != nil {
		return Step{}, err
	}
	var attempts []store.Attempt
	if !w.Fresh {
		if attempts, err = l.Store.Attempts(ctx, w.Job.Scope, w.Job.DocumentID); err != nil {
			return Step{}, err
		}
	}
	for _, a := range attempts {
		if a.ClosedAt.IsZero() {
			// Whoever opened it is gone, and with it the answer.
			a.Detail = "the worker ended before the answer"
			return l.learn(issued, w.Evidence, closed(a, store.Inconclusive, l.Now()), finding{Evidence: Evidence{Kind: KindInconclusive, Attempt: a.Number, At: l.Now()}}), nil
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
	if err := w.Hold(ctx, new(store.Batch).OpenAttempt(attempt)); err != nil {
		return Step{}, err
	}
	send := l.Authority.Submit
	if issued.Summarized {
		send = l.Authority.SubmitSummary
	}
	answer, err := send(ctx, id, fiscal.Shipment{RNC: issued.RNC, ENCF: issued.ENCF, XML: issued.Sent()})
	now := l.Now()
	switch {
	case err == nil:
		return l.learn(issued, w.Evidence, closed(attempt, store.Conclusive, now), conclusion(answer, now)), nil
	case errors.Is(err, fiscal.ErrNotReceived), errors.Is(err, fiscal.ErrNotDelegated):
		attempt.Detail = err.Error()
		return l.notReceived(w, closed(attempt, store.NotReceived, now), err), nil
	}
	attempt.Detail = err.Error()
	return l.learn(issued, w.Evidence, closed(attempt, store.Inconclusive, now), finding{Evidence: Evidence{Kind: KindInconclusive, Attempt: attempt.Number, At: now}}), nil
}

// issued is the signed document with its bytes.
func (l *Live) issued(ctx context.Context, w Work) (store.Issued, error) {
	if w.Issued != nil && w.Issued.XML != nil {
		return *w.Issued, nil
	}
	return l.Store.IssuedDocument(ctx, w.Job.Scope, w.Job.DocumentID)
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
		Within: func(rows *store.Batch, _ store.Invoice) (Change, error) {
			rows.CloseAttempt(*attempt)
			return Change{Next: stageSubmit, Again: true, After: pause, Cause: attempt.Detail}, nil
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
func (l *Live) learn(issued store.Issued, known []Evidence, attempt *store.Attempt, findings ...finding) Step {
	all := slices.Clone(known)
	for _, f := range findings {
		all = append(all, f.Evidence)
	}
	return Step{
		Evidence: all,
		Within: func(rows *store.Batch, before store.Invoice) (Change, error) {
			for _, f := range findings {
				record, err := f.record(issued.Scope, issued.DocumentID, f.raw)
				if err != nil {
					return Change{}, err
				}
				rows.AddEvidence(record)
			}
			if attempt != nil {
				rows.CloseAttempt(*attempt)
			}
			return l.settle(rows, issued, all, before), nil
		},
		Late: func(ctx context.Context, tx *store.Tx) (store.Invoice, bool, error) {
			return l.insist(ctx, tx, issued, attempt, findings, func(store.Invoice, *Change) error { return nil })
		},
	}
}

// insist makes what was learnt count whoever works on the document: it takes the
// job over, so that its holder commits before, and is seen, or not at all, and
// then comes here itself. It returns the invoice as it is then, and whether there
// is something to tell.
func (l *Live) insist(ctx context.Context, tx *store.Tx, issued store.Issued, attempt *store.Attempt, findings []finding, agree func(before store.Invoice, c *Change) error) (store.Invoice, bool, error) {
	now := l.Now()
	job := store.Job{
		Scope: issued.Scope, DocumentID: issued.DocumentID, Plan: livePlan, Stage: stageReconcile, RunAt: now,
		Lease: store.NewID(), LeaseUntil: now.Add(leaseTime), CreatedAt: now,
	}
	if err := tx.TakeOverJob(ctx, job); err != nil {
		return store.Invoice{}, false, err
	}
	before, err := tx.InvoiceOfDocument(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return store.Invoice{}, false, err
	}
	stored, err := tx.EvidenceOf(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return store.Invoice{}, false, err
	}
	known, err := decodeEvidence(stored)
	if err != nil {
		return store.Invoice{}, false, err
	}
	rows := new(store.Batch)
	change, err := l.learn(issued, known, attempt, findings...).Within(rows, before)
	if err == nil {
		err = agree(before, &change)
	}
	if err != nil {
		return store.Invoice{}, false, err
	}
	if change.Next == "" {
		rows.FinishJob(job)
	} else {
		rows.MoveJob(job, change.Next, now.Add(change.After))
	}
	after, told := change.apply(rows, before, l.Tells(), now)
	return after, told, tx.Do(ctx, rows)
}

// settle folds everything that is known and says what to do next.
func (l *Live) settle(rows *store.Batch, issued store.Issued, known []Evidence, before store.Invoice) Change {
	outcome := Fold(known)
	if outcome.Alarm != "" {
		l.Log.Error(outcome.Alarm, "document_id", issued.DocumentID, "encf", issued.ENCF)
	}
	if outcome.Freeze {
		rows.FenceSequence(store.Sequence{Scope: issued.Scope, ID: issued.SequenceID}, l.Now())
	}
	status := outcome.Status
	if status != before.Status && !before.Status.MayBecome(status) {
		// What is known now came too late to change what was said before.
		status = before.Status
	}
	if before.Status == fiscal.Rejected && status != before.Status {
		l.Log.Error("a document that was rejected is accepted after all", "document_id", issued.DocumentID, "encf", issued.ENCF)
	}
	change := Change{Status: status, TrackID: outcome.TrackID, Messages: statusMessages(status, outcome.Verdict, before.Messages), Cause: cause(outcome)}
	if issued.Summarized {
		change.TrackID = ""
	}
	l.settleNumber(rows, issued, status, outcome.Verdict)
	return l.next(change, issued, known)
}

func (l *Live) settleNumber(rows *store.Batch, issued store.Issued, status fiscal.Status, verdict *Evidence) {
	if verdict == nil || !status.Final() {
		return
	}
	state := store.NumberUsed
	if status == fiscal.Rejected && verdict.SequenceFree {
		state = store.NumberReusable
	}
	if state != issued.State {
		rows.SettleNumber(issued, state)
	}
}

// next is the stage that belongs to a status.
func (l *Live) next(c Change, issued store.Issued, known []Evidence) Change {
	switch c.Status {
	case fiscal.Queued:
		c.Next, c.After = stageSubmit, l.paced(sendBase, 0)
	case fiscal.Submitted, fiscal.Processing:
		c.Next, c.After = stagePoll, l.paced(pollPauses[0], time.Second)
	case fiscal.OutcomeUnknown:
		c.Next, c.After = stageReconcile, l.paced(reconcilePauses[0], 100*time.Millisecond)
	case fiscal.Accepted, fiscal.AcceptedConditional:
		refused := slices.ContainsFunc(known, func(e Evidence) bool { return e.Kind == KindRefusedDelivery })
		if issued.BuyerRNC != "" && strings.HasPrefix(issued.ENCF, "E31") && !refused && l.mayReceive(issued.BuyerRNC) {
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
