package ecf

import (
	"math"
	"strconv"
	"strings"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// readInteger reads an integer as XML Schema does, with an optional sign and
// leading zeros. It returns math.MaxInt32 for any larger number.
func readInteger(s string) (n int, ok bool) {
	s = trimXML(s)
	sign := 1
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if s[0] == '-' {
			sign = -1
		}
		s = s[1:]
	}
	if s == "" {
		return 0, false
	}
	for i := range len(s) {
		c := s[i]
		if c < '0' || c > '9' {
			return 0, false
		}
		if n = n*10 + int(c-'0'); n > math.MaxInt32 {
			n = math.MaxInt32
		}
	}
	return sign * n, true
}

// codeType is an integer from first to last; leading zeros are allowed.
func codeType(first, last int) simpleType {
	var codes []string
	for n := first; n <= last; n++ {
		codes = append(codes, strconv.Itoa(n))
	}
	want := mustBe(lang.OneOf(codes))
	return func(text string) (string, lang.Message) {
		if n, ok := readInteger(text); !ok || n < first || n > last {
			return fiscal.CodeInvalidEnum, want
		}
		return "", lang.Message{}
	}
}

func unitType(text string) (code string, want lang.Message) {
	switch n, ok := readInteger(text); {
	case !ok:
		return fiscal.CodeInvalidFormat, lang.Messagef("must be a code of the table of units", "debe ser un código de la tabla de unidades")
	case n < 1 || n > maxUnit:
		return fiscal.CodeOutOfRange, lang.Messagef(
			"must be a code of the table of units, 1 to %d", "debe ser un código de la tabla de unidades, de 1 a %d", maxUnit)
	}
	return "", lang.Message{}
}

// digitsType is one to most digits.
func digitsType(most int) simpleType {
	want := lang.Messagef("must have 1 to %d digits and nothing else", "debe tener de 1 a %d dígitos y nada más", most)
	return func(text string) (string, lang.Message) {
		if text = trimXML(text); len(text) > most || !isDigits(text, len(text)) {
			return fiscal.CodeInvalidFormat, want
		}
		return "", lang.Message{}
	}
}

// integerType is an integer from least to most, with at most the given number of
// digits.
func integerType(least, most, digits int) simpleType {
	form := digitsType(digits)
	want := lang.Messagef("must be from %d to %d", "debe ser de %d a %d", least, most)
	return func(text string) (string, lang.Message) {
		if code, want := form(text); code != "" {
			return code, want
		}
		if n, _ := readInteger(text); n < least || n > most {
			return fiscal.CodeOutOfRange, want
		}
		return "", lang.Message{}
	}
}

// A numberForm describes how a decimal number may be written.
type numberForm struct {
	digits   int // before the point, at most
	decimals int // after the point, at most

	exact    bool // no decimals, or exactly as many as decimals says
	signed   bool // a sign is allowed
	positive bool // zero is not allowed
}

func amountType(text string) (code string, want lang.Message) {
	return numberForm{digits: 16, decimals: 2}.check(text)
}

func positiveType(text string) (code string, want lang.Message) {
	return numberForm{digits: 16, decimals: 2, positive: true}.check(text)
}

func signedType(text string) (code string, want lang.Message) {
	return numberForm{digits: 16, decimals: 2, signed: true}.check(text)
}

func exactAmountType(text string) (code string, want lang.Message) {
	return numberForm{digits: 16, decimals: 2, exact: true}.check(text)
}

func exactPositiveType(text string) (code string, want lang.Message) {
	return numberForm{digits: 16, decimals: 2, exact: true, positive: true}.check(text)
}

func exactSignedType(text string) (code string, want lang.Message) {
	return numberForm{digits: 16, decimals: 2, exact: true, signed: true}.check(text)
}

func quantityType(text string) (code string, want lang.Message) {
	return numberForm{digits: 16, decimals: 3}.check(text)
}

func priceType(text string) (code string, want lang.Message) {
	return numberForm{digits: 16, decimals: 4}.check(text)
}

func percentType(text string) (code string, want lang.Message) {
	return numberForm{digits: 3, decimals: 2, positive: true}.check(text)
}

func exchangeType(text string) (code string, want lang.Message) {
	return numberForm{digits: 3, decimals: 4, positive: true}.check(text)
}

func (f numberForm) check(text string) (code string, want lang.Message) {
	s := trimXML(text)
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if !f.signed {
			return fiscal.CodeOutOfRange, lang.Messagef("must be written without a sign", "debe escribirse sin signo")
		}
		s = s[1:]
	}
	digits, zero := 0, true
	for ; digits < len(s) && s[digits] != '.'; digits++ {
		if s[digits] < '0' || s[digits] > '9' {
			return fiscal.CodeInvalidDecimal, f.want()
		}
		zero = zero && s[digits] == '0'
	}
	fraction := s[digits:]
	for i := 1; i < len(fraction); i++ {
		if fraction[i] < '0' || fraction[i] > '9' {
			return fiscal.CodeInvalidDecimal, f.want()
		}
		zero = zero && fraction[i] == '0'
	}
	decimals := len(fraction) - 1 // -1 without a point
	switch {
	case digits == 0 || decimals == 0 || decimals > f.decimals || f.exact && decimals >= 0 && decimals < f.decimals:
		return fiscal.CodeInvalidDecimal, f.want()
	case digits > f.digits:
		return fiscal.CodeOutOfRange, lang.Messagef(
			"must have at most %d digits before the point", "debe tener un máximo de %d dígitos antes del punto", f.digits)
	case f.positive && zero:
		return fiscal.CodeOutOfRange, lang.Messagef("must be more than 0", "debe ser mayor que 0")
	}
	return "", lang.Message{}
}

func (f numberForm) want() lang.Message {
	if f.exact {
		return lang.Messagef(
			"must be a number with no decimals or exactly %d", "debe ser un número sin decimales o con exactamente %d", f.decimals)
	}
	return lang.Messagef("must be a number with at most %d decimals", "debe ser un número con un máximo de %d decimales", f.decimals)
}

// readAmount reads an amount. It reports false when amountType refuses the text.
func readAmount(text string) (fiscal.Decimal, bool) {
	if code, _ := amountType(text); code != "" {
		return fiscal.Decimal{}, false
	}
	var coefficient uint64 // at most 18 digits
	scale, point := uint8(0), false
	s := trimXML(text)
	for i := range len(s) {
		if s[i] == '.' {
			point = true
			continue
		}
		coefficient = coefficient*10 + uint64(s[i]-'0')
		if point {
			scale++
		}
	}
	d, err := udecimal.NewFromUint64(coefficient, scale)
	return d, err == nil
}

// versionType is the number 1.0 in any form; some issuers write 1.
func versionType(text string) (code string, want lang.Message) {
	s := strings.TrimLeft(strings.TrimPrefix(trimXML(text), "+"), "0")
	whole, fraction, _ := strings.Cut(s, ".")
	if whole != "1" || strings.Trim(fraction, "0") != "" {
		return fiscal.CodeInvalidEnum, mustBe("1.0")
	}
	return "", lang.Message{}
}

func exactVersionType(text string) (code string, want lang.Message) {
	if trimXML(text) != "1.0" {
		return fiscal.CodeInvalidEnum, mustBe("1.0")
	}
	return "", lang.Message{}
}
