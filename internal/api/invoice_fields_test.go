package api_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// stringPaths lists the dotted paths of all strings of a value.
func stringPaths(v any, at string) []string {
	join := func(part string) string { return strings.TrimPrefix(at+"."+part, ".") }
	var list []string
	switch v := v.(type) {
	case string:
		list = append(list, at)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = append(list, stringPaths(v[name], join(name))...)
		}
	case []any:
		for i, item := range v {
			list = append(list, stringPaths(item, join(strconv.Itoa(i)))...)
		}
	}
	return list
}

// textFields are the fields of free text and their maximum lengths.
func textFields() map[string]int {
	return map[string]int{
		"external_id": 200, "purchase_order": 120, "payment_terms": 500, "notes": 2000,
		"buyer.legal_name": 200, "buyer.phone": 40, "buyer.address.line1": 200, "buyer.address.line2": 200, "buyer.address.city": 120,
		"buyer.address.province_or_state": 120, "buyer.address.postal_code": 20,
		"lines.0.line_id": 100, "lines.0.description": 500, "lines.0.sku": 100, "lines.0.unit": 80,
		"lines.0.taxes.0.code": 40, "lines.0.taxes.0.label": 120,
	}
}

// fieldText returns a text that a field may have: the code of a tax must name ITBIS.
func fieldText(field, text string) string {
	if field == "lines.0.taxes.0.code" {
		return "ITBIS " + text
	}
	return text
}

func TestUnknownMembersAreRefusedAtEachLevel(t *testing.T) {
	levels := []string{"", "buyer.", "buyer.address.", "lines.0.", "lines.0.discount.", "lines.0.taxes.0.", "declared_totals.", "estimated_withholdings."}
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, level := range levels {
			wantInvalid(t, level, e.create("extra", invoiceBody("X", allFields, setField(level+"extra", 1))), level+"extra unknown_field")
		}
		long := strings.Repeat("n", 5000)
		a := e.create("extra", invoiceBody("X", allFields, setField(long, 1)))
		if len(a.body) > 500 || a.details(t)[0].Code != "unknown_field" {
			t.Errorf("the answer repeats the long name: %d bytes", len(a.body))
		}
		wantInvalid(t, "a name with a NUL", e.create("extra", invoiceBody("X", setField("a\x00b", 1))), "a\x00b unknown_field")
	})
}

func TestMemberNamesAreCaseSensitive(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		wrongCase := func(v map[string]any) { delete(v, "external_id"); v["External_Id"] = "X" }
		wantInvalid(t, "External_Id", e.create("case", invoiceBody("X", wrongCase)), "External_Id unknown_field", "external_id required")
		both := func(v map[string]any) { v["EXTERNAL_ID"] = "Y" }
		wantInvalid(t, "both", e.create("case", invoiceBody("X", both)), "EXTERNAL_ID unknown_field")
	})
}

// PostgreSQL refuses NUL in text and XML refuses control characters. The API must
// refuse both before.
func TestControlCharactersAreRefusedInEveryString(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		v := newInvoice("C-1")
		allFields(v)
		all := stringPaths(v, "")
		if len(all) < 36 {
			t.Fatalf("only %d strings: the invoice no longer has every field", len(all))
		}
		for _, field := range all {
			for _, value := range []string{"9\x00", "\x0b2026-11-14"} {
				a := e.create("ctl", invoiceBody("C-1", allFields, setField(field, value)))
				if a.status != http.StatusUnprocessableEntity || !slices.Contains(problemsOf(t, a), field+" invalid_characters") {
					t.Errorf("%s = %q: want 422 invalid_characters, got %s", field, value, a)
				}
			}
		}
		multiline := []string{"notes", "payment_terms", "lines.0.description"}
		i := 0
		for field := range textFields() {
			// Each control character in one field, and tab and line breaks in every single-line field.
			controls := []rune{rune(i % 0x20), rune((i + 17) % 0x20)}
			i++
			if !slices.Contains(multiline, field) {
				controls = append(controls, '\t', '\n', '\r')
			}
			for _, c := range controls {
				if strings.ContainsRune("\t\n\r", c) && slices.Contains(multiline, field) {
					continue
				}
				a := e.create("ctl", invoiceBody("C-1", allFields, setField(field, "abcde"+string(c))))
				wantInvalid(t, fmt.Sprintf("%s with %U", field, c), a, field+" invalid_characters")
			}
		}
		for _, field := range multiline {
			a := e.create("ok "+field, invoiceBody("ok "+field, allFields, setField(field, "a\tb\r\nc")))
			e.created(a)
		}
	})
}

func TestBidiOverridesAndBlankTextsAreRefused(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		bad := []rune{0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0xfffe, 0xffff}
		i := 0
		for _, field := range slices.Sorted(maps.Keys(textFields())) {
			c := bad[i%len(bad)]
			i++
			a := e.create("bidi", invoiceBody("B", allFields, setField(field, "factura "+string(c)+"001")))
			wantInvalid(t, fmt.Sprintf("%s with %U", field, c), a, field+" invalid_characters")
			for _, blank := range []string{"     ", "\u00a0\u2003\u3000  "} {
				wantInvalid(t, field+" blank", e.create("blank", invoiceBody("B", allFields, setField(field, blank))), field+" blank")
			}
			wantInvalid(t, field+" empty", e.create("blank", invoiceBody("B", allFields, setField(field, ""))), field+" too_short")
		}
		// Other directional marks are allowed.
		e.created(e.create("marks", invoiceBody("marks \u200f\u200e\u061c\u200d", allFields)))
	})
}

func TestNullIsAcceptedOnlyWhereTheContractAllowsIt(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		allowed := []string{
			"estimated_withholdings.income_tax_base_amount", "estimated_withholdings.income_tax_rate_percent",
			"estimated_withholdings.itbis_base_amount", "estimated_withholdings.itbis_rate_percent",
		}
		for _, field := range allowed {
			e.created(e.create(field, invoiceBody(field, allFields, setField(field, nil))))
		}
		e.created(e.create("due", invoiceBody("due", setField("due_date", nil))))
		wantInvalid(t, "null is absent", e.create("due2", invoiceBody("due2", allFields, setField("due_date", nil))), "due_date required")
		e.created(e.create("discount", invoiceBody("discount", setField("lines.0.discount", nil))))
		wantInvalid(t, "discount", e.create("d", invoiceBody("d", removeField("lines.0.discount"))), "lines.0.discount required")

		for _, field := range []string{
			"external_id", "ecf_type", "issue_date", "currency", "language", "payment_type", "buyer", "lines", "declared_totals",
			"purchase_order", "payment_terms", "notes", "estimated_withholdings", "buyer.legal_name", "buyer.email",
			"buyer.phone", "buyer.address", "buyer.address.line2", "lines.0", "lines.0.sku", "lines.0.unit", "lines.0.billing_indicator",
			"lines.0.unit_code", "lines.0.quantity", "lines.0.taxes", "lines.0.taxes.0", "lines.0.discount.value",
			"declared_totals.total", "estimated_withholdings.itbis_amount",
		} {
			a := e.create("null", invoiceBody("null", allFields, setField(field, nil)))
			if got := problemsOf(t, a); a.status != http.StatusUnprocessableEntity || !slices.Contains(got, field+" invalid_type") {
				t.Errorf("%s null: %s", field, a)
			}
		}
	})
}

func TestInvoiceFieldsHaveLimits(t *testing.T) {
	taxes := func(n int) func(map[string]any) {
		return func(v map[string]any) {
			tax := v["lines"].([]any)[0].(map[string]any)["taxes"].([]any)[0]
			setField("lines.0.taxes", slices.Repeat([]any{tax}, n))(v)
		}
	}
	emoji := strings.Repeat("🧾", 200)
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		wantInvalid(t, "no line", e.create("b", invoiceBody("b", setField("lines", []any{}))), "lines too_few_items")
		wantInvalid(t, "1001 lines", e.create("b", invoiceBody("b", withLines(1001))), "lines too_many_items")
		wantInvalid(t, "13 taxes", e.create("b", invoiceBody("b", taxes(13))), append([]string{"lines.0.taxes too_many_items"}, conflicts(12)...)...)
		wantInvalid(t, "201 characters", e.create("b", invoiceBody(strings.Repeat("x", 201))), "external_id too_long")
		wantInvalid(t, "201 emoji", e.create("b", invoiceBody(emoji+"🧾")), "external_id too_long")
		if n := e.stored(1); n != 0 {
			t.Fatalf("%d invoices are stored", n)
		}
		e.created(e.create("1000", invoiceBody("1000", withLines(1000), setField("buyer.tax_id", "199000021"))))
		e.created(e.create("200", invoiceBody(strings.Repeat("x", 200))))
		if inv := e.created(e.create("emoji", invoiceBody(emoji))); inv.ExternalID != emoji {
			t.Errorf("the external id came back as %q", inv.ExternalID)
		}
		for field, limit := range textFields() {
			if field == "external_id" {
				continue
			}
			wantInvalid(t, field, e.create("long", invoiceBody("long", allFields, setField(field, strings.Repeat("ñ", limit+1)))), field+" too_long")
			longest := string([]rune(fieldText(field, strings.Repeat("ñ", limit)))[:limit])
			e.created(e.create("fits "+field, invoiceBody("fits "+field, allFields, setField(field, longest))))
		}
	})
}

// conflicts returns the problems of repeated ITBIS entries.
func conflicts(n int) []string {
	var list []string
	for i := 1; i < n; i++ {
		list = append(list, "lines.0.taxes."+strconv.Itoa(i)+".code tax_conflict")
	}
	return list
}

func TestDiscountsAreValidated(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, tt := range []struct {
			discount any
			want     []string
		}{
			{map[string]any{"kind": "amount", "value": "10"}, []string{"lines.0.discount.kind invalid_enum"}},
			{map[string]any{"kind": "Percentage", "value": "10"}, []string{"lines.0.discount.kind invalid_enum"}},
			{map[string]any{"kind": "percentage", "value": "100.01"}, []string{"lines.0.discount.value out_of_range"}},
			{map[string]any{"kind": "percentage", "value": 10}, []string{"lines.0.discount.value invalid_decimal"}},
			{map[string]any{"kind": "percentage"}, []string{"lines.0.discount.value required"}},
			{map[string]any{}, []string{"lines.0.discount.kind required", "lines.0.discount.value required"}},
			{[]any{}, []string{"lines.0.discount invalid_type"}},
			{"10", []string{"lines.0.discount invalid_type"}},
			{0, []string{"lines.0.discount invalid_type"}},
			{false, []string{"lines.0.discount invalid_type"}},
		} {
			wantInvalid(t, fmt.Sprint(tt.discount), e.create("d", invoiceBody("d", setField("lines.0.discount", tt.discount))), tt.want...)
		}
		free := func(v map[string]any) {
			v["lines"].([]any)[0].(map[string]any)["discount"] = map[string]any{"kind": "percentage", "value": "100"}
			v["declared_totals"] = map[string]any{"subtotal": "500", "discount_total": "500", "tax_total": "0", "total": "0"}
		}
		e.created(e.create("free", invoiceBody("free", free)))
	})
}

func TestDatesMustExist(t *testing.T) {
	oneEngine(t, envOptions{}, func(t *testing.T, e *env) {
		for _, date := range []string{
			"2026-02-30", "2026-2-3", "2026-13-01", "2026-00-10", "2026-01-00", "2025-02-29", "0000-01-01", "26-01-01", "2026-01-01T00:00:00Z",
			"2026/01/01", "01-02-2026", "+2026-01-1", " 2026-01-01", "", "２０２６-01-01", "2026-01-1 ",
		} {
			wantInvalid(t, date, e.create("date", invoiceBody("date", setField("issue_date", date))), "issue_date invalid_date")
			wantInvalid(t, date, e.create("date", invoiceBody("date", setField("due_date", date))), "due_date invalid_date")
		}
		wantInvalid(t, "due before issue", e.create("date", invoiceBody("date", setField("due_date", "2026-11-13"))), "due_date date_order")
		e.created(e.create("same", invoiceBody("same", setField("due_date", "2026-11-14"))))
		e.created(e.create("leap", invoiceBody("leap", setField("issue_date", "2024-02-29"))))
		// The sandbox accepts every date that a document can have.
		e.created(e.create("future", invoiceBody("future", setField("issue_date", "2099-12-31"))))
		e.created(e.create("past", invoiceBody("past", setField("issue_date", "1900-01-01"))))
	})
}

// What is wrong with a body has the same answer in every environment, in plain words.
func TestABodyIsRefusedAlikeInEveryEnvironment(t *testing.T) {
	t.Parallel()
	sandbox := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	production := newEnv(t, storetest.Address(t, "sqlite"), envOptions{environment: fiscal.Production})
	credit := setField("payment_type", "credit")
	for name, body := range map[string][]byte{
		"due on credit after the years":  invoiceBody("A", credit, setField("due_date", "2100-01-01")),
		"due on cash after the years":    invoiceBody("A", setField("due_date", "2100-01-01")),
		"due at the end of the calendar": invoiceBody("A", credit, setField("due_date", "9999-12-31")),
		"issued before the years":        invoiceBody("A", setField("issue_date", "1899-12-31")),
		"issued in the first year":       invoiceBody("A", setField("issue_date", "0001-01-01")),
		"issued after the years":         invoiceBody("A", setField("issue_date", "2100-01-01"), setField("due_date", "2100-01-01")),
		"an unknown tax":                 invoiceBody("A", setField("lines.0.taxes.0.code", "OTRO")),
		"a unit that does not exist":     invoiceBody("A", setField("lines.0.unit_code", 59)),
	} {
		here, there := sandbox.create(name, body), production.create(name, body)
		if here.status != http.StatusUnprocessableEntity || !cmp.Equal(here.details(t), there.details(t)) {
			t.Errorf("%s:\n%s\nin production\n%s", name, here, there)
		}
		for _, d := range here.details(t) {
			if d.Code == "invalid_date" && (!strings.Contains(d.Message, "1900 to 2099") || strings.Contains(here.String(), "dd-MM-yyyy")) {
				t.Errorf("%s: %s", name, d.Message)
			}
		}
	}
}

// The day changes at 04:00 UTC, midnight in Santo Domingo. A valid date reaches the
// readiness check, which fails here.
func TestProductionRefusesDatesInTheFuture(t *testing.T) {
	oneEngine(t, envOptions{environment: fiscal.Production}, func(t *testing.T, e *env) {
		for _, tt := range []struct {
			at, date string
			future   bool
		}{
			{"2026-11-15T03:59:59.999Z", "2026-11-14", false},
			{"2026-11-15T03:59:59.999Z", "2026-11-15", true},
			{"2026-11-15T04:01:00Z", "2026-11-15", false},
			{"2026-11-15T04:00:00Z", "2026-11-15", false},
			{"2026-11-15T04:01:00Z", "2026-11-16", true},
			{"2027-01-01T03:59:00Z", "2027-01-01", true},
			{"2027-01-01T04:01:00Z", "2027-01-01", false},
			{"2027-01-01T04:01:00Z", "1999-01-01", false},
		} {
			now, err := time.Parse(time.RFC3339, tt.at)
			e.must(err)
			e.clock.set(now)
			a := e.create("k "+tt.at+tt.date, invoiceBody(tt.at+tt.date, setField("issue_date", tt.date)))
			if tt.future {
				wantInvalid(t, tt.at, a, "issue_date date_in_future")
				continue
			}
			want := []string{"certificate certificate.missing", "sequence sequence.missing"}
			if got := problemsOf(t, a); a.status != http.StatusConflict || a.code() != "operational_readiness_failed" || !slices.Equal(got, want) {
				t.Errorf("%s issued at %s: want 409 with %q, got %s", tt.date, tt.at, want, a)
			}
		}
		if n := e.stored(1); n != 0 {
			t.Errorf("%d invoices are stored", n)
		}
	})
}

func TestAtMostAHundredProblemsAreListed(t *testing.T) {
	manyLines := func(n int, member string) []byte {
		line := `{"line_id":"1","description":"x","item_kind":"product","quantity":"1","unit_price":"1","discount":null,"taxes":[],` + member + `}`
		count := strconv.Itoa(n)
		totals := map[string]any{"subtotal": count, "discount_total": "0", "tax_total": "0", "total": count}
		empty := invoiceBody("E", setField("lines", []any{}), setField("declared_totals", totals))
		return []byte(strings.Replace(string(empty), `"lines":[]`, `"lines":[`+strings.Repeat(line+",", n-1)+line+`]`, 1))
	}
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		var want []string
		for i := range 100 {
			want = append(want, "lines."+strconv.Itoa(i)+".x unknown_field")
		}
		first := e.create("many", manyLines(500, `"x":1`))
		wantInvalid(t, "500 problems", first, append(want, "too_many_errors")...)
		last := first.details(t)[100]
		if !strings.Contains(last.Message, "400") {
			t.Errorf("the last detail does not say how many were left out: %+v", last)
		}
		// The list does not depend on the order of the members.
		want = want[:0]
		for i := range 50 {
			want = append(want, "lines."+strconv.Itoa(i)+".x unknown_field", "lines."+strconv.Itoa(i)+".y unknown_field")
		}
		for _, members := range []string{`"x":1,"y":1`, `"y":1,"x":1`} {
			for range 2 {
				wantInvalid(t, members, e.create("many", manyLines(1000, members)), append(want, "too_many_errors")...)
			}
		}
		var all []string
		for i := range 100 {
			all = append(all, "lines."+strconv.Itoa(i)+".x unknown_field")
		}
		wantInvalid(t, "exactly 100", e.create("many", manyLines(100, `"x":1`)), all...)
	})
}

// payloads are texts that have a meaning for databases, XML, shells or browsers.
func payloads() []string {
	return []string{
		`'; DROP TABLE invoices; --`, `" OR "1"="1`, `$1::text || pg_sleep(9)`, `\'); SELECT 1; --`,
		`<script>alert(1)</script>`, `]]><!--&lt;&#0;&x;`, `<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>`,
		`=cmd|' /C calc'!A0`, `@SUM(1+1)*cmd`, `%s%n%x%p%!d(MISSING)`, `{{7*7}}${jndi:ldap://x}`, `../../../etc/passwd`, `C:\..\x\u0041`,
		"a\u2028b\u2029c", "e\u0301 \u00e9", "🏳️‍🌈 \U0010fffd", "null", "\u007f\u0085\ufeff",
	}
}

func TestTextsAreStoredVerbatim(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		db := e.database(t)
		for i, payload := range payloads() {
			sent := newInvoice("")
			allFields(sent)
			for field, limit := range textFields() {
				text := fieldText(field, payload)
				for utf8.RuneCountInString(text) < 5 {
					text += payload // a phone has at least five characters
				}
				if r := []rune(text); len(r) > limit {
					text = strings.TrimSpace(string(r[:limit]))
				}
				setField(field, text)(sent)
			}
			external := payload + " " + strconv.Itoa(i)
			sent["external_id"] = external
			b, err := json.Marshal(sent)
			e.must(err)
			inv := e.created(e.create("p"+strconv.Itoa(i), b))
			query := "?external_id=" + url.QueryEscape(external)
			var read resource
			var list, documents []resource
			e.send(request{path: "invoices/" + inv.ID}).data(t, &read)
			e.send(request{path: "invoices" + query}).data(t, &list)
			e.send(request{path: "fiscal-documents" + query}).data(t, &documents)
			if len(list) != 1 || len(documents) != 1 {
				t.Errorf("%q: %d invoices and %d documents found", payload, len(list), len(documents))
				continue
			}
			for _, got := range []string{inv.ExternalID, read.ExternalID, list[0].ExternalID, documents[0].ExternalID} {
				if got != external {
					t.Errorf("sent %q, got %q", external, got)
				}
			}
			var kept []byte
			e.must(db.QueryRowContext(t.Context(), `SELECT request FROM documents WHERE id = $1`, inv.ID).Scan(&kept))
			var there map[string]any
			e.must(json.Unmarshal(kept, &there))
			var want map[string]any
			e.must(json.Unmarshal(b, &want))
			if diff := cmp.Diff(want, there); diff != "" {
				t.Errorf("%q was changed (-sent +stored):\n%s", payload, diff)
			}
		}
	})
}

// rowCount counts the rows of a table.
func rowCount(t *testing.T, db *sql.DB, table string) int {
	t.Helper()
	var n int
	must(t, db.QueryRowContext(context.WithoutCancel(t.Context()), `SELECT count(*) FROM `+table).Scan(&n))
	return n
}
