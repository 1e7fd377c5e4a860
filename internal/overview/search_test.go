package overview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

func TestWordsHaveNoAccentsCapitalsOrPunctuation(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"Ferretería PÉREZ & Hijos, S.R.L.": {"ferreteria", "perez", "hijos", "srl"},
		"  Ñandú-Café 24 ":                 {"nandu", "cafe", "24"},
		"":                                 nil,
		"…":                                nil,
	} {
		if got := words(text); !slices.Equal(got, want) {
			t.Errorf("words(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestAmountsAreReadAsPeopleWriteThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1180": "1180.00", "1,180.00": "1180.00", "RD$ 1,180.5": "1180.50", "rd$1180.05": "1180.05", "0.99": "0.99", "007": "7.00",
		"1,18": "", "1.180": "", "12a": "", "-5": "", "": "",
	} {
		if got, ok := amount(text); got != want || ok != (want != "") {
			t.Errorf("amount(%q) = %q, %t; want %q", text, got, ok, want)
		}
	}
}

// A person finds a document by whatever identifier they have, and nobody finds the
// documents of another taxpayer.
func TestADocumentIsFoundByEachIdentifier(t *testing.T) {
	eachEngine(t, fiscal.Production, func(t *testing.T, e *env) {
		inv := e.invoice(e.a, "F-001", "Ferretería Pérez, SRL", "131000011", "1180.00", nil)
		e.invoice(e.a, "F-002", "Colmado La Esquina", "", "75.50", nil)
		e.padding = 100_000 // SQLite stores large requests in another form
		e.invoice(e.b, "G-001", "Farmacia Pereyra", "131000029", "900.00", nil)
		e.update(func(ctx context.Context, tx *store.Tx) error {
			return tx.Issue(ctx, store.Issued{
				Scope: e.a, RNC: "199000013", ENCF: "E310000000007", DocumentID: inv.DocumentID, SecurityCode: "abc",
				SignedAt: e.clock.Now(), CreatedAt: e.clock.Now(), XMLDigest: []byte{1}, SentDigest: []byte{1}, XML: []byte("<x/>"),
			})
		})
		inv.ENCF = "E310000000007"
		e.become(inv, fiscal.Submitted, "3f0c1d5e-9d1c-4a43-9a0e-6f3c8d4a1b2c")
		// Identifiers other than the trackId are found before the document is indexed.
		for _, text := range []string{"F-001", "key-F-001", "req_F-001", "E310000000007", "e310000000007", inv.ID, inv.DocumentID} {
			if got := e.found(e.everything(), Query{Text: text}); !slices.Equal(got, []string{"F-001"}) {
				t.Errorf("%s, not indexed: found %q", text, got)
			}
		}
		e.index()
		for _, text := range []string{
			"F-001", " F-001 ", "key-F-001", "req_F-001", "E310000000007", inv.ID, inv.DocumentID, "3f0c1d5e-9d1c-4a43-9a0e-6f3c8d4a1b2c",
			"131000011", "131-00001-1", "1180", "RD$ 1,180.00", "ferreteria", "PÉREZ", "perez ferre", "srl",
		} {
			for name, tt := range map[string]struct {
				within store.Within
				want   []string
			}{
				"operator":           {e.everything(), []string{"F-001"}},
				"its accountant":     {only(e.a), []string{"F-001"}},
				"accountant of both": {only(e.b, e.a), []string{"F-001"}},
				"another accountant": {only(e.b), nil},
				"no taxpayer":        {store.Within{Environment: fiscal.Production}, nil},
				"other environment":  {store.Within{Environment: fiscal.Certification, All: true}, nil},
			} {
				if got := e.found(tt.within, Query{Text: text}); !slices.Equal(got, tt.want) {
					t.Errorf("%s searches %q: found %q, want %q", name, text, got, tt.want)
				}
			}
		}
		if got := e.found(e.everything(), Query{Text: "per"}); !slices.Equal(got, []string{"G-001", "F-001"}) {
			t.Errorf("per: found %q", got)
		}
		for _, text := range []string{"nothing", "perez colmado", "E310000000008", "1180.01", "\x00", "%", "' OR 1=1 --"} {
			if got := e.found(e.everything(), Query{Text: text}); len(got) != 0 {
				t.Errorf("%q: found %q", text, got)
			}
		}
		page, err := e.searcher.Search(t.Context(), only(e.a), Query{Text: "F-001"})
		if err != nil || len(page.Documents) != 1 {
			t.Fatalf("%+v, %v", page, err)
		}
		got := page.Documents[0]
		if got.BuyerName != "Ferretería Pérez, SRL" || got.BuyerRNC != "131000011" || got.ENCF != "E310000000007" || got.Status != fiscal.Submitted ||
			got.DocumentTotal != "1180.00" || got.TaxpayerID != e.a.TaxpayerID || got.TrackID == "" {
			t.Errorf("found %+v", got)
		}
	})
}

// Pages follow one another without gaps and repetitions, the newest document first,
// whatever selects the documents.
func TestPagesOfASearchFollowOneAnother(t *testing.T) {
	eachEngine(t, fiscal.Sandbox, func(t *testing.T, e *env) {
		var all, ofA, rejected []string
		for i := range 23 {
			scope, status := e.a, fiscal.Accepted
			if i%3 == 0 {
				scope = e.b
			}
			if i%4 == 0 {
				status = fiscal.Rejected
			}
			id := fmt.Sprintf("P-%02d", i)
			e.invoice(scope, id, "Colmado Único", "131000011", "50.00", func(inv *store.Invoice) { inv.Status = status })
			all = append([]string{id}, all...)
			if scope == e.a {
				ofA = append([]string{id}, ofA...)
			}
			if status == fiscal.Rejected {
				rejected = append([]string{id}, rejected...)
			}
		}
		e.index()
		both := only(e.a, e.b)
		for _, tt := range []struct {
			name   string
			within store.Within
			query  Query
			want   []string
		}{
			{"all", e.everything(), Query{}, all},
			{"all of two taxpayers", both, Query{}, all},
			{"one taxpayer", only(e.a), Query{}, ofA},
			{"filter for a taxpayer", e.everything(), Query{Taxpayer: e.a.TaxpayerID}, ofA},
			{"status", e.everything(), Query{Status: fiscal.Rejected}, rejected},
			{"status of two taxpayers", both, Query{Status: fiscal.Rejected}, rejected},
			{"amount", e.everything(), Query{Text: "50"}, all},
			{"amount of two taxpayers", both, Query{Text: "50"}, all},
			{"amount of a taxpayer", only(e.a), Query{Text: "50"}, ofA},
			{"RNC", e.everything(), Query{Text: "131000011"}, all},
			{"name", both, Query{Text: "unico"}, all},
			{"name and status", both, Query{Text: "unico", Status: fiscal.Rejected}, rejected},
			{"type", e.everything(), Query{Type: fiscal.FiscalCredit}, all},
			{"other type", e.everything(), Query{Type: fiscal.Consumer}, nil},
			{"today", e.everything(), Query{From: fiscal.DateOf(e.clock.Now()), To: fiscal.DateOf(e.clock.Now())}, all},
			{"until yesterday", e.everything(), Query{To: fiscal.DateOf(e.clock.Now().Add(-24 * time.Hour))}, nil},
			{"from tomorrow", e.everything(), Query{From: fiscal.DateOf(e.clock.Now().Add(24 * time.Hour))}, nil},
			{"a taxpayer of others", only(e.a), Query{Taxpayer: e.b.TaxpayerID}, nil},
		} {
			for _, limit := range []int{1, 5, 100} {
				tt.query.Limit = limit
				if diff := cmp.Diff(tt.want, e.found(tt.within, tt.query)); diff != "" {
					t.Errorf("%s, pages of %d (-want +got):\n%s", tt.name, limit, diff)
				}
			}
		}
		page, err := e.searcher.Search(t.Context(), e.everything(), Query{Limit: 5})
		if err != nil || page.Next == "" {
			t.Fatalf("%+v, %v", page, err)
		}
		if _, err := e.searcher.Search(t.Context(), only(e.a), Query{Limit: 5, Cursor: page.Next}); !errors.Is(err, ErrCursor) {
			t.Errorf("a cursor of another search: %v", err)
		}
		related, err := e.searcher.SameBuyer(t.Context(), e.a, page.Documents[0].DocumentID, 3)
		if err != nil || len(related) != 3 || related[0].DocumentID == page.Documents[0].DocumentID {
			t.Errorf("documents of the same buyer: %d, %v", len(related), err)
		}
	})
}

// A word that many buyers have is searched in the newest documents: each page reads a
// bounded number of them, and the next page goes on. No document is left out.
func TestAWordOfManyBuyers(t *testing.T) {
	eachEngine(t, fiscal.Sandbox, func(t *testing.T, e *env) {
		var all, ofA []string
		for i := range maxBuyers + 10 {
			scope := []store.Scope{e.a, e.b}[i%2]
			id := fmt.Sprintf("M-%02d", i)
			e.invoice(scope, id, fmt.Sprintf("Colmado Número %d", i), "", "50.00", nil)
			all = append([]string{id}, all...)
			if scope == e.a {
				ofA = append([]string{id}, ofA...)
			}
			if i%3 == 0 {
				e.invoice(scope, "other-"+id, "Farmacia Central", "", "50.00", nil)
			}
		}
		e.index()
		for _, looks := range []int{maxLooked, 20} {
			e.searcher.looks = looks
			for name, tt := range map[string]struct {
				within store.Within
				text   string
				want   []string
			}{
				"all":                 {e.everything(), "colmado", all},
				"a taxpayer":          {only(e.a), "numero", ofA},
				"both":                {only(e.a, e.b), "colm", all},
				"a number of one":     {e.everything(), "colmado 59", all[:1]},
				"a word of no buyer":  {e.everything(), "colmado central", nil},
				"a rare second word":  {e.everything(), "numero 59", all[:1]},
				"the other buyer":     {only(e.a), "farmacia central colmado", nil},
				"nothing":             {only(e.a), "zapateria", nil},
				"another environment": {store.Within{Environment: fiscal.Production, All: true}, "colmado", nil},
			} {
				if diff := cmp.Diff(tt.want, e.found(tt.within, Query{Text: tt.text, Limit: 25})); diff != "" {
					t.Errorf("%s, %d looks (-want +got):\n%s", name, looks, diff)
				}
			}
		}
		page, err := e.searcher.Search(t.Context(), e.everything(), Query{Text: "colmado", Limit: 50})
		if err != nil || !page.Common || !page.Partial || page.Next == "" || len(page.Documents) >= 50 {
			t.Errorf("a page that looks at 20 documents: %d, common %t, partial %t; %v", len(page.Documents), page.Common, page.Partial, err)
		}
	})
}

func TestASearchLooksAtAFewMoreThanItNeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ looked, found, want, step int }{
		{51, 51, 50, 0}, {51, 25, 50, 66}, {51, 0, 50, maxStep}, {51, 50, 50, 1}, {2, 1, 500, 500}, {400, 1, 50, maxStep},
	} {
		if got := nextStep(tt.looked, tt.found, tt.want); got != tt.step {
			t.Errorf("nextStep(%d, %d, %d) = %d, want %d", tt.looked, tt.found, tt.want, got, tt.step)
		}
	}
}
