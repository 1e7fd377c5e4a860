package fiscal

import (
	"strings"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Decimal is an exact decimal number. Amounts are never floating-point
// numbers, which would round them.
type Decimal = udecimal.Decimal

const (
	maxDecimalLength = 32
	maxDecimalDigits = 18 // so that any coefficient fits 64 bits
)

var (
	errDecimalForm = lang.Errorf(
		"must be a decimal such as 10 or 10.50: no sign, no exponent, no leading zeros",
		"debe ser un decimal como 10 o 10.50: sin signo, sin exponente y sin ceros a la izquierda")
	errDecimalDigits = lang.Errorf("must have at most 18 digits in total", "debe tener un máximo de 18 dígitos en total")
)

// ParseDecimal reads a decimal string of the API: digits without leading zeros
// and an optional fraction after a point. It fails on anything else, and on more
// than 18 digits in total.
func ParseDecimal(s string) (Decimal, error) {
	if len(s) > maxDecimalLength {
		return Decimal{}, errDecimalDigits
	}
	whole, fraction, point := strings.Cut(s, ".")
	if whole == "" || point && fraction == "" || len(whole) > 1 && whole[0] == '0' {
		return Decimal{}, errDecimalForm
	}
	var coefficient uint64
	digits := 0
	for i := range len(s) {
		c := s[i]
		if c == '.' && i == len(whole) {
			continue
		}
		if c < '0' || c > '9' {
			return Decimal{}, errDecimalForm
		}
		if digits++; digits <= maxDecimalDigits {
			coefficient = coefficient*10 + uint64(c-'0')
		}
	}
	if digits > maxDecimalDigits {
		return Decimal{}, errDecimalDigits
	}
	// Trailing zeros do not change the number. Without them the scale can be
	// compared with the decimals that a field allows.
	scale := len(fraction)
	for ; scale > 0 && coefficient%10 == 0; scale-- {
		coefficient /= 10
	}
	return udecimal.NewFromUint64(coefficient, uint8(scale))
}

// number returns coefficient / 10^scale. It is for the constants of this
// package, whose scale is always in range.
func number(coefficient uint64, scale uint8) Decimal {
	d, _ := udecimal.NewFromUint64(coefficient, scale) // fails only on a scale above 19
	return d
}

// round2 rounds to cents, half away from zero, as the e-CF format requires. A
// product keeps 19 decimals and drops the rest, which cannot change the third
// decimal.
func round2(d Decimal) Decimal { return d.RoundHAZ(2) }

// percentOf returns d × percent / 100, not rounded.
func percentOf(d, percent Decimal) Decimal { return d.Mul(percent).Mul(number(1, 2)) }

// tooLarge reports whether an amount has more than the 16 integer digits that the
// e-CF format carries.
func tooLarge(d Decimal) bool { return d.Cmp(number(1e16, 0)) >= 0 }

// near reports whether two amounts differ by at most the given number of cents.
func near(a, b Decimal, cents int) bool {
	return a.Sub(b).Abs().Cmp(number(uint64(cents), 2)) <= 0
}

// money writes an amount with two decimals.
func money(d Decimal) string { return d.StringFixed(2) }

// inCents returns an amount of at most two decimals and 16 integer digits as a
// whole number of cents.
func inCents(d Decimal) uint64 {
	n, err := d.Mul64(100).Int64()
	if err != nil || n < 0 {
		return 0 // not reachable: tooLarge has refused larger amounts
	}
	return uint64(n)
}
