package live

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/combine"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	// maxBatch bounds how many documents share a commit.
	maxBatch = 32
	// maxRounds is how often another node may take the numbers first before the
	// documents wait for their next attempt.
	maxRounds = 5
)

// A numberer numbers the documents of one taxpayer and type. The number is part of
// the signed bytes, and a crash must leave no gap. So the documents that wait get
// consecutive numbers, are signed in parallel, and are committed together with
// their numbers. One worker does this for all documents that wait with its own.
type numberer struct {
	plan  *Plan
	key   queueKey
	group combine.Group[*numberRequest]
}

// A numberRequest is a document that waits for its number.
type numberRequest struct {
	job      store.Job
	invoice  *fiscal.Invoice
	issuer   ecf.Issuer
	identity *xmlsig.Identity
	signedAt time.Time
	issued   store.Issued // once it is committed
}

type numberCall = combine.Call[*numberRequest]

func newNumberer(p *Plan, key queueKey) *numberer {
	q := &numberer{plan: p, key: key}
	q.group = combine.Group[*numberRequest]{Run: q.work, Max: maxBatch}
	return q
}

// issue waits until the document is numbered, signed and committed.
func (q *numberer) issue(ctx context.Context, r *numberRequest) error {
	return q.group.Do(context.WithoutCancel(ctx), r)
}

// work issues a batch and sets the result of each of its requests.
func (q *numberer) work(ctx context.Context, batch []*numberCall) {
	// In the order of registration: ids sort by the time at which they were made.
	slices.SortFunc(batch, func(a, b *numberCall) int { return strings.Compare(a.Value.job.DocumentID, b.Value.job.DocumentID) })
	defer func() {
		// Without a result the stages of the other documents would not be tried again.
		if value := recover(); value != nil {
			combine.SetAll(batch, q.plan.panicked(batch[0].Value.job.DocumentID, value))
		}
	}()
	for range maxRounds {
		if len(batch) == 0 {
			return
		}
		err := q.round(ctx, &batch)
		if err == nil {
			combine.SetAll(batch, nil)
			return
		}
		var not *store.NotIssuedError
		switch {
		case errors.As(err, &not):
			batch[not.Index].Err = not.Err
			batch = slices.Delete(batch, not.Index, not.Index+1)
		case !errors.Is(err, store.ErrNumbersTaken):
			combine.SetAll(batch, err)
			return
		}
	}
	combine.SetAll(batch, store.ErrNumbersTaken)
}

// round numbers, signs and commits a batch. It sets the result of requests that get no
// number and takes them out of the batch.
func (q *numberer) round(ctx context.Context, batch *[]*numberCall) error {
	p := q.plan
	timeline, err := p.fence.CheckHistory(ctx)
	if err != nil {
		return err
	}
	ranges, err := p.store.NumberRangesOf(ctx, q.key.scope, q.key.kind)
	if err == nil {
		ranges, err = p.fence.Inspect(ctx, (*batch)[0].Value.issuer.RNC, ranges)
	}
	if err != nil {
		return err
	}
	// A range that has not expired for the last signature has not for the others.
	last := slices.MaxFunc(*batch, func(a, b *numberCall) int { return a.Value.signedAt.Compare(b.Value.signedAt) })
	numbers, problem, err := pipeline.NextRange(ctx, p.store, ranges, fiscal.DateOf(last.Value.signedAt), !p.outSince().IsZero())
	if err != nil {
		return err
	}
	if problem != "" {
		combine.SetAll(*batch, p.waitForTaxpayer(cause.New(cause.NoNumbers, problem)))
		*batch = nil
		return nil
	}
	if left := int(min(numbers.Left(), maxBatch)); len(*batch) > left {
		// The others try again at once and find the next range.
		combine.SetAll((*batch)[left:], wait(pipeline.Wait{Reason: cause.New(cause.RangeExhausted)}))
		*batch = (*batch)[:left]
	}
	signed, err := p.signAll(*batch, numbers)
	if err != nil || len(signed) == 0 {
		return err
	}
	err = p.effect("issuing", func() error {
		return p.store.IssueAll(ctx, timeline, numbers, signed, stageSubmit, p.now().Add(p.pace.Lease()))
	})
	for i, r := range *batch {
		r.Value.issued = signed[i].Issued // only read after success
	}
	return err
}

// signAll signs a batch with consecutive numbers, in parallel. It returns a
// *store.NotIssuedError for the first document that cannot be signed: those after
// it would have the wrong numbers.
func (p *Plan) signAll(batch []*numberCall, numbers store.NumberRange) ([]store.Issuance, error) {
	signed := make([]store.Issuance, len(batch))
	failed := make([]error, len(batch))
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, r := range batch {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			signed[i], failed[i] = p.sign(r.Value, numbers, int64(i))
		})
	}
	wait.Wait()
	for i, err := range failed {
		if err != nil {
			return nil, &store.NotIssuedError{Index: i, Err: err}
		}
	}
	return signed, nil
}

// panicked turns a panic into the error of a document's stage.
func (p *Plan) panicked(documentID string, r any) error {
	p.log.Error("Issuing a document panicked. It is tried again.", "document_id", documentID, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
	return errors.New("live: panic while issuing")
}

// sign builds and signs a document under a number of the range.
func (p *Plan) sign(r *numberRequest, numbers store.NumberRange, offset int64) (_ store.Issuance, err error) {
	defer func() {
		// This goroutine is not the worker's, so the runner cannot recover here.
		if value := recover(); value != nil {
			err = p.panicked(r.job.DocumentID, value)
		}
	}()
	encf, err := fiscal.NewENCF(r.invoice.Type, numbers.Next+offset)
	if err != nil {
		return store.Issuance{}, err
	}
	number := ecf.Number{ENCF: encf}
	if r.invoice.Type == fiscal.FiscalCredit {
		number.Expires = numbers.Expires
	}
	draft, err := ecf.New(r.issuer, number, r.invoice, r.signedAt)
	if err != nil {
		return store.Issuance{}, err
	}
	xml, code, err := draft.Sign(r.identity)
	if err != nil {
		return store.Issuance{}, err
	}
	issued := store.Issued{
		Scope: r.job.Scope, RNC: r.issuer.RNC, ENCF: encf.String(), DocumentID: r.job.DocumentID, NumberRangeID: numbers.ID,
		SecurityCode: code.String(), BuyerRNC: draft.Buyer.TaxID, SignedAt: draft.SignedAt, CreatedAt: p.now(), XML: xml,
	}
	if draft.HasSummary() {
		if issued.Summary, err = draft.SignSummary(r.identity, code); err != nil {
			return store.Issuance{}, err
		}
	}
	fingerprint := sha256.Sum256(r.identity.Certificate.Raw)
	whole, sent := sha256.Sum256(xml), sha256.Sum256(issued.Sent())
	issued.Summarized = issued.Summary != nil
	issued.Certificate, issued.XMLDigest, issued.SentDigest = hex.EncodeToString(fingerprint[:]), whole[:], sent[:]
	return store.Issuance{Issued: issued, Job: r.job}, nil
}
