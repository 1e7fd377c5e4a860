package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// createInvoices creates the invoices through the public API. It waits for the
// number of each before the next, because the faults of the simulator are set by
// number.
func (d *demo) createInvoices(ctx context.Context) error {
	for _, s := range d.samples {
		made, err := d.api.CreateInvoice(ctx, "demo-"+s.externalID, s.request())
		if err != nil {
			return lang.Errorf("%s: %s", "%s: %s", s.externalID, err)
		}
		s.invoiceID, s.documentID, s.status = made.Data.ID, made.Data.FiscalDocumentID, made.Data.Status
		d.t.progress(lang.Literal(fmt.Sprintf("%s  %-20s %s", s.externalID, s.status, s.about.In(d.t.language))))
		numbered := func() (bool, error) {
			document, err := d.api.Document(ctx, s.documentID)
			if err == nil && document.Data.ENCF != "" && document.Data.ENCF != s.encf {
				err = lang.Errorf("%s has the number %s instead of %s",
					"%s tiene la secuencia %s en lugar de %s", s.externalID, document.Data.ENCF, s.encf)
			}
			return document.Data.ENCF != "", err
		}
		if err := await(ctx, numbered, func() lang.Message {
			return lang.Messagef("%s has no number", "%s no tiene secuencia", s.externalID)
		}); err != nil {
			return err
		}
	}
	return nil
}

// await calls done until it returns true or an error. After a minute it fails with
// the text of problem.
func await(ctx context.Context, done func() (bool, error), problem func() lang.Message) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.After(demoTimeout)
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return lang.Errorf("after %s: %s", "después de %s: %s", demoTimeout, problem())
		}
	}
}

// awaitStatuses waits until each invoice has its final status, and prints every
// change.
func (d *demo) awaitStatuses(ctx context.Context) error {
	byID := map[string]*sample{}
	for _, s := range d.samples {
		byID[s.invoiceID] = s
	}
	var open []string
	complete := func() (bool, error) {
		page, err := d.api.ListInvoices(ctx, client.ListOptions{})
		if err != nil {
			return false, err
		}
		open = open[:0]
		for _, inv := range page.Data {
			s := byID[inv.ID]
			if s == nil {
				continue
			}
			if s.status != inv.Status {
				s.status = inv.Status
				d.t.progress(lang.Literal(fmt.Sprintf("%s  %-20s %s", s.externalID, s.status, s.encf)))
			}
			if s.status != s.goal {
				open = append(open, s.externalID+" is "+string(s.status))
			}
		}
		return len(open) == 0, nil
	}
	return await(ctx, complete, func() lang.Message { return lang.Literal(strings.Join(open, ", ")) })
}

// fetchFiles downloads the XML and the PDF of each invoice. A rejected invoice has
// no PDF.
func (d *demo) fetchFiles(ctx context.Context) error {
	for _, s := range d.samples {
		s.files, s.links = map[string][]byte{}, map[string]string{}
		document, err := d.api.Document(ctx, s.documentID)
		if err != nil {
			return err
		}
		s.messages = document.Data.StatusMessages
		for extension, get := range map[string]func(context.Context, string) (client.Response[[]byte], error){"xml": d.api.DocumentXML, "pdf": d.api.DocumentPDF} {
			file, err := get(ctx, s.documentID)
			var refused *client.Error
			if errors.As(err, &refused) && refused.Code == client.CodeArtifactNotReady {
				continue
			}
			if err != nil {
				return lang.Errorf("%s of %s: %s", "%s de %s: %s", extension, s.externalID, err)
			}
			s.files[extension] = file.Data
		}
	}
	return nil
}

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
