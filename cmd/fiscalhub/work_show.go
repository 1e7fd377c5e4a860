package main

import (
	"encoding/hex"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type workShowCmd struct {
	ID string `arg:"" help:"Id of the fiscal document, or of its invoice."`
}

// Run shows one document.
func (c workShowCmd) Run(t *terminal) error {
	return t.withStore(func(s *store.Store) error {
		inv, err := findDocument(t, s, c.ID)
		if err != nil {
			return err
		}
		d, err := dossier.Read(t.ctx, s, inv.Scope, inv.DocumentID)
		if err != nil {
			return err
		}
		v := newWorkShow(d, s.Now(), t.outputLanguage())
		return t.answer(v, v.print)
	})
}

// print writes a document as a table.
func (v workShowView) print(w io.Writer) {
	in := func(m lang.Message) string { return m.In(languageOfWriter(w)) }
	v.Document.print(w)
	for _, n := range v.Replaced {
		line(w, "replaced", n.ReplacedAt, n.ENCF, in(lang.Messagef("security code %s: %s (by %s)", "código de seguridad %s: %s (por %s)", n.SecurityCode, n.Reason, n.By)))
	}
	for _, a := range v.Attempts {
		class := textOf(a.Class)
		if class == "" {
			class = in(lang.Messagef("open", "abierto"))
		}
		line(w, label("attempt", languageOfWriter(w))+" "+strconv.FormatInt(a.Number, 10), a.OpenedAt, a.Kind, class, a.Detail)
	}
	for _, e := range v.Evidence {
		line(w, "evidence", e.At, string(e.Kind), e.summary(languageOfWriter(w)))
	}
	for _, u := range v.Unconfirmed {
		line(w, "response", u.At, in(lang.Messagef("unconfirmed", "sin confirmar")), in(lang.Messagef(
			"%s (signed by %s, who is not known to act for the buyer)",
			"%s (firmada por %s, de quien no consta que actúe por el comprador)", strings.TrimSpace(u.Result+" "+u.Reason), u.Signer)))
	}
	for _, d := range v.Differences {
		words := d.cause.In(languageOfWriter(w))
		if d.EndedAt != nil {
			words = in(lang.Messagef("%s (until %s)", "%s (hasta %s)", words, *d.EndedAt))
		}
		line(w, "difference", d.FoundAt, words)
	}
	if v.Job == nil {
		line(w, "job", in(lang.Messagef("none", "ninguna")))
	} else {
		v.Job.print(w)
	}
	if o := v.Outcome; o != nil {
		words := in(lang.Messagef("the evidence says %s", "la evidencia dice %s", o.Status))
		if o.Alarm != nil {
			words += ": " + *o.Alarm
		}
		line(w, "outcome", words)
	}
}

// summary returns the verdict, the messages and the note of an item in one line.
func (e evidenceView) summary(l lang.Language) string {
	words := strings.Fields(strings.Join(append([]string{textOf(e.Verdict), textOf(e.TrackID)}, e.Messages...), " ") + " " + e.Note)
	add := func(m lang.Message) { words = append(words, m.In(l)) }
	if e.By != nil {
		add(lang.Messagef("(by %s)", "(por %s)", *e.By))
	}
	switch {
	case e.Foreign:
		add(lang.Messagef("(about another document under this number)", "(sobre otro documento con este número)"))
	case e.Attempt != nil:
		add(lang.Messagef("(attempt %d)", "(intento %d)", *e.Attempt))
	}
	switch {
	case e.Signer == nil:
	case e.Confirmed != nil && !*e.Confirmed:
		add(lang.Messagef("(signed by %s, who was not known to act for the buyer)",
			"(firmado por %s, de quien no constaba que actuara por el comprador)", *e.Signer))
	default:
		add(lang.Messagef("(signed by %s)", "(firmado por %s)", *e.Signer))
	}
	return strings.Join(words, " ")
}

func (j documentJob) print(w io.Writer) {
	l := languageOfWriter(w)
	next := lang.Messagef("next try when the authority answers", "próximo intento cuando la DGII responda")
	switch {
	case j.LeaseUntil != nil:
		next = lang.Messagef("under way", "en curso")
	case j.NextTry != nil:
		next = lang.Messagef("next try %s", "próximo intento %s", *j.NextTry)
	}
	line(w, "job", j.Stage, label("attempt", l)+" "+strconv.FormatInt(j.Attempt, 10), next.In(l), textOf(j.LastError))
}

func (v documentView) print(w io.Writer) {
	line(w, "document", v.ID)
	line(w, "invoice", v.InvoiceID)
	line(w, "external id", v.ExternalID)
	line(w, "taxpayer", v.TaxpayerID)
	line(w, "environment", string(v.Environment))
	line(w, "status", string(v.Status))
	for _, m := range rejection.Explained(v.Status, v.Messages, languageOfWriter(w)) {
		line(w, "message", m)
	}
	for _, f := range []struct {
		name  string
		value *string
	}{{"e-NCF", v.ENCF}, {"track id", v.TrackID}, {"security code", v.SecurityCode}, {"sha256", v.SHA256}} {
		if f.value != nil {
			line(w, f.name, *f.value)
		}
	}
}

// workShowView is everything that the service knows about a document, in JSON.
type workShowView struct {
	Document documentView    `json:"document"`
	Attempts []attemptView   `json:"attempts"`
	Evidence []evidenceView  `json:"evidence"`
	Job      *documentJob    `json:"job"`
	Outcome  *documentResult `json:"outcome"`
	// Differences are what the tax authority showed differently after the document
	// was accepted. Most documents have none.
	Differences []differenceView `json:"differences,omitempty"`
	// Unconfirmed are commercial responses whose signer is not known to act for the buyer.
	Unconfirmed []responseView `json:"unconfirmed_responses,omitempty"`
	// Replaced are the numbers that the document had before. Most documents had none.
	Replaced []replacedView `json:"replaced_numbers,omitempty"`
}

// replacedView is a number that a document had before, in JSON.
type replacedView struct {
	ENCF         string `json:"encf"`
	SecurityCode string `json:"security_code"`
	SHA256       string `json:"sha256"` // of what was signed with it
	SignedAt     string `json:"signed_at"`
	ReplacedAt   string `json:"replaced_at"`
	Reason       string `json:"reason"`
	By           string `json:"by"`
}

func newReplacedView(n store.ReplacedNumber) replacedView {
	return replacedView{
		ENCF: n.ENCF, SecurityCode: n.SecurityCode, SHA256: hex.EncodeToString(n.XMLDigest), SignedAt: formatTime(n.SignedAt),
		ReplacedAt: formatTime(n.At), Reason: n.Reason, By: n.By,
	}
}

// differenceView is a difference between a document and what the tax authority
// shows, in JSON.
type differenceView struct {
	Kind    store.DifferenceKind `json:"kind"`
	Ours    string               `json:"ours"`
	Theirs  string               `json:"theirs"`
	FoundAt string               `json:"found_at"`
	SeenAt  string               `json:"seen_at"`
	EndedAt *string              `json:"ended_at"` // null while the authority still shows it
	cause   cause.Cause
}

func newDifferenceView(d store.Difference) differenceView {
	return differenceView{
		Kind: d.Kind, Ours: d.Ours, Theirs: d.Theirs, FoundAt: formatTime(d.FoundAt), SeenAt: formatTime(d.SeenAt), EndedAt: optionalTime(d.EndedAt),
		cause: d.Cause(),
	}
}

// documentView is a fiscal document in JSON.
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
	SentSHA256   *string            `json:"sent_sha256"` // of the document that the authority receives
	CreatedAt    string             `json:"created_at"`
	UpdatedAt    string             `json:"updated_at"`
}

// attemptView is an attempt to send a document, in JSON.
type attemptView struct {
	Number   int64   `json:"number"`
	Kind     string  `json:"kind"`
	OpenedAt string  `json:"opened_at"`
	ClosedAt *string `json:"closed_at"`
	Class    *string `json:"class"` // null while the attempt is open
	Detail   string  `json:"detail"`
	SHA256   string  `json:"sha256"`
}

// evidenceView is an item of evidence, in JSON.
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
	By       *string       `json:"by"` // the person who decided or wrote the note
	Signer   *string       `json:"signer,omitempty"`
	// Confirmed says of a commercial response whether its signer was known to act for the
	// buyer. Other evidence does not have it.
	Confirmed *bool `json:"confirmed,omitempty"`
}

// responseView is a commercial response of an unknown signer, in JSON.
type responseView struct {
	At     string `json:"at"`
	Result string `json:"result"`
	Reason string `json:"reason"`
	Signer string `json:"signer"`
}

func newResponseView(u store.UnconfirmedResponse) responseView {
	v := responseView{At: u.At.Format(time.RFC3339Nano), Result: "rejected", Reason: u.Reason, Signer: u.Signer}
	if u.Accepted {
		v.Result = "accepted"
	}
	return v
}

// documentJob is the job of a document, in JSON.
type documentJob struct {
	Stage      string  `json:"stage"`
	Attempt    int64   `json:"attempt"`
	NextTry    *string `json:"next_try"`    // null while the job waits until the authority answers
	LeaseUntil *string `json:"lease_until"` // null when no worker has the job
	LastError  *string `json:"last_error"`
}

// documentResult is the outcome of all evidence together, in JSON.
type documentResult struct {
	Status  fiscal.Status `json:"status"`
	TrackID *string       `json:"track_id"`
	Decided *string       `json:"decided_by"` // kind of the evidence that decided the status
	Alarm   *string       `json:"alarm"`
	Freeze  bool          `json:"freeze"`
}

// newWorkShow returns everything that the service knows about a document.
func newWorkShow(d dossier.Dossier, now time.Time, l lang.Language) workShowView {
	v := workShowView{
		Document:    newDocumentView(d.Invoice, d.Issued),
		Attempts:    mapEach(d.Attempts, func(a store.Attempt) attemptView { return newAttemptView(a, l) }),
		Evidence:    mapEach(d.Evidence, func(e evidence.Item) evidenceView { return newEvidenceView(e, l) }),
		Unconfirmed: mapEach(d.Responses, newResponseView),
		Replaced:    mapEach(d.Replaced, newReplacedView),
		Differences: mapEach(d.Differences, newDifferenceView),
	}
	if outcome := d.Outcome(); outcome != nil {
		v.Outcome = newDocumentResult(*outcome, l)
	}
	if d.Job != nil {
		v.Job = newDocumentJob(*d.Job, now, l)
	}
	return v
}

func newAttemptView(a store.Attempt, l lang.Language) attemptView {
	return attemptView{
		Number: a.Number, Kind: a.Kind, OpenedAt: formatTime(a.OpenedAt), ClosedAt: optionalTime(a.ClosedAt),
		Class: optional(string(a.Class)), Detail: a.Cause.In(l), SHA256: hex.EncodeToString(a.Digest),
	}
}

func newDocumentResult(o evidence.Outcome, l lang.Language) *documentResult {
	r := &documentResult{Status: o.Status, TrackID: optional(o.TrackID), Alarm: optional(o.Alarm.In(l)), Freeze: o.Freeze}
	if o.Verdict != nil {
		r.Decided = optional(string(o.Verdict.Kind))
	}
	return r
}

func newDocumentJob(j store.Job, now time.Time, l lang.Language) *documentJob {
	v := &documentJob{Stage: j.Stage, Attempt: j.Attempt, NextTry: optionalTime(j.RunAt), LastError: optional(j.Cause.In(l))}
	if j.LeaseUntil.After(now) {
		v.LeaseUntil = optionalTime(j.LeaseUntil)
	}
	return v
}

func newDocumentView(inv store.Invoice, issued *store.Issued) documentView {
	if issued == nil {
		issued = new(store.Issued)
	}
	v := documentView{
		ID: inv.DocumentID, InvoiceID: inv.ID, ExternalID: inv.ExternalID, TaxpayerID: inv.TaxpayerID, Environment: inv.Environment,
		Type: inv.Type, Status: inv.Status, Messages: inv.Messages, ENCF: optional(inv.ENCF), TrackID: optional(inv.TrackID),
		SecurityCode: optional(issued.SecurityCode), SHA256: optional(hex.EncodeToString(issued.XMLDigest)),
		SentSHA256: optional(hex.EncodeToString(issued.SentDigest)), CreatedAt: formatTime(inv.CreatedAt), UpdatedAt: formatTime(inv.UpdatedAt),
	}
	if v.Messages == nil {
		v.Messages = []string{}
	}
	return v
}

func newEvidenceView(e evidence.Item, l lang.Language) evidenceView {
	v := evidenceView{
		At: e.At.Format(time.RFC3339Nano), Kind: e.Kind, TrackID: optional(e.TrackID), Verdict: optional(verdictWord(e)),
		Ours: e.Ours, Foreign: e.Foreign, Messages: make([]string, len(e.Messages)), Note: e.Cause().In(l), By: optional(e.By), Signer: optional(e.Signer),
	}
	if e.Kind == evidence.Commercial {
		v.Confirmed = &e.Confirmed
	}
	if e.Attempt > 0 {
		v.Attempt = &e.Attempt
	}
	for i, m := range e.Messages {
		v.Messages[i] = m.String()
	}
	return v
}

// verdictWord returns the verdict of an item as a word. It is empty for kinds of
// evidence that have no verdict.
func verdictWord(e evidence.Item) string {
	switch e.Kind {
	case evidence.Verdict, evidence.State, evidence.Operator, evidence.Commercial:
	default:
		return ""
	}
	return e.Verdict.Word()
}
