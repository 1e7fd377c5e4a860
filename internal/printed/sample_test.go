package printed

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func decimal(t testing.TB, s string) fiscal.Decimal {
	t.Helper()
	d, err := fiscal.ParseDecimal(s)
	if err != nil {
		t.Fatalf("%q: %v", s, err)
	}
	return d
}

func date(t testing.TB, s string) fiscal.Date {
	t.Helper()
	d, err := fiscal.ParseDate(s)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sample returns a document of a type with lines and their totals.
func sample(t testing.TB, kind fiscal.Type, lines ...ecf.Line) *ecf.Document {
	t.Helper()
	number, err := fiscal.NewENCF(kind, 1)
	if err != nil {
		t.Fatal(err)
	}
	d := &ecf.Document{
		Number:      ecf.Number{ENCF: number},
		PaymentType: fiscal.Cash,
		Issuer: ecf.Issuer{
			RNC: "101000001", LegalName: "Distribuidora Quisqueya, SRL", TradeName: "Almacenes Quisqueya",
			Address: "Calle Segunda #01, Gascue", Municipality: "010101", Province: "010000",
			Phones: []string{"809-555-0101", "809-555-0102"}, Email: "ventas@quisqueya.example",
		},
		IssueDate: date(t, "2026-01-27"),
		SignedAt:  time.Date(2026, 1, 27, 22, 24, 7, 0, time.UTC),
		Lines:     lines,
	}
	if kind == fiscal.FiscalCredit {
		d.Expires = date(t, "2027-12-31")
		d.Buyer = ecf.Buyer{
			TaxID: "130000001", LegalName: "COMERCIO PEÑA & HIJOS, SRL", Address: "Av. Winston Churchill 25, Torre Acrópolis",
			Municipality: "010101", Province: "010000", Contact: "809-555-0199", Email: "cuentas@comercio.example",
		}
	}
	total(t, d)
	return d
}

// total computes the totals of a document from its lines, with the tax rounded
// once per rate.
func total(t testing.TB, d *ecf.Document) {
	t.Helper()
	totals := &d.Totals
	for _, l := range d.Lines {
		b := &totals.Exempt
		switch l.Indicator {
		case fiscal.Taxed18:
			b = &totals.I1
		case fiscal.Taxed16:
			b = &totals.I2
		case fiscal.ZeroRated:
			b = &totals.I3
		case fiscal.Exempt:
		}
		b.Present, b.Base = true, b.Base.Add(l.Amount)
	}
	for i, b := range []*fiscal.Bucket{&totals.I1, &totals.I2} {
		b.ITBIS = b.Base.Mul(fiscal.Indicator(i + 1).Rate()).Mul(decimal(t, "0.01")).RoundHAZ(2)
		totals.ITBIS = totals.ITBIS.Add(b.ITBIS)
	}
	totals.Taxable = totals.I1.Base.Add(totals.I2.Base).Add(totals.I3.Base)
	totals.Total = totals.Taxable.Add(totals.Exempt.Base).Add(totals.ITBIS)
}

func line(t testing.TB, indicator fiscal.Indicator, name, quantity, price string) ecf.Line {
	t.Helper()
	l := ecf.Line{Indicator: indicator, Name: name, Quantity: decimal(t, quantity), Price: decimal(t, price), Unit: 43}
	l.Amount = l.Quantity.Mul(l.Price).RoundHAZ(2)
	return l
}

func manyLines(t testing.TB, n int) []ecf.Line {
	t.Helper()
	list := make([]ecf.Line, n)
	for i := range list {
		list[i] = line(t, fiscal.Indicator(i%4+1), fmt.Sprintf("Artículo número %d", i+1), fmt.Sprint(i%7+1), fmt.Sprintf("%d.%02d", 10+i*13%900, i%100))
	}
	return list
}

// page returns a page of a document with a security code.
func page(t testing.TB, d *ecf.Document, code string) Page {
	t.Helper()
	c, err := ecf.NewSecurityCode(code)
	if err != nil {
		t.Fatal(err)
	}
	stamp, err := d.Stamp(c, ecf.ProductionAuthority)
	if err != nil {
		t.Fatal(err)
	}
	return Page{Document: d, Code: c, Stamp: stamp, Language: "es"}
}

func render(t testing.TB, p Page, f Format) []byte {
	t.Helper()
	pdf, err := p.Render(f)
	if err != nil {
		t.Fatal(err)
	}
	return pdf
}

// words returns a text of n characters.
func words(n int) string {
	return strings.TrimSpace(strings.Repeat("Suministro e instalación de equipos de climatización según cotización aprobada ", n/79+1)[:n])
}

// mixedPage has lines of every rate, a discount, every additional tax, and
// withholdings.
func mixedPage(t testing.TB) Page {
	t.Helper()
	d := sample(t, fiscal.FiscalCredit,
		line(t, fiscal.Taxed18, "Zapatos de cuero", "150", "550"),
		line(t, fiscal.Taxed16, "Café molido 1 lb", "12.5", "225.1255"),
		line(t, fiscal.ZeroRated, "Exportación", "1", "1000"),
		line(t, fiscal.Exempt, "Libros", "10", "100"))
	d.Lines[0].Discount, d.Lines[0].Amount, d.Lines[0].Unit = decimal(t, "8250"), decimal(t, "74250"), 6
	d.Lines[2].Unit = 0
	d.Totals = ecf.Totals{}
	total(t, d)
	for _, a := range [][3]string{{"001", "10", "123.45"}, {"002", "2", "23.45"}, {"003", "16", "3.45"}, {"004", "10", "13.45"}, {"005", "17", "12345.45"}} {
		tax := ecf.AdditionalTax{Code: a[0], Rate: decimal(t, a[1]), Amount: decimal(t, a[2])}
		d.Totals.Additional = append(d.Totals.Additional, tax)
		d.Totals.Total = d.Totals.Total.Add(tax.Amount)
	}
	d.Totals.Withheld = true
	d.Totals.ITBISWithheld, d.Totals.IncomeTaxWithheld = decimal(t, "4009.5"), decimal(t, "7425")
	d.PaymentType = fiscal.Credit
	p := page(t, d, "k7Q+2/")
	p.Extra = Extra{
		Notes: "Gracias por su compra.\r\nEntrega en almacén, de lunes a viernes de 8:00 a 17:00.", PaymentTerms: "30 días",
		PurchaseOrder: "OC-2026-00123", DueDate: date(t, "2026-02-26"), BuyerPostalCode: "10148", Units: []string{"", "", "servicio"},
		Withholdings: &fiscal.Withholdings{
			ITBIS:     fiscal.Withholding{Base: decimal(t, "13365"), Rate: decimal(t, "30"), HasBase: true, HasRate: true},
			IncomeTax: fiscal.Withholding{Base: decimal(t, "74250"), Rate: decimal(t, "10"), HasBase: true, HasRate: true},
		},
	}
	return p
}

// fullPage has a line for every number, and a value for everything that a page can
// show: a logo, all names and ways to reach the issuer, the whole buyer, the terms
// and notes.
func fullPage(t testing.TB, lines ...ecf.Line) Page {
	t.Helper()
	d := sample(t, fiscal.FiscalCredit, lines...)
	d.Issuer.Branch, d.Issuer.Website = "Sucursal Naco", "www.quisqueya.example"
	d.Issuer.Phones = append(d.Issuer.Phones, "829-555-0103")
	d.InternalNumber, d.PaymentType = "FA-2026-000123", fiscal.Credit
	p := page(t, d, "S/DQ+u")
	p.Logo = logoPNG(t, 600, 200)
	p.Extra = Extra{
		Notes:        "Gracias por su compra. Mercancía viaja por cuenta del cliente.\nReclamaciones dentro de las 48 horas siguientes a la entrega.",
		PaymentTerms: "30 días después de recibida la mercancía", PurchaseOrder: "OC-2026-00123", DueDate: date(t, "2026-02-26"), BuyerPostalCode: "10148",
	}
	return p
}

// shopLines returns lines like those of a hardware store, with every column in use.
func shopLines(t testing.TB, n int) []ecf.Line {
	t.Helper()
	names := []string{
		"Cemento gris Portland tipo I, funda de 42.5 kg", "Varilla corrugada 3/8″ × 20 pies, grado 60", "Pintura acrílica blanco 00, cubeta de 5 galones",
		"Tubo PVC SDR-26 de 4″ × 19 pies", "Cable eléctrico THHN #12 AWG, rollo de 500 pies", "Bloque de hormigón de 6″",
		"Libro de texto Matemática 6.º", "Clavo de acero de 2½″, caja de 25 lb",
	}
	list := make([]ecf.Line, n)
	for i := range list {
		kind := fiscal.Taxed18
		switch i % 8 {
		case 5:
			kind = fiscal.Taxed16
		case 6:
			kind = fiscal.Exempt
		}
		list[i] = line(t, kind, names[i%len(names)], fmt.Sprint(i%7+1), fmt.Sprintf("%d.%02d", 110+i*137%4900, i*7%100))
		if i%5 == 0 {
			list[i].Discount = decimal(t, "25")
			list[i].Amount = list[i].Amount.Sub(list[i].Discount)
		}
	}
	return list
}
