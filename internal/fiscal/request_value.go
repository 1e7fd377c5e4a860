package fiscal

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// A decoder reads the values of a request and reports the invalid ones.
type decoder struct {
	report
	truncated  bool // the document does not show all members
	registered bool // the rules of earlier releases apply
}

func (d *decoder) fail(p path, code string, message lang.Message) { d.add(p.String(), code, message) }

// unknown reports a member that the API does not have, because a fiscal document
// must never silently lose a value that the integrator sent.
func (d *decoder) unknown(p *path, name string, known []string) {
	d.fail(p.at(cut(name)), CodeUnknownField, UnknownMember(name, known))
}

// UnknownMember returns the message about a member that a request does not have at
// its place. It names the known member that the integrator has probably meant.
func UnknownMember(name string, known []string) lang.Message {
	if meant, ok := strictjson.ClosestName(name, known); ok {
		return lang.Messagef(
			"is not a field of this request; did you mean %s? Names are case-sensitive",
			"no es un campo de esta solicitud; ¿quiso decir %s? Los nombres distinguen mayúsculas de minúsculas", meant)
	}
	return lang.Messagef(
		"is not a field of this request; names are case-sensitive",
		"no es un campo de esta solicitud; los nombres distinguen mayúsculas de minúsculas")
}

func sixteenDigits() lang.Message {
	return lang.Messagef("must have at most 16 integer digits", "debe tener un máximo de 16 dígitos enteros")
}

// need reports a required member that was not sent. Of a truncated document it
// reports nothing, because the member may be one that the document does not show.
func (d *decoder) need(p *path, name string, s state) {
	if s == absent && !d.truncated {
		d.fail(p.at(name), CodeRequired, lang.Messagef("is required", "es obligatorio"))
	}
}

// is reports whether a value is of the wanted kind, and adds a problem when it is
// not.
func (d *decoder) is(n strictjson.Node, p path, want strictjson.Kind) bool {
	got := n.Kind()
	if got == want {
		return true
	}
	d.fail(p, CodeInvalidType, lang.Messagef("must be %s, not %s", "debe ser %s, no %s", want.Name(), got.Name()))
	return false
}

// str reads a string. A string with a forbidden character is a problem in every
// field.
func (d *decoder) str(n strictjson.Node, p path) (string, bool) {
	if !d.is(n, p, strictjson.String) {
		return "", false
	}
	s := n.Text()
	if _, ok := scanText(s, false); !ok {
		f := faultCharacters(false)
		d.fail(p, f.code, f.message)
		return "", false
	}
	return s, true
}

func (d *decoder) text(n strictjson.Node, p path, rule textRule) opt[string] {
	if !d.is(n, p, strictjson.String) {
		return bad[string]()
	}
	s := n.Text()
	if f := rule.check(s); f != (fault{}) {
		d.fail(p, f.code, f.message)
		return bad[string]()
	}
	return good(s)
}

// format reads a string that matches accepts; message says what it must be.
func (d *decoder) format(n strictjson.Node, p path, matches func(string) bool, message lang.Message) opt[string] {
	s, ok := d.str(n, p)
	if !ok {
		return bad[string]()
	}
	if !matches(s) {
		d.fail(p, CodeInvalidFormat, message)
		return bad[string]()
	}
	return good(s)
}

func enum[T ~string](d *decoder, n strictjson.Node, p path, allowed ...T) opt[T] {
	s, ok := d.str(n, p)
	if !ok {
		return bad[T]()
	}
	if i := slices.Index(allowed, T(s)); i >= 0 {
		return good(allowed[i])
	}
	list := make([]string, len(allowed))
	for i, a := range allowed {
		list[i] = string(a)
	}
	d.fail(p, CodeInvalidEnum, lang.Messagef("must be %s", "debe ser %s", lang.OneOf(list)))
	return bad[T]()
}

// The years of the dates that a document can have (e-CF format).
const (
	FirstYear = 1900
	LastYear  = 2099
)

func (d *decoder) date(n strictjson.Node, p path) opt[Date] {
	s, ok := d.str(n, p)
	if !ok {
		return bad[Date]()
	}
	date, err := ParseDate(s)
	if err != nil {
		d.fail(p, CodeInvalidDate, lang.OfError(err))
		return bad[Date]()
	}
	if !d.registered && (date.Year() < FirstYear || date.Year() > LastYear) {
		d.fail(p, CodeInvalidDate, lang.Messagef(
			"must be a date of the years %d to %d: YYYY-MM-DD", "debe ser una fecha de los años %d a %d: AAAA-MM-DD", FirstYear, LastYear))
		return bad[Date]()
	}
	return good(date)
}

func (d *decoder) amount(n strictjson.Node, p path) opt[Amount] {
	if n.Kind() == strictjson.Number {
		d.fail(p, CodeInvalidDecimal, lang.Messagef(
			"must be a decimal written as a string, not a JSON number",
			"debe ser un decimal escrito entre comillas, no un número de JSON"))
		return bad[Amount]()
	}
	s, ok := d.str(n, p)
	if !ok {
		return bad[Amount]()
	}
	v, err := ParseDecimal(s)
	if err != nil {
		d.fail(p, CodeInvalidDecimal, lang.OfError(err))
		return bad[Amount]()
	}
	return good(Amount{v, s})
}

// decimal reads a decimal string with at most the given number of decimals, not
// counting trailing zeros, and with no more integer digits than the document
// carries.
func (d *decoder) decimal(n strictjson.Node, p path, decimals int) opt[Decimal] {
	a := d.amount(n, p)
	switch {
	case !a.ok():
		return bad[Decimal]()
	case a.value.Value.Prec() > decimals:
		d.fail(p, CodeInvalidDecimal, lang.Messagef(
			"must have at most %d decimals", "debe tener un máximo de %d decimales", decimals))
		return bad[Decimal]()
	case tooLarge(a.value.Value):
		d.fail(p, CodeOutOfRange, sixteenDigits())
		return bad[Decimal]()
	}
	return good(a.value.Value)
}

// integer reads a JSON number whose value is one of the allowed integers; 1, 1.0
// and 10e-1 are the same value.
func (d *decoder) integer(n strictjson.Node, p path, allowed func(int) bool, message lang.Message) opt[int] {
	if !d.is(n, p, strictjson.Number) {
		return bad[int]()
	}
	v, ok := smallInteger(n.Text())
	if !ok || !allowed(v) {
		d.fail(p, CodeInvalidEnum, message)
		return bad[int]()
	}
	return good(v)
}

// smallInteger returns the value of a JSON number when it is an integer from 0
// to 999. It works on the digits, because a float64 would round.
func smallInteger(s string) (int, bool) {
	if len(s) <= 3 && isDigits(s) {
		v, err := strconv.Atoi(s) // the usual form
		return v, err == nil
	}
	mantissa, exponent, _ := strings.Cut(strings.ToLower(s), "e")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return 0, true
	}
	shift := -len(fraction)
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > 1<<30 || e < -1<<30 {
			return 0, false // too large, or far too small for an integer
		}
		shift += e
	}
	significant := strings.TrimRight(digits, "0")
	shift += len(digits) - len(significant)
	if mantissa[0] == '-' || shift < 0 || len(significant)+shift > 3 {
		return 0, false
	}
	v, err := strconv.Atoi(significant + "000"[:shift])
	return v, err == nil
}
