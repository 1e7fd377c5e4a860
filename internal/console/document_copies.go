package console

import (
	"errors"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// maxCopies is how many copies of an invoice the page of a document looks for.
const maxCopies = 20

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
		if found, err = x.console.store.InvoiceByExternalID(x.Context(), inv.Scope, f.FreeID); err == nil {
			f.Copies = append(f.Copies, found)
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return f, err
}

// originalOf reads the invoice that an invoice is a copy of. The error is
// store.ErrNotFound when it is no copy.
func (x *request) originalOf(inv store.Invoice) (store.Invoice, error) {
	base, number, ok := cutLast(inv.ExternalID, "-")
	n, err := strconv.Atoi(number)
	if !ok || base == "" || err != nil || n < 2 || strconv.Itoa(n) != number {
		return store.Invoice{}, store.ErrNotFound
	}
	return x.console.store.InvoiceByExternalID(x.Context(), inv.Scope, base)
}

// issuedAgain returns the other documents of the sale of a refused invoice that are not
// refused themselves. It returns none for an invoice that is not refused.
func (x *request) issuedAgain(inv store.Invoice) (again []store.Invoice, err error) {
	if !refusedStatus(inv.Status) {
		return nil, nil
	}
	family, err := x.copyFamily(inv, maxCopies)
	for _, one := range append(family.Copies, family.Original) {
		if one.ID != inv.ID && !refusedStatus(one.Status) {
			again = append(again, one)
		}
	}
	return again, err
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
