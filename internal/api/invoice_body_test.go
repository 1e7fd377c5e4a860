package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// problemsOf lists the problems of an answer as "field code", in their order.
func problemsOf(t *testing.T, a response) []string {
	t.Helper()
	list := []string{}
	for _, p := range a.details(t) {
		list = append(list, strings.TrimSpace(p.Field+" "+p.Code))
		if p.Message == "" {
			t.Errorf("the problem of %q has no message", p.Field)
		}
	}
	return list
}

// wantInvalid checks that an invoice was refused with exactly these problems, each
// "field code".
func wantInvalid(t *testing.T, name string, a response, want ...string) {
	t.Helper()
	if a.status != http.StatusUnprocessableEntity || a.code() != "validation_error" {
		t.Errorf("%s: want 422 validation_error, got %s", name, a)
		return
	}
	if diff := cmp.Diff(want, problemsOf(t, a)); diff != "" {
		t.Errorf("%s: problems (-want +got):\n%s", name, diff)
	}
}

// scope is the environment and the taxpayer of the credential.
func (e *env) scope() store.Scope {
	return store.Scope{Environment: e.opt.environment, TaxpayerID: e.taxpayer}
}

// stored counts the invoices of the taxpayer, up to the given number.
func (e *env) stored(atMost int) int {
	e.t.Helper()
	list, err := e.store.ListInvoices(context.WithoutCancel(e.t.Context()), e.scope(), store.InvoiceFilter{Limit: atMost})
	e.must(err)
	return len(list)
}

// withLines gives an invoice n equal lines and the matching totals.
func withLines(n int) func(map[string]any) {
	return func(v map[string]any) {
		line := v["lines"].([]any)[0]
		v["lines"] = slices.Repeat([]any{line}, n)
		v["declared_totals"] = map[string]any{
			"subtotal": strconv.Itoa(500 * n), "discount_total": "0", "tax_total": strconv.Itoa(90 * n), "total": strconv.Itoa(590 * n),
		}
	}
}

// setField changes the value at a dotted path.
func setField(path string, value any) func(map[string]any) {
	return func(v map[string]any) {
		parts := strings.Split(path, ".")
		var at any = v
		for i, part := range parts {
			last := i == len(parts)-1
			switch here := at.(type) {
			case map[string]any:
				if last {
					here[part] = value
				}
				at = here[part]
			case []any:
				n, err := strconv.Atoi(part)
				if err != nil {
					panic(err)
				}
				if last {
					here[n] = value
				}
				at = here[n]
			}
		}
	}
}

// removeField removes a member.
func removeField(path string) func(map[string]any) {
	return func(v map[string]any) {
		parent, name := any(v), path
		if i := strings.LastIndex(path, "."); i >= 0 {
			name = path[i+1:]
			for part := range strings.SplitSeq(path[:i], ".") {
				switch here := parent.(type) {
				case map[string]any:
					parent = here[part]
				case []any:
					n, err := strconv.Atoi(part)
					if err != nil {
						panic(err)
					}
					parent = here[n]
				}
			}
		}
		delete(parent.(map[string]any), name)
	}
}

// A body that is not one unambiguous JSON text is refused before validation, and
// nothing is stored.
func TestBodiesThatAreNotJSONAreRefused(t *testing.T) {
	good := string(invoiceBody("J-1"))
	fourLines := string(invoiceBody("J-2", withLines(4)))
	i := strings.LastIndex(fourLines, `"code":"ITBIS"`)
	inTax := fourLines[:i] + `"code":"ITBIS",` + fourLines[i:]
	utf16BE, utf16LE := []byte{0xfe, 0xff}, []byte{0xff, 0xfe}
	for _, c := range utf16.Encode([]rune(good)) {
		utf16BE = append(utf16BE, byte(c>>8), byte(c))
		utf16LE = append(utf16LE, byte(c), byte(c>>8))
	}
	text := func(s string) string { return strings.Replace(good, "Café molido", s, 1) }
	tests := []struct{ name, body string }{
		{"nothing", ""},
		{"spaces", " \t\r\n  "},
		{"byte order mark", "\xef\xbb\xbf" + good},
		{"UTF-16 big endian with mark", string(utf16BE)},
		{"UTF-16 little endian with mark", string(utf16LE)},
		{"UTF-16 without mark", string(utf16LE[2:])},
		{"text after the value", `{}x`},
		{"a letter after a whole invoice", good + "x"},
		{"two documents", `{}{}`},
		{"two invoices on two lines", good + "\n" + good},
		{"trailing comma in an object", good[:len(good)-1] + ",}"},
		{"trailing comma in an array", strings.Replace(good, "}],", "},],", 1)},
		{"comment", "/* x */" + good},
		{"comment at the end", good + " // x"},
		{"not a number", strings.Replace(good, `"DOP"`, "NaN", 1)},
		{"infinity", strings.Replace(good, `"DOP"`, "-Infinity", 1)},
		{"number with leading zero", strings.Replace(good, `"DOP"`, "01", 1)},
		{"single quotes", strings.Replace(good, `"DOP"`, "'DOP'", 1)},
		{"raw line break in a string", text("a\nb")},
		{"unknown escape", text(`a\x41`)},
		{"cut short", good[:len(good)-1]},
		{"NUL after the value", good + "\x00"},
		{"duplicate member at the top", `{"external_id":"other",` + good[1:]},
		{"duplicate member spelt with an escape", `{"external\u005fid":"other",` + good[1:]},
		{"duplicate member in a tax of the last line", inTax},
		{"duplicate of an unknown member", `{"x":1,"x":1}`},
		{"byte ff in a string", text("a\xffb")},
		{"overlong encoding", text("a\xc0\x80b")},
		{"surrogate in UTF-8", text("a\xed\xa0\x80b")},
		{"lone high surrogate", text(`\ud800`)},
		{"lone low surrogate", text(`\udc00`)},
		{"surrogates the wrong way round", text(`\udc00\ud800`)},
		{"invalid UTF-8 in a name", "{\"\xff\":1}"},
		{"nesting of 17", strings.Repeat("[", 17) + strings.Repeat("]", 17)},
		{"nesting of 17 inside an invoice", strings.Replace(good, `"DOP"`, strings.Repeat("[", 16)+strings.Repeat("]", 16), 1)},
	}
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, tt := range tests {
			a := e.create("json", []byte(tt.body))
			if a.status != http.StatusBadRequest || a.code() != "invalid_json" {
				t.Errorf("%s: want 400 invalid_json, got %s", tt.name, a)
			}
			if len(a.body) > 600 {
				t.Errorf("%s: the answer has %d bytes; it must not repeat what was sent", tt.name, len(a.body))
			}
		}
		if n := e.stored(1); n != 0 {
			t.Errorf("%d invoices are stored", n)
		}
		// The key is still free.
		e.created(e.create("json", []byte(good)))
	})
}

// Sixteen levels of nesting are the documented limit.
func TestNestingOfSixteenLevelsIsParsed(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		a := e.create("k", []byte(strings.Repeat("[", 16)+strings.Repeat("]", 16)))
		wantInvalid(t, "16 deep", a, "invalid_type")
	})
}

// The memory that a hostile body needs is proportional to its size. The test is
// not parallel, because it measures the whole process.
func TestHostileBodiesUseLittleMemory(t *testing.T) {
	e := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	const size = 100_000
	bodies := map[string][]byte{
		"arrays":          bytes.Repeat([]byte("["), size),
		"objects":         bytes.Repeat([]byte(`{"a":`), size/5),
		"closed arrays":   append(bytes.Repeat([]byte("["), size/2), bytes.Repeat([]byte("]"), size/2)...),
		"unknown members": hostileObject(size),
		"flat array":      append(append([]byte("["), bytes.Repeat([]byte("0,"), size/2)...), "0]"...),
	}
	e.create("warm", invoiceBody("warm"))
	for name, b := range bodies {
		const rounds = 4
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range rounds {
			a := e.create("deep", b)
			if a.status >= 500 || a.status < 400 {
				t.Errorf("%s: got %s", name, a)
			}
			if strings.Contains(name, "arrays") && a.code() != "invalid_json" {
				t.Errorf("%s: want invalid_json, got %s", name, a)
			}
		}
		runtime.ReadMemStats(&after)
		// The limit includes the client and the checks of the test environment.
		if each := (after.TotalAlloc - before.TotalAlloc) / rounds; each > 100*size {
			t.Errorf("%s: a request of %d bytes allocated %d bytes", name, size, each)
		}
	}
}

// hostileObject returns an object of unknown members.
func hostileObject(size int) []byte {
	b := []byte("{")
	for i := 0; len(b) < size; i++ {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `"m`+strconv.Itoa(i)+`":0`...)
	}
	return append(b, '}')
}

func TestBodyMustBeAnObject(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, b := range []string{"null", "[]", `"x"`, "7", "true", "-0.5e1", `[{}]`} {
			wantInvalid(t, b, e.create("top", []byte(b)), "invalid_type")
		}
	})
}

func TestDecimalsHaveOneSpelling(t *testing.T) {
	wrong := []any{
		1000, 0, 1.5, json.Number("1e3"), "1e3", "1E3", "+1", "-1", "-0", "01", "00", ".5", "5.", ".", "", " ", "1,000", "1_000",
		"1 ", " 1", "1\u00a0", "٣", "１", "0x10", "Inf", "NaN", "1.2.3", "1/2", "1234567890123456789", "0.1234567890123456789",
		strings.Repeat("9", 33),
	}
	fields := []string{
		"lines.0.quantity", "lines.0.unit_price", "lines.0.taxes.0.rate_percent", "lines.0.discount.value",
		"declared_totals.subtotal", "declared_totals.discount_total", "declared_totals.tax_total", "declared_totals.total",
		"estimated_withholdings.income_tax_amount", "estimated_withholdings.itbis_amount",
		"estimated_withholdings.income_tax_base_amount", "estimated_withholdings.income_tax_rate_percent",
		"estimated_withholdings.itbis_base_amount", "estimated_withholdings.itbis_rate_percent",
	}
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for i, value := range wrong {
			// Each spelling is tried in one of the fields.
			field := fields[i%len(fields)]
			wantInvalid(t, field, e.create("dec", invoiceBody("D", allFields, setField(field, value))), field+" invalid_decimal")
		}
		for _, field := range fields {
			wantInvalid(t, field, e.create("dec", invoiceBody("D", allFields, setField(field, "1e3"))), field+" invalid_decimal")
			wantInvalid(t, field, e.create("dec", invoiceBody("D", allFields, setField(field, true))), field+" invalid_type")
		}
		for field, value := range map[string]string{"lines.0.quantity": "2.001", "lines.0.unit_price": "250.00001"} {
			wantInvalid(t, "too many decimals", e.create("dec", invoiceBody("D", allFields, setField(field, value))), field+" invalid_decimal")
		}
		// Trailing zeros do not count as decimals.
		e.created(e.create("dec", invoiceBody("D", allFields, setField("lines.0.quantity", "2.000000"), setField("lines.0.unit_price", "250.000000"))))
	})
}

func TestLongDecimalsAreRefused(t *testing.T) {
	long := strings.Repeat("9", 100_000)
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, value := range []any{long, "0." + long, json.Number(long), json.Number("1e" + long[:9])} {
			a := e.create("long", invoiceBody("L", setField("lines.0.quantity", value)))
			wantInvalid(t, "100 000 digits", a, "lines.0.quantity invalid_decimal")
			if len(a.body) > 1000 {
				t.Errorf("the answer is too long: %d bytes", len(a.body))
			}
		}
		// The same in a field of JSON numbers, where a short exponent makes a large number.
		for _, value := range []string{long, "1e" + long[:9], "1e-" + long[:9], "0." + long, "-1", "1.5", "1e400"} {
			a := e.create("long", invoiceBody("L", setField("lines.0.unit_code", json.Number(value))))
			wantInvalid(t, "unit_code", a, "lines.0.unit_code invalid_enum")
		}
		for i, value := range []string{"43", "43.0", "4.3e1", "430E-1", "43." + strings.Repeat("0", 1000)} {
			id := "unit-" + strconv.Itoa(i)
			e.created(e.create(id, invoiceBody(id, setField("lines.0.unit_code", json.Number(value)))))
		}
	})
}

// allFields changes an invoice to one of type 31 with every field of the contract.
func allFields(v map[string]any) {
	var all map[string]any
	if err := json.Unmarshal([]byte(`{
		"ecf_type": "31", "issue_date": "2026-11-14", "due_date": "2026-12-14", "currency": "DOP", "language": "en", "payment_type": "credit",
		"buyer": {"legal_name": "Ferretería El Tornillo Azul, SRL", "tax_id": "199000021", "email": "pagos@tornillo.example", "phone": "809-555-0100",
			"address": {"line1": "Calle Uno 1", "line2": "Piso 2", "city": "Santiago", "province_or_state": "Santiago", "postal_code": "51000", "country_code": "DO"}},
		"lines": [{"line_id": "1", "description": "Café molido", "sku": "CAF-1", "unit": "libra", "item_kind": "product", "billing_indicator": 1, "unit_code": 43,
			"quantity": "2", "unit_price": "250.00", "discount": {"kind": "percentage", "value": "10"},
			"taxes": [{"code": "ITBIS", "label": "ITBIS 18%", "rate_percent": "18"}]}],
		"declared_totals": {"subtotal": "500.00", "discount_total": "50.00", "tax_total": "81.00", "total": "531.00"},
		"purchase_order": "OC-7", "payment_terms": "30 días", "notes": "Gracias",
		"estimated_withholdings": {"income_tax_amount": "45.00", "income_tax_base_amount": "450.00", "income_tax_rate_percent": "10",
			"itbis_amount": "24.30", "itbis_base_amount": "81.00", "itbis_rate_percent": "30"}
	}`), &all); err != nil {
		panic(err)
	}
	clearExcept(v, "external_id")
	for name, value := range all {
		v[name] = value
	}
}

func clearExcept(v map[string]any, keep string) {
	for name := range v {
		if name != keep {
			delete(v, name)
		}
	}
}

func TestEveryFieldOfTheContractIsAccepted(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		inv := e.created(e.create("full", invoiceBody("F-1", allFields)))
		if inv.ECFType != string(fiscal.FiscalCredit) || inv.Totals["total"] != "531.00" || inv.Totals["balance"] != "531.00" {
			t.Errorf("got %+v", inv)
		}
	})
}
