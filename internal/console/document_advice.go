package console

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// advice says in plain words how a document stands, why, and what to do.
type advice struct {
	Tone    tone
	Title   string
	Reasons []reason
	Steps   []string
	Notes   []string        // other messages of the document
	Retry   bool            // the sale may be issued again
	NoCopy  string          // why not, where a person might want to
	Again   []store.Invoice // documents that issue the sale again already
	Decide  bool            // an operator may have to decide
}

// reason is one cause: what it means, the words of the authority or of an operator, and a
// technical detail.
type reason struct{ Code, Meaning, Words, Detail string }

// advise explains the status of a document.
func (x *request) advise(f documentFacts) advice {
	inv := f.Invoice
	key := "advice." + string(inv.Status)
	a := advice{Tone: statusTone(inv.Status), Title: x.text(key + ".title")}
	switch inv.Status {
	case fiscal.Rejected:
		x.explain(&a, inv.Status, inv.Messages)
		x.explainDecision(&a, f.Evidence)
	case fiscal.AcceptedConditional:
		a.Steps = []string{x.text(key + ".do")}
		x.explainDecision(&a, f.Evidence)
		x.explain(&a, inv.Status, inv.Messages)
	case fiscal.ValidationFailed:
		for _, m := range inv.Messages {
			a.Reasons = append(a.Reasons, reason{Meaning: m})
		}
	case fiscal.OutcomeUnknown:
		a.Decide = true
		a.Notes = inv.Messages
		x.explainUnknown(&a, f.Attempts)
	case fiscal.Accepted, fiscal.Delivered:
		a.Notes = inv.Messages
		x.explainDecision(&a, f.Evidence)
		if inv.Status == fiscal.Delivered && len(a.Reasons) > 0 {
			a.Reasons = append(a.Reasons, reason{Meaning: x.text("advice.received")})
		}
	case fiscal.Queued, fiscal.Submitted, fiscal.Processing:
		a.Notes = inv.Messages
	}
	if inv.Environment == fiscal.Sandbox && inv.Status == fiscal.Accepted {
		key = "advice.sandbox_accepted"
		a.Title = x.text(key + ".title")
	}
	if len(a.Reasons) == 0 {
		a.Reasons = []reason{{Meaning: x.text(key + ".why")}}
	}
	if len(a.Steps) == 0 {
		a.Steps = []string{x.text(key + ".do")}
	}
	a.Retry, a.Again = f.Reissue.Blocked == "", f.Reissue.Again
	switch {
	case len(a.Again) > 0:
		a.Steps = []string{x.text("advice.again.do")}
	case !a.Retry && !isTemplate(inv.Status):
		a.NoCopy = x.text(f.Reissue.Blocked)
	}
	x.warn(&a, f)
	return a
}

// explain adds the meaning of the authority's codes. The codes that only repeat the
// status say nothing when there are others.
func (x *request) explain(a *advice, status fiscal.Status, messages []string) {
	var general []reason
	var generalSteps []string
	for _, m := range messages {
		code, words, ok := rejection.Split(m)
		if !ok {
			a.Notes = append(a.Notes, m)
			continue
		}
		meaning, do, known := rejection.ExplainToPerson(code, status, x.language)
		if !known {
			meaning = x.text("advice.unknown_code")
		}
		one := reason{Code: code, Meaning: meaning, Words: words}
		if code == "2" || code == "4" {
			general, generalSteps = append(general, one), append(generalSteps, do)
			continue
		}
		a.Reasons = append(a.Reasons, one)
		if known && !slices.Contains(a.Steps, do) {
			a.Steps = append(a.Steps, do)
		}
	}
	if len(a.Reasons) == 0 {
		a.Reasons = general
	}
	if len(a.Steps) == 0 {
		a.Steps = generalSteps
	}
}

// explainDecision names the operators who decided where a document stands, with their
// evidence. The title names the authority only when the authority has decided, too. A
// document that the authority has accepted needs no decision.
func (x *request) explainDecision(a *advice, known []evidence.Item) {
	isDecision := func(i evidence.Item) bool { return i.Kind == evidence.Operator }
	status := evidence.Fold(known).Status
	// What the authority alone has said.
	alone := evidence.Fold(slices.DeleteFunc(slices.Clone(known), isDecision)).Status
	rejected := status == fiscal.Rejected
	if status == alone && !rejected {
		return
	}
	for _, i := range known {
		if !isDecision(i) || (i.Verdict == fiscal.VerdictRejected) != rejected {
			continue
		}
		key := "advice.decided"
		switch i.Verdict {
		case fiscal.VerdictAccepted:
			key = "advice.decided_accepted"
		case fiscal.VerdictConditional:
			key = "advice.decided_conditional"
		case fiscal.VerdictRejected, fiscal.VerdictInProcess, fiscal.VerdictNotFound:
		}
		if status != alone {
			a.Title = x.text(key + ".title")
		}
		a.Reasons = append(a.Reasons, reason{Meaning: x.text(key, i.By), Words: i.Note})
	}
}

// explainUnknown says which attempt left the outcome open.
func (x *request) explainUnknown(a *advice, attempts []store.Attempt) {
	for _, one := range slices.Backward(attempts) {
		if one.Class == store.Inconclusive || one.Class == "" {
			a.Reasons = append(a.Reasons, reason{Meaning: x.text("advice.outcome_unknown.attempt", one.Number, one.OpenedAt.In(fiscal.Zone()).Format("02/01/2006 15:04:05")), Detail: x.cause(one.Cause)})
			return
		}
	}
}

// warn adds what needs a person in addition to the status: an alarm of the evidence, a difference
// with the authority, or a document that no worker continues with.
func (x *request) warn(a *advice, f documentFacts) {
	if alarm := evidence.Fold(f.Evidence).Alarm; f.Shown() != nil && alarm != "" {
		a.Reasons = append(a.Reasons, reason{Meaning: x.cause(alarm)})
	}
	for _, d := range f.Differences {
		if d.EndedAt.IsZero() {
			a.Tone = warn
			a.Reasons = append(a.Reasons, reason{Meaning: x.cause(d.Cause())})
			if step := x.text("advice.difference"); !slices.Contains(a.Steps, step) {
				a.Steps = append(a.Steps, step)
			}
		}
	}
	if f.Job == nil && !f.Invoice.Status.Final() {
		a.Tone = warn
		a.Reasons = append(a.Reasons, reason{Meaning: x.text("advice.no_job")})
		a.Steps = append(a.Steps, x.text("advice.no_job_do"))
	}
	if f.Job != nil && f.Job.Cause.Held() {
		about := "held"
		if f.Job.Cause.Altered() {
			about = "altered"
		}
		a.Tone, a.Title, a.Steps = warn, x.text("advice."+about+".title"), []string{x.text("advice." + about + ".do")}
		a.Reasons = []reason{{Meaning: x.cause(f.Job.Cause)}}
		return
	}
	if f.Job != nil && f.Job.Cause != "" && !f.Invoice.Status.Final() && f.Invoice.Status == fiscal.Queued {
		a.Reasons = append(a.Reasons, reason{Meaning: x.text("advice.waits"), Detail: x.cause(f.Job.Cause)})
	}
}

// cause returns a cause in the language of the person, as a sentence. A text without a kind
// stays as it is. The pages themselves offer what to do with a document that is held.
func (x *request) cause(c cause.Cause) string {
	text := c.In(x.language)
	if c.Held() {
		text = c.Why(x.language)
	}
	if c.Kind() == cause.Text {
		return text
	}
	first, size := utf8.DecodeRuneInString(text)
	text = string(unicode.ToUpper(first)) + text[size:]
	if last, _ := utf8.DecodeLastRuneInString(text); last != '.' {
		text += "."
	}
	return text
}
