package printed

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

var update = flag.Bool("update", false, "write the golden files")

// cases returns the pages of the golden files.
func cases(t testing.TB) map[string]Page {
	t.Helper()
	mixed := mixedPage(t)
	english := mixedPage(t)
	english.Language = "en"
	contingency := page(t, sample(t, fiscal.FiscalCredit, line(t, fiscal.Taxed18, "Zapatos", "150", "550")), "S/DQdu")
	contingency.Contingency = true
	large := sample(t, fiscal.Consumer, line(t, fiscal.Exempt, "Motor", "1", "250000"))
	large.Buyer = ecf.Buyer{LegalName: "Jane O'Neil", ForeignID: "1234567890"}
	return map[string]Page{
		"credit":            page(t, sample(t, fiscal.FiscalCredit, line(t, fiscal.Taxed18, "Zapatos", "150", "550")), "S/DQdu"),
		"credit-mixed":      mixed,
		"credit-english":    english,
		"credit-forty":      page(t, sample(t, fiscal.FiscalCredit, manyLines(t, 40)...), "abcdef"),
		"credit-contingent": contingency,
		"consumer-small":    page(t, sample(t, fiscal.Consumer, line(t, fiscal.Taxed18, "Café con leche", "2", "125"), line(t, fiscal.Exempt, "Agua", "1", "35.50")), "uabnyh"),
		"consumer-large":    page(t, large, "+abc+/"),
	}
}

func TestPagesAreThoseOfTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for name, p := range cases(t) {
		for f := range formats {
			t.Run(fmt.Sprint(name, " ", f), func(t *testing.T) {
				t.Parallel()
				got := strings.Join(extract(t, render(t, p, f)), "--- page\n")
				path := filepath.Join("testdata", fmt.Sprintf("%s.%s.txt", name, f))
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
			})
		}
	}
}

func TestPagesAreValidPDF(t *testing.T) {
	t.Parallel()
	withLogo := mixedPage(t)
	withLogo.Logo = logoPNG(t, 600, 200)
	for name, p := range map[string]Page{
		"one line":       page(t, sample(t, fiscal.Consumer, manyLines(t, 1)...), "abcdef"),
		"thousand lines": page(t, sample(t, fiscal.FiscalCredit, manyLines(t, 1000)...), "abcdef"),
		"with a logo":    withLogo,
	} {
		for f := range formats {
			t.Run(fmt.Sprint(name, " ", f), func(t *testing.T) {
				t.Parallel()
				pdf := render(t, p, f)
				file := filepath.Join(t.TempDir(), "page.pdf")
				if err := os.WriteFile(file, pdf, 0o600); err != nil {
					t.Fatal(err)
				}
				// Its exit code is not 0 for a warning, too.
				output(t, "qpdf", nil, "--check", file)
				if len(pdf) > 10<<20 {
					t.Errorf("%d bytes; the authority accepts 10 MB", len(pdf))
				}
			})
		}
	}
}

// The test scans the codes on the page, as a phone does.
func TestQRCodeOnThePageIsTheStamp(t *testing.T) {
	t.Parallel()
	almost := sample(t, fiscal.Consumer, line(t, fiscal.Exempt, "Motor", "1", "249999.99"))
	exactly := sample(t, fiscal.Consumer, line(t, fiscal.Exempt, "Motor", "1", "250000"))
	exactly.Buyer = ecf.Buyer{LegalName: "María", TaxID: "00112345678"}
	credit := sample(t, fiscal.FiscalCredit, line(t, fiscal.Taxed18, "Zapatos", "150", "550"))
	huge := sample(t, fiscal.FiscalCredit, line(t, fiscal.Taxed18, "Isla", "1", "1234567890123456.12"))
	huge.Issuer.RNC, huge.Buyer.TaxID = "40212345678", "00112345678"
	for _, c := range []struct {
		document   *ecf.Document
		code, want string
	}{
		{credit, "S/DQdu", "https://ecf.dgii.gov.do/ecf/consultatimbre?rncemisor=101000001&rnccomprador=130000001&encf=E310000000001&fechaemision=27-01-2026&montototal=97350.00&fechafirma=27-01-2026%2018:24:07&codigoseguridad=S%2FDQdu"},
		{credit, "+bcdef", "&codigoseguridad=%2Bbcdef"},
		{credit, "+/+/+/", "&codigoseguridad=%2B%2F%2B%2F%2B%2F"},
		{huge, "//////", "&codigoseguridad=%2F%2F%2F%2F%2F%2F"},
		{almost, "uabnyh", "https://fc.dgii.gov.do/ecf/consultatimbrefc?rncemisor=101000001&encf=E320000000001&montototal=249999.99&codigoseguridad=uabnyh"},
		{exactly, "a+b/c9", "https://ecf.dgii.gov.do/ecf/consultatimbre?rncemisor=101000001&rnccomprador=00112345678&encf=E320000000001&fechaemision=27-01-2026&montototal=250000.00&fechafirma=27-01-2026%2018:24:07&codigoseguridad=a%2Bb%2Fc9"},
	} {
		for f := range formats {
			t.Run(fmt.Sprint(c.code, " ", f), func(t *testing.T) {
				t.Parallel()
				p := page(t, c.document, c.code)
				pdf := render(t, p, f)
				got := scan(t, pdf, "1")
				if got != p.Stamp.String() || !strings.HasSuffix(got, c.want) {
					t.Errorf("the page says %q, want %q", got, c.want)
				}
				if text := extract(t, pdf)[0]; !strings.Contains(text, "Código de Seguridad: "+c.code+"\n") {
					t.Errorf("the code %s is not in:\n%s", c.code, text)
				}
			})
		}
	}
}

// Every page has the header, the QR code, the security code and the date; every
// page but the last has subtotals.
func TestEveryPageOfSeveralHasTheRequiredItems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ lines, pages int }{{1, 1}, {40, 2}, {1000, 28}} {
		t.Run(fmt.Sprint(c.lines, " lines"), func(t *testing.T) {
			t.Parallel()
			p := page(t, sample(t, fiscal.FiscalCredit, manyLines(t, c.lines)...), "S/DQ+u")
			pdf := render(t, p, Letter)
			pages := extract(t, pdf)
			if len(pages) != c.pages {
				t.Fatalf("%d pages, want %d", len(pages), c.pages)
			}
			for i, text := range pages {
				want := []string{
					"Factura de Crédito Fiscal Electrónica", "e-NCF: E310000000001", "Fecha Vencimiento: 31-12-2027",
					"Almacenes Quisqueya", "Distribuidora Quisqueya, SRL", "RNC 101000001", "Dirección: Calle Segunda #01", "Fecha Emisión: 27-01-2026",
					"Razón Social Cliente: COMERCIO PEÑA & HIJOS, SRL", "RNC Cliente: 130000001",
					"Cantidad Descripción Unidad de Medida Precio ITBIS Valor",
					"Código de Seguridad: S/DQ+u", "Fecha de Firma Digital: 27-01-2026 18:24:07",
				}
				not := []string{}
				if last := i == c.pages-1; last {
					want = append(want, "Subtotal Gravado: ", "Total ITBIS: ", "Total: RD$ "+money(p.Document.Totals.Total))
					not = append(not, "Total Página", "Exento Página")
				} else {
					want = append(want, "Subtotal Gravado Página: ", "Subtotal Exento Página: ", "Subtotal ITBIS Página: ", "Monto Total Página: ")
					not = append(not, "Total ITBIS:", "\nTotal:")
				}
				if number := fmt.Sprintf("Página No. %d de %d", i+1, c.pages); c.pages > 1 {
					want = append(want, number)
				} else {
					not = append(not, "Página No.")
				}
				for _, w := range want {
					if strings.Count(text, w) != 1 {
						t.Errorf("page %d has %q %d times:\n%s", i+1, w, strings.Count(text, w), text)
					}
				}
				for _, n := range not {
					if strings.Contains(text, n) {
						t.Errorf("page %d has %q:\n%s", i+1, n, text)
					}
				}
			}
			all := strings.Join(pages, "")
			for i := range c.lines {
				if !strings.Contains(all, fmt.Sprintf("Artículo número %d UND", i+1)) {
					t.Errorf("line %d is missing", i+1)
				}
			}
			for _, i := range []int{1, (c.pages + 1) / 2, c.pages} {
				if got := scan(t, pdf, fmt.Sprint(i)); got != p.Stamp.String() {
					t.Errorf("page %d: the QR code says %q", i, got)
				}
			}
		})
	}
}

func TestLongReceiptIsSplitIntoPages(t *testing.T) {
	t.Parallel()
	p := page(t, sample(t, fiscal.Consumer, manyLines(t, 1000)...), "abcdef")
	sheets, err := p.layout(Receipt, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(sheets) != 2 {
		t.Errorf("%d pages, want 2", len(sheets))
	}
	for i, s := range sheets {
		if s.w != 80 || s.h > 5080 {
			t.Errorf("page %d is %.0f × %.0f mm", i+1, s.w, s.h)
		}
	}
	for i, text := range extract(t, render(t, p, Receipt)) {
		for _, want := range []string{fmt.Sprintf("Página No. %d de 2", i+1), "e-NCF: E320000000001", "Código de Seguridad: abcdef"} {
			if !strings.Contains(text, want) {
				t.Errorf("page %d lacks %q", i+1, want)
			}
		}
	}
}

func TestConsumerInvoiceNeverStatesAnExpiry(t *testing.T) {
	t.Parallel()
	d := sample(t, fiscal.Consumer, line(t, fiscal.Taxed18, "Café", "2", "125"))
	d.Expires = date(t, "2027-12-31")
	text := extract(t, render(t, page(t, d, "abcdef"), Letter))[0]
	for _, not := range []string{"Vencimiento", "Cliente", "Página"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is on the page:\n%s", not, text)
		}
	}
}

func TestSamePageGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	p := mixedPage(t)
	p.Logo = logoPNG(t, 300, 100)
	p.Document.Lines = append(p.Document.Lines, shopLines(t, 50)...) // two pages, which share the QR code
	// A font subset could differ for characters that share a glyph.
	p.Extra.Notes = "a-b−c \u00A0 µμ Ωω ∆Δ ·∙ ¯ˉ áéíóú ÁÉÍÓÚ ñÑ"
	want := [formats][]byte{render(t, p, Letter), render(t, p, Receipt), render(t, p, Receipt58)}
	var wait sync.WaitGroup
	for range 3 {
		for f := range formats {
			wait.Go(func() {
				if got, err := p.Render(f); err != nil || !bytes.Equal(got, want[f]) {
					t.Errorf("another rendering differs: %v", err)
				}
			})
		}
	}
	wait.Wait()
}

func TestPDFHasItsProperties(t *testing.T) {
	t.Parallel()
	p := page(t, sample(t, fiscal.FiscalCredit, line(t, fiscal.Taxed18, "Zapatos", "150", "550")), "S/DQdu")
	pdf := render(t, p, Letter)
	info := output(t, "pdfinfo", pdf, "-")
	for _, want := range []string{
		"Title:           Factura de Crédito Fiscal Electrónica E310000000001\n", "Author:          Distribuidora Quisqueya, SRL\n",
		"Creator:         fiscalhub\n", "Page size:       612 x 792 pts (letter)\n",
	} {
		if !strings.Contains(info, want) {
			t.Errorf("no %q in:\n%s", want, info)
		}
	}
	for _, want := range []string{"/CreationDate (D:20260127182407)", "/Lang (es-DO)"} {
		if !bytes.Contains(pdf, []byte(want)) {
			t.Errorf("no %s in the file", want)
		}
	}
}

func TestPageWithoutARequiredItemIsRefused(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(*Page){
		"no document":    func(p *Page) { p.Document = nil },
		"no number":      func(p *Page) { p.Document.ENCF = fiscal.ENCF{} },
		"no expiry":      func(p *Page) { p.Document.Expires = fiscal.Date{} },
		"no issuer":      func(p *Page) { p.Document.Issuer.LegalName = "" },
		"no issue date":  func(p *Page) { p.Document.IssueDate = fiscal.Date{} },
		"not signed":     func(p *Page) { p.Document.SignedAt = time.Time{} },
		"no lines":       func(p *Page) { p.Document.Lines = nil },
		"no code":        func(p *Page) { p.Code = ecf.SecurityCode{} },
		"no stamp":       func(p *Page) { p.Stamp = ecf.Stamp{} },
		"another's code": func(p *Page) { p.Code = page(t, p.Document, "zzzzzz").Code },
		"other language": func(p *Page) { p.Language = "fr" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := page(t, sample(t, fiscal.FiscalCredit, line(t, fiscal.Taxed18, "Zapatos", "150", "550")), "S/DQdu")
			spoil(&p)
			if _, err := p.Render(Letter); err == nil || !strings.HasPrefix(err.Error(), "printed: ") {
				t.Errorf("err is %v", err)
			}
		})
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]Format{"letter": Letter, "receipt": Receipt, "receipt58": Receipt58} {
		if got, err := ParseFormat(s); got != want || err != nil {
			t.Errorf("%s: %v, %v", s, got, err)
		}
	}
	if _, err := ParseFormat("A4"); err == nil {
		t.Error("ParseFormat accepts A4")
	}
	p := page(t, sample(t, fiscal.Consumer, line(t, fiscal.Taxed18, "Café", "2", "125")), "abcdef")
	if _, err := p.Render(7); err == nil {
		t.Error("Render accepts format 7")
	}
}
