package printed

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

func TestFontsHaveTheCharactersOfSpanish(t *testing.T) {
	t.Parallel()
	for _, r := range "áéíóúüñÁÉÍÓÚÜÑçÇàèâ¿¡ªº€$£¥¢°²³½¼¾–—…“”‘’«»•·×÷±≤≥≠≈√∞%‰&@#©®™§¶†\u00A0" + string(missing) {
		if !has(r) {
			t.Errorf("the fonts do not have %q", r)
		}
	}
	for _, r := range "漢😀\u0301\x00\U0010FFFF" {
		if has(r) {
			t.Errorf("the fonts have %q", r)
		}
	}
}

func TestCleanForPrint(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                            "",
		"  a \r\n\t b\u00A0c\u2028d ": "a b c d",
		"Pen\u0303a & Cía. <\"'>":     "Peña & Cía. <\"'>",
		"5 m² – 3 m³ … €":             "5 m² – 3 m³ … €",
		"😀 漢字":                        "� ��",
		"👨\u200d👩\uFE0F x":            "�� x",
		"x\u0302":                     "x�",
		"a\u202Eb\uFEFFc\u00ADd":      "abcd",
		"\x00\x1b":                    "��",
		"\xff\xfe":                    "��",
	} {
		if got := clean(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	if diff := cmp.Diff([]string{"a", "", "b"}, cleanLines("\n\n a \r\n \r\n\r\n\rb\n\n")); diff != "" {
		t.Error(diff)
	}
}

func TestCleanKeepsEveryLetterItCanPrint(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		in := rapid.String().Draw(r, "text")
		got := clean(in)
		if again := clean(got); again != got {
			r.Fatalf("%q becomes %q when cleaned again", got, again)
		}
		var want []rune
		for _, c := range norm.NFC.String(in) {
			switch {
			case unicode.IsSpace(c), c == '\u00AD', !has(c) && unicode.In(c, unicode.Cf, unicode.Variation_Selector):
			case has(c):
				want = append(want, c)
			default:
				want = append(want, missing)
			}
		}
		if bare := strings.ReplaceAll(got, " ", ""); bare != string(want) {
			r.Fatalf("%q, want %q", bare, string(want))
		}
	})
}

func TestWrapLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		text := clean(anyText(r, "text", 200))
		w := rapid.Float64Range(5, 100).Draw(r, "width")
		lines := wrap(text, body(), w)
		if bare := strings.ReplaceAll(text, " ", ""); strings.ReplaceAll(strings.Join(lines, ""), " ", "") != bare {
			r.Fatalf("%q became %q", text, lines)
		}
		for _, line := range lines {
			if !body().fits(line, w) && utf8.RuneCountInString(line) > 1 {
				r.Fatalf("%q is wider than %f", line, w)
			}
		}
	})
}

// The test prints texts of many kinds, each as a line, and extracts them again.
func TestTextsAreOnThePage(t *testing.T) {
	t.Parallel()
	texts := []string{
		"& < > \" ' / \\ ( ) [ ] { } % # ~ ^ ` | _ \\( \\) \\n %!s(MISSING) {nb}",
		"áéíóúüñ ÁÉÍÓÚÜÑ ¿? ¡! ªº° €$ ²³ – — … “ ” ‘ ’",
		"n\u0303 a\u0301 e\u0301 u\u0308", "línea\r\nsiguiente\tcolumna", "😀 emoji 漢字 😀",
		strings.Repeat("W", 80), words(500), "</text>]]>&amp;&#10;", "Ωμέγα Привет", "\u202Eabc\u202C",
	}
	any := rapid.String()
	for i := range 60 {
		texts = append(texts, any.Example(i))
	}
	lines := make([]ecf.Line, len(texts))
	for i, text := range texts {
		lines[i] = line(t, fiscal.Taxed18, text, "1", "10")
	}
	d := sample(t, fiscal.FiscalCredit, lines...)
	d.Issuer.TradeName, d.Buyer.LegalName, d.Notes = texts[0], texts[1], texts[4]
	p := page(t, d, "abcdef")
	for f := range formats {
		t.Run(fmt.Sprint(f), func(t *testing.T) {
			t.Parallel()
			// In the order of the page content, so that the columns next to a text
			// do not come between its lines.
			got := squeezed(output(t, "pdftotext", render(t, p, f), "-raw", "-enc", "UTF-8", "-", "-"))
			for _, text := range texts {
				if want := squeezed(clean(text)); !strings.Contains(got, want) {
					t.Errorf("%q is not on the page as %q", text, want)
				}
			}
		})
	}
}

// The layout may look bad, but it must not fail.
func TestTextsBeyondEveryLimitStillPrint(t *testing.T) {
	t.Parallel()
	for _, text := range []string{strings.Repeat("W", 9000), words(9000), strings.Repeat("a ", 4500)} {
		d := sample(t, fiscal.FiscalCredit, line(t, fiscal.Taxed18, text, "1", "10"), line(t, fiscal.Taxed18, text, "1", "10"))
		d.Buyer.LegalName = text
		d.Issuer.LegalName = text
		p := page(t, d, "abcdef")
		p.Extra.Units, p.Extra.Notes = []string{text}, text
		for f := range formats {
			if _, err := p.layout(f, nil); err != nil {
				t.Error(err)
			}
		}
	}
}

// squeezed removes white space and splits ligatures, because the extraction of
// text may change them.
func squeezed(s string) string {
	return strings.Join(strings.Fields(norm.NFKC.String(s)), "")
}
