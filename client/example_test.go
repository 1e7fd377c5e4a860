package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/fiscalhub/fiscalhub/client"
)

func Example() {
	// This server replaces the service. Use the address of yours and your credential.
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusAccepted)
		_, _ = fmt.Fprint(w, `{"data":{"external_id":"F-1","status":"accepted"},"meta":{"request_id":"req_0123456789abcdef0123456789abcdef"}}`) // the example ignores the error
	}))
	defer service.Close()

	c, err := client.New(service.URL, "fh_sandboxkey00_secret", "01890a5d-ac96-774b-bcce-b302099a8057")
	if err != nil {
		fmt.Println(err)
		return
	}
	created, err := c.CreateInvoice(context.Background(), "F-1", client.InvoiceRequest{
		ExternalID: "F-1", ECFType: "32", IssueDate: "2026-11-14", Currency: "DOP",
		PaymentType: client.Cash,
		Buyer:       client.Buyer{LegalName: "Consumidor final"},
		Lines: []client.Line{{
			LineID: "1", Description: "Café molido 1 lb", ItemKind: client.Product,
			Quantity: "2", UnitPrice: "100.00",
			Taxes: []client.Tax{{Code: "ITBIS", Label: "ITBIS 18%", RatePercent: "18"}},
		}},
		DeclaredTotals: client.Totals{Subtotal: "200.00", DiscountTotal: "0.00", TaxTotal: "36.00", Total: "236.00"},
	})
	if e, ok := errors.AsType[*client.Error](err); ok && e.Code == client.CodeValidationError {
		for _, d := range e.Details {
			fmt.Println(d.Field, d.Message)
		}
		return
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(created.Data.ExternalID, created.Data.Status)
	// Output: F-1 accepted
}
