package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	endsSoon   = 30 * 24 * time.Hour
	fewNumbers = 100
)

// certificates checks that each taxpayer that has certificates has one that signs now, with
// a private key that the master key opens, and that lasts for 30 days.
func (d *doctor) certificates(ctx context.Context) []checkOutcome {
	all, err := d.store.Certificates(ctx)
	if err != nil {
		return failed("The certificates cannot be read: "+oneLine(err)+".", "Check the database.")
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
	if len(last) == 0 {
		return warned("No taxpayer has a certificate in "+string(d.env)+".", "Import one with fiscalhub certificate import.")
	}
	var broken, ending []string
	identities := access.NewCertificates(d.store, d.keys, d.store.Now)
	for scope, end := range last {
		if _, err := identities.Identity(ctx, scope, d.store.Now()); err != nil {
			broken = append(broken, "taxpayer "+scope.TaxpayerID+" ("+oneLine(err)+")")
		} else if end.Sub(d.now()) < endsSoon {
			ending = append(ending, "taxpayer "+scope.TaxpayerID+" ("+formatTime(end)+")")
		}
	}
	const action = "Import a new certificate with fiscalhub certificate import."
	var found []checkOutcome
	if len(broken) > 0 {
		found = append(found, failed(plural(len(broken), "taxpayer", "taxpayers")+" cannot sign: "+few(broken)+".", action)...)
	}
	if len(ending) > 0 {
		found = append(found, warned("The certificates of "+plural(len(ending), "taxpayer", "taxpayers")+" end within 30 days: "+few(ending)+".", action)...)
	}
	return orPassed(found, "The certificates of "+plural(len(last), "taxpayer", "taxpayers")+" sign, and are valid for 30 days or more.")
}

// few sorts a list and returns the first of it.
func few(names []string) string {
	slices.Sort(names)
	return firstFew(names)
}

// rangeOwner is a taxpayer and a type of its documents.
type rangeOwner struct {
	taxpayer string
	kind     fiscal.Type
}

// numberRanges checks that each taxpayer has numbers left, of each type that it has ranges
// of.
func (d *doctor) numberRanges(ctx context.Context) []checkOutcome {
	all, err := d.store.NumberRanges(ctx)
	if err != nil {
		return failed("The number ranges cannot be read: "+oneLine(err)+".", "Check the database.")
	}
	of := map[rangeOwner][]store.NumberRange{}
	for _, n := range all {
		if n.Environment == d.env {
			owner := rangeOwner{n.TaxpayerID, n.Type}
			of[owner] = append(of[owner], n)
		}
	}
	if len(of) == 0 {
		return warned("No taxpayer has a number range in "+string(d.env)+".", "Add one with fiscalhub sequence add.")
	}
	var none, ending []string
	for owner, ranges := range of {
		name := fmt.Sprintf("taxpayer %s type %s", owner.taxpayer, owner.kind)
		if _, code := pipeline.UsableRange(ranges, fiscal.DateOf(d.now())); code != "" {
			none = append(none, name+" ("+strings.TrimPrefix(code, "sequence.")+")")
		} else if left := numbersLeft(ranges, d.now().Add(endsSoon)); left < fewNumbers {
			ending = append(ending, fmt.Sprintf("%s (%d)", name, left))
		}
	}
	const action = "Ask the authority for numbers and add them with fiscalhub sequence add; release a fenced range with fiscalhub reconcile."
	var found []checkOutcome
	if len(none) > 0 {
		found = append(found, failed("No number can be used for "+plural(len(none), "type", "types")+" of documents: "+few(none)+".", action)...)
	}
	if len(ending) > 0 {
		found = append(found, warned(fmt.Sprintf("Fewer than %d numbers are left for the next 30 days, for %s of documents: %s.", fewNumbers, plural(len(ending), "type", "types"), few(ending)), action)...)
	}
	return orPassed(found, "Numbers are left for the next 30 days, for "+plural(len(of), "type", "types")+" of documents.")
}

// numbersLeft counts the numbers that may still be used on a later day.
func numbersLeft(ranges []store.NumberRange, at time.Time) (left int64) {
	for _, n := range ranges {
		if n.Left() > 0 && !n.Expired(fiscal.DateOf(at)) && n.FencedAt.IsZero() {
			left += n.Left()
		}
	}
	return left
}
