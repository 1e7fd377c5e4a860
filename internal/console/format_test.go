package console

import (
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

func TestAmountsAndNumbers(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]string{
		"1180.00": "RD$\u00a01,180.00", "0.5": "RD$\u00a00.50", "1234567.89": "RD$\u00a01,234,567.89", "12": "RD$\u00a012.00",
		"-1500.00": "-RD$\u00a01,500.00", "": "", "abc": "abc", "1.234": "RD$\u00a01.234",
	} {
		if got := money(amount); got != want {
			t.Errorf("money(%q) = %q, want %q", amount, got, want)
		}
	}
	for n, want := range map[int]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -4200: "-4,200"} {
		if got, err := number(n); err != nil || got != want {
			t.Errorf("number(%d) = %q, %v", n, got, err)
		}
	}
}

// Instants are shown in the zone of the country.
func TestDatesAreThoseOfTheCountry(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 16, 3, 30, 5, 0, time.UTC)
	f := format{language: lang.Spanish, now: func() time.Time { return now }, text: newEnv(t).textIn(lang.Spanish)}
	if got := f.instant(now); got != `<time datetime="2026-11-16T03:30:05Z">15/11/2026 23:30</time>` {
		t.Errorf("instant: %s", got)
	}
	if got, err := f.date(now); err != nil || got != "15/11/2026" {
		t.Errorf("date: %s, %v", got, err)
	}
	if got, err := f.date(fiscal.DateOf(now)); err != nil || got != "15/11/2026" {
		t.Errorf("date: %s, %v", got, err)
	}
	for distance, want := range map[time.Duration]string{10 * time.Second: "hace un momento", 5 * time.Minute: "hace 5 min", 30 * time.Hour: "hace 30 h", 72 * time.Hour: "hace 3 días"} {
		if got, err := f.ago(now.Add(-distance)); err != nil || got != want {
			t.Errorf("ago(%s) = %s, %v", distance, got, err)
		}
	}
}

func (e *env) textIn(language lang.Language) func(string, ...any) (string, error) {
	return func(key string, args ...any) (string, error) { return e.texts.Text(language, key, args...) }
}

// A status has a colour, a shape and a word.
func TestStatusHasColourShapeAndWord(t *testing.T) {
	t.Parallel()
	f := format{language: lang.Spanish, text: newEnv(t).textIn(lang.Spanish)}
	shapes := map[string]fiscal.Status{}
	for _, s := range fiscal.Statuses() {
		got, err := f.status(s)
		if err != nil || got == "" {
			t.Fatalf("%s: %v", s, err)
		}
		if other, taken := shapes[string(got)]; taken {
			t.Errorf("%s looks like %s", s, other)
		}
		shapes[string(got)] = s
	}
	if got := badge("good", "<script>"); got == "" || string(got) != `<span class="badge badge-good">`+string(icon("tone-good"))+`<span>&lt;script&gt;</span></span>` {
		t.Errorf("badge: %s", got)
	}
}

// What a person wrote ends as the person ended it.
func TestACauseIsASentence(t *testing.T) {
	t.Parallel()
	x := &request{language: lang.Spanish}
	for c, want := range map[cause.Cause]string{
		cause.New(cause.Registered): "Registrado.",
		"registered":                "Registrado.",
		cause.New(cause.OperatorDecided, "¿por qué no?"):        "Decidido por un operador: ¿por qué no?",
		cause.New(cause.Text, "a text"):                         "a text",
		"held: the stored bytes are not those that were signed": "Los bytes guardados no son los que se firmaron.",
	} {
		if got := x.cause(c); got != want {
			t.Errorf("%s: got %q, want %q", c, got, want)
		}
	}
}
