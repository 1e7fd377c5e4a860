package overview

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Options configure a Reporter. Store and Now are required.
type Options struct {
	Store *store.Store
	Now   func() time.Time
	// Circuits returns which services of the authority this node does not call now; nil
	// in the sandbox.
	Circuits func() map[string]bool
}

// Reporter reads the overview. Its methods may be called at the same time. They read a
// bounded number of rows, however many documents there are.
type Reporter struct {
	o Options
}

// NewReporter returns a reporter. It fails when an option is missing.
func NewReporter(o Options) (*Reporter, error) {
	if o.Store == nil || o.Now == nil {
		return nil, errors.New("overview: Options are incomplete")
	}
	if o.Circuits == nil {
		o.Circuits = func() map[string]bool { return nil }
	}
	return &Reporter{o: o}, nil
}

// The spans of the overview.
const (
	hoursShown = 24
	daysShown  = 30
)

// Overview is what the first page of the console shows.
type Overview struct {
	At    time.Time
	Today map[fiscal.Status]int64 // documents created today, by status
	// Attention is what needs a person, the most urgent first. It has no item with the
	// count 0.
	Attention []Attention
	Hours     []Bar // the last 24 hours, the oldest first; the last one has not ended
	Days      []Bar // the last 30 days of the country
	Verdicts  Verdicts
	Authority Authority
	Index     IndexState
}

// Bar is how many documents were created in an hour or a day, by status.
type Bar struct {
	Start     time.Time
	Documents map[fiscal.Status]int64
}

// Total returns the documents of all statuses.
func (b Bar) Total() (n int64) {
	for _, one := range b.Documents {
		n += one
	}
	return n
}

// Verdicts is how long documents waited for their verdict, in the last 24 hours and in
// the last 30 days.
type Verdicts struct{ Day, Month VerdictTime }

// VerdictTime is how long documents waited for their verdict.
type VerdictTime struct {
	Documents   int64
	Median, P99 time.Duration
}

// Authority is whether the service reaches the tax authority. It is zero in the sandbox.
type Authority struct {
	Contact     store.AuthorityContact
	Contingency *store.Contingency // the last one; nil: there was none
	Circuits    map[string]bool    // services that this node knows; true: not called now
}

// InContingency reports whether a contingency lasts.
func (a Authority) InContingency() bool {
	return a.Contingency != nil && a.Contingency.EndedAt.IsZero()
}

// IndexState is how far the index of documents has come.
type IndexState struct {
	Started bool
	// Complete says that the documents that existed before the indexer are indexed.
	// Before, counts and searches by buyer or amount lack some of them.
	Complete bool
}

// Overview reads the overview of taxpayers.
func (r *Reporter) Overview(ctx context.Context, within store.Within) (o Overview, err error) {
	o.At = r.o.Now()
	scopes := scopesOf(within)
	if o.Hours, err = r.bars(ctx, scopes, store.SpanHour, o.At.Add(-(hoursShown-1)*time.Hour), hoursShown, time.Hour); err != nil {
		return o, err
	}
	today := store.SpanDay.Start(o.At)
	if o.Days, err = r.bars(ctx, scopes, store.SpanDay, today.Add(-(daysShown-1)*24*time.Hour), daysShown, 24*time.Hour); err != nil {
		return o, err
	}
	o.Today = o.Days[len(o.Days)-1].Documents
	if o.Verdicts.Day, err = r.verdicts(ctx, scopes, store.SpanHour, o.At.Add(-hoursShown*time.Hour)); err != nil {
		return o, err
	}
	if o.Verdicts.Month, err = r.verdicts(ctx, scopes, store.SpanDay, today.Add(-(daysShown-1)*24*time.Hour)); err != nil {
		return o, err
	}
	if o.Authority, err = r.Authority(ctx, within.Environment); err != nil {
		return o, err
	}
	if o.Index, err = r.indexState(ctx, o.At); err != nil {
		return o, err
	}
	o.Attention, err = r.attention(ctx, within, scopes, o)
	return o, err
}

// scopesOf returns the scopes whose counts make up the overview. The counts of the empty
// taxpayer are the sums over all.
func scopesOf(within store.Within) (all []store.Scope) {
	if within.All {
		return []store.Scope{{Environment: within.Environment}}
	}
	for _, taxpayer := range within.Taxpayers {
		if taxpayer != "" {
			all = append(all, store.Scope{Environment: within.Environment, TaxpayerID: taxpayer})
		}
	}
	return all
}

// bars reads the counts of spans that follow one another.
func (r *Reporter) bars(ctx context.Context, scopes []store.Scope, span store.Span, from time.Time, n int, length time.Duration) ([]Bar, error) {
	first := span.Start(from)
	bars := make([]Bar, n)
	for i := range bars {
		bars[i] = Bar{first.Add(time.Duration(i) * length), map[fiscal.Status]int64{}}
	}
	for _, scope := range scopes {
		counts, err := r.o.Store.DocumentCounts(ctx, scope, span, first)
		if err != nil {
			return nil, err
		}
		for _, c := range counts {
			if i := int(c.Start.Sub(first) / length); i < n {
				bars[i].Documents[c.Status] += c.Documents
			}
		}
	}
	return bars, nil
}

func (r *Reporter) verdicts(ctx context.Context, scopes []store.Scope, span store.Span, from time.Time) (VerdictTime, error) {
	var sum store.VerdictTimes
	for _, scope := range scopes {
		one, err := r.o.Store.VerdictTimes(ctx, scope, span, from)
		if err != nil {
			return VerdictTime{}, err
		}
		sum.Add(one)
	}
	return VerdictTime{sum.Documents(), sum.Quantile(0.5), sum.Quantile(0.99)}, nil
}

// Authority reads whether the service reaches the tax authority.
func (r *Reporter) Authority(ctx context.Context, env fiscal.Environment) (a Authority, err error) {
	if env == fiscal.Sandbox {
		return a, nil
	}
	if a.Contact, err = r.o.Store.AuthorityContact(ctx, env); err != nil {
		return a, err
	}
	a.Circuits = r.o.Circuits()
	last, err := r.o.Store.Contingency(ctx, env)
	if errors.Is(err, store.ErrNotFound) {
		return a, nil
	}
	a.Contingency = &last
	return a, err
}

func (r *Reporter) indexState(ctx context.Context, now time.Time) (IndexState, error) {
	positions, err := r.o.Store.IndexPositions(ctx)
	if err != nil || len(positions) == 0 {
		return IndexState{}, err
	}
	// The walks stay behind the clock. One that is far behind has old documents left,
	// unless there are none.
	state := IndexState{Started: true, Complete: true}
	_, last, err := r.o.Store.CreatedAfter(ctx, positions[store.WalkCreatedBefore], store.FirstIDAt(now.Add(-3*behind)), 1)
	if err != nil || last != "" {
		state.Complete = false
	}
	return state, err
}
