package fiscal

import "time"

// instantLayout is how the API writes an instant: UTC, with milliseconds.
const instantLayout = "2006-01-02T15:04:05.000Z"

// DGIITimeLayout is how the authority's documents write an instant, in the
// time zone of the country.
const DGIITimeLayout = "02-01-2006 15:04:05"

// ContingencyTime is how long after the end of a contingency its documents must have
// been sent to the authority.
const ContingencyTime = 72 * time.Hour

const (
	// EndsSoon is how long before its end a certificate, a key or a number range needs a
	// person.
	EndsSoon = 30 * 24 * time.Hour
	// LowNumbers is below which count the numbers of a taxpayer need a person.
	LowNumbers = 100
)

var zone = time.FixedZone("GMT-4", -4*60*60)

// Zone returns the country's time zone, America/Santo_Domingo. It is UTC-4 the
// whole year: the country has no daylight saving time.
func Zone() *time.Location { return zone }

// FormatInstant writes an instant as the API shows it.
func FormatInstant(t time.Time) string { return t.UTC().Format(instantLayout) }

// FormatDGIITime writes an instant as dd-MM-yyyy HH:mm:ss in the time zone of the
// country.
func FormatDGIITime(t time.Time) string { return t.In(zone).Format(DGIITimeLayout) }

// ParseDGIITime reads an instant that FormatDGIITime has written. It returns the
// zero Time when s is not one.
func ParseDGIITime(s string) time.Time {
	t, err := time.ParseInLocation(DGIITimeLayout, s, zone)
	if err != nil || len(s) != len(DGIITimeLayout) || t.Year() == 0 {
		return time.Time{}
	}
	return t.UTC()
}

// ParseDGIIDate reads a date that is written dd-MM-yyyy, as in the authority's
// documents. It returns the zero Date when s is not one.
func ParseDGIIDate(s string) Date {
	if len(s) != 10 || s[2] != '-' || s[5] != '-' {
		return Date{}
	}
	d, err := ParseDate(s[6:] + s[2:6] + s[:2])
	if err != nil {
		return Date{}
	}
	return d
}

// DGIIString writes the date as dd-MM-yyyy, as in the authority's documents.
func (d Date) DGIIString() string { return string(d.AppendDGII(make([]byte, 0, 10))) }

// AppendDGII appends the date as DGIIString writes it.
func (d Date) AppendDGII(b []byte) []byte {
	b = append(appendPadded(b, int64(d.day), 2), '-')
	b = append(appendPadded(b, int64(d.month), 2), '-')
	return appendPadded(b, int64(d.year), 4)
}

// appendPadded appends a number that is not negative, with leading zeros up to
// width digits.
func appendPadded(b []byte, n int64, width int) []byte {
	start := len(b)
	for range width {
		b = append(b, '0')
	}
	for i := len(b) - 1; i >= start; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
