package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// item is a line: quantity, unit price, discount in percent and taxes, each
// "code=rate".
type item struct {
	quantity, price, percent string
	taxes                    []string
}

// itemised gives an invoice lines and totals: subtotal, discount, tax and total.
func itemised(totals string, items ...item) func(map[string]any) {
	return func(v map[string]any) {
		var lines []any
		for i, it := range items {
			line := map[string]any{
				"line_id": fmt.Sprint(i + 1), "description": "Renglón", "item_kind": "service", "quantity": it.quantity, "unit_price": it.price,
				"discount": nil, "taxes": []any{},
			}
			if it.percent != "" {
				line["discount"] = map[string]any{"kind": "percentage", "value": it.percent}
			}
			for _, tax := range it.taxes {
				code, rate, _ := strings.Cut(tax, "=")
				line["taxes"] = append(line["taxes"].([]any), map[string]any{"code": code, "label": code, "rate_percent": rate})
			}
			lines = append(lines, line)
		}
		v["lines"] = lines
		t := strings.Fields(totals)
		v["declared_totals"] = map[string]any{"subtotal": t[0], "discount_total": t[1], "tax_total": t[2], "total": t[3]}
	}
}

// Worked examples of totals: the invoice shows the declared totals, and the
// document shows the computed one.
func TestTotalsOfTheWorkedExamples(t *testing.T) {
	full := []string{"ITBIS=18"}
	seven := make([]item, 7)
	for i := range seven {
		seven[i] = item{"1", "10.03", "", full}
	}
	manySmall := make([]item, 1000)
	for i := range manySmall {
		manySmall[i] = item{"1", "0.03", "", full}
	}
	classes := []item{
		{"12.75", "87.3456", "7.5", full}, {"40", "215.25", "5", []string{"ITBIS=16"}}, {"10", "99.99", "", []string{"ITBIS=0"}},
		{"6", "3150.00", "2.25", nil}, {"1", "1500.00", "33.33", full},
	}
	restaurant := []item{{"1", "850.00", "", []string{"ITBIS=18", "001=10"}}, {"2", "375.50", "", []string{"ITBIS=18", "001=10"}}}
	telecom := []item{{"1", "4235.75", "", []string{"ITBIS=18", "002=2", "004=10"}}, {"1", "310.00", "", full}}
	tests := []struct {
		name     string
		totals   string
		items    []item
		document string   // empty: refused
		problems []string // of a refused invoice
	}{
		{"A: one line", "3750.00 0.00 675.00 4425.00", []item{{"3", "1250.00", "", full}}, "4425.00", nil},
		{"A: without decimals", "3750 0 675 4425", []item{{"3", "1250", "", full}}, "4425.00", nil},
		{"A: one cent off", "3750.01 0 675.01 4425.02", []item{{"3", "1250", "", full}}, "4425.00", nil},
		{"A: two cents off", "3750.02 0 675 4425.02", []item{{"3", "1250", "", full}}, "", []string{"declared_totals.subtotal total_mismatch"}},
		{"A: a wrong rate", "3750 0 600 4350", []item{{"3", "1250", "", full}}, "", []string{"declared_totals.tax_total total_mismatch", "declared_totals.total total_mismatch"}},
		{"A: the sum does not hold", "3750 0 675 4425.02", []item{{"3", "1250", "", full}}, "", []string{"declared_totals.total total_mismatch"}},
		{"B: four decimals and a percentage", "1113.66 83.52 185.43 1215.57", []item{{"12.75", "87.3456", "7.5", full}}, "1215.57", nil},
		{"B: net", "1030.14 83.52 185.43 1215.57", []item{{"12.75", "87.3456", "7.5", full}}, "1215.57", nil},
		{"B: neither", "1000 83.52 185.43 1215.57", []item{{"12.75", "87.3456", "7.5", full}}, "", []string{"declared_totals.subtotal total_mismatch"}},
		{"B: readings mixed", "1113.66 83.52 185.43 1299.09", []item{{"12.75", "87.3456", "7.5", full}}, "", []string{"declared_totals.total total_mismatch"}},
		{"C: header rounding", "31123.56 1439.22 1674.15 31358.49", classes, "31358.49", nil},
		{"C: line rounding", "31123.56 1439.22 1674.16 31358.50", classes, "31358.49", nil},
		{"C: net", "29684.34 1439.22 1674.15 31358.49", classes, "31358.49", nil},
		{"D: header", "70.21 0 12.64 82.85", seven, "82.85", nil},
		{"D: line", "70.21 0 12.67 82.88", seven, "82.85", nil},
		{"D: within the tolerance", "70.21 0 12.71 82.92", seven, "82.85", nil},
		{"D: beyond it", "70.21 0 12.75 82.96", seven, "", []string{"declared_totals.tax_total total_mismatch"}},
		{"D: a thousand small lines, header", "30.00 0 5.40 35.40", manySmall, "35.40", nil},
		{"D: a thousand small lines, line", "30.00 0 10.00 40.00", manySmall, "35.40", nil},
		{"E: legal tip", "1601.00 0 448.28 2049.28", restaurant, "2049.28", nil},
		{"F: telecommunications", "4545.75 0 1326.54 5872.29", telecom, "5872.29", nil},
		{"H: below the edge", "211864.40 0 38135.59 249999.99", []item{{"1", "211864.40", "", full}}, "249999.99", nil},
		{"H: at the edge", "211864.41 0 38135.59 250000.00", []item{{"1", "211864.41", "", full}}, "", []string{"buyer.tax_id required_for_type"}},
		{"I: free line", "1000.00 1000.00 0.00 0.00", []item{{"2", "500.00", "100", full}}, "0.00", nil},
	}
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for i, tt := range tests {
			a := e.create(tt.name, invoiceBody(fmt.Sprint("T-", i), itemised(tt.totals, tt.items...)))
			if tt.document == "" {
				wantInvalid(t, tt.name, a, tt.problems...)
				continue
			}
			inv := e.created(a)
			declared := strings.Fields(tt.totals)
			got := []string{inv.Totals["subtotal"], inv.Totals["discount_total"], inv.Totals["tax_total"], inv.Totals["total"]}
			if diff := cmp.Diff(declared, got); diff != "" {
				t.Errorf("%s: declared totals do not come back (-want +got):\n%s", tt.name, diff)
			}
			d := e.readDocument(inv.FiscalDocumentID)
			if d.Total != tt.document {
				t.Errorf("%s: the document's total is %s, want %s", tt.name, d.Total, tt.document)
			}
			// There is a note about cents when the totals differ.
			cents := strings.TrimSuffix(declared[3], ".00") != strings.TrimSuffix(tt.document, ".00")
			noted := len(d.StatusMessages) == 2 && strings.Contains(d.StatusMessages[0], tt.document) && strings.Contains(d.StatusMessages[0], declared[3])
			if cents != noted || !cents && len(d.StatusMessages) != 1 {
				t.Errorf("%s: messages %q", tt.name, d.StatusMessages)
			}
		}
	})
}

func TestPaidAndBalance(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, total := range []string{"590.00", "590", "590.0", "590.000"} {
			nothing := strings.Replace(total, "590", "0", 1)
			for payment, want := range map[string][2]string{
				"cash": {total, nothing}, "credit": {nothing, total}, "free_of_charge": {nothing, nothing},
			} {
				id := payment + " " + total
				inv := e.created(e.create(id, invoiceBody(id, setField("payment_type", payment), setField("due_date", "2026-12-01"), setField("declared_totals.total", total))))
				var read resource
				e.send(request{path: "invoices/" + inv.ID}).data(t, &read)
				for _, got := range []map[string]string{inv.Totals, read.Totals} {
					if got["paid"] != want[0] || got["balance"] != want[1] || got["total"] != total {
						t.Errorf("%s: totals %v, want paid %s and balance %s", id, got, want[0], want[1])
					}
				}
				if d := e.readDocument(inv.FiscalDocumentID); d.Total != "590.00" {
					t.Errorf("%s: the document's total is %s", id, d.Total)
				}
			}
		}
	})
}

func TestTimesAreUTCWithMilliseconds(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for i, tt := range []struct{ at, want string }{
			{"2026-11-15T12:00:00Z", "2026-11-15T12:00:00.000Z"},
			{"2026-11-15T12:00:00.1Z", "2026-11-15T12:00:00.100Z"},
			{"2026-11-15T12:00:00.123999Z", "2026-11-15T12:00:00.123Z"},
			{"2026-11-15T23:59:59.999999-04:00", "2026-11-16T03:59:59.999Z"},
		} {
			now, err := time.Parse(time.RFC3339Nano, tt.at)
			e.must(err)
			e.clock.set(now)
			id := fmt.Sprint("T-", i)
			inv := e.created(e.create(id, invoiceBody(id)))
			var read resource
			e.send(request{path: "invoices/" + inv.ID}).data(t, &read)
			d := e.readDocument(inv.FiscalDocumentID)
			for _, got := range []string{inv.CreatedAt, inv.UpdatedAt, read.CreatedAt, read.UpdatedAt, d.CreatedAt, d.UpdatedAt} {
				if got != tt.want {
					t.Errorf("at %s: got %s, want %s", tt.at, got, tt.want)
				}
			}
		}
	})
}

// Links start with the configured address, whatever a client or a proxy sends.
func TestLinksComeFromTheConfiguredAddress(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		inv := e.created(e.create("k", invoiceBody("L")))
		self := "https://invoices.example/v1/taxpayers/" + e.taxpayer + "/fiscal-documents/" + inv.FiscalDocumentID
		want := map[string]string{"self": self, "xml": self + "/xml", "pdf": self + "/pdf"}
		// The request names another host.
		text := e.rawRequest(http.MethodGet, "/v1/taxpayers/"+strings.ToUpper(e.taxpayer)+"/fiscal-documents/"+strings.ToUpper(inv.FiscalDocumentID), e.key,
			"X-Forwarded-Host: evil.example", "X-Forwarded-Proto: gopher", "Forwarded: host=evil.example")
		text = strings.Replace(text, "Host: invoices.example", "Host: evil.example:666", 1)
		a := e.dial(t).exchange(t, http.MethodGet, text)
		if a.status != http.StatusOK || strings.Contains(string(a.body), "evil") {
			t.Fatalf("got %s", a)
		}
		var d documentData
		a.data(t, &d)
		if diff := cmp.Diff(want, d.Links); diff != "" {
			t.Errorf("links (-want +got):\n%s", diff)
		}
	})
}

func TestLocationIsLowerCaseWhateverThePath(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		upper := "/v1/taxpayers/" + strings.ToUpper(e.taxpayer) + "/invoices"
		first := e.send(request{method: http.MethodPost, path: upper, idem: "k", body: invoiceBody("L")})
		inv := e.created(first)
		want := "/v1/taxpayers/" + e.taxpayer + "/invoices/" + inv.ID
		if got := first.header.Get("Location"); got != want || got != strings.ToLower(got) {
			t.Errorf("Location is %q, want %q", got, want)
		}
		if inv.TaxpayerID != e.taxpayer {
			t.Errorf("taxpayer_id is %q", inv.TaxpayerID)
		}
		wantReplay(t, "the same taxpayer in lower case", first, e.create("k", invoiceBody("L")))
		conflict := e.send(request{method: http.MethodPost, path: upper, idem: "k2", body: invoiceBody("L")})
		if got := conflict.header.Get("Location"); got != want {
			t.Errorf("Location of the conflict is %q, want %q", got, want)
		}
		wantStatus(t, "reading Location", e.send(request{path: first.header.Get("Location")}), http.StatusOK)
		wantStatus(t, "in upper case", e.send(request{path: upper + "/" + strings.ToUpper(inv.ID)}), http.StatusOK)
	})
}
