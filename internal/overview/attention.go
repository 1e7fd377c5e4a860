package overview

import (
	"context"
	"net/url"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Kind says why something needs a person.
type Kind string

// The kinds of attention, the most urgent first.
const (
	Deadlines          Kind = "deadline"           // documents of a contingency that must be sent before a moment
	UnknownOutcomes    Kind = "outcome_unknown"    // documents of which the authority's verdict is not known
	Fences             Kind = "fence"              // number ranges that give no numbers until they are released
	Rejections         Kind = "rejected"           // documents that the authority rejected in the last seven days
	FailedValidations  Kind = "validation_failed"  // documents that failed validation in the last seven days
	Overdue            Kind = "overdue"            // documents without a verdict for 15 minutes
	LowRanges          Kind = "range_low"          // types of which a taxpayer has few numbers left
	EndingCertificates Kind = "certificate_ending" // taxpayers whose certificate ends within 30 days, or has ended
	EndingCredentials  Kind = "credential_ending"  // API keys that end within 30 days
	FailingEndpoints   Kind = "webhook_failing"    // endpoints that fail or are disabled
)

// Attention is something that needs a person.
type Attention struct {
	Kind     Kind
	Count    int64
	AtLeast  bool      // there are more than Count
	Deadline time.Time // of Deadlines; the first end of EndingCertificates and EndingCredentials
	// Path and Filter are the page of the console that shows the objects.
	Path   string
	Filter url.Values
}

// Address returns the path with the filter.
func (a Attention) Address() string {
	if len(a.Filter) == 0 {
		return a.Path
	}
	return a.Path + "?" + a.Filter.Encode()
}

const (
	// verdictTime is after which time a document without a verdict needs a look. The page of
	// pending work offers the same age as a filter.
	verdictTime = 15 * time.Minute
	// recentDays is for how many days refused documents are shown.
	recentDays = 7
	// mostCounted is how many waiting documents are counted.
	mostCounted = 200
)

// attention reads what needs a person, from the rest of the overview and the database.
func (r *Reporter) attention(ctx context.Context, within store.Within, scopes []store.Scope, o Overview) (all []Attention, err error) {
	add := func(some ...Attention) {
		for _, a := range some {
			if a.Count > 0 {
				all = append(all, a)
			}
		}
	}
	unknown, err := r.unknown(ctx, scopes)
	if err != nil {
		return nil, err
	}
	waiting := make([]Attention, 2) // the sandbox has no authority that documents could wait for
	if within.Environment != fiscal.Sandbox {
		if waiting, err = r.waiting(ctx, within, o); err != nil {
			return nil, err
		}
	}
	fences, preparation, err := r.preparation(ctx, within, o.At)
	if err != nil {
		return nil, err
	}
	add(waiting[0], unknown, fences)
	from := fiscal.DateOf(o.At.Add(-(recentDays - 1) * 24 * time.Hour)).String()
	for _, refused := range []struct {
		kind   Kind
		status fiscal.Status
	}{{Rejections, fiscal.Rejected}, {FailedValidations, fiscal.ValidationFailed}} {
		a := Attention{Kind: refused.kind, Path: "/console/documents", Filter: url.Values{"status": {string(refused.status)}, "from": {from}}}
		for _, day := range o.Days[len(o.Days)-recentDays:] {
			a.Count += day.Documents[refused.status]
		}
		add(a)
	}
	add(waiting[1])
	add(preparation...)
	return all, nil
}

// unknown counts the documents with an unknown outcome, however old they are.
func (r *Reporter) unknown(ctx context.Context, scopes []store.Scope) (Attention, error) {
	a := Attention{Kind: UnknownOutcomes, Path: "/console/documents", Filter: url.Values{"status": {string(fiscal.OutcomeUnknown)}}}
	for _, scope := range scopes {
		counts, err := r.o.Store.DocumentCounts(ctx, scope, store.SpanAll, time.Time{})
		if err != nil {
			return a, err
		}
		for _, c := range counts {
			if c.Status == fiscal.OutcomeUnknown {
				a.Count += c.Documents
			}
		}
	}
	return a, nil
}

// waiting counts the documents that wait with a deadline, and those that wait for long.
func (r *Reporter) waiting(ctx context.Context, within store.Within, o Overview) ([]Attention, error) {
	deadline := Attention{Kind: Deadlines, Path: "/console/work", Filter: url.Values{"deadline": {"1"}}}
	if last := o.Authority.Contingency; last != nil && !last.EndedAt.IsZero() {
		items, next, err := r.o.Store.WorkList(ctx, within, store.WorkFilter{Contingency: last, Limit: mostCounted})
		if err != nil {
			return nil, err
		}
		deadline.Count, deadline.AtLeast, deadline.Deadline = int64(len(items)), next != "", last.EndedAt.Add(fiscal.ContingencyTime)
	}
	overdue := Attention{Kind: Overdue, Path: "/console/work", Filter: url.Values{"age": {"15m"}}}
	if !o.Authority.InContingency() {
		items, next, err := r.o.Store.WorkList(ctx, within, store.WorkFilter{CreatedBefore: o.At.Add(-verdictTime), Limit: mostCounted})
		if err != nil {
			return nil, err
		}
		for _, w := range items {
			if !w.Status.Final() {
				overdue.Count++
			}
		}
		overdue.AtLeast = next != ""
	}
	return []Attention{deadline, overdue}, nil
}

// preparation counts what keeps taxpayers from issuing, or soon will.
func (r *Reporter) preparation(ctx context.Context, within store.Within, now time.Time) (fences Attention, all []Attention, err error) {
	fences = Attention{Kind: Fences, Path: "/console/authority"}
	low := Attention{Kind: LowRanges, Path: "/console/taxpayers", Filter: url.Values{"needs": {"ranges"}}}
	numbers, err := r.o.Store.NumbersLeft(ctx, within.Environment, fiscal.DateOf(now))
	if err != nil {
		return fences, nil, err
	}
	for _, n := range numbers {
		if !within.Allows(n.TaxpayerID) {
			continue
		}
		fences.Count += n.Fenced
		if n.Left < fiscal.LowNumbers && n.Fenced == 0 {
			low.Count++
		}
	}
	certificates := Attention{Kind: EndingCertificates, Path: "/console/taxpayers", Filter: url.Values{"needs": {"certificate"}}}
	ending, err := r.o.Store.EndingCertificates(ctx, within.Environment, now.Add(fiscal.EndsSoon))
	if err != nil {
		return fences, nil, err
	}
	for _, c := range ending {
		certificates.count(within.Allows(c.TaxpayerID), c.NotAfter)
	}
	keys := Attention{Kind: EndingCredentials, Path: "/console/keys"}
	credentials, err := r.o.Store.EndingCredentials(ctx, within.Environment, now, now.Add(fiscal.EndsSoon))
	if err != nil {
		return fences, nil, err
	}
	for _, c := range credentials {
		keys.count(within.Allows(c.TaxpayerID), c.ExpiresAt)
	}
	webhooks := Attention{Kind: FailingEndpoints, Path: "/console/webhooks"}
	endpoints, err := r.o.Store.TroubledEndpoints(ctx, within.Environment)
	for _, e := range endpoints {
		webhooks.count(within.Allows(e.TaxpayerID), e.FailingSince)
	}
	webhooks.Deadline = time.Time{}
	return fences, []Attention{low, certificates, keys, webhooks}, err
}

// count counts an object that ends at a moment. The first one must end first.
func (a *Attention) count(allowed bool, end time.Time) {
	if !allowed {
		return
	}
	if a.Count++; a.Count == 1 {
		a.Deadline = end
	}
}
