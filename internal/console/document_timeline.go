package console

import (
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dossier"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// progressView is the part of the page of a document that updates itself.
type progressView struct {
	Invoice    store.Invoice
	Issued     *store.Issued
	Advice     advice
	Timeline   []timelineEntry
	Next       *nextStep // nil: no worker continues with the document
	Deliveries []dossier.Delivery
	Live       bool // something can still change
}

// timelineEntry is something that happened to a document.
type timelineEntry struct {
	At       time.Time
	Since    string // time since the creation; empty for the creation
	Tone     tone
	Title    string
	Status   fiscal.Status // the new status; empty: it did not change
	Text     string
	Messages []string
	Facts    []fact
	Request  string // id of the HTTP request that caused it; empty: none
}

// nextStep is what a worker does next.
type nextStep struct {
	Title   string
	At      time.Time // zero: when the authority answers, or now
	When    string    // instead of a time
	Attempt int64
	Error   string
}

// progress returns what has happened to a document and what comes next.
func (x *request) progress(f documentFacts) progressView {
	v := progressView{Invoice: f.Invoice, Issued: f.Shown(), Advice: x.advise(f), Next: x.next(f), Deliveries: f.Deliveries}
	v.Live = !f.Invoice.Status.Final() || f.Job != nil || slices.ContainsFunc(f.Deliveries, func(d dossier.Delivery) bool { return d.State == store.DeliveryPending })
	for _, one := range f.Entries() {
		e, ok := x.timelineEntry(one.What)
		if !ok {
			continue
		}
		if e.At = one.At; one.At.Sub(f.Invoice.CreatedAt) >= time.Millisecond {
			e.Since = "+" + shortDuration(one.At.Sub(f.Invoice.CreatedAt))
		}
		v.Timeline = append(v.Timeline, e)
	}
	return v
}

// timelineEntry returns the entry of what happened; false: the page does not show it.
func (x *request) timelineEntry(what any) (timelineEntry, bool) {
	switch what := what.(type) {
	case store.HistoryEntry:
		return x.historyEntry(what)
	case store.Issued:
		return x.issuedEntry(what), true
	case store.Attempt:
		return x.attemptEntry(what), true
	case evidence.Item:
		return x.evidenceEntry(what), true
	case store.UnconfirmedResponse:
		return timelineEntry{
			Tone: warn, Title: x.text("timeline.unconfirmed"), Text: what.Reason, Facts: []fact{{x.text("timeline.signer"), identifier(what.Signer)}},
		}, true
	case store.Difference:
		return timelineEntry{Tone: warn, Title: x.text("timeline.difference"), Text: x.cause(what.Cause())}, true
	}
	return timelineEntry{}, false
}

// historyEntry returns the entry of a step of the history. A commercial response has
// evidence, which says more.
func (x *request) historyEntry(h store.HistoryEntry) (timelineEntry, bool) {
	e := timelineEntry{Tone: statusTone(h.Status), Request: h.RequestID, Text: x.cause(h.Cause)}
	switch h.Kind {
	case "created":
		e.Title, e.Tone = x.text("timeline.created"), neutral
		if h.Status != fiscal.Queued { // the sandbox judges at once
			e.Status = h.Status
		}
	case "status_changed":
		e.Title, e.Status = x.text("timeline.status"), h.Status
	case "reissued":
		e.Title, e.Tone = x.text("timeline.reissued"), warn
	case "requeued":
		e.Title, e.Tone = x.text("timeline.requeued"), neutral
	case "commercial_response", "commercial_response_unconfirmed":
		return e, false
	default:
		e.Title, e.Tone = strings.ReplaceAll(h.Kind, "_", " "), neutral
	}
	return e, true
}

func (x *request) issuedEntry(i store.Issued) timelineEntry {
	return timelineEntry{
		Tone: neutral, Title: x.text("timeline.issued", i.ENCF),
		Facts: []fact{{x.text("timeline.signed_at"), i.SignedAt}, {x.text("timeline.code"), identifier(i.SecurityCode)}},
	}
}

func (x *request) attemptEntry(a store.Attempt) timelineEntry {
	key := "timeline.attempt"
	if a.Kind == "deliver" {
		key = "timeline.attempt_deliver"
	}
	e := timelineEntry{Title: x.text(key, a.Number), Text: x.cause(a.Cause)}
	switch a.Class {
	case store.Conclusive:
		e.Tone = good
		e.Facts = append(e.Facts, fact{x.text("word.result"), x.text("timeline.conclusive")})
	case store.NotReceived:
		e.Tone = neutral
		e.Facts = append(e.Facts, fact{x.text("word.result"), x.text("timeline.not_received")})
	case store.Inconclusive:
		e.Tone = warn
		e.Facts = append(e.Facts, fact{x.text("word.result"), x.text("timeline.inconclusive")})
	default:
		e.Tone = busy
		e.Facts = append(e.Facts, fact{x.text("word.result"), x.text("timeline.open")})
	}
	if a.ClosedAt.After(a.OpenedAt) {
		e.Facts = append(e.Facts, fact{x.text("word.duration"), shortDuration(a.ClosedAt.Sub(a.OpenedAt))})
	}
	return e
}

func (x *request) evidenceEntry(i evidence.Item) timelineEntry {
	e := timelineEntry{Tone: verdictTone(i), Title: x.evidenceTitle(i), Text: x.cause(i.Cause())}
	for _, m := range i.Messages {
		e.Messages = append(e.Messages, strings.TrimSpace("["+m.Code+"] "+m.Text))
	}
	for _, one := range []fact{{"word.trackid", identifier(i.TrackID)}, {"timeline.by", i.By}, {"timeline.signer", identifier(i.Signer)}} {
		if one.Value != "" && one.Value != identifier("") {
			e.Facts = append(e.Facts, fact{x.text(one.Name), one.Value})
		}
	}
	if i.Attempt > 0 {
		e.Facts = append(e.Facts, fact{x.text("timeline.number"), i.Attempt})
	}
	return e
}

// evidenceTitle says in words what an item of evidence is.
func (x *request) evidenceTitle(i evidence.Item) string {
	key := "evidence." + string(i.Kind)
	switch i.Kind {
	case evidence.Verdict, evidence.Operator, evidence.Commercial:
		return x.text(key, x.verdict(i.Verdict))
	case evidence.State:
		whose := "unclear"
		if i.Ours {
			whose = "ours"
		} else if i.Foreign {
			whose = "foreign"
		}
		return x.text(key+"_"+whose, x.verdict(i.Verdict))
	case evidence.Track:
		if i.Found {
			return x.text("evidence.track_found")
		}
	case evidence.Absent, evidence.Lost, evidence.Inconclusive, evidence.Settled, evidence.NoOther, evidence.NoLookUp, evidence.Note, evidence.Receipt, evidence.DeliveryFailed:
	}
	return x.text(key)
}

// verdict returns a verdict as a word. A code that the authority does not document stays a
// number.
func (x *request) verdict(v fiscal.Verdict) string {
	if key := "verdict." + v.Word(); x.has(key) {
		return x.text(key)
	}
	return v.Word()
}

func verdictTone(i evidence.Item) tone {
	switch i.Kind {
	case evidence.Verdict, evidence.Operator, evidence.Commercial, evidence.State:
		switch {
		case i.Foreign || i.Verdict == fiscal.VerdictRejected:
			return bad
		case i.Verdict == fiscal.VerdictAccepted:
			return good
		case i.Verdict == fiscal.VerdictConditional:
			return warn
		}
		return busy
	case evidence.Receipt:
		return good
	case evidence.Inconclusive, evidence.Lost, evidence.DeliveryFailed:
		return warn
	case evidence.Track, evidence.Absent, evidence.Settled, evidence.NoOther, evidence.NoLookUp, evidence.Note:
	}
	return neutral
}

// next returns what a worker does next with a document; nil: nothing.
func (x *request) next(f documentFacts) *nextStep {
	if f.Job == nil {
		return nil
	}
	stage := "stage." + f.Job.Stage
	n := &nextStep{Attempt: f.Job.Attempt, At: f.Job.RunAt, Error: x.cause(f.Job.Cause)}
	if x.has(stage) {
		n.Title = x.text(stage)
	} else { // a scenario of the sandbox
		n.Title = x.text("stage.scenario")
	}
	switch {
	case f.Job.LeaseUntil.After(x.console.o.Now()):
		n.At, n.When = time.Time{}, x.text("timeline.now")
	case f.Job.RunAt.IsZero():
		n.When = x.text("timeline.when_answers")
	}
	return n
}
