package strictjson_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

func TestCanonicalForm(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, body, want string }{
		{"white space is removed", " { \"a\" :\t[ 1 , 2 ]\r\n} ", `{"a":[1,2]}`},
		{"members are sorted", `{"b":1,"a":{"d":1,"c":2},"":3}`, `{"":3,"a":{"c":2,"d":1},"b":1}`},
		{"names are sorted unescaped", `{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		{"a prefix comes first", `{"ab":1,"a":2}`, `{"a":2,"ab":1}`},
		{"characters beyond U+FFFF come before U+E000", "{\"\uffee\":1,\"\U00010000\":2,\"\ue000\":3,\"\ud7ff\":4}", "{\"\ud7ff\":4,\"\U00010000\":2,\"\ue000\":3,\"\uffee\":1}"},
		{"needless escapes are removed", `"\u00e9\/\u0041"`, `"é/A"`},
		{"needed escapes stay short", `"\u000a\u0000\u001F\"\\\u007f"`, "\"\\n\\u0000\\u001f\\\"\\\\\u007f\""},
		{"arrays keep their order", `[3,1,2]`, `[3,1,2]`},
		{"equal numbers have one form", `[1,1.0,10e-1,1E0]`, `[1,1,1,1]`},
		{"zero has no sign", `[-0,-0.0,0e5]`, `[0,0,0]`},
		{"numbers are shortest", `[1e21,1e20,0.000001,1e-7,9007199254740993,1e400,-1e400]`, `[1e+21,100000000000000000000,0.000001,1e-7,9007199254740992,1.7976931348623157e+308,-1.7976931348623157e+308]`},
		{"decimal strings are not numbers", `["10","10.0"]`, `["10","10.0"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			doc, err := strictjson.Parse([]byte(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(doc.Canonical()); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			checkAgainstLibrary(t, []byte(tt.body))
		})
	}
}

func TestManyMembersAreSorted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching("(common_prefix)?[a-c\u00e9\uffee\U00010000\U0001F600]{0,12}"), 25, 60, rapid.ID).Draw(t, "names")
		var parts []string
		for i, name := range names {
			parts = append(parts, fmt.Sprintf(`"%s":%d`, name, i))
		}
		body := []byte("{" + strings.Join(parts, ",") + "}")
		if _, err := strictjson.Parse(body); err != nil {
			t.Fatalf("%v in %s", err, body)
		}
		checkAgainstLibrary(t, body)
	})
}

// checkAgainstLibrary checks that jsontext accepts every body that Parse accepts,
// that both have the same canonical form, and that the canonical form of the
// canonical form is the same.
func checkAgainstLibrary(t interface {
	Helper()
	Fatalf(string, ...any)
}, body []byte) {
	t.Helper()
	sent := bytes.Clone(body)
	doc, err := strictjson.Parse(body)
	if err != nil {
		return
	}
	got := doc.Canonical()
	want := jsontext.Value(bytes.Clone(body))
	if err := want.Canonicalize(); err != nil {
		t.Fatalf("we accept %q, jsontext does not: %v", body, err)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("canonical form of %q\ngot  %s\nwant %s", body, got, want)
	}
	again, err := strictjson.Parse(got)
	if err != nil || !bytes.Equal(again.Canonical(), got) {
		t.Fatalf("the canonical form %q of %q is refused or has another canonical form: %v", got, body, err)
	}
	if !bytes.Equal(sent, body) {
		t.Fatalf("the body was changed: %q became %q", sent, body)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `{"a":[1,2.50,"x\u00e9"],"b":{}}`, `{"a":1,"\u0061":2}`, `["\ud83d\ude00","\ud800"]`,
		"{\"\uffee\":1,\"\U00010000\":2}", `[1e400,-0,1E-7,123456789012345678]`, `{} {}`, strings.Repeat("[", 20),
		`{"lines":[{"quantity":"1","taxes":[{"code":"ITBIS"}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) { checkAgainstLibrary(t, body) })
}

// genValue draws a JSON text in one of its many forms.
func genValue(depth int) *rapid.Generator[string] {
	space := rapid.SampledFrom([]string{"", "", "", " ", "\n\t"})
	str := rapid.OneOf(
		rapid.Map(rapid.StringN(0, 6, 20), func(s string) string {
			b, err := jsontext.AppendQuote(nil, strings.ToValidUTF8(s, "?"))
			if err != nil {
				return `"?"`
			}
			return string(b)
		}),
		rapid.SampledFrom([]string{`"\u0061"`, `"\ud83d\ude00"`, "\"\U0001F600\"", "\"\uffee\"", `"a"`, `"\/"`, `"A"`, `""`}),
	)
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 6).Draw(t, "kind")
		if depth == 0 {
			kind %= 5
		}
		sp := space.Draw(t, "space")
		switch kind {
		case 0:
			return sp + rapid.SampledFrom([]string{"null", "true", "false"}).Draw(t, "literal")
		case 1:
			return fmt.Sprintf("%s%d", sp, rapid.Int64().Draw(t, "int"))
		case 2:
			return sp + rapid.StringMatching(`-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,8})?([eE][+-]?[0-9]{1,3})?`).Draw(t, "number")
		case 3, 4:
			return str.Draw(t, "string") + sp
		case 5:
			return "[" + sp + strings.Join(rapid.SliceOfN(genValue(depth-1), 0, 5).Draw(t, "items"), sp+",") + "]"
		default:
			var parts []string
			for range rapid.IntRange(0, 14).Draw(t, "members") {
				parts = append(parts, str.Draw(t, "name")+sp+":"+genValue(depth-1).Draw(t, "member"))
			}
			return "{" + strings.Join(parts, ","+sp) + sp + "}"
		}
	})
}

func TestCanonicalFormIsThatOfJsontext(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		checkAgainstLibrary(t, []byte(genValue(4).Draw(t, "body")))
	})
}

// invoiceBody is an invoice of 1000 lines, about 427 KB.
func invoiceBody() []byte {
	var b bytes.Buffer
	b.WriteString(`{"external_id":"FA-1","ecf_type":"31","issue_date":"2026-03-05","currency":"DOP","payment_type":"cash","buyer":{"legal_name":"Comercial Ejemplo, SRL","tax_id":"199000048"},"lines":[`)
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `
    {"line_id":"line-%04d", "description":"Detergente líquido concentrado para uso industrial, presentación de cinco galones, lote %04d", "sku":"DET-5GL-%04d", "unit":"galón", "item_kind":"product", "billing_indicator":1, "unit_code":43, "quantity":"12.75", "unit_price":"87.3456", "discount":{"kind":"percentage","value":"7.5"}, "taxes":[{"code":"ITBIS","label":"ITBIS 18%%","rate_percent":"18"}]}`, i, i, i)
	}
	b.WriteString(`],"declared_totals":{"subtotal":"1113660.00","discount_total":"83520.00","tax_total":"185425.20","total":"1215565.20"}}`)
	return b.Bytes()
}

func BenchmarkBareTokenLoop(b *testing.B) {
	body := invoiceBody()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		dec := jsontext.NewDecoder(bytes.NewBuffer(body))
		for {
			if _, err := dec.ReadToken(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	body := invoiceBody()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := strictjson.Parse(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseAndCanonical(b *testing.B) {
	body := invoiceBody()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		doc, err := strictjson.Parse(body)
		if err != nil {
			b.Fatal(err)
		}
		doc.Canonical()
	}
}
