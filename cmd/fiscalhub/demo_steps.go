package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/lang"
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
