package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// A Document is an invoice at the commit of what was learnt about it.
type Document struct {
	Invoice  store.Invoice // before the commit
	Issued   store.Issued
	Stage    string          // the stage that has learnt it; empty: none
	Known    []evidence.Item // before the commit
	Findings []Finding       // what was learnt
	Attempt  *store.Attempt  // the attempt that has ended, if any
}

// learn adds what was learnt. The answer to a look-up is about the attempts that are known
// by then.
func (d *Document) learn(findings []Finding) {
	for _, f := range findings {
		f.Item = f.Learnt(d.Known)
		d.Findings = append(d.Findings, f)
	}
}

// Evidence returns everything that is known of the document, with what was learnt.
func (d Document) Evidence() []evidence.Item {
	all := make([]evidence.Item, 0, len(d.Known)+len(d.Findings))
	all = append(all, d.Known...)
	for _, f := range d.Findings {
		all = append(all, f.Item)
	}
	return all
}

// addRows turns what was learnt about a document, and the move that follows, into rows. It
// returns the invoice after their commit, and whether there are events.
func (d Document) addRows(rows *store.Batch, m Move, notifies bool, now time.Time) (after store.Invoice, notified bool) {
	for _, f := range d.Findings {
		row, err := f.Row(d.Issued.Scope, d.Issued.DocumentID)
		rows.Fail(err).AddEvidence(row)
		if f.Answered && f.Signer != "" {
			rows.LearnBuyerSigner(store.BuyerSigner{
				Scope: d.Issued.Scope, BuyerRNC: d.Issued.BuyerRNC, Signer: f.Signer,
				Basis: store.ByAcknowledgement, DocumentID: d.Issued.DocumentID, CreatedAt: f.At,
			})
		}
	}
	if d.Attempt != nil {
		rows.CloseAttempt(*d.Attempt)
	}
	if m.Fence {
		rows.FenceNumberRange(store.NumberRange{Scope: d.Issued.Scope, ID: d.Issued.NumberRangeID}, now)
	}
	if m.Number != "" && m.Number != d.Issued.State {
		rows.SettleNumber(d.Issued, m.Number)
	}
	before := d.Invoice
	after = before
	if m.Status != "" && m.Status != before.Status {
		after.Status, after.Messages, after.Revision = m.Status, m.Messages, before.Revision+1
		if m.TrackID != "" {
			after.TrackID = m.TrackID
		}
		after.UpdatedAt = before.NextUpdate(now)
		rows.ChangeStatus(before, after).AddHistoryEntry(store.HistoryEntry{
			Scope: before.Scope, InvoiceID: before.ID, ID: store.NewID(), At: after.UpdatedAt,
			Kind: "status_changed", Status: after.Status, Cause: m.Cause,
		})
	}
	if !notifies {
		return after, false
	}
	return AddEvents(rows, before, after, m.ExtraEvents, now)
}

// LivePlan is the plan of documents that have numbers, as it is stored with their jobs.
const LivePlan = "live"

// ErrNotIssued means that the database does not have a document under the number that it
// was signed with. This happens after a failover to an older copy.
var ErrNotIssued = errors.New("pipeline: the database does not have the signed document")

// A Taken document has a job that was taken over from the worker that had it.
type Taken struct {
	Document
	job store.Job
	now time.Time
}

// TakeOver takes the job of an issued document over, whichever worker has it, and adds what
// was learnt about the document. The former holder has committed before, and its evidence
// is read here, or cannot commit any more and takes the job over itself. TakeOver fails
// with ErrNotIssued when the database does not have the signed document.
func TakeOver(ctx context.Context, tx *store.Tx, issued store.Issued, now time.Time, findings ...Finding) (Taken, error) {
	t := Taken{Document: Document{Issued: issued}, now: now, job: store.Job{
		Scope: issued.Scope, DocumentID: issued.DocumentID, Plan: LivePlan, Stage: "reconcile", RunAt: now,
		Lease: store.NewID(), LeaseUntil: now.Add(wake.MaxLease), CreatedAt: now,
	}}
	err := tx.TakeOverJob(ctx, t.job)
	if err == nil {
		t.Invoice, t.Known, err = ReadDocument(ctx, tx, issued)
	}
	t.learn(findings)
	return t, err
}

// Commit adds what was learnt to the transaction and moves the document. It returns the
// invoice after it, and whether events were added.
func (t Taken) Commit(ctx context.Context, tx *store.Tx, m Move) (after store.Invoice, notified bool, err error) {
	rows := new(store.Batch)
	addMove(rows, t.job, m, t.now)
	if t.Invoice.ENCF == "" && t.Attempt != nil { // a failover has lost that the number was shown
		rows.ShowNumber(t.Issued)
		t.Invoice.ENCF = t.Issued.ENCF
	}
	after, notified = t.addRows(rows, m, true, t.now)
	return after, notified, tx.Do(ctx, rows)
}

// ReadDocument reads the invoice of an issued document and its evidence. It fails with
// ErrNotIssued when the database does not have the document under its number.
func ReadDocument(ctx context.Context, tx *store.Tx, issued store.Issued) (store.Invoice, []evidence.Item, error) {
	inv, err := tx.InvoiceOfDocument(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return inv, nil, err
	}
	switch now, err := tx.IssuedDocument(ctx, issued.Scope, issued.DocumentID); {
	case errors.Is(err, store.ErrNotFound), err == nil && now.ENCF != issued.ENCF:
		return inv, nil, ErrNotIssued
	case err != nil:
		return inv, nil, err
	}
	stored, err := tx.EvidenceOf(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return inv, nil, err
	}
	known, err := DecodeEvidence(stored)
	return inv, known, err
}
