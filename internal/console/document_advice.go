package console

import (
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/access"
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
			a.Reasons = append(a.Reasons, reason{Meaning: x.text("advice.outcome_unknown.attempt", one.Number, one.OpenedAt.In(fiscal.Zone()).Format("02/01/2006 15:04:05")), Detail: x.translated(one.Detail)})
			return
		}
	}
}

// warn adds what needs a person in addition to the status: an alarm of the evidence, a difference
// with the authority, or a document that no worker continues with.
func (x *request) warn(a *advice, f documentFacts) {
	if alarm := evidence.Fold(f.Evidence).Alarm; f.Issued != nil && alarm != "" {
		a.Reasons = append(a.Reasons, reason{Meaning: x.translated(alarm)})
	}
	for _, d := range f.Differences {
		if d.EndedAt.IsZero() {
			a.Tone = warn
			a.Reasons = append(a.Reasons, reason{Meaning: x.difference(d)})
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
	if f.Job != nil && f.Job.Held() {
		a.Tone, a.Title, a.Steps = warn, x.text("advice.held.title"), []string{x.text("advice.held.do")}
		a.Reasons = []reason{{Meaning: x.translated(f.Job.LastError)}}
		return
	}
	if f.Job != nil && f.Job.LastError != "" && !f.Invoice.Status.Final() && f.Invoice.Status == fiscal.Queued {
		a.Reasons = append(a.Reasons, reason{Meaning: x.text("advice.waits"), Detail: x.translated(f.Job.LastError)})
	}
}

// difference says what the authority shows differently.
func (x *request) difference(d store.Difference) string {
	if d.Kind == store.DifferenceNotFound {
		return x.text("difference.not_found")
	}
	return x.text("difference."+string(d.Kind), d.Theirs, d.Ours)
}

// translated returns a cause of the history, or why a job failed, in the language of the
// person. Causes are stored in English; one that the page does not know is shown as it is.
func (x *request) translated(cause string) string {
	for english, key := range knownCauses() {
		switch {
		case cause == english:
			return x.text(key)
		case strings.HasSuffix(english, " ") && strings.HasPrefix(cause, english):
			rest, _, _ := strings.Cut(cause[len(english):], " ahead of ") // of a difference of clocks
			return x.text(key, rest)
		case strings.HasSuffix(english, ".") && strings.HasPrefix(cause, english+" "): // the authority's words follow
			return x.text(key) + cause[len(english):]
		}
	}
	if rest, ok := strings.CutPrefix(cause, store.HeldJob+"the number range ended on "); ok {
		day, _, _ := strings.Cut(rest, ",")
		return x.text("cause.held", day)
	}
	code, rest, _ := strings.Cut(cause, ": ")
	if code == "dgii" {
		return x.translatedCall(cause, rest)
	}
	if key := "form.ready." + code; x.has(key) {
		return x.text(key)
	}
	return cause
}

// translatedCall returns why a call of the authority failed: a sentence, with the service
// and the technical details.
func (x *request) translatedCall(cause, details string) string {
	for english, key := range map[string]string{
		fiscal.ErrNotReceived.Error(): "cause.call_not_received", fiscal.ErrInconclusive.Error(): "cause.call_inconclusive",
		fiscal.ErrAbsent.Error(): "cause.call_absent", fiscal.ErrNotDelegated.Error(): "cause.call_not_delegated",
		fiscal.ErrUnavailable.Error(): "cause.call_unavailable", fiscal.ErrOutage.Error(): "cause.call_outage",
		"the buyer's receiver did not acknowledge the document": "cause.call_receiver",
	} {
		if before, after, ok := strings.Cut(details, english); ok {
			details = strings.TrimPrefix(strings.TrimSuffix(before, ": ")+after, ": ")
			return strings.Replace(x.text(key, details), " ()", "", 1)
		}
	}
	return cause
}

// knownCauses returns the keys of the texts of causes. A cause that ends with a space is
// the beginning of one.
func knownCauses() map[string]string {
	return map[string]string{
		"registered": "cause.registered",
		"validated by the sandbox; a synthetic result":                                          "cause.sandbox",
		"registered by the sandbox; scenario ":                                                  "cause.scenario",
		"scenario ":                                                                             "cause.scenario",
		"the authority's verdict":                                                               "cause.verdict",
		"the authority's verdict: ":                                                             "cause.verdict_words",
		"the authority gave a track id":                                                         "cause.track",
		"the authority is processing the document":                                              "cause.processing",
		"the document may have reached the authority; the service asks":                         "cause.unknown",
		"the document does not fit the authority's format; no number was taken":                 "cause.format",
		"the rules of this release refuse the request; no number was taken":                     "cause.rules",
		"the authority does not have the document; the same bytes are sent again":               "cause.again",
		"an operator sends it again: ":                                                          "cause.resent",
		"number replaced: ":                                                                     "cause.replaced",
		"decided by an operator: ":                                                              "cause.decided",
		"The authority holds another document under our number. The number range is fenced.":    "cause.foreign",
		"The authority says that the number was used, and no attempt of ours can have used it.": "cause.used",
		"Synthetic result of the sandbox; the tax authority has not seen this document.":        "cause.sandbox_note",
		"the database may have lost the record of this attempt":                                 "cause.lost_attempt",
		"the worker ended before the answer":                                                    "cause.worker_ended",
		"the number range is exhausted":                                                         "cause.exhausted",
		"no look-up by number exists in this environment":                                       "cause.no_lookup",
		"the authority has not confirmed the clock of this machine yet: ":                       "cause.clock_unconfirmed",
		"the authority's clock is ":                                                             "cause.clock_authority",
		"the clock of this node is ":                                                            "cause.clock_node",
		access.ErrNoCertificate.Error():                                                         "cause.no_certificate",
		access.ErrCertificateExpired.Error():                                                    "cause.certificate_expired",
		access.ErrCertificateNotYetValid.Error():                                                "cause.certificate_early",
		access.ErrCertificateRevoked.Error():                                                    "cause.certificate_revoked",
	}
}
