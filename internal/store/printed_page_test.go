package store_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestTheFirstPageOfAFormatStays(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope, document := addScope(t, s), store.NewID()
		read := func(scope store.Scope, format string) (store.PrintedPage, error) {
			if format == store.LetterFormat {
				return s.PrintedPage(t.Context(), scope, document)
			}
			return s.PrintedReceipt(t.Context(), scope, document, format)
		}
		keep := func(format string, page store.PrintedPage) (store.PrintedPage, error) {
			if format == store.LetterFormat {
				return s.KeepPrintedPage(t.Context(), scope, document, page)
			}
			return s.KeepPrintedReceipt(t.Context(), scope, document, format, page)
		}
		formats := []string{"receipt", store.LetterFormat, "receipt58"}
		for _, format := range formats {
			if _, err := read(scope, format); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: %v before the first page", format, err)
			}
			first := store.PrintedPage{Digest: []byte{1}, PDF: []byte(format)}
			for _, page := range []store.PrintedPage{first, {Digest: []byte{2}, PDF: []byte("later")}} {
				kept, err := keep(format, page)
				if diff := cmp.Diff(first, kept); err != nil || diff != "" {
					t.Errorf("%s: %v, the page that was kept (-want +got):\n%s", format, err, diff)
				}
			}
		}
		other := scope
		other.TaxpayerID = store.NewID()
		for _, format := range formats {
			if page, err := read(scope, format); err != nil || string(page.PDF) != format {
				t.Errorf("%s: %q, %v", format, page.PDF, err)
			}
			if _, err := read(other, format); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: %v for another taxpayer", format, err)
			}
		}
	})
}
