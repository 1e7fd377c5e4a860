package fiscal_test

import (
	"encoding/csv"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// An item is the short form of a line: quantity, price, discount and taxes as
// "code=rate", and the indicator when it is not zero.
type item struct {
	quantity, price, discount, taxes string
	indicator                        int
}

func invoice(kind string, totals string, items ...item) string {
	var lines []string
	for i, it := range items {
		discount := "null"
		if it.discount != "" {
			discount = `{"kind":"percentage","value":"` + it.discount + `"}`
		}
		var taxes []string
		for _, tax := range strings.Fields(it.taxes) {
			code, rate, _ := strings.Cut(tax, "=")
			code, label, ok := strings.Cut(code, "/")
			if !ok {
				label = "x"
			}
			taxes = append(taxes, fmt.Sprintf(`{"code":%q,"label":%q,"rate_percent":%q}`, code, label, rate))
		}
		indicator := ""
		if it.indicator != 0 {
			indicator = fmt.Sprintf(`"billing_indicator":%d,`, it.indicator)
		}
		lines = append(lines, fmt.Sprintf(`{"line_id":"%d","description":"d","item_kind":"product",%s"quantity":%q,"unit_price":%q,"discount":%s,"taxes":[%s]}`,
			i, indicator, it.quantity, it.price, discount, strings.Join(taxes, ",")))
	}
	t := strings.Fields(totals)
	return fmt.Sprintf(`{"external_id":"1","ecf_type":%q,"issue_date":"2026-01-01","currency":"DOP","payment_type":"cash","buyer":{"legal_name":"n","tax_id":"199000048"},
		"lines":[%s],"declared_totals":{"subtotal":%q,"discount_total":%q,"tax_total":%q,"total":%q}}`, kind, strings.Join(lines, ","), t[0], t[1], t[2], t[3])
}

func TestTotalsOfTheWorkedExamples(t *testing.T) {
	t.Parallel()
	mixed := []item{
		{"12.75", "87.3456", "7.5", "ITBIS=18", 0}, {"40", "215.25", "5", "ITBIS=16", 0}, {"10", "99.99", "", "ITBIS=0", 0},
		{"6", "3150.00", "2.25", "", 0}, {"1", "1500.00", "33.33", "ITBIS=18", 0},
	}
	seven := make([]item, 7)
	for i := range seven {
		seven[i] = item{"1", "10.03", "", "ITBIS=18", 0}
	}
	thousand := make([]item, 1000)
	for i := range thousand {
		thousand[i] = item{"1", "0.03", "", "ITBIS=18", 0}
	}
	tip := []item{{"1", "850.00", "", "ITBIS=18 001=10", 0}, {"2", "375.50", "", "ITBIS=18 001=10", 0}}
	telecom := []item{{"1", "4235.75", "", "ITBIS=18 002=2 004=10", 0}, {"1", "310.00", "", "ITBIS=18", 0}}
	tests := []struct {
		name, totals string
		items        []item
		total        string // "" when the invoice must be refused
	}{
		{"A one line", "3750.00 0.00 675.00 4425.00", []item{{"3", "1250.00", "", "ITBIS=18", 0}}, "4425.00"},
		{"B four decimals and a percentage", "1113.66 83.52 185.43 1215.57", mixed[:1], "1215.57"},
		{"C all classes, header rounding", "31123.56 1439.22 1674.15 31358.49", mixed, "31358.49"},
		{"C all classes, line rounding", "31123.56 1439.22 1674.16 31358.50", mixed, "31358.49"},
		{"C all classes, net subtotal", "29684.34 1439.22 1674.15 31358.49", mixed, "31358.49"},
		{"C gross subtotal with the net sum", "31123.56 1439.22 1674.15 32797.71", mixed, ""},
		{"C net subtotal with the gross sum", "29684.34 1439.22 1674.15 29919.27", mixed, ""},
		{"D header rounding", "70.21 0 12.64 82.85", seven, "82.85"},
		{"D line rounding", "70.21 0 12.67 82.88", seven, "82.85"},
		{"D within the tolerance", "70.21 0 12.71 82.92", seven, "82.85"},
		{"D beyond the tolerance", "70.21 0 12.75 82.96", seven, ""},
		{"D extreme, header", "30 0 5.40 35.40", thousand, "35.40"},
		{"D extreme, by line", "30 0 10.00 40.00", thousand, "35.40"},
		{"E legal tip", "1601.00 0 448.28 2049.28", tip, "2049.28"},
		{"F telecom", "4545.75 0 1326.54 5872.29", telecom, "5872.29"},
		{"H below the edge", "211864.40 0 38135.59 249999.99", []item{{"1", "211864.40", "", "ITBIS=18", 0}}, "249999.99"},
		{"H at the edge", "211864.41 0 38135.59 250000.00", []item{{"1", "211864.41", "", "ITBIS=18", 0}}, "250000.00"},
		{"I free line", "1000 1000 0 0", []item{{"2", "500.00", "100", "ITBIS=18", 0}}, "0.00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv, problems := build(t, invoice("32", tt.totals, tt.items...))
			if (problems == nil) != (tt.total != "") {
				t.Fatalf("problems: %v", problems)
			}
			if inv != nil && inv.Totals.Total.StringFixed(2) != tt.total {
				t.Errorf("total is %s, want %s", inv.Totals.Total, tt.total)
			}
			if inv != nil {
				if got, want := fiscal.SentAsSummary(inv.Type, inv.Totals.Total), inv.Totals.Total.Cmp(fiscal.SummaryLimit()) < 0; got != want {
					t.Errorf("SentAsSummary is %v for %s", got, inv.Totals.Total)
				}
			}
		})
	}
}

func TestBucketsOfMixedRates(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("testdata/02-ecf31-mixed-rates-discounts.request.json")
	if err != nil {
		t.Fatal(err)
	}
	inv, problems := build(t, string(body))
	if problems != nil {
		t.Fatal(problems)
	}
	s := inv.Totals
	got := map[string]string{
		"gross": s.Gross.StringFixed(2), "discount": s.Discount.StringFixed(2), "net": s.Net.StringFixed(2), "i1": s.I1.Base.StringFixed(2), "i2": s.I2.Base.StringFixed(2),
		"i3": s.I3.Base.StringFixed(2), "exempt": s.Exempt.Base.StringFixed(2), "taxable": s.Taxable.StringFixed(2), "itbis1": s.I1.ITBIS.StringFixed(2),
		"itbis2": s.I2.ITBIS.StringFixed(2), "itbis3": s.I3.ITBIS.StringFixed(2), "itbis": s.ITBIS.StringFixed(2),
	}
	want := map[string]string{
		"gross": "31123.56", "discount": "1439.22", "net": "29684.34", "i1": "2030.19", "i2": "8179.50", "i3": "999.90", "exempt": "18474.75",
		"taxable": "11209.59", "itbis1": "365.43", "itbis2": "1308.72", "itbis3": "0.00", "itbis": "1674.15",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if !s.I1.Present || !s.I2.Present || !s.I3.Present || !s.Exempt.Present {
		t.Error("a class with a line is not present")
	}
	free, _ := build(t, invoice("32", "1000 1000 0 0", item{"2", "500", "100", "ITBIS=18", 0}))
	if !free.Totals.I1.Present || free.Totals.I2.Present || free.Totals.Exempt.Present {
		t.Error("want the bucket of the free line present, and no other")
	}
}

func TestLargeConsumerInvoiceNeedsTheBuyer(t *testing.T) {
	t.Parallel()
	check(t, with(t, invoice("32", "211864.41 0 38135.59 250000.00", item{"1", "211864.41", "", "ITBIS=18", 0}), map[string]any{"buyer.tax_id": gone{}}), "buyer.tax_id required_for_type")
	check(t, with(t, invoice("32", "211864.40 0 38135.59 249999.99", item{"1", "211864.40", "", "ITBIS=18", 0}), map[string]any{"buyer.tax_id": gone{}}))
}

func TestWrongDeclaredTotalsAreReportedByField(t *testing.T) {
	t.Parallel()
	one := item{"1", "1000", "10", "ITBIS=18", 0} // 1000 / 100 / 162 / 1062
	tests := []struct {
		name, totals string
		want         []string
		message      string
	}{
		{"right", "1000 100 162 1062", nil, ""},
		{"rounded half-up before the comparison", "1000.004 100.004 162.004 1062.004", nil, ""},
		{"a cent of rounding each", "1000.01 99.99 162.01 1062.03", nil, ""},
		{"subtotal", "1001 100 162 1062", []string{"declared_totals.subtotal total_mismatch"}, "1000.00 before discounts or 900.00 after them"},
		{"discount", "1000 101 162 1062", []string{"declared_totals.discount_total total_mismatch"}, "100.00"},
		{"tax", "1000 100 163 1062", []string{"declared_totals.tax_total total_mismatch"}, "162.00"},
		{"total", "1000 100 162 1063", []string{"declared_totals.total total_mismatch"}, "1062.00"},
		{"total off by cents that the sum does not give", "1000 100 162 1062.02", []string{"declared_totals.total total_mismatch"}, "subtotal - discount_total + tax_total = 1062.00"},
		{"net total off by cents that the sum does not give", "900 100 162 1062.02", []string{"declared_totals.total total_mismatch"}, "subtotal + tax_total = 1062.00"},
		{"all four", "1 2 3 4", []string{"declared_totals.discount_total total_mismatch", "declared_totals.subtotal total_mismatch", "declared_totals.tax_total total_mismatch", "declared_totals.total total_mismatch"}, "100.00"},
		{"too large", "10000000000000000 0 0 0", []string{"declared_totals.subtotal out_of_range"}, "16"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, problems := build(t, invoice("32", tt.totals, one))
			if diff := cmp.Diff(tt.want, codes(problems)); diff != "" {
				t.Fatalf("%s\n%v", diff, problems)
			}
			if problems != nil && !strings.Contains(problems[0].Message.String(), tt.message) {
				t.Errorf("message %q does not contain %q", problems[0].Message, tt.message)
			}
		})
	}
}

func TestAmountsTooLargeForTheDocumentAreRefused(t *testing.T) {
	t.Parallel()
	check(t, invoice("32", "1 0 0 1", item{"10000000000000000", "0", "", "", 0}), "lines.0.quantity out_of_range")
	check(t, invoice("32", "1 0 0 1", item{"1", "10000000000000000", "", "", 0}), "lines.0.unit_price out_of_range")
	check(t, invoice("32", "1 0 0 1", item{"9999999999999999", "9999999999999999", "", "", 0}), "lines.0.unit_price out_of_range")
	check(t, invoice("32", "9999999999999999.99 0 0 9999999999999999.99", item{"1", "9999999999999999.99", "", "", 0}))
	check(t, invoice("32", "1 0 0 1", item{"1", "9000000000000000", "", "", 0}, item{"1", "9000000000000000", "", "", 0}), "declared_totals.total out_of_range")
	check(t, invoice("32", "9000000000000000 0 0 1", item{"1", "9000000000000000", "", "ITBIS=18", 0}), "declared_totals.total out_of_range")
	check(t, invoice("32", "0 0 0 0", item{"0", "1", "", "", 0}), "lines.0.quantity out_of_range")
	check(t, invoice("32", "0 0 0 0", item{"0.00", "1", "", "", 0}), "lines.0.quantity out_of_range")
}

func TestDiscountOfManyDecimalsIsRoundedToTheCent(t *testing.T) {
	t.Parallel()
	inv, problems := build(t, invoice("32", "1 0.13 0 0.87", item{"1", "1", "12.5000000000000001", "", 0}))
	if problems != nil || inv.Lines[0].DiscountAmount.String() != "0.13" {
		t.Errorf("%v %v", inv, problems)
	}
}

func TestTaxRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		taxes     string
		indicator int
		want      string // a problem, or the indicator and the codes
	}{
		{"ITBIS by code", "ITBIS=18", 0, "1"}, {"at 16", "itbis-16=16.00", 0, "2"}, {"at zero", "ITBIS=0.0", 0, "3"}, {"no entry is exempt", "", 0, "4"},
		{"ITBIS within a code", "DO_ITBIS_18=18", 0, "1"}, {"IVA", "iva=18", 0, "1"}, {"VAT", "V.A.T.=16", 0, "2"},
		{"a label is no code", "T1/I.T.B.I.S.=16", 0, "lines.0.taxes.0.code unknown_tax"}, {"18 percent is no code", "whatever=18.0", 0, "lines.0.taxes.0.code unknown_tax"},
		{"0 percent is no code", "whatever=0", 0, "lines.0.taxes.0.code unknown_tax"}, {"an unknown tax with an indicator", "OTRO/ITBIS=18", 1, "lines.0.taxes.0.code unknown_tax"},
		{"exempt by code", "EXENTO=0", 0, "4"}, {"exempt, feminine", "exenta=0.00", 0, "4"}, {"exempt in English", "Exempt=0", 0, "4"},
		{"a label does not exempt", "T0/Exempt=0", 0, "lines.0.taxes.0.code unknown_tax"}, {"an exempt ITBIS", "ITBIS-Exento=0", 0, "4"}, {"an exempt label of ITBIS", "ITBIS/ITBIS-Exento=0", 0, "3"},
		{"exempt with a rate", "EXENTO=18", 0, "lines.0.taxes.0.rate_percent out_of_range"}, {"exempt ITBIS with a rate", "ITBIS_EXENTO=16", 0, "lines.0.taxes.0.rate_percent out_of_range"},
		{"ITBIS and exempt", "ITBIS=18 EXENTO=0", 0, "lines.0.taxes.1.code tax_conflict"},
		{"a rate that ITBIS lacks", "ITBIS=17", 0, "lines.0.taxes.0.rate_percent out_of_range"},
		{"unknown", "FOO=5", 0, "lines.0.taxes.0.code unknown_tax"}, {"VAT in a longer code is not VAT", "XVAT=5", 0, "lines.0.taxes.0.code unknown_tax"},
		{"two digits are no code", "01=10", 0, "lines.0.taxes.0.code unknown_tax"}, {"000 is no code", "000=10", 0, "lines.0.taxes.0.code unknown_tax"}, {"040 is no code", "040=10", 0, "lines.0.taxes.0.code unknown_tax"},
		{"two ITBIS", "ITBIS=18 ITBIS=18", 0, "lines.0.taxes.1.code tax_conflict"}, {"two ITBIS, one as VAT", "vat=18 ITBIS=18", 0, "lines.0.taxes.1.code tax_conflict"},
		{"legal tip", "001=10.00", 0, "4 001"}, {"aliases", "Propina-Legal=10 cdt=2", 0, "4 001 002"}, {"insurance", "ISC.SEGUROS=16", 0, "4 003"},
		{"telecom", "ISC_TELECOM=10 CDT=2 ITBIS=18", 0, "1 004 002"}, {"first plate", "primera-placa=17", 0, "4 005"},
		{"the code decides before the label", "001/ITBIS=10", 0, "4 001"}, {"a code of Table I at 18 percent", "001=18", 0, "lines.0.taxes.0.rate_percent out_of_range"},
		{"wrong rate of an additional tax", "002=10", 0, "lines.0.taxes.0.rate_percent out_of_range"},
		{"repeated code", "001=10 PROPINA=10", 0, "lines.0.taxes.1.code unsupported_tax"}, {"three additional", "001=10 002=2 004=10", 0, "lines.0.taxes.2.code unsupported_tax"},
		{"selective", "006=632.58", 0, "lines.0.taxes.0.code unsupported_tax"}, {"selective ad valorem", "039=20", 0, "lines.0.taxes.0.code unsupported_tax"},
		{"explicit 1 agrees", "ITBIS=18", 1, "1"}, {"explicit 3 agrees", "ITBIS=0", 3, "3"}, {"explicit 4 agrees with zero", "ITBIS=0", 4, "4"},
		{"explicit 3 over exempt", "EXENTO=0", 3, "3"}, {"explicit 3 without entry", "", 3, "3"}, {"explicit 4 without entry", "", 4, "4"},
		{"explicit 1 without entry", "", 1, "1"}, {"explicit 2 without entry", "", 2, "2"},
		{"explicit 2 against 18", "ITBIS=18", 2, "lines.0.billing_indicator tax_conflict"}, {"explicit 4 against 18", "ITBIS=18", 4, "lines.0.billing_indicator tax_conflict"},
		{"explicit 1 against 0", "ITBIS=0", 1, "lines.0.billing_indicator tax_conflict"}, {"explicit 3 against 16", "ITBIS=16", 3, "lines.0.billing_indicator tax_conflict"},
		{"a wrong rate is reported once", "ITBIS=17", 1, "lines.0.taxes.0.rate_percent out_of_range"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			// A line of 0.00 has the right totals with any tax.
			inv, problems := build(t, invoice("32", "0 0 0 0", item{"1", "0", "", tt.taxes, tt.indicator}))
			got := strings.Join(codes(problems), "; ")
			if inv != nil {
				got = strings.TrimSpace(fmt.Sprint(inv.Lines[0].Indicator, " ", strings.Join(inv.Lines[0].AdditionalTaxes, " ")))
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
	_, problems := build(t, invoice("32", "0 0 0 0", item{"1", "0", "", "FOO=5", 0}))
	for _, known := range []string{"ITBIS", "EXENTO", "001", "005"} {
		if !strings.Contains(problems[0].Message.String(), known) {
			t.Errorf("message %q does not name %s", problems[0].Message, known)
		}
	}
}

// A request that an earlier release has registered is read as that release has read it.
func TestARegisteredRequestIsReadByTheRulesOfItsRelease(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		taxes string
		want  fiscal.Indicator
	}{
		{"OTRO=18", fiscal.Taxed18}, {"T1/I.T.B.I.S.=16", fiscal.Taxed16}, {"N/A=0", fiscal.ZeroRated}, {"T0/Exempt=0", fiscal.Exempt}, {"ITBIS/Exento=0", fiscal.Exempt},
		{"EXENTO=18", fiscal.Taxed18}, {"ITBIS=18", fiscal.Taxed18}, {"EXENTO=0", fiscal.Exempt}, {"", fiscal.Exempt},
		{"ITBIS-EXENTO=16", fiscal.Taxed16}, {"EXENTO/ITBIS=16", fiscal.Taxed16},
	} {
		body := with(t, invoice("32", "0 0 0 0", item{"1", "0", "", tt.taxes, 0}), map[string]any{"issue_date": "1812-02-03", "due_date": "2100-01-01"})
		parsed, err := strictjson.Parse([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		inv, err := fiscal.New(fiscal.DecodeRegistered(parsed))
		if err != nil || inv.Lines[0].Indicator != tt.want || inv.IssueDate.String() != "1812-02-03" {
			t.Errorf("%q: %v, %v", tt.taxes, inv, err)
		}
	}
}

func TestAdditionalTaxRatesAreThoseOfTheAuthority(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/additional-taxes.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // only read
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != 40 {
		t.Fatal(len(rows), err)
	}
	for _, row := range rows[1:] {
		rate, ok := fiscal.AdditionalTaxRate(row[0])
		if ok != (row[9] == "yes") || ok && rate.String() != row[5] {
			t.Errorf("tax %s: got %s, %v", row[0], rate, ok)
		}
	}
}
