package main

import (
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// greet says where the service is, and where it receives, if that is elsewhere.
func (t *terminal) greet(env fiscal.Environment, baseURL, receiverURL, engine string) {
	_, _ = fmt.Fprintf(t.out, "fiscalhub %s, %s on %s\n  API  %s/v1\n", version, env, engine, baseURL)
	if receiverURL != "" {
		_, _ = fmt.Fprintf(t.out, "  Receiver %s/fe\n", receiverURL)
	}
	_, _ = fmt.Fprintf(t.out, "  Docs %s/docs\n", baseURL)
}

// demonstration is the taxpayer and key that an empty sandbox starts with.
type demonstration struct {
	store       *store.Store
	credentials *access.Credentials
}

// request is a complete invoice of RD$590.00: 500.00 and ITBIS.
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

// make creates the demonstration on an empty database and shows a request that
// is ready to paste. On any other database it does nothing.
func (d demonstration) make(t *terminal, baseURL string) error {
	all, err := d.store.Taxpayers(t.ctx)
	if err != nil || len(all) > 0 {
		return err
	}
	now := time.Now()
	taxpayer := store.Taxpayer{
		ID: store.NewID(), RNC: "199000102", LegalName: "Comercial Demostración, SRL", IncomeType: "01",
		Address: "Calle Ficticia 1, Santo Domingo", Phones: []string{}, CreatedAt: now, UpdatedAt: now,
	}
	err = d.store.Update(t.ctx, func(tx *store.Tx) error { return tx.CreateTaxpayer(t.ctx, taxpayer) })
	if err != nil {
		return err
	}
	key, _, err := d.credentials.Issue(t.ctx, access.Terms{
		TaxpayerID: taxpayer.ID, Environment: fiscal.Sandbox, Scopes: apikey.AllScopes(),
	})
	if err != nil {
		return err
	}
	_, _ = fmt.Fprintf(t.out, `
The database was empty. A demonstration taxpayer and its key, shown this once:
  taxpayer  %[2]s
  api key   %[3]s

Create an invoice:

curl -i %[1]s/v1/taxpayers/%[2]s/invoices \
  -H 'Authorization: Bearer %[3]s' \
  -H 'Idempotency-Key: demo-0001' \
  -H 'Content-Type: application/json' \
  -d '%[4]s'

`, baseURL, taxpayer.ID, key.Reveal(), fmt.Sprintf(demonstrationRequest, fiscal.DateOf(now)))
	return nil
}
