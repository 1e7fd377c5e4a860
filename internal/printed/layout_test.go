package printed

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// TestNothingIsSmallOrOutsideOrOverlaps lays out documents with texts and amounts
// of every length that the format allows, and checks each text.
func TestNothingIsSmallOrOutsideOrOverlaps(t *testing.T) {
	t.Parallel()
	code, err := encodeQR(page(t, sample(t, fiscal.FiscalCredit, manyLines(t, 1)...), "//////").Stamp.String())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(r *rapid.T) {
		p := anyPage(t, r)
		var picture *logo
		if rapid.Bool().Draw(r, "logo") {
			picture = &logo{w: rapid.Float64Range(1, logoWidth).Draw(r, "logo w"), h: rapid.Float64Range(1, logoHeight).Draw(r, "logo h")}
		}
		for f, sheets := range [][]sheet{
			(&letter{page: p, logo: picture, qr: code}).sheets(),
			newReceipt(p, picture, code, roll80()).sheets(),
			newReceipt(p, picture, code, roll58()).sheets(),
		} {
			for i, s := range sheets {
				if fault := inspect(&s, Format(f)); fault != "" {
					r.Fatalf("format %d, page %d of %d: %s", f, i+1, len(sheets), fault)
				}
			}
		}
	})
}

// inspect returns the first mistake in the layout of a sheet, or "".
func inspect(s *sheet, f Format) string {
	margin := [formats]float64{letterMargin, roll80().margin, roll58().margin}[f]
	boxes := make(map[int][]item) // by the centimetre in which they are
	for _, i := range s.items {
		switch i.kind {
		case drawText:
			if i.style.size < minSize {
				return fmt.Sprintf("%q is of %.2f points", i.text, i.style.size)
			}
			if i.x < margin-0.01 || i.x+i.w > s.w-margin+0.01 || i.y < i.h || i.y > s.h-3 {
				return fmt.Sprintf("%q is at %.1f–%.1f, %.1f", i.text, i.x, i.x+i.w, i.y)
			}
			// The body of the characters: these parts of two lines must not overlap.
			i.y -= 0.68 * i.h
			i.h *= 0.68
		case drawQR:
			if i.w < 22 || f == Letter && (i.x < 20 || s.h-i.y-i.h < 20) {
				return fmt.Sprintf("the QR code is %.1f mm at %.1f, %.1f", i.w, i.x, i.y)
			}
			if 4*i.w/float64(len(i.qr)) > qrBorder {
				return "the QR code has no room for its quiet zone"
			}
			i.x, i.y, i.w, i.h = i.x-qrBorder, i.y-qrBorder, i.w+2*qrBorder, i.h+2*qrBorder
			i.text = "the QR code"
		case drawLogo:
			i.text = "the logo"
		case drawFill, drawFrame:
			continue
		}
		for cm := int(i.y / 10); cm <= int((i.y+i.h)/10); cm++ {
			for _, b := range boxes[cm] {
				if i.x < b.x+b.w-0.01 && b.x < i.x+i.w-0.01 && i.y < b.y+b.h-0.01 && b.y < i.y+i.h-0.01 {
					return fmt.Sprintf("%q and %q overlap at %.1f, %.1f", b.text, i.text, i.x, i.y)
				}
			}
			boxes[cm] = append(boxes[cm], i)
		}
	}
	return ""
}

// anyText draws texts like those of integrators, sometimes one of the maximum
// length.
func anyText(r *rapid.T, name string, longest int) string {
	letters := rapid.SampledFrom([]rune("aeinorstlWMáéñÑü &<>\"'/-.,()0123456789€…—漢😀\u0301\u200d\n\t"))
	one := rapid.OneOf(letters, letters, letters, rapid.Rune())
	return rapid.OneOf(
		rapid.StringOfN(one, 0, longest, -1),
		rapid.StringOfN(one, 0, longest, -1),
		rapid.Just(strings.Repeat("W", longest)),
		rapid.Just(words(longest)),
		rapid.Just(strings.Repeat("x\n", longest/2)),
	).Draw(r, name)
}

// anyPage draws a page within the limits of the format.
func anyPage(t *testing.T, r *rapid.T) Page {
	prices := rapid.SampledFrom([]string{"0", "1", "12.5", "999.9999", "12345678901234.5678", "9999999999999999.99"})
	amounts := rapid.SampledFrom([]string{"0", "0.01", "1", "12.5", "1234567.89", "999999999999999.99", "123456789012345.6"})
	var lines []ecf.Line
	for range rapid.IntRange(1, 25).Draw(r, "lines") {
		l := ecf.Line{
			Indicator: fiscal.Indicator(rapid.IntRange(1, 4).Draw(r, "indicator")),
			Name:      anyText(r, "name", 80), Unit: rapid.IntRange(0, 62).Draw(r, "unit"),
			Quantity: decimal(t, amounts.Draw(r, "quantity")), Price: decimal(t, prices.Draw(r, "price")),
			Amount: decimal(t, amounts.Draw(r, "amount")),
		}
		if rapid.IntRange(0, 9).Draw(r, "long") == 0 {
			l.Description, l.Discount = anyText(r, "description", 500), l.Amount
		}
		lines = append(lines, l)
	}
	d := sample(t, rapid.SampledFrom([]fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer}).Draw(r, "type"), lines...)
	d.Issuer.LegalName = "x" + anyText(r, "legal name", 149)
	d.Issuer.TradeName, d.Issuer.Branch, d.Issuer.Address = anyText(r, "trade name", 150), anyText(r, "branch", 20), anyText(r, "address", 100)
	d.Issuer.Website, d.Issuer.Email = anyText(r, "website", 50), anyText(r, "issuer email", 80)
	d.Issuer.Phones = rapid.SliceOfN(rapid.Just("809-555-0101"), 0, 3).Draw(r, "phones")
	d.Buyer.Contact, d.Buyer.Information = anyText(r, "contact", 80), anyText(r, "information", 150)
	d.Buyer.LegalName, d.Buyer.Address, d.Buyer.Email = anyText(r, "buyer", 150), anyText(r, "buyer address", 100), anyText(r, "email", 80)
	d.Inclusive = rapid.Bool().Draw(r, "inclusive")
	for _, code := range []string{"001", "002", "003", "004", "005"} {
		if rapid.Bool().Draw(r, code) {
			d.Totals.Additional = append(d.Totals.Additional, ecf.AdditionalTax{Code: code, Rate: decimal(t, "10"), Amount: decimal(t, amounts.Draw(r, "tax"))})
		}
	}
	d.Totals.Withheld = rapid.Bool().Draw(r, "withheld")
	p := page(t, d, "k7Qx+2")
	p.Language = rapid.SampledFrom([]string{"es", "en"}).Draw(r, "language")
	p.Contingency = rapid.Bool().Draw(r, "contingency")
	p.Extra = Extra{
		Notes: anyText(r, "notes", 2000), PaymentTerms: anyText(r, "terms", 500), PurchaseOrder: anyText(r, "order", 120),
		BuyerPostalCode: anyText(r, "postal code", 20), Units: []string{anyText(r, "unit text", 80)},
		DueDate:      date(t, "2026-02-26"),
		Withholdings: &fiscal.Withholdings{ITBIS: fiscal.Withholding{Base: decimal(t, amounts.Draw(r, "base")), Rate: decimal(t, "30"), HasBase: true, HasRate: true}},
	}
	return p
}

func TestPaginateKeepsARowWithTheTotals(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		heights := rapid.SliceOfN(rapid.Float64Range(1, 50), 0, 200).Draw(r, "heights")
		anyRoom := func(name string) room {
			rows := rapid.Float64Range(50, 200).Draw(r, name)
			return room{rows, rapid.Float64Range(-20, rows).Draw(r, name+" with totals")}
		}
		first, later := anyRoom("room of the first page"), anyRoom("room of the others")
		rows := make([]row, len(heights))
		for i, h := range heights {
			rows[i] = row{block{h: h}, i}
		}
		next := 0
		pages := paginate(rows, first, later)
		for i, page := range pages {
			last := i == len(pages)-1
			room := later
			if i == 0 {
				room = first
			}
			if h := height(page); h > room.rows || last && len(page) > 0 && h > room.last {
				r.Fatalf("page %d is %.1f high", i+1, h)
			}
			if !last && len(page) == 0 && (i > 0 || rows[0].h <= room.rows) {
				r.Fatalf("page %d is empty", i+1)
			}
			for _, n := range lineNumbers(page) {
				if n != next {
					r.Fatalf("row %d comes where %d should", n, next)
				}
				next++
			}
		}
		if next != len(rows) {
			r.Fatalf("%d of %d rows", next, len(rows))
		}
	})
}
