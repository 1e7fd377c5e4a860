package export

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// documentColumns are the headings of documents.csv. Spreadsheets of accountants are in
// Spanish, and so are the names of the authority's own files.
func documentColumns() []string {
	return []string{
		"fecha_emision", "tipo", "encf", "estado", "external_id", "rnc_comprador", "comprador", "moneda",
		"subtotal", "descuento", "itbis", "total", "track_id", "creado", "actualizado", "document_id", "invoice_id", "xml", "pdf",
	}
}

func documentRow(inv store.Invoice, request *fiscal.Invoice, xml, pdf string) []string {
	at := time.DateTime
	zone := fiscal.Zone()
	return []string{
		inv.IssueDate, string(inv.Type), inv.ENCF, string(inv.Status), text(inv.ExternalID), request.Buyer.TaxID, text(request.Buyer.LegalName), inv.Currency,
		inv.Subtotal, inv.DiscountTotal, inv.TaxTotal, inv.Total, text(inv.TrackID), inv.CreatedAt.In(zone).Format(at), inv.UpdatedAt.In(zone).Format(at),
		inv.DocumentID, inv.ID, xml, pdf,
	}
}

// text keeps a spreadsheet from taking a text of others as a formula, at its beginning or
// after a character that some spreadsheets take for the end of a cell.
func text(s string) string {
	var b strings.Builder
	first := true
	for _, c := range s {
		if first && strings.ContainsRune("=+-@\t\r\n＝＋－＠", c) {
			b.WriteByte('\'')
		}
		b.WriteRune(c)
		first = strings.ContainsRune(";,|\t\r\n", c)
	}
	return b.String()
}

// A sum adds up the documents of one day, type, state and rate.
type sum struct {
	Date      string `json:"date"`
	Type      string `json:"type"`
	State     string `json:"state"`
	Currency  string `json:"currency"`
	Rate      string `json:"rate"`
	Documents int64  `json:"documents"`
	Base      string `json:"base"`
	Tax       string `json:"tax"`
}

type sumKey struct{ date, kind, state, currency, rate string }

type sums struct {
	all map[sumKey]*total
}

type total struct {
	documents int64
	base, tax fiscal.Decimal
}

func newSums() *sums { return &sums{make(map[sumKey]*total)} }

// stateOf says whether a document counts: only accepted ones do.
func stateOf(s fiscal.Status) string {
	switch {
	case valid(s):
		return "aceptado"
	case s == fiscal.Rejected || s == fiscal.ValidationFailed:
		return "no_valido"
	default:
		return "pendiente"
	}
}

// add adds the amounts of an invoice under each of its rates.
func (s *sums) add(inv store.Invoice, request *fiscal.Invoice) {
	for _, rate := range []struct {
		name   string
		bucket fiscal.Bucket
	}{{"18", request.Totals.I1}, {"16", request.Totals.I2}, {"0", request.Totals.I3}, {"exento", request.Totals.Exempt}} {
		if !rate.bucket.Present {
			continue
		}
		key := sumKey{inv.IssueDate, string(inv.Type), stateOf(inv.Status), inv.Currency, rate.name}
		s.plus(key, 1, rate.bucket.Base, rate.bucket.ITBIS)
	}
}

func (s *sums) plus(key sumKey, documents int64, base, tax fiscal.Decimal) {
	t := s.all[key]
	if t == nil {
		t = &total{}
		s.all[key] = t
	}
	t.documents += documents
	t.base, t.tax = t.base.Add(base), t.tax.Add(tax)
}

// addAll adds sums of a part.
func (s *sums) addAll(all []sum) error {
	for _, one := range all {
		base, err := fiscal.ParseDecimal(one.Base)
		if err != nil {
			return fmt.Errorf("export: sums of a part: %w", err)
		}
		tax, err := fiscal.ParseDecimal(one.Tax)
		if err != nil {
			return fmt.Errorf("export: sums of a part: %w", err)
		}
		s.plus(sumKey{one.Date, one.Type, one.State, one.Currency, one.Rate}, one.Documents, base, tax)
	}
	return nil
}

// list returns the sums in the order of their keys.
func (s *sums) list() []sum {
	out := make([]sum, 0, len(s.all))
	for k, t := range s.all {
		out = append(out, sum{k.date, k.kind, k.state, k.currency, k.rate, t.documents, t.base.StringFixed(2), t.tax.StringFixed(2)})
	}
	slices.SortFunc(out, func(a, b sum) int {
		return cmp.Or(cmp.Compare(a.Date, b.Date), cmp.Compare(a.Type, b.Type), cmp.Compare(a.State, b.State),
			cmp.Compare(a.Currency, b.Currency), cmp.Compare(a.Rate, b.Rate))
	})
	return out
}

// rows are the rows of summary.csv.
func (s *sums) rows() [][]string {
	out := [][]string{{"fecha_emision", "tipo", "estado", "moneda", "tasa_itbis", "comprobantes", "monto", "itbis"}}
	for _, one := range s.list() {
		out = append(out, []string{one.Date, one.Type, one.State, one.Currency, one.Rate, fmt.Sprint(one.Documents), one.Base, one.Tax})
	}
	return out
}
