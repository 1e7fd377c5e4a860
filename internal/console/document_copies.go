package console

import (
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// maxCopies is how many copies of an invoice the page of a document looks for.
const maxCopies = 20

// A reissue says whether the sale of a document may be issued again.
type reissue struct {
	// Blocked is the key of the text that says why not; empty when it may.
	Blocked string
	Again   []store.Invoice // documents that issue the sale again already
	// Key is the idempotency key of the copy. A document has one copy: a second one gets
	// the same key, whatever its external id is.
	Key string
}

// reissue decides whether the sale of a document may be issued again.
func (x *request) reissue(inv store.Invoice) (r reissue, err error) {
	last := inv
	if refusedStatus(inv.Status) {
		if r.Again, last, err = x.issuedAgain(inv); err != nil {
			return r, err
		}
	}
	differs, err := x.differs(inv)
	if err != nil {
		return r, err
	}
	r.Blocked, r.Key = whyNotAgain(inv.Status, differs, len(r.Again) > 0), copyKey(last)
	return r, nil
}

// differs reports whether the authority shows a document differently.
func (x *request) differs(inv store.Invoice) (bool, error) {
	all, err := x.console.o.Store.DifferencesOf(x.Context(), inv.Scope, inv.DocumentID)
	return slices.ContainsFunc(all, func(d store.Difference) bool { return d.EndedAt.IsZero() }), err
}

// whyNotAgain returns the key of the text that says why the sale of a document with this
// status must not be issued again; empty when it may be. differs says that the authority
// shows the document differently, again that the sale was issued again already.
func whyNotAgain(s fiscal.Status, differs, again bool) string {
	switch s {
	case fiscal.Rejected, fiscal.ValidationFailed:
		switch {
		case again:
			return "copy.again"
		case differs:
			return "copy.differs"
		}
		return ""
	case fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
		return "copy.counts"
	case fiscal.OutcomeUnknown:
		return "copy.unknown"
	case fiscal.Queued, fiscal.Submitted, fiscal.Processing:
		return "copy.under_way"
	}
	return "copy.under_way"
}

// copyKey returns the idempotency key of the copy of an invoice.
func copyKey(inv store.Invoice) string { return "console-copy-" + inv.DocumentID }

// isTemplate reports whether another sale may be written with a document as its template:
// the sale of the document counts, and no one needs to issue it again.
func isTemplate(s fiscal.Status) bool {
	return s == fiscal.Accepted || s == fiscal.AcceptedConditional || s == fiscal.Delivered
}

// copyFamily is an invoice and the copies of it that the form has suggested ids for: the
// copies of X are and so on.
type copyFamily struct {
	Original store.Invoice // the invoice itself when it is no copy
	Copies   []store.Invoice
	FreeID   string // an external id for the next copy, when all copies were read
}

// copyFamily reads the family of an invoice, with up to most copies. An invoice whose id ends
// with a number is a copy only when the invoice without it exists: F-7 may simply follow F-6.
func (x *request) copyFamily(inv store.Invoice, most int) (f copyFamily, err error) {
	if f.Original, err = x.originalOf(inv); errors.Is(err, store.ErrNotFound) {
		f.Original, err = inv, nil
	}
	for n := 2; err == nil && len(f.Copies) < most; n++ {
		f.FreeID = f.Original.ExternalID + "-" + strconv.Itoa(n)
		var found store.Invoice
		if found, err = x.console.o.Store.InvoiceByExternalID(x.Context(), inv.Scope, f.FreeID); err == nil {
			f.Copies = append(f.Copies, found)
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return f, err
}

// freeID returns an external id for a copy of an invoice.
func (x *request) freeID(inv store.Invoice) (string, error) {
	family, err := x.copyFamily(inv, math.MaxInt)
	return family.FreeID, err
}

// originalOf reads the invoice that an invoice is a copy of. The error is
// store.ErrNotFound when it is no copy.
func (x *request) originalOf(inv store.Invoice) (store.Invoice, error) {
	base, number, ok := cutLast(inv.ExternalID, "-")
	n, err := strconv.Atoi(number)
	if !ok || base == "" || err != nil || n < 2 || strconv.Itoa(n) != number {
		return store.Invoice{}, store.ErrNotFound
	}
	return x.console.o.Store.InvoiceByExternalID(x.Context(), inv.Scope, base)
}

// issuedAgain returns the other documents of the sale of a refused invoice that are not
// refused themselves, or that the authority shows differently and may count: those with the ids of copies, and those that copies of copies led
// to. last is the refused invoice that the next copy is made of.
func (x *request) issuedAgain(inv store.Invoice) (again []store.Invoice, last store.Invoice, err error) {
	family, err := x.copyFamily(inv, maxCopies)
	if err != nil {
		return nil, inv, err
	}
	seen := map[string]bool{inv.ID: true}
	add := func(one store.Invoice) error {
		if seen[one.ID] {
			return nil
		}
		seen[one.ID] = true
		counts := !refusedStatus(one.Status)
		if !counts {
			if counts, err = x.differs(one); err != nil {
				return err
			}
		}
		if counts {
			again = append(again, one)
		}
		return nil
	}
	for _, one := range append(family.Copies, family.Original) {
		if err := add(one); err != nil {
			return nil, inv, err
		}
	}
	for last = inv; refusedStatus(last.Status); {
		known, err := x.console.o.Store.StoredReply(x.Context(), inv.Scope, pipeline.CreateInvoice, copyKey(last))
		if errors.Is(err, store.ErrNotFound) {
			return again, last, nil
		}
		if err != nil {
			return nil, inv, err
		}
		if last, err = x.console.o.Store.Invoice(x.Context(), inv.Scope, known.ObjectID); err != nil {
			return nil, inv, err
		}
		if err := add(last); err != nil {
			return nil, inv, err
		}
	}
	return again, last, nil
}

// refusedOriginal returns the refused invoice that an invoice issues again; nil when there
// is none.
func (x *request) refusedOriginal(inv store.Invoice) (*store.Invoice, error) {
	original, err := x.originalOf(inv)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil //nolint:nilnil // no original is a state of the page
	case err != nil:
		return nil, err
	case !refusedStatus(original.Status):
		return nil, nil //nolint:nilnil // the sale of the original is another one
	}
	return &original, nil
}

// refusedStatus reports whether a document with this status stands for no sale, so that the
// sale must be issued again.
func refusedStatus(s fiscal.Status) bool {
	return s == fiscal.Rejected || s == fiscal.ValidationFailed
}

func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}
