package fiscal

import (
	"cmp"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

var errDate = lang.Errorf("must be a date: YYYY-MM-DD", "debe ser una fecha: AAAA-MM-DD")

// A Date is a day of the calendar, without a time or a zone. The zero Date means
// that there is no date.
type Date struct {
	year  int
	month time.Month
	day   int
}

// ParseDate reads a date written YYYY-MM-DD. It fails when s has another form or
// the calendar has no such day.
func ParseDate(s string) (Date, error) {
	if len(s) != len(time.DateOnly) {
		return Date{}, errDate
	}
	t, err := time.Parse(time.DateOnly, s)
	if err != nil || t.Year() == 0 {
		return Date{}, errDate
	}
	year, month, day := t.Date()
	return Date{year, month, day}, nil
}

// DateOf returns the date of an instant in Santo Domingo.
func DateOf(t time.Time) Date {
	year, month, day := t.In(zone).Date()
	return Date{year, month, day}
}

// End returns the instant at which the day ends in Santo Domingo.
func (d Date) End() time.Time {
	return time.Date(d.year, d.month, d.day+1, 0, 0, 0, 0, zone).UTC()
}

// String returns the date as YYYY-MM-DD, and "" for the zero Date.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return fmt.Sprintf("%04d-%02d-%02d", d.year, d.month, d.day)
}

// Year returns the year.
func (d Date) Year() int { return d.year }

// Month returns the month of the year.
func (d Date) Month() time.Month { return d.month }

// Day returns the day of the month.
func (d Date) Day() int { return d.day }

// IsZero reports whether d is the zero Date.
func (d Date) IsZero() bool { return d == Date{} }

// Compare returns -1 when d is before other, 0 when they are equal, and 1 when d
// is after other.
func (d Date) Compare(other Date) int {
	return cmp.Or(cmp.Compare(d.year, other.year), cmp.Compare(d.month, other.month), cmp.Compare(d.day, other.day))
}

// Before reports whether d comes before other.
func (d Date) Before(other Date) bool { return d.Compare(other) < 0 }

// After reports whether d comes after other.
func (d Date) After(other Date) bool { return d.Compare(other) > 0 }

// Equal reports whether d and other are the same day.
func (d Date) Equal(other Date) bool { return d == other }
