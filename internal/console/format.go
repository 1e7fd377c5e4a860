package console

import (
	"fmt"
	"html/template"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// format writes values as people of the country read them.
type format struct {
	language lang.Language
	text     func(key string, args ...any) (string, error)
	now      func() time.Time
}

// date writes the day of an instant in the country's zone, as 15/11/2026. It writes a
// fiscal.Date in the same form, and nothing for a zero value.
func (f format) date(value any) (string, error) {
	switch v := value.(type) {
	case time.Time:
		if v.IsZero() {
			return "", nil
		}
		return v.In(fiscal.Zone()).Format("02/01/2006"), nil
	case fiscal.Date:
		return strings.ReplaceAll(v.DGIIString(), "-", "/"), nil
	}
	return "", fmt.Errorf("console: %T is no date", value)
}

// instant writes an instant in the country's zone, as 15/11/2026 08:30.
func (f format) instant(at time.Time) template.HTML { return f.timeElement(at, "02/01/2006 15:04") }

// seconds is instant with seconds.
func (f format) seconds(at time.Time) template.HTML { return f.timeElement(at, "02/01/2006 15:04:05") }

func (f format) timeElement(at time.Time, layout string) template.HTML {
	if at.IsZero() {
		return "–"
	}
	return template.HTML(`<time datetime="` + at.UTC().Format(time.RFC3339) + `">` + at.In(fiscal.Zone()).Format(layout) + `</time>`) //nolint:gosec // digits and separators
}

// ago writes how long ago an instant was.
func (f format) ago(at time.Time) (string, error) {
	if at.IsZero() {
		return "–", nil
	}
	return f.distance(f.now().Sub(at), "ago")
}

// until writes how far an instant is in the future.
func (f format) until(at time.Time) (string, error) {
	if at.IsZero() {
		return "–", nil
	}
	return f.distance(at.Sub(f.now()), "until")
}

func (f format) distance(d time.Duration, direction string) (string, error) {
	key := "time." + direction + "."
	switch {
	case d < time.Minute:
		return f.text(key + "now")
	case d < time.Hour:
		return f.text(key+"minutes", int(d/time.Minute))
	case d < 48*time.Hour:
		return f.text(key+"hours", int(d/time.Hour))
	}
	return f.text(key+"days", int(d/(24*time.Hour)))
}

// money writes an amount like 1180.00 as RD$ 1,180.00. It writes another text as it is.
func money(amount string) string {
	digits, negative := strings.CutPrefix(amount, "-")
	whole, cents, _ := strings.Cut(digits, ".")
	if whole == "" || strings.Trim(whole+cents, "0123456789") != "" {
		return amount
	}
	for len(cents) < 2 {
		cents += "0"
	}
	sign := ""
	if negative {
		sign = "-"
	}
	return sign + "RD$\u00a0" + grouped(whole) + "." + cents
}

// amount writes an amount of money in its currency.
func amount(currency, value string) string {
	if currency == "" || currency == "DOP" {
		return money(value)
	}
	return currency + "\u00a0" + strings.TrimPrefix(money(value), "RD$\u00a0")
}

// decimal writes a decimal with separators, like 1,180.5.
func decimal(value any) string {
	whole, fraction, _ := strings.Cut(fmt.Sprint(value), ".")
	if whole == "" || strings.Trim(whole+fraction, "0123456789") != "" {
		return fmt.Sprint(value)
	}
	if fraction == "" {
		return grouped(whole)
	}
	return grouped(whole) + "." + fraction
}

// number writes a whole number with separators, like 1,234.
func number(n any) (string, error) {
	text := fmt.Sprint(n)
	if _, err := strconv.ParseInt(text, 10, 64); err != nil {
		return "", fmt.Errorf("console: %v is no whole number", n)
	}
	if digits, negative := strings.CutPrefix(text, "-"); negative {
		return "-" + grouped(digits), nil
	}
	return grouped(text), nil
}

// grouped puts a comma before every three digits.
func grouped(digits string) string {
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// count writes a number with a noun: the text KEY.one for 1, and KEY.many for any other.
func (f format) count(n int, key string) (string, error) {
	if n == 1 {
		return f.text(key + ".one")
	}
	shown, err := number(n)
	if err != nil {
		return "", err
	}
	return f.text(key+".many", shown)
}

// role writes a role as a word.
func (f format) role(r store.Role) (string, error) { return f.text("role." + string(r)) }

// A tone says how good or bad a state is. It has a colour and a shape.
type tone string

// The tones.
const (
	good    tone = "good"
	warn    tone = "warn"
	bad     tone = "bad"
	busy    tone = "busy"
	neutral tone = "neutral"
)

// statusTone returns the tone of the status of a document.
func statusTone(s fiscal.Status) tone {
	switch s {
	case fiscal.Accepted, fiscal.Delivered:
		return good
	case fiscal.AcceptedConditional, fiscal.OutcomeUnknown:
		return warn
	case fiscal.Rejected, fiscal.ValidationFailed:
		return bad
	case fiscal.Submitted, fiscal.Processing:
		return busy
	case fiscal.Queued:
		return neutral
	}
	return neutral
}

// status writes the status of a document with colour, shape and word.
func (f format) status(s fiscal.Status) (template.HTML, error) {
	word, err := f.text("status." + string(s))
	if err != nil {
		return "", err
	}
	return badge(string(statusTone(s)), word), nil
}

// badge writes a state with the colour and the shape of a tone: good, warn, bad, busy or
// neutral.
func badge(name, word string) template.HTML {
	shape := tone(name)
	switch shape {
	case good, warn, bad, busy, neutral:
	default:
		shape = neutral
	}
	return template.HTML(`<span class="badge badge-` + string(shape) + `">` + string(icon("tone-"+string(shape))) + //nolint:gosec // escaped
		`<span>` + template.HTMLEscapeString(word) + `</span></span>`)
}

// icon returns a picture that repeats what the text next to it says.
func icon(name string) template.HTML {
	path, ok := icons[name]
	if !ok {
		path = icons["dot"]
	}
	return template.HTML(`<svg class="icon" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true" focusable="false">` + path + `</svg>`) //nolint:gosec // embedded
}

// icons are drawn on a square of 20 units, with lines in the colour of the text.
var icons = map[string]string{
	"dot":          `<circle cx="10" cy="10" r="3" class="fill"/>`,
	"tone-good":    `<circle cx="10" cy="10" r="8" class="fill"/><path d="M6.3 10.3l2.5 2.5 5-5.4" class="cut"/>`,
	"tone-warn":    `<path d="M10 2.2L18.6 17.4H1.4z" class="fill"/><path d="M10 8v4.2M10 14.4v.6" class="cut"/>`,
	"tone-bad":     `<path d="M6.6 1.8h6.8l4.8 4.8v6.8l-4.8 4.8H6.6l-4.8-4.8V6.6z" class="fill"/><path d="M7 7l6 6M13 7l-6 6" class="cut"/>`,
	"tone-busy":    `<circle cx="10" cy="10" r="7"/><path d="M10 5.8V10l2.8 1.8"/>`,
	"tone-neutral": `<circle cx="10" cy="10" r="7" class="dash"/>`,
	"overview":     `<path d="M3 9.2L10 3l7 6.2V17h-4.6v-4.6H7.6V17H3z"/>`,
	"documents":    `<path d="M5 2.5h7l3.5 3.5v11.5H5zM12 2.5V6h3.5M7.5 10h5.5M7.5 13.2h5.5"/>`,
	"new":          `<path d="M10 4v12M4 10h12"/>`,
	"work":         `<circle cx="10" cy="10" r="7.2"/><path d="M10 5.8V10l3 2"/>`,
	"exports":      `<path d="M10 3v9M6.4 8.6L10 12.2l3.6-3.6M3.5 14v3h13v-3"/>`,
	"requests":     `<path d="M3 6h11M11 3l3.2 3L11 9M17 14H6M9 11l-3.2 3L9 17"/>`,
	"webhooks":     `<circle cx="5" cy="14" r="2.4"/><circle cx="15" cy="14" r="2.4"/><circle cx="10" cy="5.4" r="2.4"/><path d="M8.9 7.5L6.2 12M11.1 7.5l2.7 4.5M7.4 14h5.2"/>`,
	"keys":         `<circle cx="6.6" cy="12.6" r="3.6"/><path d="M9.3 10L16 3.3M13 6.3l2.6 2.6"/>`,
	"taxpayers":    `<path d="M3.5 17V6.5L10 3l6.5 3.5V17zM8 17v-4h4v4M7 9h.01M10 9h.01M13 9h.01"/>`,
	"authority":    `<path d="M3 7.5L10 3l7 4.5zM5 8v6.5M10 8v6.5M15 8v6.5M3 17h14"/>`,
	"users":        `<circle cx="7.6" cy="7" r="3"/><path d="M2.4 16.6c.4-3.2 2.5-4.8 5.2-4.8s4.8 1.6 5.2 4.8M13 4.3a3 3 0 010 5.4M14.6 12.2c1.8.6 2.8 2.1 3 4.4"/>`,
	"audit":        `<path d="M10 2.5l6.5 2.4v4.6c0 4-2.6 6.8-6.5 8-3.9-1.2-6.5-4-6.5-8V4.900z"/><path d="M7 9.900l2.2 2.2 3.9-4.2"/>`,
	"account":      `<circle cx="10" cy="7" r="3.4"/><path d="M3.5 17c.5-3.6 3.1-5.2 6.5-5.200s6 1.6 6.5 5.2"/>`,
	"sign-out":     `<path d="M8 3.500H3.500v13H8M8.5 10H17M13.8 6.500L17.2 10l-3.4 3.5"/>`,
	"menu":         `<path d="M3 5.500h14M3 10h14M3 14.500h14"/>`,
	"search":       `<circle cx="8.6" cy="8.6" r="5.4"/><path d="M12.6 12.600L17 17"/>`,
	"copy":         `<path d="M7 7h9.500v9.500H7zM13 7V3.500H3.500V13H7"/>`,
	"empty":        `<path d="M3 11l2.4-7h9.200L17 11v5.500H3zM3 11h4.200c.2 1.6 1.3 2.4 2.8 2.400s2.6-.8 2.8-2.400H17"/>`,
}

// duration writes a length of time with a unit that people read: 85 ms, 1.4 s, 3 min, 2.5 h.
func duration(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d < time.Second:
		return sign + strconv.FormatInt(d.Milliseconds(), 10) + "\u00a0ms"
	case d < time.Minute:
		return sign + decimalOf(uint64(d/(100*time.Millisecond))) + "\u00a0s"
	case d < 2*time.Hour:
		return sign + strconv.FormatInt(int64(d/time.Minute), 10) + "\u00a0min"
	}
	return sign + decimalOf(uint64(d/(6*time.Minute))) + "\u00a0h"
}

// decimalOf writes a number of tenths, without a zero at the end.
func decimalOf(tenths uint64) string {
	text := strconv.FormatUint(tenths/10, 10)
	if rest := tenths % 10; rest != 0 {
		text += "." + strconv.FormatUint(rest, 10)
	}
	return text
}
