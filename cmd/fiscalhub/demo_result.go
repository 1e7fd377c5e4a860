package main

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// link sets the addresses of the files: a prefix, the number and the extension.
func (s *sample) link(prefix string) {
	for extension := range s.files {
		s.links[extension] = prefix + s.encf + "." + extension
	}
}

// writeFiles writes the files of all samples into a folder.
func (d *demo) writeFiles(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return err
	}
	for _, s := range d.samples {
		s.link(dir + string(filepath.Separator))
		for extension, content := range s.files {
			if err := os.WriteFile(s.links[extension], content, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// demoView is the result of the demo in JSON.
type demoView struct {
	Invoices []demoInvoice `json:"invoices"`
}

// demoInvoice is one invoice of the demo in JSON.
type demoInvoice struct {
	ExternalID string        `json:"external_id"`
	Type       fiscal.Type   `json:"ecf_type"`
	ENCF       string        `json:"encf"`
	Status     client.Status `json:"status"`
	Messages   []string      `json:"status_messages"`
	XML        *string       `json:"xml"` // path or address; null without a file
	PDF        *string       `json:"pdf"`
	Events     []string      `json:"events"` // kinds of the events that arrived by webhook
}

// printResult prints the invoices with their numbers, statuses and files.
func (d *demo) printResult() error {
	v := demoView{}
	for _, s := range d.samples {
		v.Invoices = append(v.Invoices, demoInvoice{s.externalID, s.kind, s.encf, s.status, s.messages, optional(s.links["xml"]), optional(s.links["pdf"]), d.listener.events(s.externalID)})
	}
	b := newTable("EXTERNAL ID", "E-NCF", "STATUS", "XML", "PDF")
	b.whole = true
	for _, s := range d.samples {
		b.add(s.externalID, s.encf, string(s.status), s.describeFile("xml", d.t.language), s.describeFile("pdf", d.t.language))
	}
	return d.t.list(v, b)
}

// describeFile returns the address of a file for a table, or its size when it has
// no address.
func (s *sample) describeFile(extension string, l lang.Language) string {
	switch {
	case s.links[extension] != "":
		return s.links[extension]
	case s.files[extension] != nil:
		return fmt.Sprintf("%d bytes", len(s.files[extension]))
	}
	return lang.Messagef("none", "ninguno").In(l)
}

var demoPage = template.Must(template.New("demo").Parse(`<!doctype html>
<html lang="{{.Language}}"><meta charset="utf-8"><title>fiscalhub demo</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:60rem;padding:0 1rem}td,th{text-align:left;padding:.3rem 1rem .3rem 0;vertical-align:top}small{color:#555}</style>
<h1>fiscalhub demo</h1>
{{if eq .Language "es"}}<p>Facturas de un contribuyente inventado, enviadas a un simulador de la DGII.</p>
<table><tr><th>Factura<th>e-NCF<th>Estado<th>Archivos</tr>
{{else}}<p>Invoices of an invented taxpayer, sent to a simulator of the tax authority.</p>
<table><tr><th>Invoice<th>e-NCF<th>Status<th>Files</tr>
{{end}}{{range .Rows}}<tr><td>{{.ExternalID}}<br><small>{{.About}}</small><td>{{.ENCF}}<td>{{.Status}}{{range .Messages}}<br><small>{{.}}</small>{{end}}<td>{{range $name, $to := .Links}}<a href="{{$to}}">{{$name}}</a> {{end}}</tr>
{{end}}</table></html>
`))

// openPage serves a page with the invoices and their files on this machine. A
// browser cannot open the links of the API, because it does not send the API key.
// The caller calls closeIt.
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
			rows[i] = row{s.externalID, s.about.In(d.t.language), s.encf, string(s.status), s.messages, s.links}
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_ = demoPage.Execute(w, struct {
			Language lang.Language
			Rows     []row
		}{d.t.language, rows}) // the browser may have closed the connection
	})
	mux.HandleFunc("GET /demo/{file}", func(w http.ResponseWriter, r *http.Request) {
		encf, extension, _ := strings.Cut(r.PathValue("file"), ".")
		for _, s := range d.samples {
			if content := s.files[extension]; s.encf == encf && content != nil {
				w.Header().Set("Content-Type", "application/"+extension)
				_, _ = w.Write(content) // the browser may have closed the connection
				return
			}
		}
		http.NotFound(w, r)
	})
	address, closeIt, err = listen(ctx, mux)
	return address + "/demo", closeIt, err
}
