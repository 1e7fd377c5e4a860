package cause

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

func TestCauseIsReadInEitherLanguage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		cause  Cause
		en, es string
	}{
		{"", "", ""},
		{New(Registered), "registered", "registrado"},
		{New(Verdict, ""), "the authority's verdict", "veredicto de la DGII"},
		{
			New(Verdict, Words([]string{"[1] a", "[2] b", "[3] c", "[4] d", "[5] e"})),
			"the authority's verdict: [1] a; [2] b; [3] c; and 2 more", "veredicto de la DGII: [1] a; [2] b; [3] c; y 2 más",
		},
		{
			New(NumberForeign, Words([]string{"[1] a"})),
			"The authority holds another document under our number. The number range is fenced. [1] a",
			"La DGII tiene otro comprobante con nuestra secuencia. El rango quedó bloqueado. [1] a",
		},
		{New(ClockNode, "5s"), "the clock of this node is 5s ahead of the database's: set the clock of this machine", "el reloj de este servidor adelanta 5s al de la base de datos: corrija la hora de este servidor"},
		{
			New(NotReady, "certificate.missing", lang.Messagef("no certificate", "sin certificado")),
			"certificate.missing: no certificate", "sin certificado (certificate.missing)",
		},
		{
			New(ClockUnconfirmed, New(CallUnavailable, "Recepcion", "HTTP 503")),
			"the authority has not confirmed the clock of this machine yet: the tax authority does not answer (Recepcion): HTTP 503",
			"la DGII todavía no confirmó la hora de este servidor: la DGII no responde (Recepcion): HTTP 503",
		},
		{
			New(RangeEnded, "2026-12-31"),
			"held: the number range ended on 2026-12-31, and the authority would reject the number: `fiscalhub work reissue` gives the document a new one, `fiscalhub work resend` sends it all the same",
			"retenido: la secuencia venció el 2026-12-31, y la DGII la rechazaría: `fiscalhub work reissue` le da una secuencia nueva, `fiscalhub work resend` lo envía de todos modos",
		},
		{"a sentence of an earlier release", "a sentence of an earlier release", "a sentence of an earlier release"},
		{"held: an old sentence", "held: an old sentence", "held: an old sentence"},
		{New(Kind{code: "of_a_later_release"}, "a"), "of_a_later_release: a", "of_a_later_release: a"},
	} {
		if en, es := test.cause.In(lang.English), test.cause.In(lang.Spanish); en != test.en || es != test.es {
			t.Errorf("got  %q and %q\nwant %q and %q", en, es, test.en, test.es)
		}
	}
}

// What an operator or the authority wrote is shown as it is, whatever it looks like.
func TestArgumentsAreNeverParsed(t *testing.T) {
	t.Parallel()
	for _, words := range []string{`{"kind":"registered"}`, "held: no", "5s ahead of 100 %s", "a\x00b", "[4] x: y", "ñ «»"} {
		c := New(OperatorDecided, words)
		if got := c.In(lang.English); got != "decided by an operator: "+words || c.Held() || c.Kind() != OperatorDecided {
			t.Errorf("%q is read as %q", words, got)
		}
		if strings.ContainsRune(string(c), 0) {
			t.Errorf("%q cannot be stored", c)
		}
	}
}

func TestHeldCausesNeedAPerson(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds() {
		if c := New(kind, "a"); c.Held() != kind.person || c.Kind() != kind {
			t.Errorf("%s: held is %v, and the kind %s", kind.code, c.Held(), c.Kind().code)
		}
	}
	if old := Cause("held: an old sentence"); !old.Held() || old.Kind() != Text || old.Why(lang.Spanish) != "an old sentence" {
		t.Error("a held cause of an earlier release is not read")
	}
	if got := New(RangeEnded, "2026-12-31").Why(lang.Spanish); got != "la secuencia venció el 2026-12-31, y la DGII la rechazaría" {
		t.Errorf("why: %q", got)
	}
}

type caused struct{ error }

func (caused) Cause() Cause { return New(NoLookUp) }

func TestErrorCarriesItsCause(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		want Cause
	}{
		{fmt.Errorf("sign: %w", New(CertificateExpired)), New(CertificateExpired)},
		{errors.Join(caused{errors.New("x")}, nil), New(NoLookUp)},
		{lang.Errorf("no file", "no hay archivo"), New(Text, lang.Messagef("no file", "no hay archivo"))},
		{errors.New("disk full"), New(Text, "disk full")},
	} {
		if got := Of(test.err); got != test.want {
			t.Errorf("%v: got %s, want %s", test.err, got, test.want)
		}
	}
	if err := error(New(CertificateExpired)); err.Error() != "the certificate has expired" || !errors.Is(fmt.Errorf("a: %w", err), New(CertificateExpired)) {
		t.Error("a cause is no error that can be compared")
	}
}

// Every kind is in the list, so that it is read, and has a code of its own.
func TestEveryKindIsListed(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("kind.go")
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, m := range regexp.MustCompile(`Kind\{code: "(\w+)", text: lang`).FindAllSubmatch(source, -1) {
		codes = append(codes, string(m[1]))
	}
	var listed []string
	for _, kind := range kinds() {
		listed = append(listed, kind.code)
	}
	slices.Sort(codes)
	slices.Sort(listed)
	if len(codes) < 40 || !slices.Equal(slices.Compact(codes), listed) {
		t.Errorf("the source has the kinds %v, the list %v", codes, listed)
	}
}

// The sentences are those that earlier releases have stored.
func TestSentencesOfEarlierReleasesAreReadInEitherLanguage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ sentence, en, es string }{
		{"registered", "", "registrado"},
		{"scenario rejected", "", "escenario de prueba rejected"},
		{"the authority's verdict: [613] a; [614] b: c", "", "veredicto de la DGII: [613] a; [614] b: c"},
		{"decided by an operator: portal: ticket 1\nand more", "", "decidido por un operador: portal: ticket 1\nand more"},
		{"number replaced: E310000000001: the range ended", "", "se sustituyó la secuencia E310000000001: the range ended"},
		{
			"The authority holds another document under our number. The number range is fenced. [1] a", "",
			"La DGII tiene otro comprobante con nuestra secuencia. El rango quedó bloqueado. [1] a",
		},
		{
			"the clock of this node is 5s ahead of the database's: set the clock of this machine", "",
			"el reloj de este servidor adelanta 5s al de la base de datos: corrija la hora de este servidor",
		},
		{string(heldMark) + New(RangeEnded, "2026-12-31").In(lang.English)[len(heldMark):], "", New(RangeEnded, "2026-12-31").In(lang.Spanish)},
		{
			"dgii: reception: the tax authority has not received the document: HTTP 429: try again in 1s",
			"the tax authority has not received the document (reception): HTTP 429: try again in 1s",
			"la DGII no recibió el comprobante (reception): HTTP 429: try again in 1s",
		},
		{"dgii: state: the tax authority does not answer", "the tax authority does not answer (state)", "la DGII no responde (state)"},
		{
			"dgii: the buyer's receiver did not acknowledge the document: status_500",
			"the buyer's receiver did not acknowledge the document: status_500", "el receptor del comprador no confirmó el comprobante: status_500",
		},
		{"registered by somebody", "", "registered by somebody"},
		{"dgii: reception: something else", "", "dgii: reception: something else"},
	} {
		if test.en == "" {
			test.en = test.sentence
		}
		c := Cause(test.sentence)
		if en, es := c.In(lang.English), c.In(lang.Spanish); en != test.en || es != test.es {
			t.Errorf("%q is read as\n%q and\n%q", test.sentence, en, es)
		}
	}
}
