package ecf_test

import (
	"cmp"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// A declaration is what the taxes of a line say, by the rules of the API and without
// the code under test: how the line is taxed and its other taxes, or the problem.
type declaration struct {
	indicator  int
	additional []string
	problem    string // "field code" below the line
}

// declarationOf reads the taxes and the billing indicator of a line; 0 is no indicator.
func declarationOf(taxes []randomTax, explicit int) declaration {
	aliases := map[string]string{
		"PROPINA": "001", "PROPINALEGAL": "001", "LEGALTIP": "001", "CDT": "002", "ISCSEGUROS": "003",
		"ISCTELECOM": "004", "ISCTELECOMUNICACIONES": "004", "PRIMERAPLACA": "005",
	}
	rates := map[string]float64{"001": 10, "002": 2, "003": 16, "004": 10, "005": 17}
	var (
		d     declaration
		entry *randomTax // of ITBIS, or the one that says that the line is exempt
	)
	fail := func(at int, field, code string) {
		if d.problem == "" {
			d.problem = fmt.Sprintf("taxes.%d.%s %s", at, field, code)
		}
	}
	for i, t := range taxes {
		code := regexp.MustCompile(`[^A-Z0-9]`).ReplaceAllString(asciiUpper(t.Code), "")
		rate, _ := strconv.ParseFloat(t.Rate, 64) // a test has written it
		if alias, ok := aliases[code]; ok {
			code = alias
		}
		exempt := slices.Contains([]string{"EXENTO", "EXENTA", "EXEMPT"}, code)
		itbis := strings.Contains(code, "ITBIS") || code == "IVA" || code == "VAT"
		want, additional := rates[code]
		switch {
		case (exempt || itbis) && entry != nil:
			fail(i, "code", fiscal.CodeTaxConflict)
		case exempt || itbis:
			entry = &taxes[i]
			free := exempt || strings.Contains(code, "EXENT") || strings.Contains(code, "EXEMPT")
			switch {
			case rate == 0 && free:
				d.indicator = 4
			case rate == 0:
				d.indicator = 3
			case rate == 18 && !free:
				d.indicator = 1
			case rate == 16 && !free:
				d.indicator = 2
			default:
				fail(i, "rate_percent", fiscal.CodeOutOfRange)
			}
		case additional && rate != want:
			fail(i, "rate_percent", fiscal.CodeOutOfRange)
		case additional && (slices.Contains(d.additional, code) || len(d.additional) == 2):
			fail(i, "code", fiscal.CodeUnsupportedTax)
		case additional:
			d.additional = append(d.additional, code)
		case regexp.MustCompile(`^0(0[6-9]|[12][0-9]|3[0-9])$`).MatchString(code):
			fail(i, "code", fiscal.CodeUnsupportedTax)
		default:
			fail(i, "code", fiscal.CodeUnknownTax)
		}
	}
	if explicit != 0 && d.problem == "" {
		agrees := entry == nil || explicit == d.indicator || explicit >= 3 && d.indicator >= 3
		if !agrees {
			d.problem = "billing_indicator " + fiscal.CodeTaxConflict
		}
		d.indicator = explicit
	}
	d.indicator = cmp.Or(d.indicator, 4)
	return d
}

// asciiUpper writes the letters of ASCII in upper case, and no others.
func asciiUpper(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r - 'a' + 'A'
		}
		return r
	}, s)
}

// check compares the document of a line of 100.00 with what its taxes say.
func (want declaration) check(t rapid.TB, taxes []randomTax, explicit int) {
	t.Helper()
	percent := map[int]int{1: 18, 2: 16}[want.indicator]
	for _, code := range want.additional {
		percent += map[string]int{"001": 10, "002": 2, "003": 16, "004": 10, "005": 17}[code]
	}
	line := map[string]any{
		"line_id": "1", "description": "d", "item_kind": "product", "quantity": "1", "unit_price": "100", "discount": nil, "taxes": taxes,
	}
	if explicit != 0 {
		line["billing_indicator"] = explicit
	}
	raw, err := json.Marshal(map[string]any{
		"external_id": "1", "ecf_type": "32", "issue_date": "2026-01-01", "currency": "DOP", "payment_type": "cash",
		"buyer": map[string]any{"legal_name": "n"}, "lines": []any{line},
		"declared_totals": declared{"100", "0", strconv.Itoa(percent), strconv.Itoa(100 + percent)},
	})
	if err != nil {
		t.Fatal(err)
	}
	document, err := strictjson.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(document))
	var problems fiscal.Problems
	if errors.As(err, &problems) {
		if !slices.ContainsFunc(problems, func(p fiscal.Problem) bool { return strings.TrimPrefix(p.Field, "lines.0.")+" "+p.Code == want.problem }) {
			t.Fatalf("%v with indicator %d: %s, want %s", taxes, explicit, problems, cmp.Or(want.problem, "none"))
		}
		return
	}
	if want.problem != "" {
		t.Fatalf("%v with indicator %d: signed as %d, want %s", taxes, explicit, inv.Lines[0].Indicator, want.problem)
	}
	d, err := ecf.New(ecf.Synthetic(), ecf.Number{ENCF: must(fiscal.NewENCF(fiscal.Consumer, 1))}, inv, time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	xml := string(d.Unsigned())
	var signed []string
	for _, part := range []string{"IndicadorFacturacion", "MontoGravadoI1", "MontoGravadoI2", "MontoGravadoI3", "MontoExento", "TotalITBIS", "TipoImpuesto", "MontoTotal"} {
		for _, found := range regexp.MustCompile("<"+part+">([^<]*)</"+part+">").FindAllStringSubmatch(xml, -1) {
			signed = append(signed, part+"="+found[1])
		}
	}
	expected := []string{fmt.Sprint("IndicadorFacturacion=", want.indicator)}
	bucket := map[int]string{1: "MontoGravadoI1", 2: "MontoGravadoI2", 3: "MontoGravadoI3", 4: "MontoExento"}[want.indicator]
	expected = append(expected, bucket+"=100.00")
	if itbis := map[int]string{1: "18.00", 2: "16.00", 3: "0.00"}[want.indicator]; itbis != "" {
		expected = append(expected, "TotalITBIS="+itbis)
	}
	for _, code := range want.additional { // once in the totals and once on the line
		expected = append(expected, "TipoImpuesto="+code, "TipoImpuesto="+code)
	}
	expected = append(expected, fmt.Sprintf("MontoTotal=%d.00", 100+percent))
	slices.Sort(signed)
	slices.Sort(expected)
	if !slices.Equal(signed, expected) {
		t.Fatalf("%v with indicator %d:\n%s\nwant\n%s", taxes, explicit, signed, expected)
	}
}

// knownTaxes returns every code, every alias and every label of the authority's table of
// taxes, what integrators write for ITBIS, and names that only look like a tax.
func knownTaxes(t *testing.T) (codes, labels, rates []string) {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(string(read(t, "../../fiscal/testdata/additional-taxes.csv")))).ReadAll()
	if err != nil || len(rows) != 40 {
		t.Fatal(len(rows), err)
	}
	codes = []string{
		"ITBIS", "itbis", "ITBIS18", "ITBIS_16", "DO-ITBIS", "I.T.B.I.S.", "ITBIS EXENTO", "ITBIS-exempt", "IVA", "vat", "EXENTO", "exenta", "Exempt",
		"PROPINA", "propina_legal", "Legal Tip", "CDT", "ISC-Seguros", "ISC TELECOM", "ISC_TELECOMUNICACIONES", "Primera Placa",
		"ISC", "OTRO", "N/A", "NA", "0", "18", "16", "1", "01", "000", "040", "XVAT", "IVAS", "NOEXENTO", "EXENTOS", "SELECTIVO", "TAX", "ITBÍS", "İTBİS", "ITB1S", "IMPUESTO", "-", "ñ",
	}
	labels = []string{"ITBIS", "ITBIS 18%", "Exento", "Exempt", "001", "x"}
	rates = []string{"18", "18.00", "16", "0", "0.00", "10", "2", "17", "5", "100"}
	for _, row := range rows[1:] {
		codes = append(codes, row[0])
		labels = append(labels, row[2], row[3], row[4])
		rates = append(rates, row[5])
	}
	for _, list := range []*[]string{&labels, &rates} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return codes, labels, rates
}

// Every code that is known, with every rate and every indicator, is signed as what it
// says, or refused. The label never matters.
func TestEveryTaxIsSignedAsItsCodeSays(t *testing.T) {
	t.Parallel()
	codes, labels, rates := knownTaxes(t)
	n := 0
	for _, code := range codes {
		for _, rate := range rates {
			for explicit := range 5 {
				n++
				taxes := []randomTax{{code, labels[n%len(labels)], rate}}
				declarationOf(taxes, explicit).check(t, taxes, explicit)
			}
		}
	}
	for _, label := range labels {
		for _, code := range []string{"ISC", "OTRO", "N/A"} {
			for _, rate := range []string{"18", "16", "0"} {
				declaration{problem: "taxes.0.code " + fiscal.CodeUnknownTax}.check(t, []randomTax{{code, label, rate}}, 0)
			}
		}
		declaration{indicator: 3}.check(t, []randomTax{{"ITBIS", label, "0"}}, 0)
	}
}

// What any list of taxes says is what is signed, or the list is refused.
func TestSignedTaxesAreThoseThatWereSaid(t *testing.T) {
	t.Parallel()
	codes, labels, rates := knownTaxes(t)
	rapid.Check(t, func(rt *rapid.T) {
		tax := rapid.Custom(func(t *rapid.T) randomTax {
			return randomTax{
				rapid.OneOf(rapid.SampledFrom(codes), rapid.StringMatching(`[A-Za-z0-9_. -]{0,8}(ITBIS|itbis|IVA|EXENTO|00[1-5]|0[0-3][0-9])?[A-Z0-9./-]{0,3}[A-Z0-9]`)).Draw(t, "code"),
				rapid.OneOf(rapid.SampledFrom(labels), rapid.StringMatching(`[A-Za-z0-9]{1,20}`)).Draw(t, "label"),
				rapid.OneOf(rapid.SampledFrom(rates), rapid.StringMatching(`(0|[1-9][0-9]?)(\.[0-9]{1,2})?`)).Draw(t, "rate"),
			}
		})
		taxes := rapid.SliceOfN(tax, 0, 4).Draw(rt, "taxes")
		if taxes == nil {
			taxes = []randomTax{}
		}
		explicit := rapid.IntRange(0, 4).Draw(rt, "billing_indicator")
		declarationOf(taxes, explicit).check(rt, taxes, explicit)
	})
}
