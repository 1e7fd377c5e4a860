package ecf_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

func TestLostNamesEveryChangedText(t *testing.T) {
	t.Parallel()
	address := func(line1, country string) map[string]any {
		return map[string]any{"line1": line1, "city": "Miami", "province_or_state": "Florida", "country_code": country}
	}
	for _, c := range []struct {
		name    string
		changes map[string]any
		want    []string // the beginnings of the messages
	}{
		{"nothing", nil, nil},
		{"composed and trimmed", map[string]any{"notes": " Pen\u0303a \n", "lines.description": "Pen\u0303a ", "payment_terms": "30 di\u0301as\n"}, nil},
		{"notes of 250", map[string]any{"notes": strings.Repeat("ñ", 250)}, nil},
		{"notes of 251", map[string]any{"notes": strings.Repeat("ñ", 251)}, []string{"notes: the fiscal document carries the first 249 characters"}},
		{"line breaks", map[string]any{"notes": "a\r\nb", "lines.description": "a\tb", "payment_terms": "30\ndías"}, []string{
			"lines.0.description: the fiscal document and the printed page have spaces",
			`payment_terms: the fiscal document carries "30 días"`, "notes: the fiscal document has spaces",
		}},
		{"punctuation", map[string]any{"payment_terms": "30 días."}, []string{`payment_terms: the fiscal document carries "30 días"`}},
		{"long terms", map[string]any{"payment_terms": "30 días después"}, nil},
		{"longer terms", map[string]any{"payment_terms": "30 días después."}, []string{`payment_terms: the fiscal document carries`}},
		{"too long terms", map[string]any{"payment_terms": "30 días después x"}, []string{"payment_terms: the fiscal document omits them"}},
		{"item code", map[string]any{"lines.sku": strings.Repeat("x", 36)}, []string{"lines.0.sku: has more than 35 characters"}},
		{"a unit of the table", map[string]any{"lines.unit": "Libras"}, nil},
		{"a unit that the table lacks", map[string]any{"lines.unit": "mes"}, []string{"lines.0.unit: the tax authority's table has no such unit; the fiscal document omits it"}},
		{"a unit that the table lacks, with a code", map[string]any{"lines.unit": "mes", "lines.unit_code": 43}, nil},
		{"a unit and its code", map[string]any{"lines.unit": "lb", "lines.unit_code": 23}, nil},
		{"a unit and another code", map[string]any{"lines.unit": "lb", "lines.unit_code": 21}, []string{
			"lines.0.unit_code: 21 (KG) is not the unit that unit names, 23 (LB); the fiscal document and the printed page carry 21 (KG)",
		}},
		{"external id of 20", map[string]any{"external_id": strings.Repeat("ñ", 20)}, nil},
		{"external id of 21", map[string]any{"external_id": strings.Repeat("ñ", 21)}, []string{"external_id: has more than 20 characters; the fiscal document"}},
		{"e-mail", map[string]any{"buyer.email": "under_score@b.example"}, []string{"buyer.email: does not fit"}},
		{"long address", map[string]any{"ecf_type": "32", "buyer.address": address(strings.Repeat("x", 99), "US")}, []string{"buyer.address: has more than 100 characters"}},
		{"address without room for the country", map[string]any{"ecf_type": "32", "buyer.address": address(strings.Repeat("x", 83), "US")}, []string{"buyer.address: has more than 100 characters"}},
		{"short address", map[string]any{"ecf_type": "32", "buyer.address": address("x", "US")}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := ecf.Lost(invoice(t, request(t, c.changes)))
			if len(got) != len(c.want) {
				t.Fatalf("%q, want %q", got, c.want)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(got[i].String(), want) {
					t.Errorf("%q, want %q", got[i], want)
				}
			}
		})
	}
}

// There is one message about all lines, so that a long invoice has few.
func TestLostHasOneMessageForAllLines(t *testing.T) {
	t.Parallel()
	line := func(id, text string) map[string]any {
		return map[string]any{
			"line_id": id, "description": text, "item_kind": "product", "quantity": "1", "unit_price": "50", "discount": nil,
			"taxes": []any{map[string]any{"code": "ITBIS", "label": "ITBIS", "rate_percent": "18"}},
		}
	}
	inv := invoice(t, request(t, map[string]any{
		"lines":           []any{line("1", "a"), line("2", "b\nc"), line("3", "d\ne"), line("4", "f\ng")},
		"declared_totals": map[string]any{"subtotal": "200", "discount_total": "0", "tax_total": "36", "total": "236"},
	}))
	want := []string{"lines.1.description (and 2 other lines): the fiscal document and the printed page have spaces in the place of line breaks and tabs"}
	if diff := cmp.Diff(want, english(ecf.Lost(inv))); diff != "" {
		t.Error(diff)
	}
}

func english(messages []lang.Message) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.String())
	}
	return all
}
