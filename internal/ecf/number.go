package ecf

import (
	"strings"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// appendAmount writes a number with two decimals, or with more when it has more.
func appendAmount(b []byte, d fiscal.Decimal) []byte {
	_, high, low, scale, ok := d.ToHiLo()
	if !ok || high != 0 || low > 1e17 || scale > 4 {
		// No amount of a document is so large or has so many decimals, but it
		// must not be written wrong.
		return append(b, d.StringFixed(max(scale, 2))...)
	}
	for ; scale < 2; scale++ {
		low *= 10
	}
	return appendFixed(b, low, int(scale))
}

// appendFixed writes a number whose last digits are decimals.
func appendFixed(b []byte, n uint64, decimals int) []byte {
	var digits [24]byte
	i := len(digits)
	for written := 0; n > 0 || written <= decimals; written++ {
		if written == decimals {
			i--
			digits[i] = '.'
		}
		i--
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	return append(b, digits[i:]...)
}

// parseAmount reads a number of the format: digits, and optionally a point and
// more digits. It reports whether s is such a number.
func parseAmount(s string) (fiscal.Decimal, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole+fraction, len(whole)+len(fraction)) || whole == "" || point && fraction == "" || len(s) > 24 {
		return fiscal.Decimal{}, false
	}
	d, err := udecimal.Parse(s)
	return d, err == nil
}
