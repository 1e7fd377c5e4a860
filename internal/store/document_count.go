package store

import (
	"context"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Span is the length of time that a count covers.
type Span string

// The spans of counts. A day is a day of the country. SpanAll has no beginning and no end.
const (
	SpanHour Span = "hour"
	SpanDay  Span = "day"
	SpanAll  Span = "all"
)

// Start returns when the span begins that contains a moment.
func (s Span) Start(t time.Time) time.Time {
	switch s {
	case SpanHour:
		return t.UTC().Truncate(time.Hour)
	case SpanDay:
		local := t.In(fiscal.Zone())
		return time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, fiscal.Zone()).UTC()
	case SpanAll:
	}
	return time.UnixMicro(0).UTC()
}

// verdictLimits are the upper limits of the buckets of verdict_times. The last bucket has
// no limit. A stored bucket is a number of this list, so the list must not change.
var verdictLimits = []time.Duration{
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 1500 * time.Millisecond, 2 * time.Second,
	3 * time.Second, 5 * time.Second, 7500 * time.Millisecond, 10 * time.Second, 15 * time.Second, 20 * time.Second, 30 * time.Second,
	45 * time.Second, time.Minute, 90 * time.Second, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute,
	30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour, 72 * time.Hour,
}

func verdictBucket(took time.Duration) int64 {
	bucket, _ := slices.BinarySearch(verdictLimits, took)
	return int64(bucket)
}

// countKey is a row of document_counts, or of verdict_times when status is empty.
type countKey struct {
	Scope
	span   Span
	start  int64
	status fiscal.Status
	bucket int64
}

// countChanges are what a transaction adds to the counts.
type countChanges map[countKey]int64

// add counts a document that the counts have as before; nil: they do not have it.
func (c countChanges) add(e IndexEntry, before *Indexed) {
	for _, taxpayer := range []string{e.TaxpayerID, ""} {
		scope := Scope{e.Environment, taxpayer}
		for _, span := range []Span{SpanHour, SpanDay, SpanAll} {
			start := micros(span.Start(e.CreatedAt))
			if before != nil {
				c[countKey{Scope: scope, span: span, start: start, status: before.Status}]--
			}
			c[countKey{Scope: scope, span: span, start: start, status: e.Status}]++
		}
		if e.VerdictAt.IsZero() || before != nil && !before.VerdictAt.IsZero() {
			continue
		}
		for _, span := range []Span{SpanHour, SpanDay} {
			c[countKey{Scope: scope, span: span, start: micros(span.Start(e.VerdictAt)), bucket: verdictBucket(e.VerdictAt.Sub(e.CreatedAt))}]++
		}
	}
}

// addCounts stores the changes.
func (tx *Tx) addCounts(ctx context.Context, changes countChanges) error {
	var documents, verdicts []any
	for key, n := range changes {
		switch {
		case n == 0:
		case key.status != "":
			documents = append(documents, string(key.Environment), key.TaxpayerID, string(key.span), key.start, string(key.status), n)
		default:
			verdicts = append(verdicts, string(key.Environment), key.TaxpayerID, string(key.span), key.start, key.bucket, n)
		}
	}
	const columns = 6
	err := inChunks(documents, columns, func(some []any, list string) error {
		return tx.exec(ctx, "count documents", `
			INSERT INTO document_counts (environment, taxpayer_id, span, start_at, status, documents)
			VALUES `+list+`
			ON CONFLICT (environment, taxpayer_id, span, start_at, status)
			DO UPDATE SET documents = document_counts.documents + excluded.documents`, some...)
	})
	if err != nil {
		return err
	}
	return inChunks(verdicts, columns, func(some []any, list string) error {
		return tx.exec(ctx, "count verdicts", `
			INSERT INTO verdict_times (environment, taxpayer_id, span, start_at, bucket, documents)
			VALUES `+list+`
			ON CONFLICT (environment, taxpayer_id, span, start_at, bucket)
			DO UPDATE SET documents = verdict_times.documents + excluded.documents`, some...)
	})
}

// DocumentCount is how many documents that were created in a span have a status.
type DocumentCount struct {
	Start     time.Time
	Status    fiscal.Status
	Documents int64
}

// DocumentCounts reads the counts of a taxpayer from a moment on, the oldest first. An
// empty taxpayer is the sum over all taxpayers of the environment.
func (r reader) DocumentCounts(ctx context.Context, scope Scope, span Span, from time.Time) ([]DocumentCount, error) {
	return collect(r.rows(ctx, "read counts of documents", `
		SELECT start_at, status, documents FROM document_counts
		WHERE environment = $1 AND taxpayer_id = $2 AND span = $3 AND start_at >= $4 AND documents > 0
		ORDER BY start_at, status`, scope.Environment, scope.TaxpayerID, span, micros(span.Start(from))), func(c *DocumentCount) []any { return []any{instant(&c.Start), &c.Status, &c.Documents} })
}

// VerdictTimes is a distribution of the time from creation to verdict. It can be added
// to others and asked for a quantile.
type VerdictTimes struct{ buckets [29]int64 }

// Documents returns how many documents are in the distribution.
func (v VerdictTimes) Documents() (n int64) {
	for _, one := range v.buckets {
		n += one
	}
	return n
}

// Add adds another distribution.
func (v *VerdictTimes) Add(other VerdictTimes) {
	for i, n := range other.buckets {
		v.buckets[i] += n
	}
}

// Quantile returns the time within which a share q of the documents got their verdict,
// as exactly as the buckets allow. It returns 0 for an empty distribution.
func (v VerdictTimes) Quantile(q float64) time.Duration {
	total := v.Documents()
	if total == 0 {
		return 0
	}
	rank, below, lower := q*float64(total), int64(0), time.Duration(0)
	for i, n := range v.buckets {
		if i == len(verdictLimits) {
			return lower // the last bucket has no upper limit
		}
		if float64(below+n) >= rank && n > 0 {
			share := max(rank-float64(below), 0) / float64(n)
			return lower + time.Duration(share*float64(verdictLimits[i]-lower))
		}
		below, lower = below+n, verdictLimits[i]
	}
	return lower
}

// VerdictTimes reads how long the verdicts took that came from a moment on. An empty
// taxpayer is the sum over all taxpayers of the environment.
func (r reader) VerdictTimes(ctx context.Context, scope Scope, span Span, from time.Time) (v VerdictTimes, err error) {
	_, err = collect(r.rows(ctx, "read times of verdicts", `
		SELECT bucket, cast(sum(documents) AS bigint) FROM verdict_times
		WHERE environment = $1 AND taxpayer_id = $2 AND span = $3 AND start_at >= $4 GROUP BY bucket`,
		scope.Environment, scope.TaxpayerID, span, micros(span.Start(from))), func(bucket *int64) []any {
		return []any{bucket, into(func(n int64) {
			if *bucket >= 0 && *bucket < int64(len(v.buckets)) {
				v.buckets[*bucket] += n
			}
		})}
	})
	return v, err
}
