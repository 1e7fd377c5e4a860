package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// startView is what serve prints with --json when it listens.
type startView struct {
	Version     string             `json:"version"`
	Environment fiscal.Environment `json:"environment"`
	Engine      string             `json:"engine"`
	API         string             `json:"api"`
	Docs        string             `json:"docs"`
	Console     string             `json:"console,omitempty"`  // when the process serves it
	Receiver    string             `json:"receiver,omitempty"` // when it listens apart from the API
	TaxpayerID  string             `json:"taxpayer_id,omitempty"`
	APIKey      string             `json:"api_key,omitempty"`      // of the demonstration taxpayer, once
	ConsoleLink string             `json:"console_link,omitempty"` // of the demonstration operator, once
}

// printStart prints the addresses of the service and, in a sandbox, how to use it.
func (t *terminal) printStart(v startView, baseURL string) error {
	if t.cli.JSON {
		return t.answer(v, nil)
	}
	_, _ = io.WriteString(t.out, lang.Messagef("fiscalhub %s, %s on %s\n  API  %s\n", "fiscalhub %s, %s en %s\n  API  %s\n",
		v.Version, v.Environment, v.Engine, v.API).In(t.language))
	if v.Receiver != "" {
		_, _ = io.WriteString(t.out, lang.Messagef("  Receiver %s\n", "  Receptor %s\n", v.Receiver).In(t.language))
	}
	if v.Console != "" {
		_, _ = io.WriteString(t.out, lang.Messagef("  Console %s\n", "  Consola %s\n", v.Console).In(t.language))
	}
	_, _ = io.WriteString(t.out, lang.Messagef("  Docs %s\n", "  Documentación %s\n", v.Docs).In(t.language))
	if v.ConsoleLink != "" {
		_, _ = io.WriteString(t.out, lang.Messagef(
			"\nOpen the console in a browser with this link, valid for 24 hours and once. The operator demo sets a password there:\n  %s\n",
			"\nAbra la consola en un navegador con este enlace, válido una sola vez y por 24 horas. Allí el operador demo define una contraseña:\n  %s\n", v.ConsoleLink).In(t.language))
	}
	switch {
	case v.APIKey != "":
		_, _ = io.WriteString(t.out, lang.Messagef(`
The database was empty, so it has a demonstration taxpayer now. Its API key is shown only this time:
  taxpayer  %s
  api key   %s

Create an invoice:

%s
`, `
La base de datos estaba vacía, así que ahora tiene un contribuyente de demostración. Su clave de API se muestra solo esta vez:
  contribuyente  %s
  clave de API   %s

Cree una factura:

%s
`, v.TaxpayerID, v.APIKey, curl(baseURL, v.TaxpayerID, v.APIKey, "demo-0001")).In(t.language))
	case v.TaxpayerID != "":
		command := fmt.Sprintf("fiscalhub credential create%s --taxpayer %s --environment %s --scope invoices.write,invoices.read,ecf.submit,ecf.read,webhooks.manage",
			t.sharedFlags(), v.TaxpayerID, v.Environment)
		_, _ = io.WriteString(t.out, lang.Messagef("\nThe service shows an API key only once. For a new one, run:\n  %s\n",
			"\nEl servicio muestra una clave de API solo una vez. Para una nueva, ejecute:\n  %s\n", command).In(t.language))
	}
	return nil
}

// sharedFlags returns the flags that name the database, as the command line had them.
func (t *terminal) sharedFlags() string {
	text := ""
	if t.cli.Data != "./data" {
		text += " --data " + t.cli.Data
	}
	if t.cli.Database != "" && !strings.Contains(t.cli.Database, "@") { // it may have a password
		text += " --database " + t.cli.Database
	}
	return text
}

// demonstrationRequest is the body of a complete invoice of RD$590.00: 500.00
// and 18 % ITBIS. Its verb takes the issue date.
const demonstrationRequest = `{
  "external_id": "DEMO-0001",
  "ecf_type": "32",
  "issue_date": "%s",
  "currency": "DOP",
  "payment_type": "cash",
  "buyer": { "legal_name": "Consumidor final" },
  "lines": [{
    "line_id": "1", "description": "Café molido 1 lb", "item_kind": "product",
    "quantity": "2", "unit_price": "250.00", "discount": null,
    "taxes": [{ "code": "ITBIS", "label": "ITBIS 18%%", "rate_percent": "18" }]
  }],
  "declared_totals": { "subtotal": "500.00", "discount_total": "0.00", "tax_total": "90.00", "total": "590.00" }
}`

// bootstrap creates a demonstration taxpayer with an API key in an empty database. In any
// other database it returns the oldest taxpayer, without a key.
func (t *terminal) bootstrap(s *store.Store, credentials *access.Credentials) (taxpayerID, key string, err error) {
	all, err := s.Taxpayers(t.ctx)
	if err != nil {
		return "", "", err
	}
	if len(all) > 0 {
		return all[0].ID, "", nil
	}
	now := s.Now()
	taxpayer := store.Taxpayer{
		ID: store.NewID(), RNC: "199000102", LegalName: "Comercial Demostración, SRL", IncomeType: "01",
		Address: "Calle Ficticia 1, Santo Domingo", Phones: []string{}, CreatedAt: now, UpdatedAt: now,
	}
	err = s.Update(t.ctx, func(tx *store.Tx) error { return tx.CreateTaxpayer(t.ctx, taxpayer) })
	if err != nil {
		return "", "", err
	}
	issued, _, err := credentials.Issue(t.ctx, access.Terms{
		TaxpayerID: taxpayer.ID, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(),
	})
	return taxpayer.ID, issued.Reveal(), err
}

// curl returns a command that creates an invoice, ready to paste.
func curl(baseURL, taxpayerID, key, idempotencyKey string) string {
	return fmt.Sprintf(`curl -i %[1]s/v1/taxpayers/%[2]s/invoices \
  -H 'Authorization: Bearer %[3]s' \
  -H 'Idempotency-Key: %[4]s' \
  -H 'Content-Type: application/json' \
  -d '%[5]s'
`, baseURL, taxpayerID, key, idempotencyKey, fmt.Sprintf(demonstrationRequest, fiscal.DateOf(time.Now())))
}
