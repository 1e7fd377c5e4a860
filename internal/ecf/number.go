package ecf

import (
	"strconv"
	"strings"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// appendAmount writes a number with two decimals, or with more when it has more.
func appendAmount(b []byte, d fiscal.Decimal) []byte {
	_, high, low, scale, ok := d.ToHiLo()
	if !ok || high != 0 || scale > 4 {
		// No amount of a document is so large or has so many decimals, but it
		// must not be written wrong.
		return append(b, d.StringFixed(max(scale, 2))...)
	}
	unit := [...]uint64{1, 10, 100, 1_000, 10_000}[scale]
	b = strconv.AppendUint(b, low/unit, 10)
	b = append(b, '.')
	b = fiscal.AppendPadded(b, int64(low%unit), int(scale)) //nolint:gosec // less than 10,000
	for ; scale < 2; scale++ {
		b = append(b, '0')
	}
	return b
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
