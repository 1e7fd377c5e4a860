package main

import (
	"context"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// sample is an invoice of the tour and what became of it.
type sample struct {
	externalID string
	about      string
	kind       fiscal.Type
	net        int64 // in pesos; 18 % of tax are added
	buyer      client.Buyer
	fault      *simulator.Action // what goes wrong at the authority
	goal       client.Status

	invoiceID, documentID string
	encf                  string
	status                client.Status
	messages              []string
	files                 map[string][]byte // by their ending
	links                 map[string]string
}

// demoSamples are the invoices of the tour, in the order that they are made.
func demoSamples() []*sample {
	receiver := client.Buyer{LegalName: "Receptora Electrónica, SRL", TaxID: demoReceiver}
	other := client.Buyer{LegalName: "Comprador de Papel, SRL", TaxID: demoOther}
	verdict := func(code, message int, text string) *simulator.Action {
		return &simulator.Action{Fault: "F17", Verdict: &simulator.Verdict{Code: code, Used: true, Messages: []simulator.Message{{Code: message, Text: text}}}}
	}
	return []*sample{
		{externalID: "DEMO-1", about: "a 31 whose buyer receives electronically", kind: fiscal.FiscalCredit, net: 1000, buyer: receiver, goal: client.Delivered},
		{externalID: "DEMO-2", about: "a small 32, of which the authority gets a summary", kind: fiscal.Consumer, net: 500, buyer: client.Buyer{LegalName: "Consumidor final"}, goal: client.Accepted},
		{externalID: "DEMO-3", about: "a 32 of 250,000.00 or more", kind: fiscal.Consumer, net: 300_000, buyer: other, goal: client.Accepted},
		{externalID: "DEMO-4", about: "accepted with a remark", kind: fiscal.FiscalCredit, net: 2000, buyer: other, goal: client.AcceptedConditional,
			fault: verdict(4, 90001, "Observación de demostración")},
		{externalID: "DEMO-5", about: "rejected by the authority", kind: fiscal.FiscalCredit, net: 3000, buyer: other, goal: client.Rejected,
			fault: verdict(2, 90002, "Rechazo de demostración")},
		{externalID: "DEMO-6", about: "the authority's answer is lost, and it is asked", kind: fiscal.FiscalCredit, net: 4000, buyer: other, goal: client.Accepted,
			fault: &simulator.Action{Fault: "F02"}},
	}
}

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

// create makes the invoices through the public API. Each waits for the number of
// the one before, so that every fault meets its own.
func (d *demo) create(ctx context.Context) error {
	for _, s := range d.samples {
		made, err := d.api.CreateInvoice(ctx, "demo-"+s.externalID, s.request())
		if err != nil {
			return fmt.Errorf("%s: %w", s.externalID, err)
		}
		s.invoiceID, s.documentID, s.status = made.Data.ID, made.Data.FiscalDocumentID, made.Data.Status
		d.t.say("%s  %-20s %s", s.externalID, s.status, s.about)
		numbered := func() (bool, error) {
			document, err := d.api.Document(ctx, s.documentID)
			if err == nil && document.Data.ENCF != "" && document.Data.ENCF != s.encf {
				err = fmt.Errorf("%s has the number %s, want %s", s.externalID, document.Data.ENCF, s.encf)
			}
			return document.Data.ENCF != "", err
		}
		if err := await(ctx, numbered, func() string { return s.externalID + " has no number" }); err != nil {
			return err
		}
	}
	return nil
}

// await asks until it is so, for as long as the tour may take.
func await(ctx context.Context, so func() (bool, error), what func() string) error {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	end := time.After(demoTime)
	for {
		if done, err := so(); done || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-end:
			return fmt.Errorf("not within %s: %s", demoTime, what())
		}
	}
}

// follow tells what becomes of the invoices until each is where it goes.
func (d *demo) follow(ctx context.Context) error {
	byID := map[string]*sample{}
	for _, s := range d.samples {
		byID[s.invoiceID] = s
	}
	var open []string
	arrived := func() (bool, error) {
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
				d.t.say("%s  %-20s %s", s.externalID, s.status, s.encf)
			}
			if s.status != s.goal {
				open = append(open, s.externalID+" is "+string(s.status))
			}
		}
		return len(open) == 0, nil
	}
	return await(ctx, arrived, func() string { return strings.Join(open, ", ") })
}

// fetch downloads what each invoice has. A rejected one has no page.
func (d *demo) fetch(ctx context.Context) error {
	for _, s := range d.samples {
		s.files, s.links = map[string][]byte{}, map[string]string{}
		document, err := d.api.Document(ctx, s.documentID)
		if err != nil {
			return err
		}
		s.messages = document.Data.StatusMessages
		for ending, get := range map[string]func(context.Context, string) (client.Response[[]byte], error){"xml": d.api.DocumentXML, "pdf": d.api.DocumentPDF} {
			file, err := get(ctx, s.documentID)
			var refused *client.Error
			if errors.As(err, &refused) && refused.Code == client.CodeArtifactNotReady {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s of %s: %w", ending, s.externalID, err)
			}
			s.files[ending] = file.Data
		}
	}
	return nil
}

// link says where the files of a sample are: under a prefix, by their number.
func (s *sample) link(prefix string) {
	for ending := range s.files {
		s.links[ending] = prefix + s.encf + "." + ending
	}
}

// write puts the files into a folder.
func (d *demo) write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, s := range d.samples {
		s.link(dir + string(filepath.Separator))
		for ending, content := range s.files {
			if err := os.WriteFile(s.links[ending], content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

type demoView struct {
	Invoices []demoInvoice `json:"invoices"`
}

type demoInvoice struct {
	ExternalID string        `json:"external_id"`
	Type       fiscal.Type   `json:"ecf_type"`
	ENCF       string        `json:"encf"`
	Status     client.Status `json:"status"`
	Messages   []string      `json:"status_messages"`
	XML        *string       `json:"xml"` // where it is; null when it is nowhere
	PDF        *string       `json:"pdf"`
	Events     []string      `json:"events"` // that webhooks have told
}

// show prints the table of what came out.
func (d *demo) show() error {
	v := demoView{}
	for _, s := range d.samples {
		v.Invoices = append(v.Invoices, demoInvoice{s.externalID, s.kind, s.encf, s.status, s.messages, optional(s.links["xml"]), optional(s.links["pdf"]), d.listener.events(s.externalID)})
	}
	return d.t.answer(v, func(w io.Writer) {
		line(w, "EXTERNAL ID", "E-NCF", "STATUS", "XML", "PDF")
		for _, s := range d.samples {
			line(w, s.externalID, s.encf, string(s.status), s.shown("xml"), s.shown("pdf"))
		}
	})
}

// shown is a file for people: where it is, or else how large it was.
func (s *sample) shown(ending string) string {
	switch {
	case s.links[ending] != "":
		return s.links[ending]
	case s.files[ending] != nil:
		return fmt.Sprintf("%d bytes", len(s.files[ending]))
	}
	return "none"
}

var demoPage = template.Must(template.New("demo").Parse(`<!doctype html>
<html lang="en"><meta charset="utf-8"><title>fiscalhub demo</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}td,th{text-align:left;padding:.3rem 1rem .3rem 0;vertical-align:top}small{color:#555}</style>
<h1>fiscalhub demo</h1>
<p>Invoices of a taxpayer that does not exist, issued against a simulator of the tax authority.</p>
<table><tr><th>Invoice<th>e-NCF<th>Status<th>Files</tr>
{{range .}}<tr><td>{{.ExternalID}}<br><small>{{.About}}</small><td>{{.ENCF}}<td>{{.Status}}{{range .Messages}}<br><small>{{.}}</small>{{end}}<td>{{range $name, $to := .Links}}<a href="{{$to}}">{{$name}}</a> {{end}}</tr>
{{end}}</table></html>
`))

// openPage serves the invoices and their files to a browser of this machine: the
// API's own links want a key, which a browser does not send.
func (d *demo) openPage(ctx context.Context) (address string, closeIt func(), err error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /demo", func(w http.ResponseWriter, _ *http.Request) {
		type row struct {
			ExternalID, About, ENCF, Status string
			Messages                        []string
			Links                           map[string]string
		}
		rows := make([]row, len(d.samples))
		for i, s := range d.samples {
			rows[i] = row{s.externalID, s.about, s.encf, string(s.status), s.messages, s.links}
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = demoPage.Execute(w, rows) // a reader who has left misses nothing
	})
	mux.HandleFunc("GET /demo/{file}", func(w http.ResponseWriter, r *http.Request) {
		encf, ending, _ := strings.Cut(r.PathValue("file"), ".")
		for _, s := range d.samples {
			if content := s.files[ending]; s.encf == encf && content != nil {
				w.Header().Set("Content-Type", "application/"+ending)
				_, _ = w.Write(content) // as above
				return
			}
		}
		http.NotFound(w, r)
	})
	address, closeIt, err = listen(ctx, mux)
	return address + "/demo", closeIt, err
}
