package fiscal_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// base is a valid invoice of type 31 with every field.
const base = `{
  "external_id": "FA-1", "ecf_type": "31", "issue_date": "2026-03-05", "due_date": "2026-04-05",
  "currency": "DOP", "language": "en", "payment_type": "credit",
  "buyer": {"legal_name": "Comercial Ejemplo, SRL", "tax_id": "199000048", "email": "a@example.com", "phone": "809-555-0100",
    "address": {"line1": "Calle 1", "line2": "Local 2", "city": "Santiago", "province_or_state": "Santiago", "postal_code": "51000", "country_code": "DO"}},
  "lines": [
    {"line_id": "1", "description": "Uno", "sku": "S", "unit": "und", "item_kind": "service", "billing_indicator": 1, "unit_code": 43,
     "quantity": "2", "unit_price": "500.00", "discount": {"kind": "percentage", "value": "10"},
     "taxes": [{"code": "ITBIS", "label": "ITBIS 18%", "rate_percent": "18"}, {"code": "001", "label": "Propina", "rate_percent": "10"}]},
    {"line_id": "2", "description": "Dos", "item_kind": "product", "quantity": "1", "unit_price": "100", "discount": null, "taxes": []}],
  "declared_totals": {"subtotal": "1100.00", "discount_total": "100.00", "tax_total": "252.00", "total": "1252.00"},
  "purchase_order": "OC-1", "payment_terms": "30 días", "notes": "Gracias",
  "estimated_withholdings": {"income_tax_amount": "90.00", "income_tax_base_amount": "900.00", "income_tax_rate_percent": "10",
    "itbis_amount": "48.60", "itbis_base_amount": "162.00", "itbis_rate_percent": "30"}
}`

// gone, as a value, removes a member.
type gone struct{}

// with returns a JSON text with the values at the dotted paths replaced.
func with(t testing.TB, body string, changes map[string]any) string {
	t.Helper()
	var root any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if err := d.Decode(&root); err != nil {
		t.Fatal(err)
	}
	for path, value := range changes {
		parts := strings.Split(path, ".")
		at := root
		for _, part := range parts[:len(parts)-1] {
			if list, ok := at.([]any); ok {
				i, _ := strconv.Atoi(part)
				at = list[i]
			} else {
				at = at.(map[string]any)[part]
			}
		}
		last := parts[len(parts)-1]
		switch holder := at.(type) {
		case []any:
			i, _ := strconv.Atoi(last)
			holder[i] = value
		case map[string]any:
			holder[last] = value
			if value == (gone{}) {
				delete(holder, last)
			}
		}
	}
	b, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func build(t testing.TB, body string) (*fiscal.Invoice, fiscal.Problems) {
	t.Helper()
	doc, err := strictjson.Parse([]byte(body))
	if err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(doc))
	if err == nil {
		return inv, nil
	}
	var problems fiscal.Problems
	if inv != nil || !errors.As(err, &problems) || len(problems) == 0 {
		t.Fatalf("New gave %v and %v", inv, err)
	}
	for _, p := range problems {
		if p.Message.IsZero() || strings.Contains(p.Message.String(), strings.Repeat("x", 65)) || strings.Contains(p.Field, strings.Repeat("x", 65)) {
			t.Errorf("the message is empty or repeats too much: %+v", p)
		}
	}
	return nil, problems
}

// codes returns problems as "field code".
func codes(problems fiscal.Problems) []string {
	var list []string
	for _, p := range problems {
		list = append(list, p.Field+" "+p.Code)
	}
	return list
}

func check(t *testing.T, body string, want ...string) {
	t.Helper()
	_, problems := build(t, body)
	if diff := cmp.Diff(want, codes(problems)); diff != "" {
		t.Errorf("problems differ (-want +got):\n%s\n%v", diff, problems)
	}
}

func TestRequestWithEveryFieldIsValid(t *testing.T) {
	t.Parallel()
	check(t, base)
}

func TestEachFieldIsRequired(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		"external_id", "ecf_type", "issue_date", "currency", "payment_type", "buyer", "lines", "declared_totals",
		"buyer.legal_name", "buyer.address.line1", "buyer.address.city", "buyer.address.country_code",
		"lines.0.line_id", "lines.0.description", "lines.0.item_kind", "lines.0.quantity", "lines.0.unit_price",
		"lines.0.discount", "lines.0.discount.kind", "lines.0.discount.value", "lines.0.taxes",
		"lines.0.taxes.1.code", "lines.0.taxes.1.label", "lines.0.taxes.1.rate_percent",
		"declared_totals.subtotal", "declared_totals.discount_total", "declared_totals.tax_total", "declared_totals.total",
		"estimated_withholdings.income_tax_amount", "estimated_withholdings.itbis_amount",
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			check(t, with(t, base, map[string]any{field: gone{}}), field+" required")
		})
	}
}

func TestOptionalFieldsMayBeLeftOut(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		"language", "purchase_order", "payment_terms", "notes", "estimated_withholdings", "buyer.email", "buyer.phone", "buyer.address",
		"buyer.address.line2", "buyer.address.province_or_state", "buyer.address.postal_code", "lines.0.sku", "lines.0.unit",
		"lines.0.billing_indicator", "lines.0.unit_code", "estimated_withholdings.income_tax_base_amount",
		"estimated_withholdings.income_tax_rate_percent", "estimated_withholdings.itbis_base_amount", "estimated_withholdings.itbis_rate_percent",
	} {
		check(t, with(t, base, map[string]any{field: gone{}}))
	}
}

// textFields has every string field with its length limits. The limits are zero
// for fields with a fixed list of values or a fixed form.
var textFields = map[string]struct {
	min, max  int
	multiline bool
}{
	"external_id": {1, 200, false}, "purchase_order": {1, 120, false}, "payment_terms": {1, 500, true}, "notes": {1, 2000, true},
	"buyer.legal_name": {1, 200, false}, "buyer.phone": {5, 40, false}, "buyer.address.line1": {1, 200, false},
	"buyer.address.line2": {1, 200, false}, "buyer.address.city": {1, 120, false}, "buyer.address.province_or_state": {1, 120, false},
	"buyer.address.postal_code": {1, 20, false}, "lines.0.line_id": {1, 100, false}, "lines.0.description": {1, 500, true},
	"lines.0.sku": {1, 100, false}, "lines.0.unit": {1, 80, false}, "lines.0.taxes.0.code": {1, 40, false}, "lines.0.taxes.0.label": {1, 120, false},

	"ecf_type": {}, "issue_date": {}, "due_date": {}, "currency": {}, "language": {}, "payment_type": {}, "buyer.tax_id": {}, "buyer.email": {},
	"buyer.address.country_code": {}, "lines.0.item_kind": {}, "lines.0.quantity": {}, "lines.0.unit_price": {}, "lines.0.discount.kind": {},
	"lines.0.discount.value": {}, "lines.0.taxes.0.rate_percent": {}, "declared_totals.subtotal": {}, "declared_totals.discount_total": {},
	"declared_totals.tax_total": {}, "declared_totals.total": {}, "estimated_withholdings.income_tax_amount": {},
	"estimated_withholdings.income_tax_base_amount": {}, "estimated_withholdings.income_tax_rate_percent": {},
	"estimated_withholdings.itbis_amount": {}, "estimated_withholdings.itbis_base_amount": {}, "estimated_withholdings.itbis_rate_percent": {},
}

func TestTextLengthsAreInCodePoints(t *testing.T) {
	t.Parallel()
	for field, f := range textFields {
		if f.max == 0 {
			continue
		}
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			check(t, with(t, base, map[string]any{field: ""}), field+" too_short")
			check(t, with(t, base, map[string]any{field: strings.Repeat("x", f.max+1)}), field+" too_long")
			check(t, with(t, base, map[string]any{field: strings.Repeat(" ", f.min)}), field+" blank")
			check(t, with(t, base, map[string]any{field: "\u2003\u00a0"}), field+" blank")
			if f.min > 1 {
				check(t, with(t, base, map[string]any{field: strings.Repeat("x", f.min-1)}), field+" too_short")
			}
			if strings.Contains(field, "taxes") {
				return // the text decides which tax it is
			}
			check(t, with(t, base, map[string]any{field: strings.Repeat("😀", f.max)}))
			check(t, with(t, base, map[string]any{field: strings.Repeat("x", f.min)}))
		})
	}
}

func TestForbiddenCharactersAreRefusedInEveryText(t *testing.T) {
	t.Parallel()
	for field, f := range textFields {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			for _, c := range []string{"\x00", "\x0b", "\x1f", "\u202a", "\u202e", "\u2066", "\u2069", "\ufffe", "\uffff"} {
				check(t, with(t, base, map[string]any{field: "12345" + c}), field+" invalid_characters")
			}
			for _, c := range []string{"\t", "\n", "\r"} {
				body := with(t, base, map[string]any{field: "ITBIS" + c + "18"})
				if f.multiline {
					check(t, body)
				} else {
					check(t, body, field+" invalid_characters")
				}
			}
			if f.max > 0 && !strings.Contains(field, "taxes") {
				check(t, with(t, base, map[string]any{field: "a\u2029b\u2065\u007f\ufffd"}))
			}
		})
	}
}

func TestMarkupAndQueriesInTextAreKeptVerbatim(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"'; DROP TABLE--", "<!ENTITY x>]]>", "<script>", "=1+1", "%s%n", "../../etc"} {
		inv, problems := build(t, with(t, base, map[string]any{"notes": s, "external_id": s, "lines.0.description": s}))
		if problems != nil || inv.Notes != s || inv.ExternalID != s || inv.Lines[0].Description != s {
			t.Errorf("%q was changed or refused: %v", s, problems)
		}
	}
}

func TestValuesOfAnotherTypeAreRefused(t *testing.T) {
	t.Parallel()
	number := json.Number("1")
	decimals := []string{"quantity", "unit_price", "value", "rate_percent", "subtotal", "discount_total", "tax_total", "total"}
	for field := range textFields {
		name := field[strings.LastIndex(field, ".")+1:]
		isDecimal := slices.Contains(decimals, name) || strings.Contains(field, "withholdings")
		for _, value := range []any{true, number, []any{}, map[string]any{}} {
			want := field + " invalid_type"
			if isDecimal && value == any(number) {
				want = field + " invalid_decimal"
			}
			check(t, with(t, base, map[string]any{field: value}), want)
		}
	}
	for _, field := range []string{"buyer", "lines", "declared_totals", "buyer.address", "lines.0", "lines.0.taxes", "lines.0.taxes.0", "lines.0.discount", "estimated_withholdings"} {
		check(t, with(t, base, map[string]any{field: "x"}), field+" invalid_type")
	}
	for _, field := range []string{"lines.0.billing_indicator", "lines.0.unit_code"} {
		for _, value := range []any{"1", true, nil} {
			check(t, with(t, base, map[string]any{field: value}), field+" invalid_type")
		}
	}
}

func TestBodyMustBeAnObject(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`null`, `[]`, `"x"`, `7`, `true`} {
		check(t, body, " invalid_type")
	}
	if inv, err := fiscal.New(fiscal.Request{}); inv != nil || err == nil {
		t.Errorf("the zero Request made %v", inv)
	}
}

func TestUnknownFieldsAreRefusedAtEachLevel(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"x", "buyer.x", "buyer.address.x", "lines.1.x", "lines.0.discount.x", "lines.0.taxes.1.x", "declared_totals.x", "estimated_withholdings.x", ""} {
		for _, value := range []any{"1", nil, map[string]any{"y": 1}} {
			check(t, with(t, base, map[string]any{field: value}), field+" unknown_field")
		}
	}
	long := strings.Repeat("x", 500)
	_, problems := build(t, with(t, base, map[string]any{long: 1}))
	if len(problems) != 1 || len([]rune(problems[0].Field)) != 64 {
		t.Errorf("a long field name is not cut: %v", problems)
	}
}

func TestFieldNamesAreCaseSensitive(t *testing.T) {
	t.Parallel()
	check(t, with(t, base, map[string]any{"external_id": gone{}, "External_Id": "1"}), "External_Id unknown_field", "external_id required")
}

func TestDecimalsOfAnotherFormAreRefused(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "1e3", "+1", "-1", "01", "00", ".5", "5.", "1,000", "١", "1 ", " 1", "1.2.3", "1_0", "0x1", "NaN", "1.", "1234567890123456789", "0.123456789012345678", strings.Repeat("9", 33)} {
		for _, field := range []string{"lines.1.quantity", "lines.1.unit_price", "lines.0.discount.value", "lines.0.taxes.0.rate_percent", "declared_totals.total", "estimated_withholdings.itbis_base_amount"} {
			check(t, with(t, base, map[string]any{field: s}), field+" invalid_decimal")
		}
	}
	check(t, with(t, base, map[string]any{"lines.1.quantity": "1.001"}), "lines.1.quantity invalid_decimal")
	check(t, with(t, base, map[string]any{"lines.1.quantity": "1.00000", "lines.1.unit_price": "100.000000"}))
	check(t, with(t, base, map[string]any{"lines.1.unit_price": "100.00001"}), "lines.1.unit_price invalid_decimal")
}

func TestHugeDecimalIsRefused(t *testing.T) {
	t.Parallel()
	check(t, with(t, base, map[string]any{"declared_totals.total": strings.Repeat("9", 100_000)}), "declared_totals.total invalid_decimal")
}

func TestAWithholdingIsNotMoreThanItsBase(t *testing.T) {
	t.Parallel()
	for _, tax := range []string{"income_tax", "itbis"} {
		field := "estimated_withholdings." + tax
		for rate, want := range map[any]string{nil: field + "_amount out_of_range", "200": field + "_amount out_of_range"} {
			check(t, with(t, base, map[string]any{field + "_amount": "10", field + "_base_amount": "5", field + "_rate_percent": rate}), want)
		}
		check(t, with(t, base, map[string]any{field + "_amount": "10", field + "_base_amount": "10", field + "_rate_percent": nil}))
		check(t, with(t, base, map[string]any{field + "_amount": "10.01", field + "_base_amount": "10.005", field + "_rate_percent": "100"}))
	}
}

func TestNullIsAcceptedOnlyWhereTheAPIHasIt(t *testing.T) {
	t.Parallel()
	check(t, with(t, base, map[string]any{
		"due_date": nil, "payment_type": "cash",
		"estimated_withholdings.income_tax_base_amount": nil, "estimated_withholdings.income_tax_rate_percent": nil,
		"estimated_withholdings.itbis_base_amount": nil, "estimated_withholdings.itbis_rate_percent": nil,
	}))
	allowed := "due_date lines.0.discount income_tax_base_amount income_tax_rate_percent itbis_base_amount itbis_rate_percent"
	for field := range textFields {
		if !strings.Contains(allowed, field[strings.LastIndex(field, ".")+1:]) {
			check(t, with(t, base, map[string]any{field: nil}), field+" invalid_type")
		}
	}
	for _, field := range []string{"buyer", "lines", "declared_totals", "buyer.address", "estimated_withholdings", "lines.0.taxes"} {
		check(t, with(t, base, map[string]any{field: nil}), field+" invalid_type")
	}
}

func TestCountsOfLinesAndTaxesAreLimited(t *testing.T) {
	t.Parallel()
	tax := map[string]any{"code": "ITBIS", "label": "x", "rate_percent": "0"}
	line := map[string]any{"line_id": "1", "description": "d", "item_kind": "product", "quantity": "1", "unit_price": "0", "discount": nil, "taxes": []any{}}
	zeros := map[string]any{"subtotal": "0", "discount_total": "0", "tax_total": "0", "total": "0"}
	lines := func(n int) map[string]any {
		list := make([]any, n)
		for i := range list {
			list[i] = line
		}
		return map[string]any{"lines": list, "declared_totals": zeros, "estimated_withholdings": gone{}}
	}
	check(t, with(t, base, lines(0)), "lines too_few_items")
	check(t, with(t, base, lines(1)))
	check(t, with(t, base, lines(1000)))
	check(t, with(t, base, lines(1001)), "lines too_many_items")
	thirteen := make([]any, 13)
	for i := range thirteen {
		thirteen[i] = tax
	}
	_, problems := build(t, with(t, base, map[string]any{"lines.1.taxes": thirteen}))
	if len(problems) == 0 || problems[0].Field != "lines.1.taxes" || problems[0].Code != fiscal.CodeTooManyItems {
		t.Errorf("13 taxes: %v", problems)
	}
	check(t, with(t, base, map[string]any{"external_id": strings.Repeat("x", 201)}), "external_id too_long")
	check(t, with(t, base, map[string]any{"external_id": strings.Repeat("😀", 200)}))
}

func TestDiscountIsAPercentageUpTo100(t *testing.T) {
	t.Parallel()
	check(t, with(t, base, map[string]any{"lines.0.discount.kind": "amount"}), "lines.0.discount.kind invalid_enum")
	check(t, with(t, base, map[string]any{"lines.0.discount.value": "100.01"}), "lines.0.discount.value out_of_range")
}

func TestEnumsAcceptOnlyTheirValues(t *testing.T) {
	t.Parallel()
	for _, field := range []string{"ecf_type", "currency", "language", "payment_type", "lines.0.item_kind"} {
		for _, value := range []string{"", "33", "dop", "ES", "Cash", "Product", "31 "} {
			check(t, with(t, base, map[string]any{field: value}), field+" invalid_enum")
		}
	}
}

func TestIntegersAreComparedByValue(t *testing.T) {
	t.Parallel()
	tests := []struct {
		field, sent string
		ok          bool
	}{
		{"billing_indicator", "1", true}, {"billing_indicator", "1.0", true}, {"billing_indicator", "10e-1", true}, {"billing_indicator", "0.001E+3", true},
		{"billing_indicator", "0", false}, {"billing_indicator", "-0", false}, {"billing_indicator", "-1", false}, {"billing_indicator", "5", false},
		{"billing_indicator", "1.5", false}, {"billing_indicator", "1e400", false}, {"billing_indicator", "1e-400", false},
		{"billing_indicator", "1.00000000000000000001", false}, {"billing_indicator", "1e99999999999999999999", false},
		{"unit_code", "58", true}, {"unit_code", "60", true}, {"unit_code", "68", true}, {"unit_code", "6.8e1", true}, {"unit_code", "1e1", true},
		{"unit_code", "59", false}, {"unit_code", "69", false}, {"unit_code", "0", false}, {"unit_code", "1000", false}, {"unit_code", "43.00000000000000000001", false},
	}
	for _, tt := range tests {
		body := with(t, base, map[string]any{"lines.0." + tt.field: json.Number(tt.sent)})
		if tt.ok {
			check(t, body)
		} else {
			check(t, body, "lines.0."+tt.field+" invalid_enum")
		}
	}
}

func TestManyProblemsAreCutSortedAndStable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 500 {
		b.WriteString(`{"line_id":"1","description":"d","item_kind":"product","quantity":"x","unit_price":"1","discount":null,"taxes":[]}`)
		if i < 499 {
			b.WriteByte(',')
		}
	}
	body := strings.Replace(base, `"lines": [`, `"lines": [`+b.String()+`,`, 1)
	_, first := build(t, body)
	if len(first) != 101 {
		t.Fatalf("%d problems, want 101", len(first))
	}
	for i := range 100 {
		if want := "lines." + strconv.Itoa(i) + ".quantity"; first[i].Field != want {
			t.Fatalf("problem %d is of field %s, want %s", i, first[i].Field, want)
		}
	}
	last := first[100]
	if last.Field != "" || last.Code != fiscal.CodeTooManyErrors || !strings.Contains(last.Message.String(), "400 more") {
		t.Errorf("last problem is %+v", last)
	}
	_, second := build(t, body)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("the second result differs:\n%s", diff)
	}
}
