package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

type checkCmd struct {
	BaseURL  string `name:"base-url" required:"" help:"Address of the service." placeholder:"URL"`
	Taxpayer string `required:"" help:"Id of the taxpayer." placeholder:"ID"`
	Key      string `required:"" help:"API key of the sandbox, with every scope." placeholder:"KEY"`
}

type checkView struct {
	Checks []checkResult `json:"checks"`
}

type checkResult struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

// Run makes the checks that the contract expects of an integrator. It uses only
// the public API, and fails when a check fails.
func (c checkCmd) Run(t *terminal) error {
	api, err := client.New(c.BaseURL, c.Key, c.Taxpayer, client.WithAttempts(3))
	if err != nil {
		return usageError{lang.OfError(err)}
	}
	k := checker{t: t, api: api, id: uuid.NewString()}
	var view checkView
	failed := 0
	for _, check := range []struct {
		name string
		run  func() (string, error)
	}{
		{"one accepted operation", k.accepted},
		{"one failed validation", k.invalid},
		{"the same request with the same key", k.replayed},
		{"the same key with a different body", k.mismatch},
		{"lookup by external_id", k.found},
		{"lookup of the synthetic fiscal document and its artifacts", k.document},
	} {
		detail, err := check.run()
		if err != nil {
			failed++
			detail = oneLine(err)
		}
		view.Checks = append(view.Checks, checkResult{check.name, err == nil, detail})
	}
	err = t.answer(view, func(w io.Writer) {
		for _, r := range view.Checks {
			mark := "ok"
			if !r.OK {
				mark = "FAILED"
			}
			line(w, mark, r.Name, r.Detail)
		}
	})
	if err == nil && failed > 0 {
		err = lang.Errorf("%d of %d checks failed",
			"%d de %d comprobaciones fallaron", failed, len(view.Checks))
	}
	return err
}

// checker runs the checks. Later checks use the invoice that the first one
// creates.
type checker struct {
	t       *terminal
	api     *client.Client
	id      string
	created client.Response[client.Invoice]
}

func (k *checker) request() client.InvoiceRequest {
	return client.InvoiceRequest{
		ExternalID: "check-" + k.id, ECFType: "32", IssueDate: fiscal.DateOf(time.Now()).String(), Currency: "DOP",
		PaymentType: client.Cash, Buyer: client.Buyer{LegalName: "Consumidor final"},
		Lines: []client.Line{{
			LineID: "1", Description: "Verificación de la integración", ItemKind: client.Service,
			Quantity: "1", UnitPrice: "100.00",
			Taxes: []client.Tax{{Code: "ITBIS", Label: "ITBIS 18%", RatePercent: "18"}},
		}},
		DeclaredTotals: client.Totals{Subtotal: "100.00", DiscountTotal: "0.00", TaxTotal: "18.00", Total: "118.00"},
	}
}

func (k *checker) accepted() (string, error) {
	made, err := k.api.CreateInvoice(k.t.ctx, k.id, k.request())
	if err != nil {
		return "", err
	}
	k.created = made
	if made.Data.Status != "accepted" || made.Meta.Replayed || made.Meta.Location == "" {
		return "", fmt.Errorf("the answer must be a new invoice with status accepted and a Location; its status is %s", made.Data.Status)
	}
	return "invoice " + made.Data.ID + " is accepted (synthetic)", nil
}

func (k *checker) invalid() (string, error) {
	bad := k.request()
	bad.ExternalID += "-invalid"
	bad.DeclaredTotals.Total = "118.0.0"
	_, err := k.api.CreateInvoice(k.t.ctx, k.id+"-invalid", bad)
	refused, err := refusal(err, "validation_error")
	if err != nil {
		return "", err
	}
	for _, d := range refused.Details {
		if d.Field == "declared_totals.total" {
			return fmt.Sprintf("validation_error, %s: %s", d.Field, d.Code), nil
		}
	}
	return "", errors.New("validation_error does not name declared_totals.total")
}

func (k *checker) replayed() (string, error) {
	again, err := k.api.CreateInvoice(k.t.ctx, k.id, k.request())
	if err != nil {
		return "", err
	}
	if !again.Meta.Replayed || again.Data != k.created.Data {
		return "", errors.New("the answer must be the original one with Idempotency-Replayed: true")
	}
	return "the original answer, replayed", nil
}

func (k *checker) mismatch() (string, error) {
	other := k.request()
	other.Notes = "another body"
	_, err := k.api.CreateInvoice(k.t.ctx, k.id, other)
	if _, err := refusal(err, "idempotency_mismatch"); err != nil {
		return "", err
	}
	return "idempotency_mismatch", nil
}

func (k *checker) found() (string, error) {
	page, err := k.api.ListInvoices(k.t.ctx, client.ListOptions{ExternalID: "check-" + k.id})
	if err != nil {
		return "", err
	}
	if len(page.Data) != 1 || page.Data[0].ID != k.created.Data.ID {
		return "", fmt.Errorf("the list must have the created invoice only, and has %d invoices", len(page.Data))
	}
	return "found invoice " + page.Data[0].ID, nil
}

func (k *checker) document() (string, error) {
	found, err := k.api.FindDocument(k.t.ctx, "check-"+k.id)
	if err != nil {
		return "", err
	}
	if found.Data.InvoiceID != k.created.Data.ID {
		return "", errors.New("the document does not belong to the invoice")
	}
	read, err := k.api.Document(k.t.ctx, found.Data.ID)
	if err != nil {
		return "", err
	}
	_, err = k.api.DocumentXML(k.t.ctx, read.Data.ID)
	if _, err := refusal(err, "artifact_not_ready"); err != nil {
		return "", fmt.Errorf("XML: %w", err)
	}
	_, err = k.api.DocumentPDF(k.t.ctx, read.Data.ID)
	if _, err := refusal(err, "artifact_not_ready"); err != nil {
		return "", fmt.Errorf("PDF: %w", err)
	}
	return "document " + read.Data.ID + "; XML and PDF answer artifact_not_ready", nil
}

// refusal returns the error of the API when it has a code. It fails when the
// request succeeded or failed with another error.
func refusal(err error, code client.Code) (*client.Error, error) {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == code {
		return refused, nil
	}
	if err == nil {
		err = errors.New("the request succeeded")
	}
	return nil, fmt.Errorf("the request must fail with %s: %w", code, err)
}
