package live

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// The pauses between attempts that did not reach the authority.
const (
	sendBase = time.Second
	sendMax  = 5 * time.Minute
)

// submit sends the stored bytes and shows the number of the document. A document that has
// to wait shows its number meanwhile: it can be printed during a contingency.
func (p *Plan) submit(ctx context.Context, w pipeline.Work) (pipeline.Result, error) {
	issued, err := p.issued(ctx, w)
	if err != nil {
		return pipeline.Result{}, err
	}
	result, err := p.send(ctx, w, issued)
	if err != nil && w.Invoice.ENCF == "" && !errors.Is(err, store.ErrLeaseLost) {
		err = errors.Join(err, p.show(ctx, w, issued))
	}
	return result, err
}

// show makes the number of a document visible. The witness knows it before.
func (p *Plan) show(ctx context.Context, w pipeline.Work, issued store.Issued) error {
	if err := p.effect("witnessing the number", func() error { return p.fence.BeforeShow(ctx, issued) }); err != nil {
		return err
	}
	return w.Hold(ctx, new(store.Batch).ShowNumber(issued))
}

// send sends the stored bytes. The attempt is committed before the first byte
// leaves, so that it is known whatever happens next.
func (p *Plan) send(ctx context.Context, w pipeline.Work, issued store.Issued) (pipeline.Result, error) {
	var attempts []store.Attempt
	var err error
	if !w.Fresh {
		// After a failover the database may have lost an attempt.
		if _, err := p.fence.CheckHistory(ctx); err != nil {
			return pipeline.Result{}, err
		}
		if attempts, err = p.store.Attempts(ctx, w.Job.Scope, w.Job.DocumentID); err != nil {
			return pipeline.Result{}, err
		}
	}
	for _, a := range attempts {
		if a.ClosedAt.IsZero() {
			if a.Cause == "" { // the worker that opened it is gone, and with it the answer
				a.Cause = cause.New(cause.WorkerEnded)
			}
			if w.Invoice.ENCF == "" { // the database has lost that the number was shown, or it was not
				if err := p.show(ctx, w, issued); err != nil {
					return pipeline.Result{}, err
				}
			}
			return inconclusive(a, p.now()), nil
		}
	}
	if reason := alteredBytes(issued, attempts); reason != "" {
		if p.limit.Allow("altered "+issued.DocumentID, p.now()) {
			p.log.Error("A signed document was altered. It is not sent. Compare it with a backup.", "document_id", issued.DocumentID, "encf", issued.ENCF, "reason", reason.String())
		}
		return pipeline.Result{}, wait(pipeline.Wait{For: pipeline.WaitAside, After: p.pace.Of(sendMax, time.Second), Reason: reason})
	}
	if err := p.holdEnded(ctx, w, issued, attempts); err != nil {
		return pipeline.Result{}, err
	}
	if err := p.checkNodeClock(); err != nil {
		return pipeline.Result{}, err
	}
	id, err := p.identity(ctx, w.Job.Scope)
	if err != nil {
		return pipeline.Result{}, err
	}
	turn, err := p.takeTurn(ctx, w, issued)
	if err != nil {
		return pipeline.Result{}, err
	}
	defer turn.leave()
	// The clock comes before the reservation: a question about the time needs a slot of
	// the authority's host too, and the reservations could have taken all of them.
	if err := p.authority.CheckClock(ctx); err != nil && !p.authority.ClockConfirmed() {
		return pipeline.Result{}, p.tryLater(p.sendPause(w.Job.Attempt, err), err)
	}
	// The reservation comes before the attempt: waiting for it is no attempt, and no row
	// says that something was sent while the circuit is open.
	post, release, err := p.authority.Reserve(ctx, id, issued.RNC, issued.Summarized)
	if err != nil {
		return pipeline.Result{}, p.tryLater(p.sendPause(w.Job.Attempt, err), err)
	}
	defer release()
	if err := p.checkSignedAt(issued); err != nil {
		return pipeline.Result{}, err
	}
	if err := p.holdEnded(ctx, w, issued, attempts); err != nil { // the waits were long enough for a new day
		return pipeline.Result{}, err
	}
	turn.begin()
	attempt := store.Attempt{
		Scope: w.Job.Scope, DocumentID: w.Job.DocumentID, Number: int64(len(attempts)) + 1, Kind: stageSubmit,
		Digest: issued.SentDigest, OpenedAt: p.now(),
	}
	// The witness comes before the attempt: if it cannot be written, nothing was
	// sent and no row says that something was.
	if err := p.effect("witnessing", func() error { return p.fence.BeforeSend(ctx, issued) }); err != nil {
		return pipeline.Result{}, err
	}
	rows := new(store.Batch).OpenAttempt(attempt)
	if w.Invoice.ENCF == "" {
		rows.ShowNumber(issued)
	}
	if err := w.Hold(ctx, rows); err != nil {
		return pipeline.Result{}, err
	}
	turn.leave()
	// The client bounds each exchange. A bound of our own would also cover the wait for a
	// new token and a slot when the authority refuses the token.
	answer, err := post(context.WithoutCancel(ctx), fiscal.Shipment{RNC: issued.RNC, ENCF: issued.ENCF, XML: issued.Sent()})
	now := p.now()
	switch {
	case err == nil:
		found := conclusion(answer, now)
		found.Attempt = attempt.Number // it has its answer, also for a worker that took it for one without
		return pipeline.Result{Findings: []pipeline.Finding{found}, Attempt: closed(attempt, store.Conclusive, now)}, nil
	case errors.Is(err, fiscal.ErrNotReceived), errors.Is(err, fiscal.ErrNotDelegated):
		attempt.Cause = cause.Of(err)
		return p.notReceived(w, closed(attempt, store.NotReceived, now), err), nil
	}
	attempt.Cause = cause.Of(err)
	return inconclusive(attempt, now), nil
}

// checkSignedAt returns a *pipeline.WaitError while a document is from the authority's
// future: the authority rejects it, and the number is spent. A document that was signed
// with a clock that the authority had not confirmed can be one. It calls nothing: the
// caller holds a slot of the authority's host.
func (p *Plan) checkSignedAt(issued store.Issued) error {
	if !p.authority.ClockConfirmed() {
		return wait(pipeline.Wait{After: p.pace.Of(sendBase, 0), Reason: cause.New(cause.ClockSet)})
	}
	ahead, _ := p.authority.Clock()
	early := issued.SignedAt.Add(clockError).Sub(p.now().Add(ahead))
	if early <= 0 {
		return nil
	}
	return wait(pipeline.Wait{For: pipeline.WaitAside, After: early, Reason: cause.New(cause.SignedInFuture, early)})
}

// inconclusive records an attempt that may have arrived.
func inconclusive(a store.Attempt, at time.Time) pipeline.Result {
	item := evidence.Item{Kind: evidence.Inconclusive, Attempt: a.Number, At: at}
	return pipeline.Result{Findings: []pipeline.Finding{{Item: item}}, Attempt: closed(a, store.Inconclusive, at)}
}

// issued returns the signed document with its bytes.
func (p *Plan) issued(ctx context.Context, w pipeline.Work) (store.Issued, error) {
	if w.Issued != nil && w.Issued.XML != nil {
		return *w.Issued, nil
	}
	return p.store.IssuedDocument(ctx, w.Job.Scope, w.Job.DocumentID)
}

// alteredBytes says how the bytes to be sent differ from those that were signed or
// sent before: a number never stands for two contents. It returns "" when they do
// not.
func alteredBytes(issued store.Issued, attempts []store.Attempt) cause.Cause {
	if sent := sha256.Sum256(issued.Sent()); !bytes.Equal(sent[:], issued.SentDigest) {
		return cause.New(cause.Altered)
	}
	for _, a := range attempts {
		if !a.Replaced && !bytes.Equal(a.Digest, issued.SentDigest) {
			return cause.New(cause.SentOtherBytes)
		}
	}
	return ""
}

func closed(a store.Attempt, class store.Class, at time.Time) *store.Attempt {
	a.Class, a.ClosedAt = class, at
	return &a
}

// conclusion is the finding in an answer to a submission or to a question by track
// id.
func conclusion(a fiscal.AuthorityAnswer, at time.Time) pipeline.Finding {
	item := evidence.Item{Kind: evidence.Track, TrackID: a.TrackID, At: at}
	if a.Known {
		item.Kind, item.Verdict, item.Messages = evidence.Verdict, a.Verdict, a.Messages
		item.NumberFree = a.NumberStated && !a.NumberUsed
	}
	return pipeline.Finding{Item: item, Raw: a.Raw}
}

// notReceived keeps the document where it is, to be sent again: nothing of it can
// have arrived. It is suspended when the authority is out of reach.
func (p *Plan) notReceived(w pipeline.Work, attempt *store.Attempt, failure error) pipeline.Result {
	wait := p.waitForAuthority(p.sendPause(w.Job.Attempt, failure), 0, attempt.Cause)
	return pipeline.Result{Attempt: attempt, Move: &pipeline.Move{Wait: &wait}}
}

// sendPause returns the wait before a document is sent again that did not arrive. A
// wait that the authority asks for is not scaled.
func (p *Plan) sendPause(attempt int64, failure error) time.Duration {
	pause := p.pace.Of(min(sendBase<<min(attempt, 12), sendMax), time.Second)
	var asked interface{ Wait() time.Duration }
	if errors.As(failure, &asked) {
		pause = max(pause, asked.Wait())
	}
	return pause
}
