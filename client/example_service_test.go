package client_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"

	"github.com/fiscalhub/fiscalhub/client"
)

const (
	taxpayer = "01890a5d-ac96-774b-bcce-b302099a8057"
	apiKey   = "fh_sandboxkey00_secret"
)

// fakeService stands for the service in the examples. It answers as the sandbox does,
// without its checks.
type fakeService struct {
	mu       sync.Mutex
	requests int
	invoices []map[string]any // newest last
	byKey    map[string]int
}

// example starts a service and returns a client of it. Use the address of your service,
// your credential and your taxpayer instead.
func example(options ...client.Option) (c *client.Client, stop func()) {
	server := httptest.NewServer(&fakeService{byKey: map[string]int{}})
	c, err := client.New(server.URL, apiKey, taxpayer, options...)
	if err != nil {
		panic(err)
	}
	return c, server.Close
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests++
	path := strings.TrimPrefix(r.URL.Path, "/v1/taxpayers/"+taxpayer)
	switch {
	case r.Method == http.MethodPost && path == "/invoices":
		s.create(w, r)
	case path == "/invoices":
		s.list(w, r.URL.Query().Get("cursor"))
	case strings.HasPrefix(path, "/invoices/"):
		s.read(w, strings.TrimPrefix(path, "/invoices/"), r.Header.Get("Accept-Language"))
	case path == "/events":
		answer(w, 200, []any{
			event("evt_1", "fiscal_document.accepted", map[string]any{"external_id": "F-1", "status": "accepted", "encf": "E320000000001"}),
			event("evt_2", "taxpayer.sequence_low", map[string]any{"ecf_type": "32", "remaining": 12}),
			event("evt_3", "fiscal_document.of_tomorrow", map[string]any{"new": true}),
		}, map[string]any{"next_cursor": "after-evt_3", "has_more": false})
	}
}

func event(id, kind string, data map[string]any) map[string]any {
	return map[string]any{"id": id, "type": kind, "timestamp": "2026-11-15T12:00:00.000Z", "data": data}
}

func (s *fakeService) create(w http.ResponseWriter, r *http.Request) {
	var request map[string]any
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		panic(err)
	}
	if request["external_id"] == "" {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = fmt.Fprint(w, `{"error":{"code":"validation_error","message":"The invoice has 1 problem.","request_id":"req_0123456789abcdef0123456789abcdef",`+
			`"details":[{"field":"external_id","code":"too_short","message":"must have 1 to 200 characters"}]}}`)
		return
	}
	key := r.Header.Get("Idempotency-Key")
	if n, known := s.byKey[key]; known {
		w.Header().Set("Idempotency-Replayed", "true")
		answer(w, http.StatusAccepted, s.invoices[n], nil)
		return
	}
	invoice := map[string]any{"id": fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", len(s.invoices)), "external_id": request["external_id"], "status": "accepted"}
	if scenario := r.Header.Get("Sandbox-Scenario"); scenario != "" {
		invoice["status"], invoice["scenario"] = "queued", scenario
	}
	s.byKey[key] = len(s.invoices)
	s.invoices = append(s.invoices, invoice)
	if s.requests == 1 && request["external_id"] == "F-lost" {
		panic(http.ErrAbortHandler) // the invoice is stored, and the connection breaks
	}
	answer(w, http.StatusAccepted, invoice, nil)
}

// read answers with the status that the scenario of an invoice leads to.
func (s *fakeService) read(w http.ResponseWriter, id, language string) {
	for _, invoice := range s.invoices {
		if invoice["id"] == id {
			if scenario, ok := invoice["scenario"]; ok {
				invoice["status"] = scenario
			}
			answer(w, 200, invoice, nil)
			return
		}
	}
	w.WriteHeader(http.StatusNotFound)
	message := "There is no such invoice."
	if language == "es" {
		message = "Esta factura no existe."
	}
	_, _ = fmt.Fprint(w, `{"error":{"code":"not_found","message":"`+message+`","request_id":"req_0123456789abcdef0123456789abcdef"}}`)
}

// list answers with pages of one invoice.
func (s *fakeService) list(w http.ResponseWriter, cursor string) {
	n := len(s.invoices) - 1 - len(cursor)
	var next any
	if n > 0 {
		next = cursor + "x"
	}
	answer(w, 200, s.invoices[n:n+1], map[string]any{"next_cursor": next})
}

func answer(w http.ResponseWriter, status int, data any, meta map[string]any) {
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data, "meta": meta}) // the examples need no answer then
}

// sale is the invoice of the examples.
func sale(externalID string) client.InvoiceRequest {
	return client.InvoiceRequest{
		ExternalID: externalID, ECFType: "32", IssueDate: "2026-11-14", Currency: "DOP",
		PaymentType: client.Cash,
		Buyer:       client.Buyer{LegalName: "Consumidor final"},
		Lines: []client.Line{{
			LineID: "1", Description: "Café molido 1 lb", ItemKind: client.Product,
			Quantity: "2", UnitPrice: "100.00",
			Taxes: []client.Tax{{Code: "ITBIS", Label: "ITBIS 18%", RatePercent: "18"}},
		}},
		DeclaredTotals: client.Totals{Subtotal: "200.00", DiscountTotal: "0.00", TaxTotal: "36.00", Total: "236.00"},
	}
}
