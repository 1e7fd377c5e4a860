package main

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type workCmd struct {
	List    workListCmd    `cmd:"" help:"List the documents that are not final, or that something remains to be done for."`
	Show    workShowCmd    `cmd:"" help:"Show one document, and all that is known of it."`
	Resolve workResolveCmd `cmd:"" help:"Record an operator's decision on a document that was sent."`
}

type workListCmd struct {
	Environment string `help:"sandbox, certification or production; all unless told." placeholder:"E"`
	Taxpayer    string `help:"Id of a taxpayer; all unless told." placeholder:"ID"`
}

// workView is a document that waits, in JSON.
type workView struct {
	ID         string        `json:"id"`
	ExternalID string        `json:"external_id"`
	Status     fiscal.Status `json:"status"`
	Stage      *string       `json:"stage"`
	Attempt    int64         `json:"attempt"`
	NextTry    *string       `json:"next_try"`
	LastError  *string       `json:"last_error"`
	Deadline   *string       `json:"deadline"` // of what waits in contingency
}

func newWorkView(w store.WaitingDocument) workView {
	v := workView{ID: w.DocumentID, ExternalID: w.ExternalID, Status: w.Status}
	if w.Job != nil {
		v.Stage, v.Attempt, v.NextTry, v.LastError = &w.Job.Stage, w.Job.Attempt, optionalMoment(w.Job.RunAt), optional(w.Job.LastError)
	}
	return v
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// Run lists what waits, the oldest first.
func (c workListCmd) Run(t *terminal) error {
	env := fiscal.Environment(c.Environment)
	switch env {
	case "", fiscal.Sandbox, fiscal.Certification, fiscal.Production:
	default:
		return usageError("--environment: want sandbox, certification or production")
	}
	return t.withStore(func(s *store.Store) error {
		all, err := s.WaitingDocuments(t.ctx, store.Scope{Environment: env, TaxpayerID: c.Taxpayer})
		if err != nil {
			return err
		}
		views := make([]workView, len(all))
		for i, w := range all {
			views[i] = newWorkView(w)
			if views[i].Deadline, err = deadline(t, s, w); err != nil {
				return err
			}
		}
		return t.answer(views, func(w io.Writer) {
			if len(all) == 0 {
				return
			}
			line(w, "DOCUMENT", "EXTERNAL ID", "STATUS", "SINCE", "STAGE", "ATTEMPT", "NEXT TRY", "LAST ERROR")
			for _, one := range all {
				stage, attempt, next, failure := "none", "", "", ""
				if one.Job != nil {
					stage, attempt = one.Job.Stage, strconv.FormatInt(one.Job.Attempt, 10)
					next, failure = nextTry(*one.Job, time.Now()), clip(one.Job.LastError)
				}
				line(w, one.DocumentID, cell(one.ExternalID), string(one.Status), moment(one.CreatedAt), stage, attempt, next, failure)
			}
		})
	})
}

// deadline is until when a document that a contingency kept back must have been
// sent; nil for others, and while the contingency goes on.
func deadline(t *terminal, s *store.Store, w store.WaitingDocument) (*string, error) {
	if w.Status != fiscal.Queued {
		return nil, nil
	}
	last, err := s.Contingency(t.ctx, w.Environment)
	if errors.Is(err, store.ErrNotFound) || err == nil && (last.EndedAt.IsZero() || w.CreatedAt.After(last.EndedAt)) {
		return nil, nil
	}
	return optionalMoment(last.EndedAt.Add(fiscal.ContingencyTime)), err
}

// nextTry is when a job goes on, for people.
func nextTry(j store.Job, now time.Time) string {
	if j.LeaseUntil.After(now) {
		return "under way"
	}
	return moment(j.RunAt)
}

// cell is text from elsewhere as part of one line: it neither breaks the table
// nor steers the terminal.
func cell(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// clip is as much of a text as a table has room for.
func clip(text string) string {
	const most = 80
	if runes := []rune(cell(text)); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return cell(text)
}

type workShowCmd struct {
	ID string `arg:"" help:"Id of the fiscal document, or of its invoice."`
}

type workShowView struct {
	Document documentView    `json:"document"`
	Attempts []attemptView   `json:"attempts"`
	Evidence []evidenceView  `json:"evidence"`
	Job      *documentJob    `json:"job"`
	Outcome  *documentResult `json:"outcome"`
}

type documentView struct {
	ID           string             `json:"id"`
	InvoiceID    string             `json:"invoice_id"`
	ExternalID   string             `json:"external_id"`
	TaxpayerID   string             `json:"taxpayer_id"`
	Environment  fiscal.Environment `json:"environment"`
	Type         fiscal.Type        `json:"ecf_type"`
	Status       fiscal.Status      `json:"status"`
	Messages     []string           `json:"status_messages"`
	ENCF         *string            `json:"encf"`
	TrackID      *string            `json:"track_id"`
	SecurityCode *string            `json:"security_code"`
	SHA256       *string            `json:"sha256"`      // of the signed document
	SentSHA256   *string            `json:"sent_sha256"` // of what the authority gets
	CreatedAt    string             `json:"created_at"`
	UpdatedAt    string             `json:"updated_at"`
}

type attemptView struct {
	Number   int64   `json:"number"`
	Kind     string  `json:"kind"`
	OpenedAt string  `json:"opened_at"`
	ClosedAt *string `json:"closed_at"`
	Class    *string `json:"class"` // null while it is open
	Detail   string  `json:"detail"`
	SHA256   string  `json:"sha256"`
}

type evidenceView struct {
	At       string        `json:"at"`
	Kind     evidence.Kind `json:"kind"`
	TrackID  *string       `json:"track_id"`
	Verdict  *string       `json:"verdict"`
	Ours     bool          `json:"ours"`
	Foreign  bool          `json:"foreign"`
	Attempt  *int64        `json:"attempt"`
	Messages []string      `json:"messages"`
	Note     string        `json:"note"`
}

type documentJob struct {
	Stage      string  `json:"stage"`
	Attempt    int64   `json:"attempt"`
	NextTry    string  `json:"next_try"`
	LeaseUntil *string `json:"lease_until"` // while a worker has it
	LastError  *string `json:"last_error"`
}

// documentResult is what all the evidence comes to.
type documentResult struct {
	Status  fiscal.Status `json:"status"`
	TrackID *string       `json:"track_id"`
	Decided *string       `json:"decided_by"` // kind of the evidence that decided
	Alarm   *string       `json:"alarm"`
	Freeze  bool          `json:"freeze"`
}

// Run shows one document.
func (c workShowCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		inv, err := findDocument(t, s, c.ID)
		if err != nil {
			return err
		}
		v, err := newWorkShow(t, s, inv)
		if err != nil {
			return err
		}
		return t.answer(v, v.print)
	})
}

func findDocument(t *terminal, s *store.Store, id string) (store.Invoice, error) {
	inv, err := s.AnyDocument(t.ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return inv, fmt.Errorf("there is no document or invoice %s: see fiscalhub work list", id)
	}
	return inv, err
}

// newWorkShow reads all that is known of a document.
func newWorkShow(t *terminal, s *store.Store, inv store.Invoice) (workShowView, error) {
	v := workShowView{Attempts: []attemptView{}, Evidence: []evidenceView{}}
	issued, err := s.IssuedDocument(t.ctx, inv.Scope, inv.DocumentID)
	signed := err == nil
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return v, err
	}
	v.Document = newDocumentView(inv, issued)
	attempts, err := s.Attempts(t.ctx, inv.Scope, inv.DocumentID)
	if err != nil {
		return v, err
	}
	for _, a := range attempts {
		v.Attempts = append(v.Attempts, attemptView{
			Number: a.Number, Kind: a.Kind, OpenedAt: moment(a.OpenedAt), ClosedAt: optionalMoment(a.ClosedAt),
			Class: optional(string(a.Class)), Detail: a.Detail, SHA256: hex.EncodeToString(a.Digest),
		})
	}
	known, err := live.ReadEvidence(t.ctx, s, inv.Scope, inv.DocumentID)
	if err != nil {
		return v, err
	}
	for _, e := range known {
		v.Evidence = append(v.Evidence, newEvidenceView(e))
	}
	if signed { // of what was never numbered there is nothing to fold
		o := evidence.Fold(known)
		v.Outcome = &documentResult{Status: o.Status, TrackID: optional(o.TrackID), Alarm: optional(o.Alarm), Freeze: o.Freeze}
		if o.Verdict != nil {
			v.Outcome.Decided = optional(string(o.Verdict.Kind))
		}
	}
	job, err := s.JobOf(t.ctx, inv.Scope, inv.DocumentID)
	if errors.Is(err, store.ErrNotFound) {
		return v, nil
	}
	v.Job = &documentJob{Stage: job.Stage, Attempt: job.Attempt, NextTry: moment(job.RunAt), LastError: optional(job.LastError)}
	if job.LeaseUntil.After(time.Now()) {
		v.Job.LeaseUntil = optionalMoment(job.LeaseUntil)
	}
	return v, err
}

func newDocumentView(inv store.Invoice, issued store.Issued) documentView {
	v := documentView{
		ID: inv.DocumentID, InvoiceID: inv.ID, ExternalID: inv.ExternalID, TaxpayerID: inv.TaxpayerID, Environment: inv.Environment,
		Type: inv.Type, Status: inv.Status, Messages: inv.Messages, ENCF: optional(inv.ENCF), TrackID: optional(inv.TrackID),
		SecurityCode: optional(issued.SecurityCode), SHA256: optional(hex.EncodeToString(issued.XMLDigest)),
		SentSHA256: optional(hex.EncodeToString(issued.SentDigest)), CreatedAt: moment(inv.CreatedAt), UpdatedAt: moment(inv.UpdatedAt),
	}
	if v.Messages == nil {
		v.Messages = []string{}
	}
	return v
}

func newEvidenceView(e evidence.Item) evidenceView {
	v := evidenceView{
		At: e.At.Format(time.RFC3339Nano), Kind: e.Kind, TrackID: optional(e.TrackID), Verdict: optional(verdictWord(e)),
		Ours: e.Ours, Foreign: e.Foreign, Messages: make([]string, len(e.Messages)), Note: e.Note,
	}
	if e.Attempt > 0 {
		v.Attempt = &e.Attempt
	}
	for i, m := range e.Messages {
		v.Messages[i] = strings.TrimSpace("[" + m.Code + "] " + m.Text)
	}
	return v
}

// verdictWord is the verdict of evidence that has one.
func verdictWord(e evidence.Item) string {
	switch e.Kind {
	case evidence.Verdict, evidence.State, evidence.Operator:
	default:
		return ""
	}
	switch e.Verdict {
	case fiscal.VerdictAccepted:
		return "accepted"
	case fiscal.VerdictConditional:
		return "accepted_conditional"
	case fiscal.VerdictRejected:
		return "rejected"
	case fiscal.VerdictInProcess:
		return "processing"
	case fiscal.VerdictNotFound:
		return "not_found"
	}
	return strconv.Itoa(int(e.Verdict))
}

// print shows a document to people.
func (v workShowView) print(w io.Writer) {
	v.Document.print(w)
	for _, a := range v.Attempts {
		class := said(a.Class)
		if class == "" {
			class = "open"
		}
		line(w, "attempt "+strconv.FormatInt(a.Number, 10), a.OpenedAt, a.Kind, class, cell(a.Detail))
	}
	for _, e := range v.Evidence {
		words := strings.Fields(cell(strings.Join(append([]string{said(e.Verdict), said(e.TrackID)}, e.Messages...), " ") + " " + e.Note))
		switch {
		case e.Foreign:
			words = append(words, "(not of our bytes)")
		case e.Attempt != nil:
			words = append(words, "(attempt "+strconv.FormatInt(*e.Attempt, 10)+")")
		}
		line(w, "evidence", e.At, string(e.Kind), strings.Join(words, " "))
	}
	if j := v.Job; j != nil {
		next := "next try " + j.NextTry
		if j.LeaseUntil != nil {
			next = "under way"
		}
		line(w, "job", j.Stage, "attempt "+strconv.FormatInt(j.Attempt, 10), next, cell(said(j.LastError)))
	} else {
		line(w, "job", "none")
	}
	if o := v.Outcome; o != nil {
		words := "by all that is known it is " + string(o.Status)
		if o.Alarm != nil {
			words += ": " + *o.Alarm
		}
		line(w, "outcome", words)
	}
}

func (v documentView) print(w io.Writer) {
	line(w, "document", v.ID)
	line(w, "invoice", v.InvoiceID)
	line(w, "external id", cell(v.ExternalID))
	line(w, "taxpayer", v.TaxpayerID)
	line(w, "environment", string(v.Environment))
	line(w, "status", string(v.Status))
	for _, m := range v.Messages {
		line(w, "message", cell(m))
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"e-NCF", v.ENCF}, {"track id", v.TrackID}, {"security code", v.SecurityCode}, {"sha256", v.SHA256}} {
		if f.value != nil {
			line(w, f.name, cell(*f.value))
		}
	}
}

func said(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

type workResolveCmd struct {
	ID       string `arg:"" help:"Id of the fiscal document, or of its invoice."`
	As       string `required:"" help:"accepted or rejected." enum:"accepted,rejected" placeholder:"VERDICT"`
	Evidence string `required:"" help:"What the decision rests on, in at most 1000 characters; it stays in the history." placeholder:"TEXT"`
}

// Run records a decision. Servers may be at work on the document meanwhile.
func (c workResolveCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		inv, err := findDocument(t, s, c.ID)
		if err != nil {
			return err
		}
		d := live.Decision{DocumentID: inv.DocumentID, Verdict: fiscal.VerdictAccepted, Note: c.Evidence}
		if c.As == "rejected" {
			d.Verdict = fiscal.VerdictRejected
		}
		r := live.NewResolver(s, time.Now, t.log(slog.LevelWarn))
		if inv, err = r.Resolve(t.ctx, inv.Scope, d); err != nil {
			return err
		}
		v, err := newWorkShow(t, s, inv)
		if err != nil {
			return err
		}
		return t.answer(v, func(w io.Writer) {
			line(w, "document", v.Document.ID)
			line(w, "status", string(v.Document.Status))
			if v.Job != nil {
				line(w, "next", v.Job.Stage)
			}
		})
	})
}
