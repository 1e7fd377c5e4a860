package ecf

import (
	"strconv"
	"strings"
	"time"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// summaryLimit is the total from which a consumer invoice is sent whole.
var summaryLimit = udecimal.MustFromUint64(250_000, 0)

// appendAmount writes a number with two decimals, or as many as it has more.
func appendAmount(b []byte, d fiscal.Decimal) []byte {
	_, high, low, scale, ok := d.ToHiLo()
	if !ok || high != 0 || scale > 4 {
		// No amount of a document is so large or so fine; it is written all
		// the same.
		return append(b, d.StringFixed(max(scale, 2))...)
	}
	unit := [...]uint64{1, 10, 100, 1_000, 10_000}[scale]
	b = strconv.AppendUint(b, low/unit, 10)
	b = append(b, '.')
	b = appendPadded(b, int64(low%unit), int(scale)) //nolint:gosec // less than 10,000
	for ; scale < 2; scale++ {
		b = append(b, '0')
	}
	return b
}

// appendDate writes a date as dd-MM-yyyy.
func appendDate(b []byte, d fiscal.Date) []byte {
	b = append(appendPadded(b, int64(d.Day()), 2), '-')
	b = append(appendPadded(b, int64(d.Month()), 2), '-')
	return appendPadded(b, int64(d.Year()), 4)
}

// santoDomingo is the offset in which the authority reads times. It never
// changes.
var santoDomingo = time.FixedZone("GMT-4", -4*60*60)

// appendClock writes a time of day in Santo Domingo as HH:mm:ss.
func appendClock(b []byte, t time.Time) []byte {
	hour, minute, second := t.In(santoDomingo).Clock()
	b = append(appendPadded(b, int64(hour), 2), ':')
	b = append(appendPadded(b, int64(minute), 2), ':')
	return appendPadded(b, int64(second), 2)
}

// parseDate reads a date written dd-MM-yyyy; the zero Date is what is not one.
func parseDate(s string) fiscal.Date {
	if len(s) != 10 {
		return fiscal.Date{}
	}
	d, err := fiscal.ParseDate(s[6:] + s[2:6] + s[:2])
	if err != nil || s[2] != '-' || s[5] != '-' {
		return fiscal.Date{}
	}
	return d
}

// parseInstant reads a moment written dd-MM-yyyy HH:mm:ss in Santo Domingo; the
// zero Time is what is not one.
func parseInstant(s string) time.Time {
	t, err := time.ParseInLocation("02-01-2006 15:04:05", s, santoDomingo)
	if err != nil || len(s) != 19 {
		return time.Time{}
	}
	return t.UTC()
}

// parseAmount reads a number of the format: digits, and perhaps a point and
// more digits.
func parseAmount(s string) (fiscal.Decimal, bool) {
	whole, fraction, point := strings.Cut(s, ".")
	if !isDigits(whole+fraction, len(whole)+len(fraction)) || whole == "" || point && fraction == "" || len(s) > 24 {
		return fiscal.Decimal{}, false
	}
	d, err := udecimal.Parse(s)
	return d, err == nil
}
