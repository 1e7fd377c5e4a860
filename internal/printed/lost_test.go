package printed

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// invoiceWith returns a small invoice with a note and a description.
func invoiceWith(t testing.TB, notes, description string) *fiscal.Invoice {
	t.Helper()
	raw, err := strictjson.Encode(map[string]any{
		"external_id": "FA-1", "ecf_type": "32", "issue_date": "2026-03-05", "currency": "DOP", "payment_type": "cash",
		"buyer": map[string]any{"legal_name": "Jane"}, "notes": notes,
		"lines": []any{map[string]any{
			"line_id": "1", "description": description, "item_kind": "product", "quantity": "1", "unit_price": "100", "discount": nil, "taxes": []any{},
		}},
		"declared_totals": map[string]any{"subtotal": "100.00", "discount_total": "0.00", "tax_total": "0.00", "total": "100.00"},
	})
	if err != nil {
		t.Fatal(err)
	}
	doc, err := strictjson.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	inv, err := fiscal.New(fiscal.DecodeRequest(doc))
	if err != nil {
		t.Fatal(err)
	}
	return inv
}

func TestLostNamesEveryReplacedCharacter(t *testing.T) {
	t.Parallel()
	const shows = ": the printed page shows � for characters that its font does not have: "
	for _, c := range []struct {
		notes, description string
		want               []string
	}{
		{"Año 2026 – 20 °C, 3 m², ½ lb, € £ ¥ ¢ ™ ® • — “x” × ÷ ≤ ≥ …\n", "Pen\u0303a", nil},
		{"😀 a 😀 漢", "b", []string{"notes" + shows + "U+6F22, U+1F600"}},
		{"a", "👨\u200d👩\uFE0F", []string{"lines.0.description" + shows + "U+1F468, U+1F469"}},
		{"一二三四五六七", "b", []string{"notes" + shows + "U+4E00, U+4E03, U+4E09, U+4E8C, U+4E94, 2 more"}},
	} {
		if diff := cmp.Diff(strings.Join(c.want, "\n"), lang.Join(Lost(invoiceWith(t, c.notes, c.description)), "\n").String()); diff != "" {
			t.Errorf("%q, %q: %s", c.notes, c.description, diff)
		}
	}
}

// A text is reported exactly when the page shows another character for one of its
// own.
func TestLostReportsWhatCleanReplaces(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		in := strings.ReplaceAll(anyText(r, "text", 60), string(missing), "")
		if got, want := len(replaced(in)), strings.Count(clean(in), string(missing)); got != want {
			r.Fatalf("%q: %d characters, and the page replaces %d", in, got, want)
		}
	})
}

// Texts of Latin-1 are not looked at one character after the other, so the fonts must have
// them all.
func TestFontsHaveLatin1(t *testing.T) {
	t.Parallel()
	for r := range rune(0x200) {
		if isLatin1(string(r)) && printableRune(r) != r && r != ' ' {
			t.Errorf("%q is printed as %q", r, printableRune(r))
		}
	}
}
