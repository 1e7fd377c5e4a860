package ecf_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// manyLines is a valid request of a thousand lines of 100.00.
func manyLines(lines int) []byte {
	var b strings.Builder
	b.WriteString(`{"external_id":"X-1","ecf_type":"31","issue_date":"2026-03-05","currency":"DOP","payment_type":"cash","buyer":{"legal_name":"Comprador, SRL","tax_id":"199000021"},"lines":[`)
	for i := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"line_id":"%d","description":"Taladro percutor 600 W con maletín, brocas para concreto y madera, línea %d, garantía de un año","sku":"TAL-%06d","unit":"unidad","item_kind":"product","quantity":"1","unit_price":"111.1111","discount":{"kind":"percentage","value":"10"},"taxes":[{"code":"ITBIS","label":"ITBIS","rate_percent":"18"}]}`, i+1, i+1, i)
	}
	fmt.Fprintf(&b, `],"declared_totals":{"subtotal":"%d.%02d","discount_total":"%d.%02d","tax_total":"%d.00","total":"%d.00"}}`,
		lines*11111/100, lines*11111%100, lines*1111/100, lines*1111%100, lines*18, lines*118)
	return []byte(b.String())
}

func BenchmarkSign1000(b *testing.B) {
	inv, id := invoice(b, manyLines(1000)), signer(b)
	number := ecf.Number{ENCF: must(fiscal.NewENCF(fiscal.FiscalCredit, 1)), Expires: inv.IssueDate}
	b.ReportAllocs()
	for b.Loop() {
		d, err := ecf.New(palmaClara(), number, inv, time.Time{})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := d.Sign(id); err != nil {
			b.Fatal(err)
		}
	}
}
