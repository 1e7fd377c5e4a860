package main

import (
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// printAddresses prints the addresses of the service. The receiver has one only
// when it listens apart from the API.
func (t *terminal) printAddresses(env fiscal.Environment, baseURL, receiverURL, engine string) {
	_, _ = fmt.Fprintf(t.out, "fiscalhub %s, %s on %s\n  API  %s/v1\n", version, env, engine, baseURL)
	if receiverURL != "" {
		_, _ = fmt.Fprintf(t.out, "  Receiver %s/fe\n", receiverURL)
	}
	_, _ = fmt.Fprintf(t.out, "  Docs %s/docs\n", baseURL)
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

// bootstrap creates a demonstration taxpayer with an API key in an empty
// database, and prints a request that is ready to paste. In any other database
// it does nothing.
func (t *terminal) bootstrap(s *store.Store, credentials *access.Credentials, baseURL string) error {
	all, err := s.Taxpayers(t.ctx)
	if err != nil || len(all) > 0 {
		return err
	}
	now := time.Now()
	taxpayer := store.Taxpayer{
		ID: store.NewID(), RNC: "199000102", LegalName: "Comercial Demostración, SRL", IncomeType: "01",
		Address: "Calle Ficticia 1, Santo Domingo", Phones: []string{}, CreatedAt: now, UpdatedAt: now,
	}
	err = s.Update(t.ctx, func(tx *store.Tx) error { return tx.CreateTaxpayer(t.ctx, taxpayer) })
	if err != nil {
		return err
	}
	key, _, err := credentials.Issue(t.ctx, access.Terms{
		TaxpayerID: taxpayer.ID, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(),
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(t.out, `
The database was empty, so it has a demonstration taxpayer now. Its API key is shown only this time:
  taxpayer  %s
  api key   %s

Create an invoice:

%s
`, taxpayer.ID, key.Reveal(), curl(baseURL, taxpayer.ID, key.Reveal(), "demo-0001"))
	return nil
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
