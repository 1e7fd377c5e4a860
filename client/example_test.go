package client_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
)

func Example() {
	c, stop := example() // client.New("https://invoices.example.com", key, taxpayerID)
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	created, err := c.CreateInvoice(ctx, "F-1", client.InvoiceRequest{
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
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(created.Data.ExternalID, created.Data.Status)
	// Output: F-1 accepted
}

// A sale from the key to the verdict.
func Example_verdict() {
	c, stop := example()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	request := sale("F-1")
	saveKey := func(string) error { return nil } // in a real program: into the row of the sale

	created, err := c.CreateInvoice(ctx, "", request, client.WithNewKey(saveKey))
	var refused *client.Error
	if errors.As(err, &refused) {
		for _, d := range refused.Details {
			fmt.Println(d.Field, d.Message)
		}
	}
	if err != nil {
		return // send the same request with the saved key again
	}
	decided, err := c.WaitForOutcome(ctx, created.Data.ID)
	if err != nil {
		return // the invoice continues without you; ask again later
	}
	fmt.Println(decided.Data.Status)
	// Output: accepted
}

// The client makes the key, and you store it before anything is sent. After a crash, send
// the same invoice with the stored key.
func ExampleWithNewKey() {
	c, stop := example()
	defer stop()
	ctx := context.Background()

	var stored string // in a real program: a row in your database
	_, err := c.CreateInvoice(ctx, "", sale("F-1"), client.WithNewKey(func(key string) error {
		stored = key
		return nil
	}))
	if err != nil {
		fmt.Println(err)
		return
	}
	again, err := c.CreateInvoice(ctx, stored, sale("F-1"))
	fmt.Println(again.Data.ExternalID, "replayed:", again.Meta.Replayed, err)
	// Output: F-1 replayed: true <nil>
}

// The connection breaks after the service has stored the invoice. The client sends the
// same request again and gets the first answer.
func ExampleClient_CreateInvoice_lostConnection() {
	c, stop := example()
	defer stop()
	created, err := c.CreateInvoice(context.Background(), "F-lost", sale("F-lost"))
	fmt.Println(created.Data.ExternalID, "replayed:", created.Meta.Replayed, err)
	// Output: F-lost replayed: true <nil>
}

func ExampleError() {
	c, stop := example()
	defer stop()
	_, err := c.CreateInvoice(context.Background(), "F-1", sale(""))
	var refused *client.Error
	var lost *client.ConnectionError
	switch {
	case errors.As(err, &refused) && refused.Code == client.CodeValidationError:
		for _, d := range refused.Details {
			fmt.Println(d.Field, d.Code, d.Message)
		}
	case errors.As(err, &refused):
		fmt.Println("refused:", refused.Code, refused.RequestID)
	case errors.As(err, &lost):
		fmt.Println("send it again later, with the same key:", lost)
	}
	// Output: external_id too_short must have 1 to 200 characters
}

func ExampleHasCode() {
	c, stop := example()
	defer stop()
	_, err := c.Invoice(context.Background(), "01890a5d-ac96-774b-bcce-000000000099")
	fmt.Println(client.HasCode(err, client.CodeNotFound))
	// Output: true
}

func ExampleWithLanguage() {
	c, stop := example(client.WithLanguage("es"))
	defer stop()
	_, err := c.Invoice(context.Background(), "01890a5d-ac96-774b-bcce-000000000099")
	var refused *client.Error
	if errors.As(err, &refused) {
		fmt.Println(refused.Code, refused.Message)
	}
	// Output: not_found Esta factura no existe.
}

// In the sandbox a scenario says which status the document reaches.
func ExampleClient_WaitForOutcome() {
	c, stop := example()
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	created, err := c.CreateInvoice(ctx, "F-1", sale("F-1"), client.WithScenario(client.ScenarioRejected))
	if err != nil {
		fmt.Println(err)
		return
	}
	decided, err := c.WaitForOutcome(ctx, created.Data.ID)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(created.Data.Status, "became", decided.Data.Status)
	// Output: queued became rejected
}

func ExampleClient_AllInvoices() {
	c, stop := example()
	defer stop()
	ctx := context.Background()
	for _, id := range []string{"F-1", "F-2", "F-3"} {
		if _, err := c.CreateInvoice(ctx, id, sale(id)); err != nil {
			fmt.Println(err)
			return
		}
	}
	for invoice, err := range c.AllInvoices(ctx, client.ListOptions{Status: client.Accepted}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(invoice.ExternalID)
	}
	// Output:
	// F-3
	// F-2
	// F-1
}

func ExampleClient_AllEvents() {
	c, stop := example()
	defer stop()
	for e, err := range c.AllEvents(context.Background(), client.EventOptions{}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch data := e.Data.(type) {
		case client.DocumentData:
			fmt.Println(data.ExternalID, "is", data.Status, "with the number", data.ENCF)
		case client.SequenceData:
			fmt.Println(data.Remaining, "numbers of type", data.ECFType, "are left")
		default:
			fmt.Printf("%s: %s\n", e.Type, e.Raw) // a kind that this program does not know
		}
	}
	// Output:
	// F-1 is accepted with the number E320000000001
	// 12 numbers of type 32 are left
	// fiscal_document.of_tomorrow: {"new":true}
}

// A page has the cursor of the next one. Store it with the result of the page, and start
// there after a restart.
func ExampleClient_FollowEvents() {
	c, stop := example()
	defer stop()
	cursor := "" // in a real program: read from your database
	for page, err := range c.FollowEvents(context.Background(), client.EventOptions{Cursor: cursor}) {
		if err != nil {
			fmt.Println(err)
			return
		}
		cursor = page.Meta.NextCursor
		fmt.Println(len(page.Data), "events; continue at", cursor)
		break // a real program goes on
	}
	// Output: 3 events; continue at after-evt_3
}

// A server that receives events. During a rotation it accepts the old and the new secret.
func ExampleVerifyWebhook() {
	secrets := []string{"whsec_bmV3IHNlY3JldCBvZiB0aGUgZW5kcG9pbnQ=", "whsec_b2xkIHNlY3JldCBvZiB0aGUgZW5kcG9pbnQ="}
	receive := func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		e, err := client.VerifyWebhook(r.Header, body, secrets...)
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		// Store the event under its id, unless it is stored already; process it later.
		fmt.Println(e.ID, e.Type)
		w.WriteHeader(http.StatusNoContent)
	}

	genuine := message(secrets[1], `{"id":"evt_1","type":"fiscal_document.accepted","data":{"status":"accepted"}}`)
	forged := message("whsec_Zm9yZ2Vk", `{"id":"evt_2","type":"fiscal_document.accepted","data":{"status":"accepted"}}`)
	for _, r := range []*http.Request{genuine, forged} {
		w := httptest.NewRecorder()
		receive(w, r)
		fmt.Println(w.Code)
	}
	// Output:
	// evt_1 fiscal_document.accepted
	// 204
	// 401
}

// message returns the request that the service sends, signed with a secret.
func message(secret, body string) *http.Request {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		panic(err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("evt_1." + timestamp + "." + body))
	r := httptest.NewRequestWithContext(context.Background(), http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("webhook-id", "evt_1")
	r.Header.Set("webhook-timestamp", timestamp)
	r.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return r
}
