package store_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func TestLargeTextsAreReadAsTheyWereStored(t *testing.T) {
	t.Parallel()
	random := make([]byte, 100_000) // has no shorter form
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random)
	random[0] = '{'
	texts := map[string][]byte{
		"small":  []byte(`{"a":1}`),
		"large":  []byte(`{"lines":[` + strings.Repeat(`{"description":"Tornillo"},`, 5000) + `]}`),
		"random": random,
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		numbers := addNumberRange(t, s)
		n := 0
		for name, text := range texts {
			n++
			inv := sampleInvoice(numbers.Scope, name)
			if err := s.ImportInvoices(t.Context(), []store.Invoice{inv}, text); err != nil {
				t.Fatal(err)
			}
			issued := store.Issued{
				Scope: inv.Scope, RNC: "199000013", ENCF: "E32000000000" + string(rune('0'+n)), DocumentID: inv.DocumentID, NumberRangeID: numbers.ID,
				SignedAt: noon, CreatedAt: noon, XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: text, Summary: text,
			}
			states, err := s.DocumentStates(t.Context(), inv.Environment, []string{inv.DocumentID})
			if err != nil || !bytes.Equal(states[inv.DocumentID].Request, text) {
				t.Errorf("%s: the state has another request, or %v", name, err)
			}
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.Issue(ctx, issued) })
			if got, err := s.Request(t.Context(), inv.Scope, inv.ID); err != nil || !bytes.Equal(got, text) {
				t.Errorf("%s: the request differs, or %v", name, err)
			}
			got, err := s.IssuedDocument(t.Context(), inv.Scope, inv.DocumentID)
			if err != nil || !bytes.Equal(got.XML, text) || !bytes.Equal(got.Summary, text) {
				t.Errorf("%s: the signed document differs, or %v", name, err)
			}
		}
	})
}

func TestSQLiteStoresALargeRequestCompressed(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "sqlite:"+filepath.Join(t.TempDir(), "a.db"), func() time.Time { return noon })
	inv := sampleInvoice(addScope(t, s), "large")
	text := []byte(`{"lines":[` + strings.Repeat(`{"description":"Tornillo"},`, 5000) + `]}`)
	if err := s.ImportInvoices(t.Context(), []store.Invoice{inv}, text); err != nil {
		t.Fatal(err)
	}
	var size int
	if err := s.QueryRow(t.Context(), `SELECT length(request) FROM documents`).Scan(&size); err != nil {
		t.Fatal(err)
	}
	if size > len(text)/20 {
		t.Errorf("%d bytes are stored as %d", len(text), size)
	}
	// A damaged value is an error, not another text.
	update(t, s, func(ctx context.Context, tx *store.Tx) error {
		return tx.Exec(ctx, `UPDATE documents SET request = substr(request, 1, 100)`)
	})
	if got, err := s.Request(t.Context(), inv.Scope, inv.ID); err == nil {
		t.Errorf("a damaged request was read: %d bytes", len(got))
	}
}

func TestTheIndexerReadsOnlyTheBeginningOfARequest(t *testing.T) {
	t.Parallel()
	const head = 16 << 10
	random := make([]byte, 200_000) // has no shorter form
	_, _ = rand.NewChaCha8([32]byte{2}).Read(random)
	random[0] = '{'
	texts := map[string][]byte{
		"small":  []byte(`{"a":1}`),
		"large":  []byte(`{"lines":[` + strings.Repeat(`{"description":"Tornillo"},`, 5000) + `]}`),
		"digits": fmt.Appendf(nil, `{"digits":"%x"}`, random[1:]), // has a form of half its size
		"random": random,
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addScope(t, s)
		for name, text := range texts {
			inv := sampleInvoice(scope, name)
			if err := s.ImportInvoices(t.Context(), []store.Invoice{inv}, text); err != nil {
				t.Fatal(err)
			}
			found, _, err := s.CreatedAfter(t.Context(), "", "g", 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range found {
				if d.DocumentID == inv.DocumentID && (!bytes.HasPrefix(text, d.Request) || len(d.Request) != min(len(text), head)) {
					t.Errorf("%s: the indexer read %d bytes of %d, or other bytes", name, len(d.Request), len(text))
				}
			}
			if len(found) == 0 {
				t.Errorf("%s: the indexer found nothing", name)
			}
		}
	})
}

func TestPostgresCompressesWithLZ4WhenItCan(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, storetest.Address(t, "postgres"), func() time.Time { return noon })
	var known bool
	if err := s.QueryRow(t.Context(), `SELECT 'lz4' = ANY (enumvals) FROM pg_settings WHERE name = 'default_toast_compression'`).Scan(&known); err != nil {
		t.Fatal(err)
	}
	if !known {
		t.Skip("this PostgreSQL has no LZ4")
	}
	inv := sampleInvoice(addScope(t, s), "large")
	text := []byte(`{"lines":[` + strings.Repeat(`{"description":"Tornillo"},`, 5000) + `]}`)
	if err := s.ImportInvoices(t.Context(), []store.Invoice{inv}, text); err != nil {
		t.Fatal(err)
	}
	var method string
	if err := s.QueryRow(t.Context(), `SELECT pg_column_compression(request) FROM documents`).Scan(&method); err != nil || method != "lz4" {
		t.Errorf("the request is compressed with %q, %v", method, err)
	}
}
