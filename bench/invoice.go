package main

import (
	"fmt"
	"strings"
)

// invoiceBody returns a creation request with lines of 100.00 and ITBIS. A thousand
// lines are about 400 KB: each has a stock code, a unit and a long description.
func invoiceBody(externalID string, lines int) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, `{"external_id":%q,"ecf_type":"31","issue_date":"2026-11-14","currency":"DOP","payment_type":"cash",`+
		`"buyer":{"legal_name":"Ferretería El Tornillo Azul, SRL","tax_id":"199000021","email":"compras@tornilloazul.example",`+
		`"address":{"line1":"Av. Imaginaria 450","city":"Santiago","country_code":"DO"}},"lines":[`, externalID)
	for i := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"line_id":"%d","description":"Taladro percutor 600 W con maletín, brocas para concreto y madera, línea %d, garantía de un año",`+
			`"sku":"TAL-600-%06d","unit":"unidad","unit_code":43,"item_kind":"product","billing_indicator":1,"quantity":"1.00","unit_price":"111.1111",`+
			`"discount":{"kind":"percentage","value":"10.00"},"taxes":[{"code":"ITBIS","label":"ITBIS 18%%","rate_percent":"18.00"}]}`, i+1, i+1, i)
	}
	fmt.Fprintf(&b, `],"declared_totals":{"subtotal":"%d.%02d","discount_total":"%d.%02d","tax_total":"%d.00","total":"%d.00"}}`,
		lines*11111/100, lines*11111%100, lines*1111/100, lines*1111%100, lines*18, lines*118)
	return []byte(b.String())
}

// mixedBody returns a typical creation request: two of five lines have a stock code,
// one a discount, and one a description that is too long for the name of an item.
func mixedBody(lines int) []byte {
	kinds := [...]string{
		`"description":"Tornillo galvanizado 1/4, línea %d","sku":"TOR-14","unit":"unidad","item_kind":"product","quantity":"10","unit_price":"10.00","discount":null`,
		`"description":"Detergente líquido concentrado %d","unit":"galón","item_kind":"product","quantity":"1","unit_price":"111.1111","discount":{"kind":"percentage","value":"10"}`,
		`"description":"Servicio de instalación %d","item_kind":"service","quantity":"1","unit_price":"100.00","discount":null`,
		`"description":"Café molido %d","sku":"CAF-1LB","unit":"lb","item_kind":"product","quantity":"2","unit_price":"50.00","discount":null`,
		`"description":"Taladro percutor 600 W con maletín, brocas para concreto y madera, línea %d, garantía de un año","unit_code":43,"item_kind":"product","quantity":"1","unit_price":"100.00","discount":null`,
	}
	var b strings.Builder
	b.WriteString(`{"external_id":"mixed","ecf_type":"31","issue_date":"2026-11-14","currency":"DOP","payment_type":"cash",` +
		`"buyer":{"legal_name":"Ferretería El Tornillo Azul, SRL","tax_id":"199000021","email":"compras@tornilloazul.example"},"lines":[`)
	discounted := 0
	for i := range lines {
		if i > 0 {
			b.WriteByte(',')
		}
		if i%len(kinds) == 1 {
			discounted++
		}
		fmt.Fprintf(&b, `{"line_id":"%d",`+kinds[i%len(kinds)]+`,"taxes":[{"code":"ITBIS","label":"ITBIS 18%%","rate_percent":"18"}]}`, i+1, i+1)
	}
	discount := discounted * 1111
	fmt.Fprintf(&b, `],"declared_totals":{"subtotal":"%d.%02d","discount_total":"%d.%02d","tax_total":"%d.00","total":"%d.00"}}`,
		(lines*10000+discount)/100, (lines*10000+discount)%100, discount/100, discount%100, lines*18, lines*118)
	return []byte(b.String())
}
