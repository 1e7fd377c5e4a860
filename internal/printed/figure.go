package printed

import (
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// money writes an amount with two decimals and thousands separators.
func money(d fiscal.Decimal) string { return grouped(d.StringFixed(2)) }

// price writes a unit price with all its decimals, at least two.
func price(d fiscal.Decimal) string {
	s := d.String()
	_, fraction, _ := strings.Cut(s, ".")
	if len(fraction) < 2 {
		s = d.StringFixed(2)
	}
	return grouped(s)
}

// quantity writes a number with all its decimals.
func quantity(d fiscal.Decimal) string { return grouped(d.String()) }

// grouped puts commas between the thousands of a decimal number.
func grouped(s string) string {
	sign := ""
	if strings.HasPrefix(s, "-") {
		sign, s = "-", s[1:]
	}
	whole, fraction, point := strings.Cut(s, ".")
	var b strings.Builder
	b.WriteString(sign)
	for i, c := range whole {
		if i > 0 && (len(whole)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	if point {
		b.WriteString("." + fraction)
	}
	return b.String()
}

// percentOf returns d × percent / 100 to the cent, half away from zero.
func percentOf(d, percent fiscal.Decimal) fiscal.Decimal {
	p, _ := d.Mul(percent).Div64(100) // fails on zero alone
	return p.RoundHAZ(2)
}

// lineITBIS returns the ITBIS of one line, which the XML does not state
// (Technical Report, printed representation). When prices include ITBIS, the net
// amount and the ITBIS add up to the amount of the line.
func lineITBIS(d *ecf.Document, l *ecf.Line) fiscal.Decimal {
	rate := l.Indicator.Rate()
	if rate.IsZero() || !d.Inclusive {
		return percentOf(l.Amount, rate)
	}
	net, err := l.Amount.Mul64(100).Div(rate.Add64(100))
	if err != nil {
		return fiscal.Decimal{} // not reachable: no rate is -100
	}
	return l.Amount.Sub(net.RoundHAZ(2))
}

// A subtotal holds the totals of the lines on one page.
type subtotal struct {
	taxed, exempt             bool
	taxable, free, itbis, tax fiscal.Decimal
}

// subtotalOf adds up lines, given by their indexes. Its ITBIS is the sum of the
// rounded amounts on the page, so that a reader who adds them gets the same sum.
func subtotalOf(d *ecf.Document, lines []int) subtotal {
	var s subtotal
	bases := make(map[string]fiscal.Decimal)
	for _, i := range lines {
		l := &d.Lines[i]
		itbis := lineITBIS(d, l)
		base := l.Amount
		if d.Inclusive {
			base = base.Sub(itbis)
		}
		s.itbis = s.itbis.Add(itbis)
		if l.Indicator == fiscal.Exempt {
			s.exempt, s.free = true, s.free.Add(base)
		} else {
			s.taxed, s.taxable = true, s.taxable.Add(base)
		}
		for _, code := range l.AdditionalTaxes {
			bases[code] = bases[code].Add(base)
		}
	}
	for _, a := range d.Totals.Additional {
		s.tax = s.tax.Add(percentOf(bases[a.Code], a.Rate))
	}
	return s
}

func (s subtotal) total() fiscal.Decimal { return s.taxable.Add(s.free).Add(s.itbis).Add(s.tax) }
