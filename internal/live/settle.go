package live

import (
	"log/slog"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// A settler decides where all the evidence puts a document. Every stage, the buyers'
// messages and the operators' decisions end here.
type settler struct {
	store     *store.Store
	now       func() time.Time
	log       *slog.Logger
	pace      wake.Pace
	directory *directory
}

// Settle folds everything that is known of a document and returns the move that follows.
func (s *settler) Settle(d pipeline.Document) pipeline.Move {
	issued, before, known := d.Issued, d.Invoice, d.Evidence()
	outcome := evidence.Fold(known)
	if outcome.Alarm != "" {
		s.log.Error(outcome.Alarm.String(), "document_id", issued.DocumentID, "encf", issued.ENCF)
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
	m := pipeline.Move{
		Status: status, TrackID: outcome.TrackID, Messages: statusMessages(status, outcome.Verdict, known, before.Messages), Cause: why(outcome),
		Fence: outcome.Freeze, Number: numberState(status, outcome), ExtraEvents: extraEvents(d),
	}
	if issued.Summarized {
		m.TrackID = ""
	}
	s.schedule(&m, issued, known)
	if lookUp(d.Stage) && lookUp(m.Next) {
		m.After = max(m.After, lookUpPause)
	}
	return m
}

// lookUp reports whether a stage looks up track ids.
func lookUp(stage string) bool { return stage == stagePoll || stage == stageReconcile }

// extraEvents returns the events that integrators get beside the change of status: that the
// attempts to deliver an accepted document have ended, once for each reason.
func extraEvents(d pipeline.Document) (list []pipeline.ExtraEvent) {
	if d.Invoice.Status != fiscal.Accepted && d.Invoice.Status != fiscal.AcceptedConditional {
		return nil
	}
	for _, f := range d.Findings {
		if f.Kind == evidence.DeliveryFailed && !slices.ContainsFunc(d.Known, f.Repeats) {
			list = append(list, pipeline.ExtraEvent{Kind: event.DeliveryFailed, Reason: f.Cause().String()})
		}
	}
	return list
}

// numberState returns what becomes of the number of a judged document; empty when there is
// no verdict.
func numberState(status fiscal.Status, outcome evidence.Outcome) store.NumberState {
	switch {
	case outcome.Verdict == nil || !status.Final():
		return ""
	case status == fiscal.Rejected && outcome.NumberFree:
		return store.NumberReusable
	}
	return store.NumberUsed
}

// schedule adds the stage that belongs to the status of a move.
func (s *settler) schedule(m *pipeline.Move, issued store.Issued, known []evidence.Item) {
	switch m.Status {
	case fiscal.Queued:
		m.Next, m.After = stageSubmit, s.pace.Of(sendBase, 0)
	case fiscal.Submitted, fiscal.Processing:
		m.Next, m.After = stagePoll, s.pace.Of(pollPauses[0], time.Second)
	case fiscal.OutcomeUnknown:
		m.Next, m.After = stageReconcile, s.pace.Of(reconcilePauses[0], 100*time.Millisecond)
	case fiscal.Accepted, fiscal.AcceptedConditional:
		failed := slices.ContainsFunc(known, func(i evidence.Item) bool { return i.Kind == evidence.DeliveryFailed })
		if deliverable(issued) && !failed && s.directory.mayReceive(issued.BuyerRNC, s.now()) {
			m.Next = stageDeliver
		}
	case fiscal.Rejected, fiscal.Delivered, fiscal.ValidationFailed:
	}
}

// deliverable reports whether a document goes to its buyer: a fiscal credit invoice with an RNC.
func deliverable(issued store.Issued) bool {
	encf, err := fiscal.ParseENCF(issued.ENCF)
	return err == nil && encf.Type() == fiscal.FiscalCredit && issued.BuyerRNC != ""
}

// statusMessages returns what the integrator reads: for a conditional acceptance
// first that it is one, then the authority's words, then our own notes.
func statusMessages(status fiscal.Status, verdict *evidence.Item, known []evidence.Item, before []string) []string {
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
	said := map[string]bool{fiscal.ConditionalMessage: true}
	for _, item := range known {
		for _, m := range item.Messages {
			said[m.String()] = true
		}
	}
	return append(messages, slices.DeleteFunc(slices.Clone(before), func(m string) bool { return said[m] })...)
}

// why explains an outcome in the history.
func why(o evidence.Outcome) cause.Cause {
	var words []string
	if o.Verdict != nil {
		for _, m := range o.Verdict.Messages {
			words = append(words, m.String())
		}
	}
	switch {
	case o.Alarm != "":
		return cause.New(o.Alarm.Kind(), cause.Words(words))
	case o.Verdict != nil && o.Verdict.Kind == evidence.Operator:
		return cause.New(cause.OperatorDecided, o.Verdict.Note)
	case o.Verdict != nil:
		return cause.New(cause.Verdict, cause.Words(words))
	case o.Status == fiscal.Submitted:
		return cause.New(cause.Track)
	case o.Status == fiscal.Processing:
		return cause.New(cause.Processing)
	case o.Status == fiscal.OutcomeUnknown:
		return cause.New(cause.OutcomeUnknown)
	}
	return ""
}
