package store_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestHistoryIsReadInOrderOfTime(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		entry := func(id string, after time.Duration) store.HistoryEntry {
			return store.HistoryEntry{
				Scope: scope, InvoiceID: "inv", ID: id, At: noon.Add(after), Kind: "status_changed",
				Status: fiscal.Submitted, RequestID: "req_" + id, Cause: "«detail»",
			}
		}
		want := []store.HistoryEntry{entry("c", 0), entry("a", time.Microsecond), entry("b", time.Microsecond), entry("d", time.Hour)}
		want[3].RequestID = "" // the service itself changed the status
		other := entry("z", 0)
		other.InvoiceID = "another"
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			b := new(store.Batch).AddHistoryEntry(want[3]).AddHistoryEntry(want[1]).AddHistoryEntry(other)
			return tx.Do(ctx, b.AddHistoryEntry(want[2]).AddHistoryEntry(want[0]))
		})
		got, err := s.History(t.Context(), scope, "inv")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}

// What others write is an argument of a cause. Both engines keep it, and it is read as it was
// written.
func TestCausesKeepTheWordsOfOthers(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		for i, words := range []string{
			"a\x00b", "a\x1b[31m\u2028\r\n\t\"\\'", "\xff\xfe", strings.Repeat("ñ%s", 100_000), `{"kind":"registered"}`,
			`held: {"kind":"range_ended"}`, "held: x", `["a","b"]`, "%!s(MISSING) 100 %", `","args":["x"]}`,
		} {
			id, why := strconv.Itoa(i), cause.New(cause.NumberReplaced, words, words)
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				return tx.Do(ctx, new(store.Batch).AddHistoryEntry(store.HistoryEntry{Scope: scope, InvoiceID: id, ID: id, At: noon, Cause: why}))
			})
			got, err := s.History(t.Context(), scope, id)
			if err != nil {
				t.Fatal(err)
			}
			words = string([]rune(words)) // bytes that are no text become U+FFFD
			read := got[0].Cause
			if read != why || read.Kind() != cause.NumberReplaced || read.Held() ||
				read.In(lang.English) != "number replaced: "+words+": "+words || read.In(lang.Spanish) != "se sustituyó la secuencia "+words+": "+words {
				t.Errorf("%.80q is read as %.80q", words, read.In(lang.English))
			}
		}
	})
}

func TestARequestIDFindsItsInvoices(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return errors.Join(
				tx.Do(ctx, new(store.Batch).AddHistoryEntry(store.HistoryEntry{Scope: scope, InvoiceID: "one", ID: "1", At: noon, Kind: "created", RequestID: "req_1"})),
				tx.Do(ctx, new(store.Batch).AddHistoryEntry(store.HistoryEntry{Scope: scope, InvoiceID: "one", ID: "2", At: noon, Kind: "status_changed"})),
				// A client may send the same request id twice.
				tx.Do(ctx, new(store.Batch).AddHistoryEntry(store.HistoryEntry{Scope: scope, InvoiceID: "two", ID: "3", At: noon.Add(time.Second), Kind: "created", RequestID: "req_1"})),
			)
		})
		if ids, err := s.InvoicesOfRequest(t.Context(), scope, "req_1"); err != nil || !slices.Equal(ids, []string{"one", "two"}) {
			t.Errorf("req_1 leads to %q, %v; want both", ids, err)
		}
		inv := addInvoice(t, s, scope, "X-1")
		if ids, err := s.InvoicesOfRequest(t.Context(), scope, store.AnswerID(inv.ID)); err != nil || !slices.Equal(ids, []string{inv.ID}) {
			t.Errorf("%s leads to %q, %v", store.AnswerID(inv.ID), ids, err)
		}
		if ids, err := s.DocumentsOfRequest(t.Context(), scope.Environment, store.AnswerID(inv.ID)); err != nil || !slices.Equal(ids, []string{inv.DocumentID}) {
			t.Errorf("%s leads to the documents %q, %v", store.AnswerID(inv.ID), ids, err)
		}
		for _, unknown := range []string{"", "req_2", store.AnswerID(store.NewID()), "req_Cafetería Colonial de la Zona 1", strings.ReplaceAll(inv.ID, "-", "")} {
			if ids, err := s.InvoicesOfRequest(t.Context(), scope, unknown); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("request %q leads to %q, %v; want ErrNotFound", unknown, ids, err)
			}
			if ids, err := s.DocumentsOfRequest(t.Context(), scope.Environment, unknown); err != nil || len(ids) > 0 {
				t.Errorf("request %q leads to the documents %q, %v; want none", unknown, ids, err)
			}
		}
	})
}
