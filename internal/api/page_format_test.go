package api_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// setPageFormat changes the format of the taxpayer's printed pages.
func (e *env) setPageFormat(format string) {
	e.t.Helper()
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error {
		taxpayer, err := tx.Taxpayer(e.t.Context(), e.taxpayer)
		if err != nil {
			return err
		}
		taxpayer.PageFormat = format
		return tx.UpdateTaxpayer(e.t.Context(), taxpayer)
	}))
}

func TestPrintedPageHasTheFormatThatIsAskedFor(t *testing.T) {
	eachEngine(t, envOptions{plan: queuedPlan{}}, func(t *testing.T, e *env) {
		made, _ := e.createSigned(11, fiscal.Accepted)
		widths := map[string]string{"letter": "612.00", "receipt": "226.77", "receipt58": "164.41"}
		first := make(map[string][]byte)
		for format, width := range widths {
			a := e.getArtifact(made, "pdf?format="+format)
			if a.status != http.StatusOK || !bytes.Contains(a.body, []byte("/MediaBox [0 0 "+width+" ")) {
				t.Errorf("%s: %d, and the page is not %s points wide", format, a.status, width)
			}
			first[format] = a.body
		}
		// Without the parameter, the page has the format of the taxpayer. No page
		// changes with that format.
		for taxpayer, want := range map[string]string{"": "letter", "letter": "letter", "receipt": "receipt", "receipt58": "receipt58"} {
			e.setPageFormat(taxpayer)
			if a := e.getArtifact(made, "pdf"); !bytes.Equal(a.body, first[want]) {
				t.Errorf("taxpayer with %q: the page is not that of %s", taxpayer, want)
			}
			for format := range widths {
				if a := e.getArtifact(made, "pdf?other=1&format="+format); !bytes.Equal(a.body, first[format]) {
					t.Errorf("taxpayer with %q: the page in %s has changed", taxpayer, format)
				}
			}
		}
	})
}

func TestUnknownPageFormatIsRefused(t *testing.T) {
	oneEngine(t, envOptions{plan: queuedPlan{}}, func(t *testing.T, e *env) {
		made, _ := e.createSigned(12, fiscal.Accepted)
		for query, code := range map[string]string{
			"format=A4": "invalid_enum", "format=": "invalid_enum", "format": "invalid_enum", "format=Letter": "invalid_enum",
			"format=%zz": "invalid_enum", "format=letter&format=letter": "duplicate_parameter",
		} {
			a := e.getArtifact(made, "pdf?"+query)
			wantCode(t, query, a, http.StatusBadRequest, "bad_request")
			d := a.details(t)
			if len(d) != 1 || d[0].Field != "format" || d[0].Code != code || code == "invalid_enum" && !strings.Contains(d[0].Message, "letter, receipt or receipt58") {
				t.Errorf("%s: details %+v", query, d)
			}
		}
	})
}

// Everything that the document or the page cannot show as it was sent is in the
// status messages.
func TestLossesAreInTheStatusMessages(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		inv := e.created(e.create("k", invoiceBody("A-1",
			setField("notes", "Entrega el lunes 😀\n"+strings.Repeat("nota ", 60)),
			setField("payment_terms", "30 días después de la entrega"),
			setField("lines.0.description", "Café\nmolido 漢"))))
		got := strings.Join(e.readDocument(inv.FiscalDocumentID).StatusMessages, "\n")
		for _, want := range []string{
			"notes: the fiscal document carries the first 249 characters", "notes: the fiscal document has spaces in the place of line breaks",
			"notes: the printed page shows � for characters that its font does not have: U+1F600",
			"payment_terms: the fiscal document omits them", "lines.0.description: the fiscal document and the printed page have spaces",
			"lines.0.description: the printed page shows � for characters that its font does not have: U+6F22",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in:\n%s", want, got)
			}
		}
		plain := e.created(e.create("k2", invoiceBody("A-2",
			setField("notes", "Año 2026 – 20 °C, 3 m², ½ lb, 5 €, £, ¥, ¢, ™, ®, •, —, “cita”, 2 × 3 ÷ 4, ≤ 5, ≥ 6…"), setField("payment_terms", "30 días"))))
		if got := e.readDocument(plain.FiscalDocumentID).StatusMessages; len(got) != 1 {
			t.Errorf("messages of an invoice that loses nothing: %q", got)
		}
	})
}
