package fiscal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

func FuzzParseDecimal(f *testing.F) {
	for _, s := range []string{"0", "1", "10.50", "0.00", "01", ".5", "5.", "1e3", "-1", "999999999999999999", "0.12345678901234567", "1234567890123456789", "١"} {
		f.Add(s)
	}
	grammar := regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`)
	f.Fuzz(func(t *testing.T, s string) {
		want := len(s) <= 32 && grammar.MatchString(s) && len(strings.Replace(s, ".", "", 1)) <= 18
		d, err := fiscal.ParseDecimal(s)
		if (err == nil) != want {
			t.Fatalf("ParseDecimal(%q) = %v, %v", s, d, err)
		}
		if err != nil {
			return
		}
		canonical := s
		if strings.Contains(s, ".") {
			canonical = strings.TrimRight(strings.TrimRight(s, "0"), ".")
		}
		if d.String() != canonical {
			t.Fatalf("ParseDecimal(%q) = %s", s, d)
		}
	})
}

func FuzzNew(f *testing.F) {
	f.Add([]byte(base))
	samples, err := filepath.Glob("testdata/*.request.json")
	if err != nil || len(samples) == 0 {
		f.Fatal(samples, err)
	}
	for _, name := range samples {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := strictjson.Parse(body)
		if err != nil {
			return
		}
		inv, err := fiscal.New(fiscal.DecodeRequest(doc))
		if (inv == nil) == (err == nil) {
			t.Fatalf("New gave %v and %v", inv, err)
		}
		if err == nil {
			return
		}
		problems, ok := err.(fiscal.Problems) //nolint:errorlint // the type itself is promised
		if !ok || len(problems) == 0 || len(problems) > 101 {
			t.Fatalf("New gave %T with %d problems", err, len(problems))
		}
		for _, p := range problems {
			if p.Code == "" || p.Message.IsZero() {
				t.Fatalf("a problem without code or message: %+v", p)
			}
		}
	})
}

// thousandLines is an invoice of 1000 lines that is accepted.
func thousandLines() []byte {
	var b strings.Builder
	b.WriteString(`{"external_id":"FA-1","ecf_type":"31","issue_date":"2026-03-05","currency":"DOP","payment_type":"cash","buyer":{"legal_name":"Comercial Ejemplo, SRL","tax_id":"199000048"},"lines":[`)
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `
    {"line_id":"line-%04d", "description":"Detergente líquido concentrado para uso industrial, presentación de cinco galones, lote %04d", "sku":"DET-5GL-%04d", "unit":"galón", "item_kind":"product", "billing_indicator":1, "unit_code":43, "quantity":"12.75", "unit_price":"87.3456", "discount":{"kind":"percentage","value":"7.5"}, "taxes":[{"code":"ITBIS","label":"ITBIS 18%%","rate_percent":"18"}]}`, i, i, i)
	}
	b.WriteString(`],"declared_totals":{"subtotal":"1113660.00","discount_total":"83520.00","tax_total":"185425.20","total":"1215565.20"}}`)
	return []byte(b.String())
}

func BenchmarkNewThousandLines(b *testing.B) {
	doc, err := strictjson.Parse(thousandLines())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fiscal.New(fiscal.DecodeRequest(doc)); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkNewHostile is a body of a hundred thousand unknown members.
func BenchmarkNewHostile(b *testing.B) {
	var s strings.Builder
	s.WriteString(`{"a":0`)
	for i := range 100_000 {
		fmt.Fprintf(&s, `,"%d":0`, i)
	}
	s.WriteString("}")
	doc, err := strictjson.Parse([]byte(s.String()))
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := fiscal.New(fiscal.DecodeRequest(doc)); err == nil {
			b.Fatal("accepted")
		}
	}
}
