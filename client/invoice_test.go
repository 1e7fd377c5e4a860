package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestCreateInvoice(t *testing.T) {
	t.Parallel()
	body := `{"data":{"id":"` + someID + `","taxpayer_id":"` + taxpayer + `","external_id":"F-1","ecf_type":"32","status":"queued",` +
		`"fiscal_document_id":"` + taxpayer + `","currency":"DOP","issue_date":"2026-11-14","new_field":1,` +
		`"totals":{"subtotal":"100.00","discount_total":"0.00","tax_total":"18.00","total":"118.00","paid":"0.00","balance":"118.00"},` +
		`"created_at":"2026-11-14T12:00:00Z","updated_at":"2026-11-14T12:00:00Z"},"meta":{"request_id":"req_00000000000000000000000000000001"}}`
	c, s := start(t, nil, reply(http.StatusAccepted, body, "Location", "/v1/taxpayers/t/invoices/i"))
	got, err := c.CreateInvoice(testContext(t), "key-1", InvoiceRequest{
		ExternalID: "F-1", ECFType: "32", IssueDate: "2026-11-14", Currency: "DOP", PaymentType: Cash,
		Buyer:          Buyer{LegalName: "Consumidor"},
		Lines:          []Line{{LineID: "1", Description: "Café", ItemKind: Product, Quantity: "1", UnitPrice: "100.00"}},
		DeclaredTotals: Totals{"100.00", "0.00", "18.00", "118.00"},
	})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 14, 12, 0, 0, 0, time.UTC)
	want := Invoice{
		someID, taxpayer, "F-1", "32", Queued, taxpayer, "DOP", "2026-11-14",
		InvoiceTotals{Totals{"100.00", "0.00", "18.00", "118.00"}, "0.00", "118.00"}, at, at,
	}
	if got.Data != want {
		t.Errorf("got %+v, want %+v", got.Data, want)
	}
	m := got.Meta
	if m.Replayed || m.Location != "/v1/taxpayers/t/invoices/i" || m.RequestID != s.seen[0].header.Get("X-Request-Id") ||
		m.OriginRequestID != "req_00000000000000000000000000000001" {
		t.Errorf("meta = %+v", m)
	}
	const sent = `{"external_id":"F-1","ecf_type":"32","issue_date":"2026-11-14","currency":"DOP","payment_type":"cash",` +
		`"buyer":{"legal_name":"Consumidor"},"lines":[{"line_id":"1","description":"Café","item_kind":"product",` +
		`"quantity":"1","unit_price":"100.00","discount":null,"taxes":[]}],` +
		`"declared_totals":{"subtotal":"100.00","discount_total":"0.00","tax_total":"18.00","total":"118.00"}}`
	if s.seen[0].body != sent {
		t.Errorf("sent %s, want %s", s.seen[0].body, sent)
	}
}

func TestCreateInvoiceRefusesBeforeSending(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, reply(http.StatusAccepted, created))
	for _, key := range []string{"", " a", "a ", "a\nb", "é", strings.Repeat("a", 201)} {
		if _, err := c.CreateInvoiceJSON(testContext(t), key, json.RawMessage(`{}`)); err == nil {
			t.Errorf("key %q was accepted", key)
		}
	}
	if _, err := c.CreateInvoiceJSON(testContext(t), "k", nil); err == nil {
		t.Error("an empty body was accepted")
	}
	if _, err := c.CreateInvoiceJSON(testContext(t), "k", make([]byte, maxRequest+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a body over 1 MiB: err = %v, want ErrTooLarge", err)
	}
	if len(s.seen) != 0 {
		t.Errorf("sent %d requests", len(s.seen))
	}
}

func TestInvoice(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, reply(http.StatusOK, created))
	got, err := c.Invoice(testContext(t), someID)
	if err != nil || got.Data.ID != someID {
		t.Errorf("got %+v, %v", got, err)
	}
	if want := "/v1/taxpayers/" + taxpayer + "/invoices/" + someID; s.seen[0].uri != want {
		t.Errorf("asked for %s, want %s", s.seen[0].uri, want)
	}
	if h := s.seen[0].header; h.Get("Idempotency-Key") != "" || h.Get("Content-Type") != "" {
		t.Errorf("a read was sent with %v", h)
	}
	for _, id := range []string{"", "..", "x", someID + "/", strings.Replace(someID, "-", "/", 1)} {
		if _, err := c.Invoice(testContext(t), id); err == nil {
			t.Errorf("id %q was accepted", id)
		}
	}
}

func TestUnreadableAnswerIsAnErrorWithItsRequestID(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, reply(http.StatusOK, "<html>"))
	got, err := c.Invoice(testContext(t), someID)
	if err == nil || got.Meta.RequestID == "" || len(s.seen) != 1 {
		t.Errorf("got %+v, %v after %d attempts", got, err, len(s.seen))
	}
}

// page answers with one invoice and a cursor to the next.
func page(id, next string) http.HandlerFunc {
	return reply(http.StatusOK, fmt.Sprintf(`{"data":[{"id":%q}],"meta":{"request_id":"req_1","next_cursor":%s}}`, id, next))
}

func TestListInvoices(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, page("a", `"n&xt"`))
	got, err := c.ListInvoices(testContext(t), ListOptions{ExternalID: "F 1", Status: Rejected, Cursor: "c=", Limit: 7})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Data) != 1 || got.Meta.NextCursor != "n&xt" {
		t.Errorf("got %+v", got)
	}
	if want := "/v1/taxpayers/" + taxpayer + "/invoices?cursor=c%3D&external_id=F+1&limit=7&status=rejected"; s.seen[0].uri != want {
		t.Errorf("asked for %s, want %s", s.seen[0].uri, want)
	}
}

func TestAllInvoices(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, page("a", `"1"`), page("b", `"2"`), page("c", `null`))
	var ids []string
	for inv, err := range c.AllInvoices(testContext(t), ListOptions{Status: Accepted}) {
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, inv.ID)
	}
	if got := strings.Join(ids, " "); got != "a b c" {
		t.Errorf("got %s", got)
	}
	if got := s.seen[2].uri; !strings.HasSuffix(got, "?cursor=2&status=accepted") {
		t.Errorf("the third page was asked for as %s", got)
	}
}

func TestAllInvoicesStopsAfterBreakOrError(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, page("a", `"1"`), reply(500, failure(CodeInternalError)))
	list := c.AllInvoices(testContext(t), ListOptions{})
	for range list {
		break
	}
	if len(s.seen) != 1 {
		t.Errorf("asked %d times after a break, want once", len(s.seen))
	}
	var last error
	for _, err := range list {
		last = err
	}
	if e, ok := asError(last); !ok || e.Code != CodeInternalError || len(s.seen) != 2 {
		t.Errorf("ended with %v after %d requests", last, len(s.seen))
	}
	if strings.Contains(s.seen[1].uri, "cursor") {
		t.Errorf("the second loop started at %s", s.seen[1].uri)
	}
}
