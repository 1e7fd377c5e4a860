package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/bulk"
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
	language := t.language // of the messages of the service
	if t.cli.JSON {
		language = lang.English
	}
	// The checks create an invoice. With a live key it would be a fiscal document, which
	// cannot be undone.
	if key, err := apikey.Parse(c.Key); err == nil && !key.OfSandbox() {
		return wrongUsage("--key is a key of a live environment: check issues an invoice, so it takes only a key of the sandbox",
			"--key es una clave de un ambiente real: check emite una factura, por lo que acepta solo una clave del sandbox")
	}
	api, err := newAPIClient(c.BaseURL, c.Key, c.Taxpayer, client.WithAttempts(3), client.WithLanguage(string(language)))
	if err != nil {
		return err
	}
	k := checker{t: t, api: api, id: uuid.NewString()}
	var view checkView
	var lines [][]string // the names and details in the language of the reader
	failed, advice := 0, lang.Message{}
	for _, check := range []struct {
		name lang.Message
		run  func() (lang.Message, error)
	}{
		{lang.Messagef("one accepted operation", "una operación aceptada"), k.accepted},
		{lang.Messagef("one failed validation", "una validación fallida"), k.invalid},
		{lang.Messagef("the same request with the same key", "la misma solicitud con la misma clave"), k.replayed},
		{lang.Messagef("the same key with a different body", "la misma clave con otro cuerpo"), k.mismatch},
		{lang.Messagef("lookup by external_id", "búsqueda por external_id"), k.found},
		{lang.Messagef("lookup of the synthetic fiscal document and its artifacts",
			"búsqueda del documento fiscal sintético y sus archivos"), k.document},
	} {
		detail, err := check.run()
		if err != nil {
			if failed == 0 {
				advice = adviceOfAnswer(err)
			}
			failed++
			detail = lang.OfError(bulk.AnswerError(err))
		}
		view.Checks = append(view.Checks, checkResult{check.name.String(), err == nil, printable(detail.String())})
		lines = append(lines, []string{check.name.In(t.language), detail.In(t.language)})
	}
	err = t.answer(view, func(w io.Writer) {
		for i, r := range view.Checks {
			mark := "ok"
			if !r.OK {
				mark = lang.Messagef("FAILED", "FALLÓ").In(t.language)
			}
			line(w, mark, lines[i][0], lines[i][1])
		}
	})
	if err == nil && failed > 0 {
		err = lang.Errorf("%d of %d checks failed.%s", "%d de %d comprobaciones fallaron.%s", failed, len(view.Checks), advice)
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

func (k *checker) accepted() (lang.Message, error) {
	made, err := k.api.CreateInvoice(k.t.ctx, k.id, k.request())
	if err != nil {
		return lang.Message{}, err
	}
	k.created = made
	if made.Data.Status != "accepted" || made.Meta.Replayed || made.Meta.Location == "" {
		return lang.Message{}, lang.Errorf("the answer must be a new invoice with status accepted and a Location; its status is %s",
			"la respuesta debe ser una factura nueva con estado accepted y un Location; su estado es %s", made.Data.Status)
	}
	return lang.Messagef("invoice %s is accepted (synthetic)", "la factura %s está aceptada (sintética)", made.Data.ID), nil
}

func (k *checker) invalid() (lang.Message, error) {
	bad := k.request()
	bad.ExternalID += "-invalid"
	bad.DeclaredTotals.Total = "118.0.0"
	_, err := k.api.CreateInvoice(k.t.ctx, k.id+"-invalid", bad)
	refused, err := refusal(err, "validation_error")
	if err != nil {
		return lang.Message{}, err
	}
	for _, d := range refused.Details {
		if d.Field == "declared_totals.total" {
			return lang.Literal(fmt.Sprintf("validation_error, %s: %s", d.Field, d.Code)), nil
		}
	}
	return lang.Message{}, lang.Errorf("validation_error does not name declared_totals.total", "validation_error no nombra declared_totals.total")
}

func (k *checker) replayed() (lang.Message, error) {
	again, err := k.api.CreateInvoice(k.t.ctx, k.id, k.request())
	if err != nil {
		return lang.Message{}, err
	}
	if !again.Meta.Replayed || again.Data != k.created.Data {
		return lang.Message{}, lang.Errorf("the answer must be the original one with Idempotency-Replayed: true",
			"la respuesta debe ser la original con Idempotency-Replayed: true")
	}
	return lang.Messagef("the original answer, replayed", "la respuesta original, repetida"), nil
}

func (k *checker) mismatch() (lang.Message, error) {
	other := k.request()
	other.Notes = "another body"
	_, err := k.api.CreateInvoice(k.t.ctx, k.id, other)
	if _, err := refusal(err, "idempotency_mismatch"); err != nil {
		return lang.Message{}, err
	}
	return lang.Literal("idempotency_mismatch"), nil
}

func (k *checker) found() (lang.Message, error) {
	page, err := k.api.ListInvoices(k.t.ctx, client.ListOptions{ExternalID: "check-" + k.id})
	if err != nil {
		return lang.Message{}, err
	}
	if len(page.Data) != 1 || page.Data[0].ID != k.created.Data.ID {
		return lang.Message{}, lang.Errorf("the list must have the created invoice only, and has %d invoices",
			"la lista debe tener solo la factura creada, y tiene %d facturas", len(page.Data))
	}
	return lang.Messagef("found invoice %s", "se encontró la factura %s", page.Data[0].ID), nil
}

func (k *checker) document() (lang.Message, error) {
	found, err := k.api.FindDocument(k.t.ctx, "check-"+k.id)
	if err != nil {
		return lang.Message{}, err
	}
	if found.Data.InvoiceID != k.created.Data.ID {
		return lang.Message{}, lang.Errorf("the document does not belong to the invoice", "el documento no pertenece a la factura")
	}
	read, err := k.api.Document(k.t.ctx, found.Data.ID)
	if err != nil {
		return lang.Message{}, err
	}
	_, err = k.api.DocumentXML(k.t.ctx, read.Data.ID)
	if _, err := refusal(err, "artifact_not_ready"); err != nil {
		return lang.Message{}, lang.Errorf("XML: %s", "XML: %s", err)
	}
	_, err = k.api.DocumentPDF(k.t.ctx, read.Data.ID)
	if _, err := refusal(err, "artifact_not_ready"); err != nil {
		return lang.Message{}, lang.Errorf("PDF: %s", "PDF: %s", err)
	}
	return lang.Messagef("document %s; XML and PDF answer artifact_not_ready", "documento %s; XML y PDF responden artifact_not_ready", read.Data.ID), nil
}

// refusal returns the error of the API when it has a code. It fails when the
// request succeeded or failed with another error.
func refusal(err error, code client.Code) (*client.Error, error) {
	var refused *client.Error
	if errors.As(err, &refused) && refused.Code == code {
		return refused, nil
	}
	if err == nil {
		err = lang.Errorf("the request succeeded", "la solicitud tuvo éxito")
	}
	return nil, lang.Errorf("the request must fail with %s: %s", "la solicitud debe fallar con %s: %s", code, bulk.AnswerError(err))
}

// apiBase returns the address of a service. A user may add the version of the API, as serve
// prints it.
func apiBase(url string) string {
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(url, "/"), "/v1"), "/")
}

// newAPIClient returns a client of the API for a command that has the flags --base-url,
// --taxpayer and --key. The errors do not show the values: any of them may contain a secret
// by mistake.
func newAPIClient(baseURL, key, taxpayer string, options ...client.Option) (*client.Client, error) {
	api, err := client.New(apiBase(baseURL), key, taxpayer, options...)
	hidden := func(r rune) bool { return r <= ' ' || r > '~' }
	switch {
	case err == nil:
		return api, nil
	case len(taxpayer) != 36 || uuid.Validate(taxpayer) != nil:
		return nil, usageError{lang.Messagef("--taxpayer: must be the id of a taxpayer, which is a UUID; you got it with the API key",
			"--taxpayer: debe ser el id de un contribuyente, que es un UUID; lo recibió con la clave de API")}
	case key == "" || strings.ContainsFunc(key, hidden):
		return nil, usageError{lang.Messagef("--key: the API key is empty or has characters that no key has; copy it again",
			"--key: la clave de API está vacía o tiene caracteres que ninguna clave tiene; cópiela otra vez")}
	default:
		return nil, usageError{lang.Messagef("--base-url: must be an address with http or https and a host, such as https://api.example.com, without user, query and fragment",
			"--base-url: debe ser una dirección con http o https y un servidor, como https://api.example.com, sin usuario, parámetros ni fragmento")}
	}
}
