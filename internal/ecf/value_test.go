package ecf

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestSecurityCodeIsTheBeginningOfTheSignature(t *testing.T) {
	t.Parallel()
	if c, err := NewSecurityCode("k7Qx+2mPxx"); err != nil || c.String() != "k7Qx+2" {
		t.Errorf("got %q, %v", c, err)
	}
	for _, s := range []string{"", "k7Qx+", "k7Q x+2", "k7Qx\n2", "ñañaña"} {
		if c, err := NewSecurityCode(s); err == nil {
			t.Errorf("NewSecurityCode(%q) = %q, want an error", s, c)
		}
	}
}

func TestStampAddresses(t *testing.T) {
	t.Parallel()
	amount := func(s string) fiscal.Decimal {
		d, err := fiscal.ParseDecimal(s)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	date, _ := fiscal.ParseDate("2026-10-10")
	credit := Document{
		Number: Number{ENCF: newENCF(t, fiscal.FiscalCredit, 1)}, Issuer: Issuer{RNC: "130000001"}, Buyer: Buyer{TaxID: "130000002"},
		IssueDate: date, Totals: Totals{Total: amount("2065")}, SignedAt: time.Date(2026, 10, 10, 13, 0, 0, 0, time.UTC),
	}
	large := credit
	large.ENCF, large.Buyer, large.Totals.Total = newENCF(t, fiscal.Consumer, 9), Buyer{}, amount("250000")
	// 20:00 in Santo Domingo is already the next day in UTC.
	large.SignedAt = time.Date(2027, 1, 1, 3, 59, 59, 0, time.UTC)
	small := large
	small.ENCF, small.Issuer.RNC, small.Totals.Total = newENCF(t, fiscal.Consumer, 64), "131880738", amount("249999.99")
	for _, test := range []struct {
		document  Document
		code      string
		authority Authority
		want      string
	}{
		{credit, "dCp79Q", ProductionAuthority, "https://ecf.dgii.gov.do/ecf/consultatimbre?rncemisor=130000001&rnccomprador=130000002&encf=E310000000001&fechaemision=10-10-2026&montototal=2065.00&fechafirma=10-10-2026%2009:00:00&codigoseguridad=dCp79Q"},
		{credit, "k7Qx+2", CertificationAuthority, "https://ecf.dgii.gov.do/certecf/consultatimbre?rncemisor=130000001&rnccomprador=130000002&encf=E310000000001&fechaemision=10-10-2026&montototal=2065.00&fechafirma=10-10-2026%2009:00:00&codigoseguridad=k7Qx%2B2"},
		{large, "+/+/+/", ProductionAuthority, "https://ecf.dgii.gov.do/ecf/consultatimbre?rncemisor=130000001&encf=E320000000009&fechaemision=10-10-2026&montototal=250000.00&fechafirma=31-12-2026%2023:59:59&codigoseguridad=%2B%2F%2B%2F%2B%2F"},
		{small, "uabnyh", TestAuthority, "https://fc.dgii.gov.do/testecf/consultatimbrefc?rncemisor=131880738&encf=E320000000064&montototal=249999.99&codigoseguridad=uabnyh"},
	} {
		got, err := test.document.Stamp(SecurityCode{test.code}, test.authority)
		if err != nil || got.String() != test.want {
			t.Errorf("stamp\n%s, want\n%s (%v)", got, test.want, err)
		}
	}
	if s, err := credit.Stamp(SecurityCode{"dCp79Q"}, "production"); err == nil {
		t.Errorf("a stamp of an unknown environment of the authority: %s", s)
	}
	if s, err := credit.Stamp(SecurityCode{}, TestAuthority); err == nil {
		t.Errorf("a stamp without a code: %s", s)
	}
}

func TestUnitCodeOfWords(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]int{
		"und": 43, "UND.": 43, "Unidad": 43, "unidades": 43, "Uds": 43, "u": 43, "caja": 6, "CAJAS": 6, "cajón": 6, "cajones": 6,
		"m²": 27, "M2": 27, "metros cuadrados": 0, "metro cuadrado": 27, "m³": 28, "mes": 0, "meses": 0, "servicio": 0, "h": 19,
		"horas": 19, "kgs": 21, "kg": 21, "Día": 12, "dias": 12, "galón": 15, "GALONES": 15, "lb": 23, "ml": 59, "kWh": 22,
		"  kilovatio   hora ": 22, "": 0, "...": 0, "s": 0, "es": 0, "🧾": 0, "l": 24, "pcs": 34, "pie2": 53, "oz": 61, "as": 0,
	} {
		if got := unitCode(0, words); got != want {
			t.Errorf("unitCode(0, %q) = %d, want %d", words, got, want)
		}
	}
}

// unitCode finds a word of the table before it brings the words into the form of unitKey.
func TestUnitWordsAreKeys(t *testing.T) {
	t.Parallel()
	for word := range units().words {
		if key := unitKey(word); key != word {
			t.Errorf("the key of %q is %q", word, key)
		}
	}
}

func TestAmountsHaveTwoDecimalsOrMore(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"0", "0.1", "0.01", "0.0001", "7", "10.5", "99.99", "100", "1234.5678", "0.12345678", "999999999999999.99",
		"100000000000000000", "100000000000000001", "1844674407370955161.5", "18446744073709551615", "18446744073709551616",
	} {
		d := udecimal.MustParse(text)
		want := d.StringFixed(uint8(max(d.Prec(), 2)))
		if got := string(appendAmount(nil, d)); got != want {
			t.Errorf("the amount %s is written as %s, want %s", text, got, want)
		}
	}
}

// The code ignores errors in the embedded tables, so this test checks every row.
func TestEmbeddedTablesAreComplete(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{"units": unitsCSV, "regions": regionsCSV} {
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 60 {
			t.Fatalf("%s: %d rows, %v", name, len(rows), err)
		}
	}
	for code := 1; code <= maxUnit; code++ {
		if UnitName(code) == "" {
			t.Errorf("unit %d has no name", code)
		}
	}
	if UnitName(0)+UnitName(63)+UnitName(-1) != "" {
		t.Error("a unit that is not in the table has a name")
	}
	all := regions()
	if len(all.regions) != 582 || len(all.provinces) != 32 || len(all.municipalities) != 157 {
		t.Errorf("%d regions, %d provinces, %d municipalities", len(all.regions), len(all.provinces), len(all.municipalities))
	}
	for code, p := range all.regions {
		if p.name == "" || len(code) != 6 || all.regions[p.province].level != levelProvince {
			t.Errorf("region %s: %+v", code, p)
		}
	}
	for code, want := range map[string]string{"010100": "Santo Domingo de Guzmán", "140000": "María Trinidad Sánchez", "310000": "San José de Ocoa", "130000": "La Vega", "999999": ""} {
		if got := RegionName(code); got != want {
			t.Errorf("RegionName(%s) = %q, want %q", code, got, want)
		}
	}
	// No word means two units.
	seen := make(map[string]string)
	for _, row := range table(unitsCSV) {
		for _, word := range append(strings.Split(row[6], ";"), row[1]) {
			if key := unitKey(word); key != "" && seen[key] != "" && seen[key] != row[0] {
				t.Errorf("%q means %s and %s", word, seen[key], row[0])
			} else {
				seen[key] = row[0]
			}
		}
	}
}

func TestCleanKeepsWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":               "",
		" a ":            "a",
		"a\r\n\t b":      "a  b",
		"a\x00b\x1fc":    "abc",
		"\uFEFFa\uFFFDb": "\uFEFFa\uFFFDb",
		"a\xffb":         "ab",
		"\uFFFE\uFFFF":   "",
		"e\u0301\u200d🧾": "é\u200d🧾",
	} {
		if got := clean(text); got != want {
			t.Errorf("clean(%q) = %q, want %q", text, got, want)
		}
	}
}

func newENCF(t *testing.T, kind fiscal.Type, n int64) fiscal.ENCF {
	t.Helper()
	e, err := fiscal.NewENCF(kind, n)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
