package pipeline

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

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	// maxBatch bounds how many documents share a commit.
	maxBatch = 32
	// maxRounds is how often numbers may be lost to another node before the
	// documents step back.
	maxRounds = 5
)

// A numberer numbers the documents of one taxpayer and type. A number is part of
// what is signed, and a crash must leave no gap: so those that wait are numbered
// in a row, signed side by side, and committed together with their numbers. The
// first in the line does the work of all that came meanwhile.
type numberer struct {
	live *Live
	key  queueKey

	mu      sync.Mutex
	waiting []*order
	busy    bool
}

// An order is a document that wants a number.
type order struct {
	job       store.Job
	invoiceID string
	invoice   *fiscal.Invoice
	issuer    ecf.Issuer
	identity  *xmlsig.Identity
	signedAt  time.Time
	issued    store.Issued // once it is committed
	done      chan error
	lead      chan struct{}
}

// issue waits until the document is numbered, signed and committed. Whoever leads
// does one batch, which its own document is the first of, and lets the next one
// lead: nobody works for others for ever.
func (q *numberer) issue(ctx context.Context, o *order) error {
	o.done, o.lead = make(chan error, 1), make(chan struct{}, 1)
	q.mu.Lock()
	q.waiting = append(q.waiting, o)
	if !q.busy {
		q.busy = true
		o.lead <- struct{}{}
	}
	q.mu.Unlock()
	select {
	case err := <-o.done:
		return err
	case <-o.lead:
	}
	q.mu.Lock()
	batch := slices.Clone(q.waiting[:min(len(q.waiting), maxBatch)])
	q.waiting = q.waiting[len(batch):]
	q.mu.Unlock()
	// As they were registered: ids sort by the time they were made.
	slices.SortFunc(batch, func(a, b *order) int { return strings.Compare(a.job.DocumentID, b.job.DocumentID) })
	defer q.handOver()
	q.work(context.WithoutCancel(ctx), batch) // for others, too
	return <-o.done
}

// handOver lets the first of those that wait lead.
func (q *numberer) handOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.busy = len(q.waiting) > 0; q.busy {
		q.waiting[0].lead <- struct{}{}
	}
}

// work issues a batch, and tells each of its orders what came of it.
func (q *numberer) work(ctx context.Context, batch []*order) {
	defer func() {
		// Those that wait would wait for ever, and all that come after them.
		if r := recover(); r != nil {
			tell(batch, q.live.panicked(batch[0].job.DocumentID, r))
		}
	}()
	for range maxRounds {
		if len(batch) == 0 {
			return
		}
		err := q.round(ctx, &batch)
		if err == nil {
			tell(batch, nil)
			return
		}
		var not *store.NotIssued
		switch {
		case errors.As(err, &not):
			batch[not.Index].done <- not.Err
			batch = slices.Delete(batch, not.Index, not.Index+1)
		case !errors.Is(err, store.ErrNumbersMoved):
			tell(batch, err)
			return
		}
	}
	tell(batch, store.ErrNumbersMoved)
}

func tell(batch []*order, err error) {
	for _, o := range batch {
		o.done <- err
	}
}

// round numbers, signs and commits a batch. Orders for which there is no number,
// or that cannot be signed, leave the batch with their answer.
func (q *numberer) round(ctx context.Context, batch *[]*order) error {
	l := q.live
	sequences, err := l.Store.SequencesOf(ctx, q.key.scope, q.key.kind)
	if err == nil {
		sequences, err = l.Fence.Inspect(ctx, (*batch)[0].issuer.RNC, sequences)
	}
	if err != nil {
		return err
	}
	// The last to be signed: what has not expired for it has not for the others.
	last := slices.MaxFunc(*batch, func(a, b *order) int { return a.signedAt.Compare(b.signedAt) })
	sequence, problem := usableSequence(sequences, fiscal.DateOf(last.signedAt))
	if problem != "" {
		tell(*batch, &Later{l.paced(readinessPause, time.Second), problem})
		*batch = nil
		return nil
	}
	if left := int(min(sequence.Left(), maxBatch)); len(*batch) > left {
		// The rest comes again, and finds the next range.
		tell((*batch)[left:], &Later{0, "the range came to its end"})
		*batch = (*batch)[:left]
	}
	signed := make([]store.Issuance, len(*batch))
	failed := make([]error, len(*batch))
	var wait sync.WaitGroup
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, o := range *batch {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			signed[i], failed[i] = l.sign(o, sequence, int64(i))
		})
	}
	wait.Wait()
	for i, err := range failed {
		if err != nil {
			// Those behind it would have the wrong numbers.
			return &store.NotIssued{Index: i, Err: err}
		}
	}
	if len(signed) == 0 {
		return nil
	}
	l.point("before issuing")
	err = l.Store.IssueAll(ctx, sequence, signed, stageSubmit, l.Now().Add(lease(l.Pace)))
	l.point("after issuing")
	for i, o := range *batch {
		o.issued = signed[i].Issued // whatever came of it: who hears of a failure does not look
	}
	return err
}

// panicked makes a panic the failure of a document's stage.
func (l *Live) panicked(documentID string, r any) error {
	l.Log.Error("panic while issuing", "document_id", documentID, "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
	return errors.New("pipeline: panic while issuing")
}

// sign builds and signs a document under a number of the sequence.
func (l *Live) sign(o *order, sequence store.Sequence, offset int64) (_ store.Issuance, err error) {
	defer func() {
		// It is not the worker that signs, and nobody else would catch it.
		if r := recover(); r != nil {
			err = l.panicked(o.job.DocumentID, r)
		}
	}()
	encf, err := ecf.NewENCF(o.invoice.Type, sequence.Next+offset)
	if err != nil {
		return store.Issuance{}, err
	}
	number := ecf.Number{ENCF: encf}
	if o.invoice.Type == fiscal.FiscalCredit {
		number.Expires = sequence.Expires
	}
	draft, err := ecf.New(o.issuer, number, o.invoice, o.signedAt)
	if err != nil {
		return store.Issuance{}, err
	}
	xml, code, err := draft.Sign(o.identity)
	if err != nil {
		return store.Issuance{}, err
	}
	issued := store.Issued{
		Scope: o.job.Scope, RNC: o.issuer.RNC, ENCF: encf.String(), InvoiceID: o.invoiceID, DocumentID: o.job.DocumentID, SequenceID: sequence.ID,
		SecurityCode: code.String(), BuyerRNC: draft.Buyer.TaxID, SignedAt: draft.SignedAt, CreatedAt: l.Now(), XML: xml,
	}
	if draft.HasSummary() {
		if issued.Summary, err = draft.SignSummary(o.identity, code); err != nil {
			return store.Issuance{}, err
		}
	}
	fingerprint := sha256.Sum256(o.identity.Certificate.Raw)
	whole, sent := sha256.Sum256(xml), sha256.Sum256(issued.Sent())
	issued.Summarized = issued.Summary != nil
	issued.Certificate, issued.XMLDigest, issued.SentDigest = hex.EncodeToString(fingerprint[:]), whole[:], sent[:]
	return store.Issuance{Issued: issued, Job: o.job}, nil
}
