package ecf

import (
	"math"
	"strconv"
	"strings"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
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
	want := "must be " + strconv.Itoa(first)
	for n := first + 1; n <= last; n++ {
		want += " or " + strconv.Itoa(n)
	}
	return func(text string) (string, string) {
		if n, ok := readInteger(text); !ok || n < first || n > last {
			return fiscal.CodeInvalidEnum, want
		}
		return "", ""
	}
}

func unitType(text string) (code, want string) {
	switch n, ok := readInteger(text); {
	case !ok:
		return fiscal.CodeInvalidFormat, "must be a code of the table of units"
	case n < 1 || n > maxUnit:
		return fiscal.CodeOutOfRange, "must be a code of the table of units, 1 to " + strconv.Itoa(maxUnit)
	}
	return "", ""
}

// digitsType is one to most digits.
func digitsType(most int) simpleType {
	want := "must have 1 to " + strconv.Itoa(most) + " digits and nothing else"
	return func(text string) (string, string) {
		if text = trimXML(text); len(text) > most || !isDigits(text, len(text)) {
			return fiscal.CodeInvalidFormat, want
		}
		return "", ""
	}
}

// integerType is an integer from least to most, with at most the given number of
// digits.
func integerType(least, most, digits int) simpleType {
	form := digitsType(digits)
	want := "must be from " + strconv.Itoa(least) + " to " + strconv.Itoa(most)
	return func(text string) (string, string) {
		if code, want := form(text); code != "" {
			return code, want
		}
		if n, _ := readInteger(text); n < least || n > most {
			return fiscal.CodeOutOfRange, want
		}
		return "", ""
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

func amountType(text string) (code, want string) {
	return numberForm{digits: 16, decimals: 2}.check(text)
}

func positiveType(text string) (code, want string) {
	return numberForm{digits: 16, decimals: 2, positive: true}.check(text)
}

func signedType(text string) (code, want string) {
	return numberForm{digits: 16, decimals: 2, signed: true}.check(text)
}

func exactAmountType(text string) (code, want string) {
	return numberForm{digits: 16, decimals: 2, exact: true}.check(text)
}

func exactPositiveType(text string) (code, want string) {
	return numberForm{digits: 16, decimals: 2, exact: true, positive: true}.check(text)
}

func exactSignedType(text string) (code, want string) {
	return numberForm{digits: 16, decimals: 2, exact: true, signed: true}.check(text)
}

func quantityType(text string) (code, want string) {
	return numberForm{digits: 16, decimals: 3}.check(text)
}

func priceType(text string) (code, want string) {
	return numberForm{digits: 16, decimals: 4}.check(text)
}

func percentType(text string) (code, want string) {
	return numberForm{digits: 3, decimals: 2, positive: true}.check(text)
}

func exchangeType(text string) (code, want string) {
	return numberForm{digits: 3, decimals: 4, positive: true}.check(text)
}

func (f numberForm) check(text string) (code, want string) {
	s := trimXML(text)
	if s != "" && (s[0] == '+' || s[0] == '-') {
		if !f.signed {
			return fiscal.CodeOutOfRange, "must be written without a sign"
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
		return fiscal.CodeOutOfRange, "must have at most " + strconv.Itoa(f.digits) + " digits before the point"
	case f.positive && zero:
		return fiscal.CodeOutOfRange, "must be more than 0"
	}
	return "", ""
}

func (f numberForm) want() string {
	if f.exact {
		return "must be a number with no decimals or exactly " + strconv.Itoa(f.decimals)
	}
	return "must be a number with at most " + strconv.Itoa(f.decimals) + " decimals"
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
func versionType(text string) (code, want string) {
	s := strings.TrimLeft(strings.TrimPrefix(trimXML(text), "+"), "0")
	whole, fraction, _ := strings.Cut(s, ".")
	if whole != "1" || strings.Trim(fraction, "0") != "" {
		return fiscal.CodeInvalidEnum, "must be 1.0"
	}
	return "", ""
}

func exactVersionType(text string) (code, want string) {
	if trimXML(text) != "1.0" {
		return fiscal.CodeInvalidEnum, "must be 1.0"
	}
	return "", ""
}
