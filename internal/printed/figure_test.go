package printed

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

func TestNumbersAreGroupedByThousands(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ number, money, price, quantity string }{
		{"0", "0.00", "0.00", "0"},
		{"0.5", "0.50", "0.50", "0.5"},
		{"999.99", "999.99", "999.99", "999.99"},
		{"1000", "1,000.00", "1,000.00", "1,000"},
		{"150.00", "150.00", "150.00", "150"},
		{"1234567890123456.78", "1,234,567,890,123,456.78", "1,234,567,890,123,456.78", "1,234,567,890,123,456.78"},
	} {
		d := decimal(t, c.number)
		if diff := cmp.Diff([]string{c.money, c.price, c.quantity}, []string{money(d), price(d), quantity(d)}); diff != "" {
			t.Errorf("%s: %s", c.number, diff)
		}
	}
	if got := price(decimal(t, "1225.1255")); got != "1,225.1255" {
		t.Error(got)
	}
	if got := money(decimal(t, "1234.5").Neg()); got != "-1,234.50" {
		t.Error(got)
	}
}

func TestLineITBISOfNetAndInclusivePrices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		indicator       fiscal.Indicator
		amount          string
		added, included string
	}{
		{fiscal.Taxed18, "100", "18.00", "15.25"},
		{fiscal.Taxed16, "100", "16.00", "13.79"},
		{fiscal.Taxed18, "118", "21.24", "18.00"},
		{fiscal.Taxed18, "0.25", "0.05", "0.04"}, // 0.045 goes up
		{fiscal.ZeroRated, "100", "0.00", "0.00"},
		{fiscal.Exempt, "100", "0.00", "0.00"},
		{fiscal.Taxed18, "9999999999999999.99", "1,800,000,000,000,000.00", "1,525,423,728,813,559.32"},
	} {
		l := &ecf.Line{Indicator: c.indicator, Amount: decimal(t, c.amount)}
		got := [2]string{money(lineITBIS(&ecf.Document{}, l)), money(lineITBIS(&ecf.Document{Inclusive: true}, l))}
		if got != [2]string{c.added, c.included} {
			t.Errorf("%d %s: %v, want %s and %s", c.indicator, c.amount, got, c.added, c.included)
		}
	}
}

func TestPageTotalsAreThoseOfTheLinesOnThePage(t *testing.T) {
	t.Parallel()
	d := sample(t, fiscal.FiscalCredit,
		line(t, fiscal.Taxed18, "a", "1", "100"), line(t, fiscal.Exempt, "b", "1", "50"),
		line(t, fiscal.Taxed16, "c", "1", "10"), line(t, fiscal.Taxed18, "other page", "1", "7"))
	d.Lines[0].AdditionalTaxes = []string{"001", "002"}
	d.Totals.Additional = []ecf.AdditionalTax{{Code: "001", Rate: decimal(t, "10")}, {Code: "002", Rate: decimal(t, "2")}}
	p := Page{Document: d}
	want := []amount{
		{label: "Subtotal Gravado Página:", value: "110.00"},
		{label: "Subtotal Exento Página:", value: "50.00"},
		{label: "Subtotal ITBIS Página:", value: "19.60"},
		{label: "Subtotal Impuesto Adicional Página:", value: "12.00"},
		{label: "Subtotal Otros Impuestos Adicionales Página:", value: "12.00", weight: detail},
		{label: "Monto Total Página:", value: "RD$ 191.60", weight: grand},
	}
	if diff := cmp.Diff(want, p.pageTotals([]int{0, 1, 2}), cmp.AllowUnexported(amount{})); diff != "" {
		t.Error(diff)
	}
	d.Inclusive = true
	want = []amount{
		{label: "Subtotal Gravado Página:", value: "5.93"},
		{label: "Subtotal ITBIS Página:", value: "1.07"},
		{label: "Monto Total Página:", value: "RD$ 7.00", weight: grand},
	}
	if diff := cmp.Diff(want, p.pageTotals([]int{3}), cmp.AllowUnexported(amount{})); diff != "" {
		t.Error(diff)
	}
}

func TestExtraOfAnInvoice(t *testing.T) {
	t.Parallel()
	doc, err := strictjson.Parse([]byte(`{
  "external_id": "FA-1", "ecf_type": "32", "issue_date": "2026-03-05", "due_date": "2026-04-05",
  "currency": "DOP", "language": "en", "payment_type": "credit",
  "buyer": {"legal_name": "Jane", "address": {"line1": "1 Main St", "city": "Miami", "postal_code": "33101", "country_code": "US"}},
  "lines": [{"line_id": "1", "description": "Dos", "unit": "mes", "item_kind": "product", "quantity": "1", "unit_price": "100", "discount": null, "taxes": []}],
  "declared_totals": {"subtotal": "100.00", "discount_total": "0.00", "tax_total": "0.00", "total": "100.00"},
  "purchase_order": "OC-1", "payment_terms": "30 días", "notes": "Gracias"}`))
	if err != nil {
		t.Fatal(err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(doc))
	if err != nil {
		t.Fatal(err)
	}
	want := Extra{
		Notes: "Gracias", PaymentTerms: "30 días", PurchaseOrder: "OC-1", DueDate: date(t, "2026-04-05"),
		BuyerPostalCode: "33101", BuyerCountry: "US", Units: []string{"mes"},
	}
	if diff := cmp.Diff(want, ExtraOf(inv), cmp.Comparer(fiscal.Date.Equal)); diff != "" {
		t.Error(diff)
	}
}
