package live

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/taxpayer"
)

const (
	// signingMargin is how much earlier than now a document says that it was
	// signed: the authority refuses one from its future.
	signingMargin = 2 * time.Second
	// clockError is by how much the measured clock of the authority may be wrong: a Date
	// header is cut to the second.
	clockError = time.Second
	// maxSkew is how far the clocks may be apart for anything to be signed.
	maxSkew = 120 * time.Second
)

// issue takes a number, builds and signs the document, and commits number,
// ledger and bytes at once, so that a crash leaves no gap.
func (p *Plan) issue(ctx context.Context, w pipeline.Work) (pipeline.Result, error) {
	facts, err := cached(p, p.facts, w.Job.Scope, func() (pipeline.Facts, error) { return pipeline.ReadFacts(ctx, p.store, w.Job.Scope) })
	if err != nil {
		return pipeline.Result{}, err
	}
	var problems fiscal.Problems
	inv, err := pipeline.ParseRequest(w.Invoice, w.Request)
	if errors.As(err, &problems) {
		return refused(w.Invoice, problems, cause.Rules), nil
	}
	if err != nil {
		return pipeline.Result{}, err
	}
	if missing := facts.Missing(inv.Type, p.now()); len(missing) > 0 {
		return pipeline.Result{}, p.waitForTaxpayer(cause.New(cause.NotReady, missing[0].Code, missing[0].Message))
	}
	issuer := taxpayer.IssuerOf(facts.Taxpayer)
	if err := issuer.Check(); err != nil {
		// The taxpayer's data are no fault of the invoice: it waits.
		return pipeline.Result{}, p.waitForTaxpayer(cause.New(cause.TaxpayerData, err))
	}
	if err := ecf.Check(issuer, inv); err != nil {
		if !errors.As(err, &problems) {
			return pipeline.Result{}, err
		}
		return refused(w.Invoice, problems, cause.Format), nil
	}
	id, err := p.identity(ctx, w.Job.Scope)
	if err != nil {
		return pipeline.Result{}, err
	}
	signedAt, err := p.signingTime(ctx)
	if err != nil {
		return pipeline.Result{}, err
	}
	if err := id.Check(signedAt); err != nil {
		return pipeline.Result{}, p.waitForTaxpayer(cause.Of(err))
	}
	request := &numberRequest{job: w.Job, invoice: inv, issuer: issuer, identity: id, signedAt: signedAt}
	if err := p.queue(queueKey{w.Job.Scope, inv.Type}).issue(ctx, request); err != nil {
		return pipeline.Result{}, err
	}
	return pipeline.Result{Issued: &request.issued, Move: &pipeline.Move{Next: stageSubmit}}, nil
}

// refused returns the result for an invoice that cannot be issued. It takes no number.
func refused(inv store.Invoice, problems fiscal.Problems, why cause.Kind) pipeline.Result {
	messages := make([]string, 0, len(problems)+len(inv.Messages))
	for _, p := range problems {
		messages = append(messages, p.Field+": "+p.Message.String())
	}
	return pipeline.Result{Move: &pipeline.Move{
		Status: fiscal.ValidationFailed, Messages: append(messages, inv.Messages...), Cause: cause.New(why),
	}}
}

// signingTime returns the instant of signature that a document carries: the earlier
// of our clock and the authority's, less a margin. It returns a *pipeline.WaitError
// while the clock of this machine cannot be trusted: the authority rejects a document
// from its future, and the number is spent.
func (p *Plan) signingTime(ctx context.Context) (time.Time, error) {
	if err := p.checkNodeClock(); err != nil {
		return time.Time{}, err
	}
	if err := p.authority.CheckClock(ctx); err != nil && !p.authority.ClockConfirmed() {
		if err := p.signUnconfirmed(ctx, err); err != nil {
			return time.Time{}, err
		}
	}
	ahead, _ := p.authority.Clock()
	if ahead.Abs() > maxSkew {
		if p.limit.Allow(authorityClock, p.now()) {
			p.log.Error("The authority's clock and ours differ too much. Nothing is signed until they agree: set the clock of this machine.", "ahead", ahead.String())
		}
		return time.Time{}, p.waitForAuthorityClock(ahead)
	}
	p.limit.End(authorityClock)
	return p.now().Add(min(ahead, 0) - signingMargin), nil
}

// signUnconfirmed allows a signature with a clock that the authority has not confirmed
// in this process, only during a contingency, and says so in the log. Otherwise the
// document waits for the authority's first answer.
func (p *Plan) signUnconfirmed(ctx context.Context, failure error) error {
	lasts, err := pipeline.InContingency(ctx, p.store, p.env)
	if err != nil {
		return err
	}
	if lasts {
		if p.limit.Allow(unconfirmedClock, p.now()) {
			p.log.Warn("Documents are signed during a contingency with a clock that the authority has not confirmed. Make sure that the clock of this machine is right.")
		}
		return nil
	}
	return p.waitForConfirmedClock(failure)
}

// queue returns the numberer of one taxpayer and type.
func (p *Plan) queue(key queueKey) *numberer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.queues[key] == nil {
		p.queues[key] = newNumberer(p, key)
	}
	return p.queues[key]
}
