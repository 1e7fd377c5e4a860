package dossier

import (
	"cmp"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Entry is something that happened to a document.
type Entry struct {
	At     time.Time
	Status fiscal.Status // of the document after it
	// What is a store.HistoryEntry, a store.Issued, a store.Attempt, an evidence.Item, a
	// store.UnconfirmedResponse or a store.Difference.
	What any
	rank int
}

// The order of what happened in one millisecond: a change of status follows from the rest.
const (
	rankCreated = iota
	rankIssued
	rankAttempt
	rankEvidence
	rankHistory
)

// Entries returns what happened to the document, in order.
func (d Dossier) Entries() []Entry {
	var all []Entry
	add := func(at time.Time, rank int, what any) { all = append(all, Entry{At: at, What: what, rank: rank}) }
	for _, h := range d.History {
		if h.Kind == "created" {
			add(h.At, rankCreated, h)
		} else {
			add(h.At, rankHistory, h)
		}
	}
	if issued := d.Shown(); issued != nil {
		add(issued.CreatedAt, rankIssued, *issued)
	}
	for _, n := range d.Replaced {
		add(n.CreatedAt, rankIssued, n.Issued)
	}
	for _, a := range d.Attempts {
		add(a.OpenedAt, rankAttempt, a)
	}
	for _, i := range d.Evidence {
		add(i.At, rankEvidence, i)
	}
	for _, r := range d.Responses {
		add(r.At, rankEvidence, r)
	}
	for _, one := range d.Differences {
		add(one.FoundAt, rankEvidence, one)
	}
	// The times of the history have milliseconds, the others microseconds.
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(a.At.Truncate(time.Millisecond).Compare(b.At.Truncate(time.Millisecond)), cmp.Compare(a.rank, b.rank))
	})
	status := fiscal.Queued
	for i := range all {
		if h, ok := all[i].What.(store.HistoryEntry); ok {
			status = h.Status
		}
		all[i].Status = status
	}
	return all
}

// Outcome returns where all evidence together puts the document; nil while it has no number,
// and so no evidence.
func (d Dossier) Outcome() *evidence.Outcome {
	if d.Issued == nil {
		return nil
	}
	outcome := evidence.Fold(d.Evidence)
	return &outcome
}
