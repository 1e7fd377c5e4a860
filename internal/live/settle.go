package live

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// A settler commits what was learnt about a document and moves the document to
// where all the evidence puts it. Every stage, the buyers' messages and the
// operators' decisions end here.
type settler struct {
	store     *store.Store
	now       func() time.Time
	log       *slog.Logger
	pace      wake.Pace
	directory *directory
}

// A finding is an item of evidence with the answer that it was read from.
type finding struct {
	evidence.Item
	raw []byte
}

func (f finding) row(scope store.Scope, documentID string) (store.Evidence, error) {
	body, digest, err := f.Encode()
	return store.Evidence{
		Scope: scope, DocumentID: documentID, ID: store.NewID(), At: f.At, Kind: string(f.Kind),
		TrackID: f.TrackID, Verdict: f.Verdict, Body: string(body), Digest: digest, Raw: f.raw,
	}, err
}

// A report is what was learnt about an issued document: the attempt that ended, if
// any, and the findings.
type report struct {
	issued   store.Issued
	attempt  *store.Attempt
	findings []finding
}

// step returns the step that commits a report. When another worker has taken the
// job over meanwhile, the report is committed all the same.
func (s *settler) step(known []evidence.Item, r report) pipeline.Step {
	all := slices.Clone(known)
	r.findings = slices.Clone(r.findings)
	for i := range r.findings {
		r.findings[i].Item = r.findings[i].Learnt(known)
		all = append(all, r.findings[i].Item)
	}
	return pipeline.Step{
		Evidence: all,
		Decide: func(rows *store.Batch, before store.Invoice) (pipeline.Change, error) {
			for _, f := range r.findings {
				row, err := f.row(r.issued.Scope, r.issued.DocumentID)
				if err != nil {
					return pipeline.Change{}, err
				}
				rows.AddEvidence(row)
				if f.Answered && f.Signer != "" {
					rows.LearnBuyerSigner(store.BuyerSigner{
						Scope: r.issued.Scope, BuyerRNC: r.issued.BuyerRNC, Signer: f.Signer,
						Basis: store.ByAcknowledgement, DocumentID: r.issued.DocumentID, CreatedAt: f.At,
					})
				}
			}
			if r.attempt != nil {
				rows.CloseAttempt(*r.attempt)
			}
			return s.settle(rows, r.issued, all, before), nil
		},
		CommitLate: func(ctx context.Context, tx *store.Tx) (store.Invoice, bool, error) {
			after, notified, err := s.commitLate(ctx, tx, r, func(store.Invoice, *pipeline.Change) error { return nil })
			if errors.Is(err, errNotIssued) || errors.Is(err, store.ErrNotFound) {
				s.log.Error("The database does not have a document that was sent to the authority: it is an older copy. Compare the sale with the integrator.",
					"document_id", r.issued.DocumentID, "encf", r.issued.ENCF)
			}
			return after, notified, err
		},
	}
}

// commitLate commits a report whichever worker has the job. It takes the job over:
// the former holder either has committed before, and its evidence is read here, or
// cannot commit any more and comes here itself. agree may refuse or adjust the
// change. commitLate returns the invoice after the change, and whether events were
// added. It fails with errNotIssued when the database does not have the signed document.
func (s *settler) commitLate(ctx context.Context, tx *store.Tx, r report, agree func(before store.Invoice, c *pipeline.Change) error) (store.Invoice, bool, error) {
	now := s.now()
	job := store.Job{
		Scope: r.issued.Scope, DocumentID: r.issued.DocumentID, Plan: planName, Stage: stageReconcile, RunAt: now,
		Lease: store.NewID(), LeaseUntil: now.Add(wake.MaxLease), CreatedAt: now,
	}
	if err := tx.TakeOverJob(ctx, job); err != nil {
		return store.Invoice{}, false, err
	}
	before, known, err := readDocument(ctx, tx, r.issued)
	if err != nil {
		return store.Invoice{}, false, err
	}
	rows := new(store.Batch)
	if before.ENCF == "" && r.attempt != nil { // a failover has lost that the number was shown
		rows.ShowNumber(r.issued)
		before.ENCF = r.issued.ENCF
	}
	change, err := s.step(known, r).Decide(rows, before)
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
	after, notified := change.Apply(rows, before, true, now)
	return after, notified, tx.Do(ctx, rows)
}

// readDocument reads the invoice of an issued document and its evidence.
func readDocument(ctx context.Context, tx *store.Tx, issued store.Issued) (store.Invoice, []evidence.Item, error) {
	inv, err := tx.InvoiceOfDocument(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return inv, nil, err
	}
	switch now, err := tx.IssuedDocument(ctx, issued.Scope, issued.DocumentID); {
	case errors.Is(err, store.ErrNotFound), err == nil && now.ENCF != issued.ENCF:
		return inv, nil, errNotIssued
	case err != nil:
		return inv, nil, err
	}
	stored, err := tx.EvidenceOf(ctx, issued.Scope, issued.DocumentID)
	if err != nil {
		return inv, nil, err
	}
	known, err := pipeline.DecodeEvidence(stored)
	return inv, known, err
}

// errNotIssued means that the database does not have a document under the number that it
// was signed with. This happens after a failover to an older copy.
var errNotIssued = errors.New("live: the database does not have the signed document")

// settle folds everything that is known and returns the change that follows.
func (s *settler) settle(rows *store.Batch, issued store.Issued, known []evidence.Item, before store.Invoice) pipeline.Change {
	outcome := evidence.Fold(known)
	if outcome.Alarm != "" {
		s.log.Error(outcome.Alarm, "document_id", issued.DocumentID, "encf", issued.ENCF)
	}
	if outcome.Freeze {
		rows.FenceNumberRange(store.NumberRange{Scope: issued.Scope, ID: issued.NumberRangeID}, s.now())
	}
	status := outcome.Status
	if status != before.Status && !before.Status.MayBecome(status) {
		// The evidence came too late: the status that integrators have seen stays.
		status = before.Status
	}
	if before.Status == fiscal.Rejected && status != before.Status {
		s.log.Error("A document that was rejected is accepted now. Look at its evidence with `fiscalhub work show`, and check it with the taxpayer.",
			"document_id", issued.DocumentID, "encf", issued.ENCF)
	}
	change := pipeline.Change{Status: status, TrackID: outcome.TrackID, Messages: statusMessages(status, outcome.Verdict, before.Messages), Cause: cause(outcome)}
	if issued.Summarized {
		change.TrackID = ""
	}
	settleNumber(rows, issued, status, outcome)
	return s.schedule(change, issued, known)
}

// settleNumber records whether the number of a judged document is used up.
func settleNumber(rows *store.Batch, issued store.Issued, status fiscal.Status, outcome evidence.Outcome) {
	if outcome.Verdict == nil || !status.Final() {
		return
	}
	state := store.NumberUsed
	if status == fiscal.Rejected && outcome.NumberFree {
		state = store.NumberReusable
	}
	if state != issued.State {
		rows.SettleNumber(issued, state)
	}
}

// schedule adds the stage that belongs to the status of a change.
func (s *settler) schedule(c pipeline.Change, issued store.Issued, known []evidence.Item) pipeline.Change {
	switch c.Status {
	case fiscal.Queued:
		c.Next, c.After = stageSubmit, s.pace.Of(sendBase, 0)
	case fiscal.Submitted, fiscal.Processing:
		c.Next, c.After = stagePoll, s.pace.Of(pollPauses[0], time.Second)
	case fiscal.OutcomeUnknown:
		c.Next, c.After = stageReconcile, s.pace.Of(reconcilePauses[0], 100*time.Millisecond)
	case fiscal.Accepted, fiscal.AcceptedConditional:
		failed := slices.ContainsFunc(known, func(i evidence.Item) bool { return i.Kind == evidence.DeliveryFailed })
		if deliverable(issued) && !failed && s.directory.mayReceive(issued.BuyerRNC, s.now()) {
			c.Next = stageDeliver
		}
	case fiscal.Rejected, fiscal.Delivered, fiscal.ValidationFailed:
	}
	return c
}

// deliverable reports whether a document goes to its buyer: a fiscal credit invoice with an RNC.
func deliverable(issued store.Issued) bool {
	encf, err := fiscal.ParseENCF(issued.ENCF)
	return err == nil && encf.Type() == fiscal.FiscalCredit && issued.BuyerRNC != ""
}

// statusMessages returns what the integrator reads: for a conditional acceptance
// first that it is one, then the authority's words, then our own notes.
func statusMessages(status fiscal.Status, verdict *evidence.Item, before []string) []string {
	if status == fiscal.Delivered {
		return before // those of the acceptance
	}
	var messages []string
	if status == fiscal.AcceptedConditional {
		messages = append(messages, fiscal.ConditionalMessage)
	}
	if verdict != nil {
		for _, m := range verdict.Messages {
			messages = append(messages, m.String())
		}
	}
	for _, m := range before {
		if !strings.HasPrefix(m, "[") { // earlier words of the authority
			messages = append(messages, m)
		}
	}
	return messages
}

// cause explains an outcome in the history.
func cause(o evidence.Outcome) string {
	switch {
	case o.Alarm != "":
		return o.Alarm + reasons(o.Verdict, " ")
	case o.Verdict != nil && o.Verdict.Kind == evidence.Operator:
		return "decided by an operator: " + o.Verdict.Note
	case o.Verdict != nil:
		return "the authority's verdict" + reasons(o.Verdict, ": ")
	case o.Status == fiscal.Submitted:
		return "the authority gave a track id"
	case o.Status == fiscal.Processing:
		return "the authority is processing the document"
	case o.Status == fiscal.OutcomeUnknown:
		return "the document may have reached the authority; the service asks"
	}
	return ""
}

// maxReasons is how many of the authority's messages the history repeats.
const maxReasons = 3

// reasons returns the first of the authority's messages in a verdict, in one line, for
// the history.
func reasons(verdict *evidence.Item, before string) string {
	if verdict == nil || len(verdict.Messages) == 0 {
		return ""
	}
	var words []string
	for _, m := range verdict.Messages[:min(len(verdict.Messages), maxReasons)] {
		words = append(words, m.String())
	}
	if more := len(verdict.Messages) - len(words); more > 0 {
		words = append(words, "and "+strconv.Itoa(more)+" more")
	}
	return before + strings.Join(words, "; ")
}

// finishJob ends the job of a document whatever its status.
func finishJob(s pipeline.Step) pipeline.Step {
	return adjust(s, func(c *pipeline.Change) { c.Next = "" })
}

// adjust applies fn to the change that a step decides.
func adjust(s pipeline.Step, fn func(*pipeline.Change)) pipeline.Step {
	decide := s.Decide
	s.Decide = func(rows *store.Batch, before store.Invoice) (pipeline.Change, error) {
		c, err := decide(rows, before)
		if err == nil {
			fn(&c)
		}
		return c, err
	}
	return s
}
