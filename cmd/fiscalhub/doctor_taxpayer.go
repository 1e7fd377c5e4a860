package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	endsSoon   = 30 * 24 * time.Hour
	fewNumbers = 100
)

// certificates checks that each taxpayer that has certificates has one that lasts for 30
// days.
func (d *doctor) certificates() (string, error) {
	all, err := d.store.Certificates(d.t.ctx)
	if err != nil {
		return "", err
	}
	last := map[store.Scope]time.Time{} // zero: all are revoked
	for _, c := range all {
		if c.Environment != d.env {
			continue
		}
		end := last[c.Scope]
		if c.RevokedAt.IsZero() && c.NotAfter.After(end) {
			end = c.NotAfter
		}
		last[c.Scope] = end
	}
	var ending []string
	for scope, end := range last {
		switch {
		case end.IsZero():
			ending = append(ending, "taxpayer "+scope.TaxpayerID+" (revoked)")
		case time.Until(end) < endsSoon:
			ending = append(ending, "taxpayer "+scope.TaxpayerID+" ("+formatTime(end)+")")
		}
	}
	if slices.Sort(ending); len(ending) > 0 {
		return "", fmt.Errorf("%d taxpayers have no certificate that is valid for 30 days: %s; import a new one with fiscalhub certificate import", len(ending), firstFew(ending))
	}
	return fmt.Sprintf("the certificates of %d taxpayers are valid for 30 days or more", len(last)), nil
}

// rangeOwner is a taxpayer and a type of its documents.
type rangeOwner struct {
	taxpayer string
	kind     fiscal.Type
}

// numberRanges checks that each taxpayer has numbers left, of each type that it has ranges
// of.
func (d *doctor) numberRanges() (string, error) {
	all, err := d.store.NumberRanges(d.t.ctx)
	if err != nil {
		return "", err
	}
	of := map[rangeOwner][]store.NumberRange{}
	for _, n := range all {
		if n.Environment == d.env {
			owner := rangeOwner{n.TaxpayerID, n.Type}
			of[owner] = append(of[owner], n)
		}
	}
	var ending []string
	for owner, ranges := range of {
		if problem := rangesEnd(ranges, time.Now()); problem != "" {
			ending = append(ending, fmt.Sprintf("taxpayer %s type %s (%s)", owner.taxpayer, owner.kind, problem))
		}
	}
	if slices.Sort(ending); len(ending) > 0 {
		return "", fmt.Errorf("%d ranges of numbers end: %s; ask the authority for more and add them with fiscalhub sequence add, or release a fenced range with fiscalhub reconcile", len(ending), firstFew(ending))
	}
	return fmt.Sprintf("%d ranges have numbers that last for 30 days", len(of)), nil
}

// rangesEnd returns why the ranges of a taxpayer and type will soon give no numbers; empty
// when they give enough.
func rangesEnd(ranges []store.NumberRange, now time.Time) string {
	if _, code := pipeline.UsableRange(ranges, fiscal.DateOf(now)); code != "" {
		return code
	}
	var left int64
	for _, n := range ranges {
		if n.Left() > 0 && !n.Expired(fiscal.DateOf(now.Add(endsSoon))) && n.FencedAt.IsZero() {
			left += n.Left()
		}
	}
	if left < fewNumbers {
		return fmt.Sprintf("%d numbers that last for 30 days", left)
	}
	return ""
}
