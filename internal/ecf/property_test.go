package ecf_test

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// A random request is the JSON that an integrator would send. Its totals are
// computed here with fractions of big integers, by the formulas of the format
// and without the code under test.
type (
	randomRequest struct {
		ExternalID   string           `json:"external_id"`
		Type         string           `json:"ecf_type"`
		IssueDate    string           `json:"issue_date"`
		DueDate      string           `json:"due_date,omitempty"`
		Currency     string           `json:"currency"`
		Payment      string           `json:"payment_type"`
		Terms        string           `json:"payment_terms,omitempty"`
		Order        string           `json:"purchase_order,omitempty"`
		Notes        string           `json:"notes,omitempty"`
		Buyer        map[string]any   `json:"buyer"`
		Lines        []randomLine     `json:"lines"`
		Declared     declared         `json:"declared_totals"`
		Withholdings *withholdings    `json:"estimated_withholdings,omitempty"`
		indicators   []int            // of the lines
		totals       recomputedTotals // the totals that the document must have
	}
	randomLine struct {
		ID          string      `json:"line_id"`
		Description string      `json:"description"`
		SKU         string      `json:"sku,omitempty"`
		Unit        string      `json:"unit,omitempty"`
		UnitCode    int         `json:"unit_code,omitempty"`
		Kind        string      `json:"item_kind"`
		Indicator   int         `json:"billing_indicator,omitempty"`
		Quantity    string      `json:"quantity"`
		Price       string      `json:"unit_price"`
		Discount    *discount   `json:"discount"`
		Taxes       []randomTax `json:"taxes"`
	}
	discount struct {
		Kind  string `json:"kind"`
		Value string `json:"value"`
	}
	randomTax struct {
		Code  string `json:"code"`
		Label string `json:"label"`
		Rate  string `json:"rate_percent"`
	}
	declared struct {
		Subtotal string `json:"subtotal"`
		Discount string `json:"discount_total"`
		Tax      string `json:"tax_total"`
		Total    string `json:"total"`
	}
	withholdings struct {
		IncomeTax string `json:"income_tax_amount"`
		ITBIS     string `json:"itbis_amount"`
	}
)

// recomputedTotals is in cents.
type recomputedTotals struct {
	base       [5]*big.Int // by indicator; nil when no line has it
	itbis      [4]*big.Int
	additional map[string]*big.Int // by code
	total      *big.Int
}

func drawRequest(t *rapid.T) *randomRequest {
	r := &randomRequest{Type: rapid.SampledFrom([]string{"31", "32"}).Draw(t, "type"), Currency: "DOP", IssueDate: "2026-03-05"}
	r.ExternalID = drawText(t, "external id", 40)
	r.Payment = rapid.SampledFrom([]string{"cash", "credit", "free_of_charge"}).Draw(t, "payment")
	if r.Payment == "credit" {
		r.DueDate = rapid.SampledFrom([]string{"2026-03-05", "2026-12-31", "2028-02-29"}).Draw(t, "due")
	}
	r.Terms, r.Order, r.Notes = drawOptional(t, "terms", 40), drawOptional(t, "order", 120), drawOptional(t, "notes", 600)
	if r.Notes != "" && rapid.Bool().Draw(t, "broken") {
		r.Notes = "\r\n" + strings.ReplaceAll(r.Notes, " ", "\n\t ") + "\r"
	}
	r.Buyer = map[string]any{"legal_name": drawText(t, "name", 200)}
	if r.Type == "31" || rapid.Bool().Draw(t, "identified") {
		r.Buyer["tax_id"] = rapid.SampledFrom([]string{"199000021", "00199000019", "199000022"}).Draw(t, "tax id")
	}
	if rapid.Bool().Draw(t, "reachable") {
		r.Buyer["email"] = rapid.SampledFrom([]string{"a@b.example", "under_score@b.example", "a.b+c@d-e.example", "o'neil@b.example"}).Draw(t, "email")
		r.Buyer["phone"] = "+1 809 555 0177"
	}
	if rapid.Bool().Draw(t, "located") {
		r.Buyer["address"] = map[string]any{
			"line1": drawText(t, "line1", 120), "city": rapid.SampledFrom([]string{"Santiago", "Santo Domingo", "neiba", "Nueva York"}).Draw(t, "city"),
			"province_or_state": rapid.SampledFrom([]string{"Santiago", "Distrito Nacional", "New York"}).Draw(t, "province"),
			"country_code":      rapid.SampledFrom([]string{"DO", "US", "HT"}).Draw(t, "country"),
		}
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "lines") {
		r.draw(t, i)
	}
	r.settle(t)
	return r
}

func (r *randomRequest) draw(t *rapid.T, i int) {
	l := randomLine{
		ID: strconv.Itoa(i), Description: drawText(t, "description", 500), SKU: drawOptional(t, "sku", 60),
		Unit:     rapid.SampledFrom([]string{"", "cajas", "kg.", "m²", "mes", "unidad"}).Draw(t, "unit"),
		Kind:     rapid.SampledFrom([]string{"product", "service"}).Draw(t, "kind"),
		Quantity: rapid.SampledFrom([]string{"1", "3", "0.01", "12.75", "7.25"}).Draw(t, "quantity"),
		Price:    fmt.Sprintf("%d.%04d", rapid.IntRange(0, 20000).Draw(t, "price"), rapid.IntRange(0, 9999).Draw(t, "decimals")),
		Taxes:    []randomTax{},
	}
	if rapid.Bool().Draw(t, "broken") {
		l.Description = "x\t\r\n" + drawText(t, "rest", 400) + "\n"
	}
	l.UnitCode = rapid.SampledFrom([]int{0, 1, 43, 62, 68}).Draw(t, "unit code")
	if rapid.Bool().Draw(t, "discounted") {
		l.Discount = &discount{"percentage", rapid.SampledFrom([]string{"0", "5", "33.33", "100", "7.505"}).Draw(t, "percent")}
	}
	indicator := rapid.IntRange(1, 4).Draw(t, "indicator")
	if indicator < 4 {
		l.Taxes = append(l.Taxes, randomTax{"ITBIS", "ITBIS", []string{"18", "16", "0"}[indicator-1]})
	}
	for _, code := range rapid.SliceOfNDistinct(rapid.IntRange(1, 5), 0, 2, rapid.ID[int]).Draw(t, "additional") {
		l.Taxes = append(l.Taxes, randomTax{fmt.Sprintf("%03d", code), "otro", []string{"10", "2", "16", "10", "17"}[code-1]})
	}
	r.Lines, r.indicators = append(r.Lines, l), append(r.indicators, indicator)
}

// settle computes the totals and declares them.
func (r *randomRequest) settle(t *rapid.T) {
	s := &r.totals
	s.additional = make(map[string]*big.Int)
	gross, discounts := new(big.Int), new(big.Int)
	bases := make(map[string]*big.Int)
	for i, l := range r.Lines {
		sale := new(big.Rat).Mul(fraction(l.Quantity), fraction(l.Price))
		less := new(big.Int)
		if l.Discount != nil {
			less = cents(new(big.Rat).Mul(sale, percent(l.Discount.Value)))
		}
		amount := new(big.Int).Sub(cents(sale), less)
		gross.Add(gross, cents(sale))
		discounts.Add(discounts, less)
		at := r.indicators[i]
		if s.base[at] == nil {
			s.base[at] = new(big.Int)
		}
		s.base[at].Add(s.base[at], amount)
		for _, tax := range l.Taxes {
			if tax.Code == "ITBIS" {
				continue
			}
			if bases[tax.Code] == nil {
				bases[tax.Code] = new(big.Int)
			}
			bases[tax.Code].Add(bases[tax.Code], amount)
			s.additional[tax.Code] = cents(new(big.Rat).Mul(inPesos(bases[tax.Code]), percent(tax.Rate)))
		}
	}
	taxes := new(big.Int)
	for i, rate := range []string{"18", "16", "0"} {
		if base := s.base[i+1]; base != nil {
			s.itbis[i+1] = cents(new(big.Rat).Mul(inPesos(base), percent(rate)))
			taxes.Add(taxes, s.itbis[i+1])
		}
	}
	itbis := new(big.Int).Set(taxes)
	for _, amount := range s.additional {
		taxes.Add(taxes, amount)
	}
	s.total = new(big.Int).Add(new(big.Int).Sub(gross, discounts), taxes)
	r.Declared = declared{money(gross), money(discounts), money(taxes), money(s.total)}
	if r.Type == "32" && s.total.Cmp(big.NewInt(250_000_00)) >= 0 && r.Buyer["tax_id"] == nil {
		r.Buyer["tax_id"] = "199000021"
	}
	if r.Type == "31" && rapid.Bool().Draw(t, "withheld") {
		third := new(big.Int).Div(itbis, big.NewInt(3))
		r.Withholdings = &withholdings{"0", money(third)}
	}
}

func fraction(s string) *big.Rat { v, _ := new(big.Rat).SetString(s); return v }
func percent(s string) *big.Rat  { return new(big.Rat).Quo(fraction(s), big.NewRat(100, 1)) }
func inPesos(c *big.Int) *big.Rat {
	return new(big.Rat).SetFrac(c, big.NewInt(100))
}

// cents rounds pesos to cents, half up.
func cents(pesos *big.Rat) *big.Int {
	doubled := new(big.Rat).Add(new(big.Rat).Mul(pesos, big.NewRat(200, 1)), big.NewRat(1, 1))
	return new(big.Int).Div(new(big.Int).Div(doubled.Num(), doubled.Denom()), big.NewInt(2))
}

func money(c *big.Int) string {
	s := fmt.Sprintf("%03d", c)
	return s[:len(s)-2] + "." + s[len(s)-2:]
}

// The characters of random texts: kinds of characters that often cause errors.
var nasty = []string{"a", "B", "ñ", "Ñ", "é", "e\u0301", "ü", "&", "<", ">", `"`, "'", "]]>", "&amp;", "€", "©", "🧾", "👩‍🔧", "漢", "ﷺ", "  ", " ", ".", ",", "-", "_", "%", "$", "\u00a0", "\u200b", "0", "9", "½", "²", "œ"}

func drawText(t *rapid.T, label string, most int) string {
	parts := rapid.SliceOfN(rapid.SampledFrom(nasty), 0, 60).Draw(t, label)
	runes := []rune("x" + strings.Join(parts, ""))
	if rapid.IntRange(0, 3).Draw(t, label+" long") == 0 {
		for len(runes) < most {
			runes = append(runes, []rune(" palabra ñandú")...)
		}
	}
	return string(runes[:min(len(runes), most)])
}

func drawOptional(t *rapid.T, label string, most int) string {
	if rapid.Bool().Draw(t, label+" given") {
		return drawText(t, label, most)
	}
	return ""
}

// made returns the document of a random request.
func (r *randomRequest) made(t rapid.TB) *ecf.Draft {
	t.Helper()
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := strictjson.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(parsed))
	if err != nil {
		t.Fatalf("%v\n%s", err, raw)
	}
	number := ecf.Number{ENCF: must(fiscal.NewENCF(inv.Type, 7))}
	if inv.Type == fiscal.FiscalCredit {
		number.Expires = must(fiscal.ParseDate("2027-12-31"))
	}
	d, err := ecf.New(palmaClara(), number, inv, time.Date(2026, 3, 5, 14, 40, 31, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// wire is a document as another XML reader sees it.
type wire struct {
	Head struct {
		Totals struct {
			Taxable    *string `xml:"MontoGravadoTotal"`
			I1         *string `xml:"MontoGravadoI1"`
			I2         *string `xml:"MontoGravadoI2"`
			I3         *string `xml:"MontoGravadoI3"`
			Exempt     *string `xml:"MontoExento"`
			ITBIS      *string `xml:"TotalITBIS"`
			ITBIS1     *string `xml:"TotalITBIS1"`
			ITBIS2     *string `xml:"TotalITBIS2"`
			ITBIS3     *string `xml:"TotalITBIS3"`
			Additional *string `xml:"MontoImpuestoAdicional"`
			Taxes      []struct {
				Code   string  `xml:"TipoImpuesto"`
				Amount *string `xml:"OtrosImpuestosAdicionales"`
			} `xml:"ImpuestosAdicionales>ImpuestoAdicional"`
			Total string `xml:"MontoTotal"`
		} `xml:"Totales"`
		Buyer struct {
			Name string `xml:"RazonSocialComprador"`
		} `xml:"Comprador"`
	} `xml:"Encabezado"`
	Items []struct {
		Name        string `xml:"NombreItem"`
		Description string `xml:"DescripcionItem"`
	} `xml:"DetallesItems>Item"`
}

// TestEveryTotalIsRecomputed compares each amount of random documents, read by
// another XML reader, with an amount computed without the code under test.
func TestEveryTotalIsRecomputed(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := drawRequest(t)
		d := r.made(t)
		var w wire
		if err := xml.Unmarshal(d.Unsigned(), &w); err != nil {
			t.Fatal(err)
		}
		got, s := w.Head.Totals, r.totals
		taxable, itbis, additional := (*big.Int)(nil), (*big.Int)(nil), (*big.Int)(nil)
		for i := 1; i <= 3; i++ {
			if s.base[i] != nil {
				taxable, itbis = sum(taxable, s.base[i]), sum(itbis, s.itbis[i])
			}
		}
		for code, amount := range s.additional {
			if amount.Sign() > 0 {
				additional = sum(additional, amount)
			}
			for _, tax := range got.Taxes {
				if tax.Code == code {
					equal(t, code, tax.Amount, positive(amount))
				}
			}
		}
		if len(got.Taxes) != len(s.additional) {
			t.Errorf("%d additional taxes, want %d", len(got.Taxes), len(s.additional))
		}
		for _, f := range []struct {
			name string
			got  *string
			want *big.Int
		}{
			{"MontoGravadoTotal", got.Taxable, taxable}, {"I1", got.I1, s.base[1]}, {"I2", got.I2, s.base[2]}, {"I3", got.I3, s.base[3]},
			{"MontoExento", got.Exempt, s.base[4]}, {"TotalITBIS", got.ITBIS, itbis}, {"ITBIS1", got.ITBIS1, s.itbis[1]},
			{"ITBIS2", got.ITBIS2, s.itbis[2]}, {"ITBIS3", got.ITBIS3, s.itbis[3]}, {"MontoImpuestoAdicional", got.Additional, additional},
			{"MontoTotal", &got.Total, s.total},
		} {
			equal(t, f.name, f.got, f.want)
		}
		if err := d.Check(); err != nil {
			t.Errorf("Check() = %v", err)
		}
		for i, item := range w.Items {
			if item.Description == "" {
				item.Description = item.Name
			}
			if want := flat(r.Lines[i].Description); item.Description != want || !strings.HasPrefix(want, item.Name) || utf8.RuneCountInString(item.Name) > 80 {
				t.Errorf("line %d is named %q and described %q, want %q", i, item.Name, item.Description, want)
			}
		}
		if name := string([]rune(flat(r.Buyer["legal_name"].(string)))[:utf8.RuneCountInString(w.Head.Buyer.Name)]); w.Head.Buyer.Name != name {
			t.Errorf("buyer %q, want %q", w.Head.Buyer.Name, name)
		}
		if summary := got.Total; d.HasSummary() != (r.Type == "32" && s.total.Cmp(big.NewInt(250_000_00)) < 0) {
			t.Errorf("HasSummary() = %t with %s", d.HasSummary(), summary)
		}
	})
}

// flat returns a text as a document must carry it by the rules of the format.
func flat(s string) string {
	return norm.NFC.String(strings.TrimSpace(regexp.MustCompile(`[\t\r\n]+`).ReplaceAllString(s, " ")))
}

func sum(a, b *big.Int) *big.Int {
	if a == nil {
		a = new(big.Int)
	}
	return new(big.Int).Add(a, b)
}

func positive(c *big.Int) *big.Int {
	if c.Sign() == 0 {
		return nil
	}
	return c
}

func equal(t rapid.TB, name string, got *string, want *big.Int) {
	t.Helper()
	switch {
	case want == nil && got != nil:
		t.Errorf("%s = %s, want none", name, *got)
	case want != nil && got == nil:
		t.Errorf("%s is missing, want %s", name, money(want))
	case want != nil && *got != money(want):
		t.Errorf("%s = %s, want %s", name, *got, money(want))
	}
}

// The samples, random documents and their summaries are valid for the authority's
// schemas and for xmlsec1.
func TestSchemasAndXmlsecAcceptOurDocuments(t *testing.T) {
	t.Parallel()
	const documents = 120
	leaf := xmlsigtest.Must(t, xmlsigtest.Options{})
	dir := t.TempDir()
	files := make(map[string][]string) // by schema
	write := func(schema, name string, xml []byte) {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, xml, 0o600); err != nil {
			t.Fatal(err)
		}
		files[schema] = append(files[schema], path)
	}
	drafts := make([]*ecf.Draft, 0, documents)
	for _, s := range samples() {
		drafts = append(drafts, s.document(t))
	}
	requests := rapid.Custom(drawRequest)
	for seed := range documents {
		drafts = append(drafts, requests.Example(seed).made(t))
	}
	for seed, d := range drafts {
		xml, code, err := d.Sign(leaf.Identity)
		if err != nil {
			t.Fatal(err)
		}
		write("ecf-"+string(d.ENCF.Type()), fmt.Sprintf("%03d.xml", seed), xml)
		if got, _ := reread(t, xml); !cmp.Equal(d.Complete(), got, cmp.AllowUnexported(fiscal.ENCF{}, fiscal.Date{})) {
			t.Errorf("document %d is not read as it was written:\n%s", seed, cmp.Diff(d.Complete(), got, cmp.AllowUnexported(fiscal.ENCF{}, fiscal.Date{})))
		}
		if d.HasSummary() {
			summary, err := d.SignSummary(leaf.Identity, code)
			if err != nil {
				t.Fatal(err)
			}
			write("rfce-32", fmt.Sprintf("%03d.rfce.xml", seed), summary)
		}
	}
	for schema := range files {
		if len(files[schema]) < 10 {
			t.Errorf("only %d documents for %s", len(files[schema]), schema)
		}
	}
	roots := filepath.Join(dir, "roots.pem")
	if err := os.WriteFile(roots, leaf.CA.PEM(), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("xmlsec1", func(t *testing.T) {
		xmlsec1 := needtest.Program(t, "xmlsec1")
		for _, list := range files {
			out, err := exec.CommandContext(t.Context(), xmlsec1, append([]string{"--verify", "--trusted-pem", roots}, list...)...).CombinedOutput()
			if good := strings.Count(string(out), "SignedInfo References (ok/all): 1/1"); err != nil || good != len(list) {
				t.Errorf("xmlsec1 verifies %d of %d documents: %v\n%.2000s", good, len(list), err, out)
			}
		}
	})
	t.Run("xmllint", func(t *testing.T) {
		for schema, list := range files {
			validates(t, schema, list...)
		}
	})
}
