package fiscal_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

func TestSamplesAreAccepted(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"01-ecf31-minimal": "4425.00", "02-ecf31-mixed-rates-discounts": "31358.49", "03-ecf31-credit-withholdings": "153090.60",
		"04-ecf32-below-250k": "2049.28", "05-ecf32-above-250k": "325573.80", "07-ecf31-telecom-additional-taxes": "5872.29", "08-ecf32-exempt-only": "1895.00",
	}
	for name, total := range want {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := os.ReadFile(filepath.Join("testdata", name+".request.json"))
			if err != nil {
				t.Fatal(err)
			}
			inv, problems := build(t, string(body))
			if problems != nil {
				t.Fatal(problems)
			}
			if got := inv.Totals.Total.StringFixed(2); got != total {
				t.Errorf("total is %s, want %s", got, total)
			}
			if len(inv.Warnings) != 0 {
				t.Errorf("warnings: %q", inv.Warnings)
			}
		})
	}
}

func TestBuyerIdentifierRules(t *testing.T) {
	t.Parallel()
	const foreign = "199000049" // fails its check digit
	tests := []struct {
		name    string
		changes map[string]any
		want    string
		foreign bool
		warned  bool
	}{
		{"a 31 without tax_id", map[string]any{"buyer.tax_id": gone{}}, "buyer.tax_id required_for_type", false, false},
		{"8 digits", map[string]any{"buyer.tax_id": "12345678"}, "buyer.tax_id invalid_format", false, false},
		{"12 digits", map[string]any{"buyer.tax_id": "123456789012"}, "buyer.tax_id invalid_format", false, false},
		{"letters", map[string]any{"buyer.tax_id": "12345678A"}, "buyer.tax_id invalid_format", false, false},
		{"other digits", map[string]any{"buyer.tax_id": "١٢٣٤٥٦٧٨٩"}, "buyer.tax_id invalid_format", false, false},
		{"10 digits on a 31", map[string]any{"buyer.tax_id": "1234567890", "buyer.address.country_code": "US"}, "buyer.tax_id invalid_format", false, false},
		{"10 digits on a Dominican 32", map[string]any{"ecf_type": "32", "buyer.tax_id": "1234567890", "estimated_withholdings": gone{}}, "buyer.tax_id invalid_format", false, false},
		{"10 digits on a foreigner's 32", map[string]any{"ecf_type": "32", "buyer.tax_id": "1234567890", "buyer.address.country_code": "US", "estimated_withholdings": gone{}}, "", true, false},
		{"10 digits on a 32 without an address", map[string]any{"ecf_type": "32", "buyer.tax_id": "1234567890", "buyer.address": gone{}, "estimated_withholdings": gone{}}, "", true, false},
		{"10 digits on a 32 with an invalid country is one problem", map[string]any{"ecf_type": "32", "buyer.tax_id": "1234567890", "buyer.address.country_code": "do", "estimated_withholdings": gone{}}, "buyer.address.country_code invalid_format", false, false},
		{"a failing check digit on a 31 is a warning", map[string]any{"buyer.tax_id": foreign}, "", false, true},
		{"a failing check digit on a foreigner's 31 is a warning", map[string]any{"buyer.tax_id": foreign, "buyer.address.country_code": "US"}, "", false, true},
		{"a failing check digit on a foreigner's 32 is a foreign identifier", map[string]any{"ecf_type": "32", "buyer.tax_id": foreign, "buyer.address.country_code": "US", "estimated_withholdings": gone{}}, "", true, false},
		{"a good check digit on a foreigner's 32 is an RNC", map[string]any{"ecf_type": "32", "buyer.address.country_code": "US", "estimated_withholdings": gone{}}, "", false, false},
		{"a cédula", map[string]any{"buyer.tax_id": "00113918205"}, "", false, false},
		{"a failing cédula is a warning", map[string]any{"buyer.tax_id": "00113918204"}, "", false, true},
		{"country in lower case", map[string]any{"buyer.address.country_code": "do"}, "buyer.address.country_code invalid_format", false, false},
		{"country of three letters", map[string]any{"buyer.address.country_code": "DOM"}, "buyer.address.country_code invalid_format", false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv, problems := build(t, with(t, base, tt.changes))
			if got := strings.Join(codes(problems), "; "); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if inv != nil && (inv.Buyer.Foreign != tt.foreign || (len(inv.Warnings) > 0) != tt.warned) {
				t.Errorf("foreign %v, warnings %q", inv.Buyer.Foreign, inv.Warnings)
			}
		})
	}
}

func TestEmailAddresses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 320-len("@example.com"))
	for email, want := range map[string]string{
		"a@b.co": "", "first.last+tag@sub.example-1.com": "", "o'hara_x@example.org": "", "a@xn--caf-dma.xn--p1ai": "", long + "@example.com": "",
		"": "invalid_format", "a": "invalid_format", "@example.com": "invalid_format", "a@": "invalid_format", "a@b": "invalid_format",
		".a@example.com": "invalid_format", "a.@example.com": "invalid_format", "a..b@example.com": "invalid_format", "a@b@example.com": "invalid_format",
		"a b@example.com": "invalid_format", "a@example..com": "invalid_format", "a@.example.com": "invalid_format", "a@example.com.": "invalid_format",
		"a@-example.com": "invalid_format", "a@example-.com": "invalid_format", "a@example.c": "invalid_format", "a@example.123": "invalid_format",
		"a@[127.0.0.1]": "invalid_format", `"a b"@example.com`: "invalid_format", "á@example.com": "invalid_format", "a@exa_mple.com": "invalid_format",
		"a@example.com ": "invalid_format", "A <a@example.com>": "invalid_format", "a@exámple.com": "invalid_format", "x" + long + "@example.com": "too_long",
	} {
		body := with(t, base, map[string]any{"buyer.email": email})
		if want == "" {
			check(t, body)
		} else {
			check(t, body, "buyer.email "+want)
		}
	}
}

func TestDatesOfAnInvoice(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "2026-02-30", "2026-2-3", "2026-02-29", "2026-13-01", "2026-00-01", "0000-01-01", "26-01-01", "2026-01-01T00:00:00Z", "2026/01/01", "01-01-2026", "٢٠٢٦-01-01", "+026-01-01"} {
		check(t, with(t, base, map[string]any{"issue_date": s}), "issue_date invalid_date")
		check(t, with(t, base, map[string]any{"due_date": s}), "due_date invalid_date")
	}
	check(t, with(t, base, map[string]any{"issue_date": "2024-02-29"}))
	for _, payment := range []string{"cash", "credit"} {
		// The authority's format has no other years.
		check(t, with(t, base, map[string]any{"payment_type": payment, "issue_date": "1900-01-01", "due_date": "2099-12-31"}))
		check(t, with(t, base, map[string]any{"payment_type": payment, "issue_date": "1899-12-31"}), "issue_date invalid_date")
		check(t, with(t, base, map[string]any{"payment_type": payment, "due_date": "2100-01-01"}), "due_date invalid_date")
		_, problems := build(t, with(t, base, map[string]any{"payment_type": payment, "due_date": "2100-01-01"}))
		if message := problems[0].Message.String(); !strings.Contains(message, "1900") || !strings.Contains(message, "2099") {
			t.Errorf("message %q does not name the years", message)
		}
	}
	check(t, with(t, base, map[string]any{"due_date": "2026-03-04"}), "due_date date_order")
	check(t, with(t, base, map[string]any{"due_date": "2026-03-04", "payment_type": "cash"}), "due_date date_order")
	check(t, with(t, base, map[string]any{"due_date": "2026-03-05"}))
	check(t, with(t, base, map[string]any{"due_date": gone{}}), "due_date required")
	check(t, with(t, base, map[string]any{"due_date": nil}), "due_date required")
	check(t, with(t, base, map[string]any{"due_date": nil, "payment_type": "cash"}))

	inv, _ := build(t, base) // issued 2026-03-05
	since := func(s string) fiscal.Date {
		d, err := fiscal.ParseDate(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	tests := []struct {
		name, now string
		since     fiscal.Date
		want      string
	}{
		{"03:59:59Z, still the day before in Santo Domingo", "2026-03-05T03:59:59Z", fiscal.Date{}, "issue_date date_in_future"},
		{"04:00:00Z, the day of issue in Santo Domingo", "2026-03-05T04:00:00Z", fiscal.Date{}, ""},
		{"any later day", "2030-01-01T00:00:00Z", fiscal.Date{}, ""},
		{"the day on which the taxpayer became an electronic issuer", "2026-03-06T00:00:00Z", since("2026-03-05"), ""},
		{"the day before the taxpayer became an electronic issuer", "2026-03-06T12:00:00Z", since("2026-03-06"), "issue_date out_of_range"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			now, err := time.Parse(time.RFC3339, tt.now)
			if err != nil {
				t.Fatal(err)
			}
			var got string
			if err := inv.CheckDate(now, tt.since); err != nil {
				problems, _ := err.(fiscal.Problems) //nolint:errorlint // the type itself is promised
				got = strings.Join(codes(problems), "; ")
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPaidAndBalanceHaveTheDecimalsOfTheTotal(t *testing.T) {
	t.Parallel()
	tests := []struct{ payment, total, paid, balance string }{
		{"cash", "1252.00", "1252.00", "0.00"}, {"cash", "1252", "1252", "0"}, {"credit", "1252.0", "0.0", "1252.0"},
		{"credit", "1252", "0", "1252"}, {"free_of_charge", "1252.0000", "0.0000", "0.0000"},
	}
	for _, tt := range tests {
		inv, problems := build(t, with(t, base, map[string]any{"payment_type": tt.payment, "declared_totals.total": tt.total}))
		if problems != nil {
			t.Fatal(problems)
		}
		if inv.Paid() != tt.paid || inv.Balance() != tt.balance || inv.Declared.Total.Text != tt.total {
			t.Errorf("%+v: paid %s, balance %s", tt, inv.Paid(), inv.Balance())
		}
	}
}

func TestWarningsOfAcceptedInvoices(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		changes map[string]any
		want    string
	}{
		{"no warning", nil, ""},
		{"free of charge on a 31", map[string]any{"payment_type": "free_of_charge"}, "no fiscal credit"},
		{"a name that just fits", map[string]any{"buyer.legal_name": strings.Repeat("ñ", 150)}, ""},
		{"a name that the document cuts", map[string]any{"buyer.legal_name": strings.Repeat("ñ", 151)}, "carries the first 150"},
		{"a unit that is not in the authority's table", map[string]any{"lines.0.unit_code": json.Number("63"), "lines.1.unit_code": json.Number("63")}, "lines.0.unit_code: the code 63"},
		{"a cent of difference", map[string]any{"declared_totals.tax_total": "252.01", "declared_totals.total": "1252.01"}, "differs by 0.01 from the computed total; the fiscal document carries the computed total 1252.00"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv, problems := build(t, with(t, base, tt.changes))
			if problems != nil {
				t.Fatal(problems)
			}
			if got := lang.Join(inv.Warnings, "\n").String(); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) || strings.Contains(got, "\n") {
				t.Errorf("warnings %q, want %q", got, tt.want)
			}
		})
	}
}

func TestInvoiceKeepsTheContentOfTheRequest(t *testing.T) {
	t.Parallel()
	inv, problems := build(t, base)
	if problems != nil {
		t.Fatal(problems)
	}
	got := []string{
		inv.ExternalID, string(inv.Type), inv.IssueDate.String(), inv.DueDate.String(), inv.Currency, inv.Language, string(inv.PaymentType),
		inv.Buyer.LegalName, inv.Buyer.TaxID, inv.Buyer.Email, inv.Buyer.Phone, inv.PurchaseOrder, inv.PaymentTerms, inv.Notes,
		inv.Lines[0].ID, inv.Lines[0].SKU, inv.Lines[0].Unit, string(inv.Lines[0].ItemKind), strings.Join(inv.Lines[0].AdditionalTaxes, ","),
	}
	want := []string{
		"FA-1", "31", "2026-03-05", "2026-04-05", "DOP", "en", "credit", "Comercial Ejemplo, SRL", "199000048", "a@example.com", "809-555-0100",
		"OC-1", "30 días", "Gracias", "1", "S", "und", "service", "001",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("content differs:\n%s", diff)
	}
	if diff := cmp.Diff(&fiscal.Address{Line1: "Calle 1", Line2: "Local 2", City: "Santiago", ProvinceOrState: "Santiago", PostalCode: "51000", CountryCode: "DO"}, inv.Buyer.Address); diff != "" {
		t.Error(diff)
	}
	plain, _ := build(t, with(t, base, map[string]any{"language": gone{}}))
	if plain.Language != "es" {
		t.Errorf("language is %q when the request has none", plain.Language)
	}
}

func TestOneMistakeIsReportedOnceAndHidesNoOther(t *testing.T) {
	t.Parallel()
	check(t, with(t, base, map[string]any{"lines.0.quantity": "x", "declared_totals.total": "5", "due_date": "2020-01-01", "notes": "", "buyer.tax_id": gone{}}),
		"buyer.tax_id required_for_type", "due_date date_order", "lines.0.quantity invalid_decimal", "notes too_short")
	check(t, with(t, base, map[string]any{"lines.0.description": "", "declared_totals.total": "5"}),
		"declared_totals.total total_mismatch", "lines.0.description too_short")
	check(t, with(t, base, map[string]any{"declared_totals.subtotal": "x", "declared_totals.total": "5"}), "declared_totals.subtotal invalid_decimal")
	check(t, `{"lines":{}}`, "buyer required", "currency required", "declared_totals required", "ecf_type required",
		"external_id required", "issue_date required", "lines invalid_type", "payment_type required")
}
