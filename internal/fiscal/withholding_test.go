package fiscal_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithholdingsOfTheWorkedExample(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/03-ecf31-credit-withholdings.request.json")
	if err != nil {
		t.Fatal(err)
	}
	inv, problems := build(t, string(body))
	if problems != nil {
		t.Fatal(problems)
	}
	var got []string
	for _, line := range inv.Lines {
		got = append(got, line.ITBISWithheld.StringFixed(2)+" "+line.IncomeTaxWithheld.StringFixed(2))
	}
	if diff := cmp.Diff([]string{"5400.00 10000.00", "1377.03 2550.05", "0.00 500.00"}, got); diff != "" {
		t.Error(diff)
	}
	if s := inv.Totals; s.ITBISWithheld.StringFixed(2) != "6777.03" || s.IncomeTaxWithheld.StringFixed(2) != "13050.05" {
		t.Errorf("totals %s, %s", s.ITBISWithheld, s.IncomeTaxWithheld)
	}
}

func TestWithholdingIsSpreadToTheCent(t *testing.T) {
	t.Parallel()
	three := []item{{"1", "1000", "", "ITBIS=18", 0}, {"1", "1000", "", "ITBIS=18", 0}, {"1", "1000", "", "ITBIS=18", 0}}
	tiny := []item{{"1", "0.02", "", "ITBIS=18", 0}, {"1", "0.02", "", "ITBIS=18", 0}, {"1", "0.02", "", "ITBIS=18", 0}}
	tests := []struct {
		name, totals, incomeTax, itbis string
		items                          []item
		want                           []string
	}{
		{"three equal lines", "3000 0 540 3540", "100.00", "100.00", three, []string{"33.34 33.34", "33.33 33.33", "33.33 33.33"}},
		{"rounded to cents first", "3000 0 540 3540", "0.005", "0", three, []string{"0.00 0.01", "0.00 0.00", "0.00 0.00"}},
		{"zeros are ignored", "3000 0 540 3540", "0", "0.00", three, []string{"0.00 0.00", "0.00 0.00", "0.00 0.00"}},
		{"lines whose tax rounds to nothing", "0.06 0 0.01 0.07", "0", "0.01", tiny, []string{"0.01 0.00", "0.00 0.00", "0.00 0.00"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv, problems := build(t, with(t, invoice("31", tt.totals, tt.items...), map[string]any{
				"estimated_withholdings": map[string]any{"income_tax_amount": tt.incomeTax, "itbis_amount": tt.itbis},
			}))
			if problems != nil {
				t.Fatal(problems)
			}
			var got []string
			for _, line := range inv.Lines {
				got = append(got, line.ITBISWithheld.StringFixed(2)+" "+line.IncomeTaxWithheld.StringFixed(2))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithholdingRules(t *testing.T) {
	t.Parallel()
	const w = "estimated_withholdings."
	tests := []struct {
		name    string
		changes map[string]any
		want    []string
	}{
		{"any amount on a 32", map[string]any{"ecf_type": "32"}, []string{w + "income_tax_amount not_allowed_for_type", w + "itbis_amount not_allowed_for_type"}},
		{"zeros on a 32", map[string]any{"ecf_type": "32", w + "income_tax_amount": "0.00", w + "itbis_amount": "0"}, nil},
		{"amount is not base × rate", map[string]any{w + "itbis_amount": "48.62"}, []string{w + "itbis_amount total_mismatch"}},
		{"a cent off base × rate", map[string]any{w + "itbis_amount": "48.61", w + "income_tax_amount": "89.99"}, nil},
		{"zero is not base × rate", map[string]any{w + "income_tax_amount": "0"}, []string{w + "income_tax_amount total_mismatch"}},
		{"base alone is not checked", map[string]any{w + "itbis_amount": "1", w + "itbis_rate_percent": nil}, nil},
		{"rate alone is not checked", map[string]any{w + "income_tax_amount": "1", w + "income_tax_base_amount": gone{}}, nil},
		{"more ITBIS than there is", map[string]any{w + "itbis_amount": "162.01", w + "itbis_rate_percent": nil}, []string{w + "itbis_amount out_of_range"}},
		{"all the ITBIS", map[string]any{w + "itbis_amount": "162.00", w + "itbis_rate_percent": nil}, nil},
		{"more income tax than services", map[string]any{w + "income_tax_amount": "900.01", w + "income_tax_base_amount": nil}, []string{w + "income_tax_amount out_of_range"}},
		{"without services all lines count", map[string]any{"lines.0.item_kind": "product", w + "income_tax_amount": "1000", w + "income_tax_base_amount": nil}, nil},
		{"broken lines suppress the limit", map[string]any{"lines.0.quantity": "0", w + "income_tax_amount": "9000", w + "income_tax_base_amount": nil}, []string{"lines.0.quantity out_of_range"}},
		{"too large", map[string]any{w + "itbis_amount": "10000000000000000"}, []string{w + "itbis_amount out_of_range"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			check(t, with(t, base, tt.changes), tt.want...)
		})
	}
}
