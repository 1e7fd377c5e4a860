package fiscal

import (
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// A decoder reads the values of a request and reports the invalid ones.
type decoder struct {
	report
	truncated bool // the document does not show all members
}

func (d *decoder) fail(p path, code, message string) { d.add(p.String(), code, message) }

// unknown reports a member that the API does not have, because a fiscal document
// must never silently lose a value that the integrator sent.
func (d *decoder) unknown(p *path, name string) {
	d.fail(p.at(cut(name)), CodeUnknownField, "is not a field of this API; names are case-sensitive")
}

// need reports a required member that was not sent. Of a truncated document it
// reports nothing, because the member may be one that the document does not show.
func (d *decoder) need(p *path, name string, s state) {
	if s == absent && !d.truncated {
		d.fail(p.at(name), CodeRequired, "is required")
	}
}

// is reports whether a value is of the wanted kind, and adds a problem when it is
// not.
func (d *decoder) is(n strictjson.Node, p path, want strictjson.Kind) bool {
	got := n.Kind()
	if got == want {
		return true
	}
	article := "a "
	if want == strictjson.Array || want == strictjson.Object {
		article = "an "
	}
	d.fail(p, CodeInvalidType, "must be "+article+want.String()+", not "+got.String())
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

// format reads a string that matches accepts; want describes it in the message.
func (d *decoder) format(n strictjson.Node, p path, matches func(string) bool, want string) opt[string] {
	s, ok := d.str(n, p)
	if !ok {
		return bad[string]()
	}
	if !matches(s) {
		d.fail(p, CodeInvalidFormat, "must be "+want)
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
	d.fail(p, CodeInvalidEnum, "must be "+strings.Join(list, " or "))
	return bad[T]()
}

func (d *decoder) date(n strictjson.Node, p path) opt[Date] {
	s, ok := d.str(n, p)
	if !ok {
		return bad[Date]()
	}
	date, err := ParseDate(s)
	if err != nil {
		d.fail(p, CodeInvalidDate, err.Error())
		return bad[Date]()
	}
	return good(date)
}

func (d *decoder) amount(n strictjson.Node, p path) opt[Amount] {
	if n.Kind() == strictjson.Number {
		d.fail(p, CodeInvalidDecimal, "must be a decimal written as a string, not a JSON number")
		return bad[Amount]()
	}
	s, ok := d.str(n, p)
	if !ok {
		return bad[Amount]()
	}
	v, err := ParseDecimal(s)
	if err != nil {
		d.fail(p, CodeInvalidDecimal, err.Error())
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
		d.fail(p, CodeInvalidDecimal, "must have at most "+strconv.Itoa(decimals)+" decimals")
		return bad[Decimal]()
	case tooLarge(a.value.Value):
		d.fail(p, CodeOutOfRange, "must have at most 16 integer digits")
		return bad[Decimal]()
	}
	return good(a.value.Value)
}

// integer reads a JSON number whose value is one of the allowed integers; 1, 1.0
// and 10e-1 are the same value.
func (d *decoder) integer(n strictjson.Node, p path, allowed func(int) bool, want string) opt[int] {
	if !d.is(n, p, strictjson.Number) {
		return bad[int]()
	}
	v, ok := smallInteger(n.Text())
	if !ok || !allowed(v) {
		d.fail(p, CodeInvalidEnum, "must be "+want)
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
