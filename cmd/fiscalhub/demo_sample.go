package main

import (
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// sample is an invoice of the demo and its result.
type sample struct {
	externalID string
	about      lang.Message
	kind       fiscal.Type
	net        int64 // in pesos, without the tax of 18 %
	buyer      client.Buyer
	fault      *simulator.Action // the authority's answer; nil for the usual one
	goal       client.Status     // final status

	invoiceID, documentID string
	encf                  string
	status                client.Status
	messages              []string
	files                 map[string][]byte // by extension, xml or pdf
	links                 map[string]string // where the files are, by extension
}

// demoSamples returns the invoices of the demo, in the order of their creation.
func demoSamples() []*sample {
	receiver := client.Buyer{LegalName: "Receptora Electrónica, SRL", TaxID: demoReceiver}
	other := client.Buyer{LegalName: "Comprador de Papel, SRL", TaxID: demoOther}
	verdict := func(code, message int, text string) *simulator.Action {
		return &simulator.Action{Fault: "F17", Verdict: &simulator.Verdict{Code: code, Used: true, Messages: []simulator.Message{{Code: message, Text: text}}}}
	}
	return []*sample{
		{externalID: "DEMO-1", about: lang.Messagef("a 31 whose buyer receives electronically", "una 31 cuyo comprador es receptor electrónico"), kind: fiscal.FiscalCredit, net: 1000, buyer: receiver, goal: client.Delivered},
		{externalID: "DEMO-2", about: lang.Messagef("a small 32: the authority receives a summary", "una 32 pequeña: la DGII recibe un resumen"), kind: fiscal.Consumer, net: 500, buyer: client.Buyer{LegalName: "Consumidor final"}, goal: client.Accepted},
		{externalID: "DEMO-3", about: lang.Messagef("a 32 of 250,000.00 or more", "una 32 de 250,000.00 o más"), kind: fiscal.Consumer, net: 300_000, buyer: other, goal: client.Accepted},
		{externalID: "DEMO-4", about: lang.Messagef("accepted with a remark", "aceptada con una observación"), kind: fiscal.FiscalCredit, net: 2000, buyer: other, goal: client.AcceptedConditional,
			fault: verdict(4, 90001, "Observación de demostración")},
		{externalID: "DEMO-5", about: lang.Messagef("rejected by the authority", "rechazada por la DGII"), kind: fiscal.FiscalCredit, net: 3000, buyer: other, goal: client.Rejected,
			fault: verdict(2, 90002, "Rechazo de demostración")},
		{externalID: "DEMO-6", about: lang.Messagef("the authority's answer is lost, and the service asks for the status", "se pierde la respuesta de la DGII y el servicio consulta el estado"), kind: fiscal.FiscalCredit, net: 4000, buyer: other, goal: client.Accepted,
			fault: &simulator.Action{Fault: "F02"}},
	}
}

// request returns the creation request of a sample.
func (s *sample) request() client.InvoiceRequest {
	net, tax, total := fmt.Sprintf("%d.00", s.net), fmt.Sprintf("%d.%02d", s.net*18/100, s.net*18%100), fmt.Sprintf("%d.%02d", s.net*118/100, s.net*118%100)
	return client.InvoiceRequest{
		ExternalID: s.externalID, ECFType: string(s.kind), IssueDate: fiscal.DateOf(time.Now()).String(), Currency: "DOP", PaymentType: client.Cash, Buyer: s.buyer,
		Lines: []client.Line{{
			LineID: "1", Description: "Café tostado", ItemKind: client.Product, Quantity: "1", UnitPrice: net,
			Taxes: []client.Tax{{Code: "ITBIS", Label: "ITBIS 18%", RatePercent: "18"}},
		}},
		DeclaredTotals: client.Totals{Subtotal: net, DiscountTotal: "0.00", TaxTotal: tax, Total: total},
		Notes:          "Documento de demostración, sin valor fiscal",
	}
}
