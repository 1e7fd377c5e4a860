package printed

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestFullProfileTakesFewPages(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines, most int
		language    string
	}{{40, 2, "es"}, {40, 2, "en"}, {1000, 30, "es"}, {1000, 30, "en"}} {
		t.Run(fmt.Sprint(c.lines, " lines ", c.language), func(t *testing.T) {
			t.Parallel()
			p := fullPage(t, shopLines(t, c.lines)...)
			p.Language = c.language
			logo, err := decodeLogo(p.Logo)
			if err != nil {
				t.Fatal(err)
			}
			sheets, err := p.layout(Letter, logo)
			if err != nil {
				t.Fatal(err)
			}
			if len(sheets) > c.most {
				t.Errorf("%d pages, want at most %d", len(sheets), c.most)
			}
		})
	}
}

func TestEmptyColumnIsNotShown(t *testing.T) {
	t.Parallel()
	bare := line(t, fiscal.Exempt, "Libros", "10", "100")
	bare.Unit = 0
	taxed := bare
	taxed.Indicator = fiscal.Taxed18
	discounted := taxed
	discounted.Discount, discounted.Unit = decimal(t, "5"), 43
	for _, c := range []struct {
		lines []ecf.Line
		want  string
	}{
		{[]ecf.Line{bare}, "Cantidad Descripción Precio Valor"},
		{[]ecf.Line{bare, taxed}, "Cantidad Descripción Precio ITBIS Valor"},
		{[]ecf.Line{bare, discounted}, "Cantidad Descripción Unidad de Medida Precio Descuento ITBIS Valor"},
	} {
		p := page(t, sample(t, fiscal.Consumer, c.lines...), "abcdef")
		headings := p.headings()
		var got []string
		for _, column := range columnsOf(p.lines()) {
			got = append(got, headings[column.cell].lines...)
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%q, want %q", text, c.want)
		}
	}
}

// The XML of another program may name a rate without an amount.
func TestRateIsShownWhereSomethingHasIt(t *testing.T) {
	t.Parallel()
	shown := func(lines ...ecf.Line) []string {
		d := sample(t, fiscal.FiscalCredit, lines...)
		d.Totals.I2.Present, d.Totals.I3.Present = true, true
		var labels []string
		for _, a := range (Page{Document: d}).totals() {
			if strings.Contains(a.label, "%") {
				labels = append(labels, a.label)
			}
		}
		return labels
	}
	if got, want := shown(line(t, fiscal.Taxed18, "a", "1", "100")), []string{"Gravado 18%", "ITBIS 18%"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := shown(line(t, fiscal.ZeroRated, "a", "1", "0")), []string{"Gravado 0%", "ITBIS 0%"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// An English page has a caption for every label, and every Spanish label still next
// to its value.
func TestEveryLabelHasAnEnglishCaption(t *testing.T) {
	t.Parallel()
	p := mixedPage(t)
	p.Document.Buyer.ForeignID, p.Document.Buyer.Information, p.Document.Issuer.Website = "1", "x", "y"
	p.Document.InternalNumber, p.Language = "7", "en"
	for _, list := range [][]pair{p.title(), p.issuer(), p.contact(), p.issued(), p.buyer(), p.buyerDetails(), p.terms(), p.stamp()} {
		for _, e := range list {
			if e.caption == "" || e.caption == e.label {
				t.Errorf("%q has the caption %q", e.label, e.caption)
			}
		}
	}
	for _, a := range append(p.totals(), p.pageTotals([]int{0, 1, 2, 3})...) {
		if a.caption == "" {
			t.Errorf("%q has no caption", a.label)
		}
	}
	for _, h := range p.headings() {
		if h.caption == "" {
			t.Errorf("%q has no caption", h.lines)
		}
	}
	_, number := p.pageNumber(1, 2)
	if number == "" || p.typeCaption() == "" {
		t.Error("the page number or the title has no caption")
	}
	p.Contingency = true
	p.Document.Lines = append(p.Document.Lines, shopLines(t, 80)...)
	for f := range formats {
		text := strings.Join(extract(t, render(t, p, f)), "")
		for _, want := range []string{
			p.typeCaption(), "Fiscal number", "Number valid until", "Tax ID", "Issue date", "Customer tax ID", "Payment", "Security code",
			"Digital signature date", "Taxable subtotal", "Exempt subtotal", "Total VAT", "Total amount", "issued in contingency",
			"e-NCF: E310000000001", "RNC 101000001", "Fecha Emisión: 27-01-2026", "Código de Seguridad: k7Q+2/", "Total:", "RD$ ",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in:\n%s", f, want, text)
			}
		}
		if f == Letter {
			for _, want := range []string{"Page 1 of", "Taxable, this page", "VAT, this page", "Total of this page"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in:\n%s", want, text)
				}
			}
		}
	}
}

func TestAddressNamesAPlaceOnce(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"Calle 1":                              "Calle 1, Santo Domingo de Guzmán, Distrito Nacional",
		"Calle 1, SANTO DOMINGO DE GUZMAN":     "Calle 1, SANTO DOMINGO DE GUZMAN, Distrito Nacional",
		"Calle 1, Gascue, Distrito Nacional.":  "Calle 1, Gascue, Distrito Nacional., Santo Domingo de Guzmán",
		"Av. Distrito Nacional 5, Santo Tomás": "Av. Distrito Nacional 5, Santo Tomás, Santo Domingo de Guzmán, Distrito Nacional",
	} {
		if got := fullAddress(address, "010100", "010000"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
