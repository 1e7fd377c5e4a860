package harness

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// HTTP has a transport of its own. A test server that ends closes the idle connections of
// the default transport, and then a request of another test may fail.
var HTTP = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 2 * time.Minute}

// Invoice returns the request for an invoice of RD$590.00 to a final consumer.
func Invoice(externalID string) string {
	return strings.Replace(invoice, "EXTERNAL", externalID, 1)
}

const invoice = `{
  "external_id": "EXTERNAL", "ecf_type": "32", "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash",
  "buyer": { "legal_name": "Consumidor final" },
  "lines": [{
    "line_id": "1", "description": "Café molido 1 lb", "item_kind": "product", "quantity": "2", "unit_price": "250.00", "discount": null,
    "taxes": [{ "code": "ITBIS", "label": "ITBIS 18%", "rate_percent": "18" }]
  }],
  "declared_totals": { "subtotal": "500.00", "discount_total": "0.00", "tax_total": "90.00", "total": "590.00" }
}`

// RequestID returns a random id.
func RequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return "req_" + hex.EncodeToString(b[:])
}

// A Client is an integrator: a client of the API with a credential.
type Client struct {
	Taxpayer, Key string
	HTTP          *http.Client
}

// NewClient returns a client that keeps its connections open.
func NewClient(t *testing.T, taxpayer, key string) *Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &Client{Taxpayer: taxpayer, Key: key, HTTP: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

// Client returns a client with the credential of the demonstration.
func (s *Server) Client(t *testing.T) *Client {
	t.Helper()
	if s.Taxpayer == "" || s.Key == "" {
		t.Fatalf("the server printed no demonstration:\n%s", s.Greeting)
	}
	return NewClient(t, s.Taxpayer, s.Key)
}

// An Answer is an HTTP answer.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// ID returns the id of the resource in the answer.
func (a Answer) ID() string {
	var made struct{ Data struct{ ID string } }
	_ = json.Unmarshal([]byte(a.Body), &made)
	return made.Data.ID
}

// Send sends a request. Headers come in pairs of name and value. A body is JSON.
func (c *Client) Send(ctx context.Context, method, url, body string, header ...string) (Answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return c.Do(r)
}

// Do sends a request with the credential.
func (c *Client) Do(r *http.Request) (Answer, error) {
	if c.Key != "" {
		r.Header.Set("Authorization", "Bearer "+c.Key)
	}
	resp, err := c.HTTP.Do(r)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return Answer{Status: resp.StatusCode, Header: resp.Header, Body: string(body)}, err
}

// URL returns the address of a resource of the taxpayer.
func (c *Client) URL(base, resource string) string {
	return base + "/v1/taxpayers/" + c.Taxpayer + "/" + resource
}

// Read returns what is at an address.
func (c *Client) Read(t *testing.T, url string) string {
	t.Helper()
	got, err := c.Send(t.Context(), http.MethodGet, url, "")
	if err != nil || got.Status != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", url, got.Status, got.Body, err)
	}
	return got.Body
}

// Get reads a resource of the taxpayer.
func (c *Client) Get(ctx context.Context, base, resource string) (Answer, error) {
	return c.Send(ctx, http.MethodGet, c.URL(base, resource), "")
}

// Create posts an invoice.
func (c *Client) Create(ctx context.Context, base, key, externalID string, header ...string) (Answer, error) {
	return c.Post(ctx, base, key, Invoice(externalID), header...)
}

// Created posts an invoice that must be accepted.
func (c *Client) Created(t *testing.T, base, key, externalID string, header ...string) Answer {
	t.Helper()
	got, err := c.Create(t.Context(), base, key, externalID, header...)
	if err != nil || got.Status != http.StatusAccepted {
		t.Fatalf("%s: %d %s, %v", externalID, got.Status, got.Body, err)
	}
	return got
}

// Post posts the request for an invoice.
func (c *Client) Post(ctx context.Context, base, key, body string, header ...string) (Answer, error) {
	return c.Send(ctx, http.MethodPost, c.URL(base, "invoices"), body, append(header, "Idempotency-Key", key)...)
}

// Invoices reads the ids of all invoices, by external id.
func (c *Client) Invoices(t *testing.T, base string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for cursor := ""; ; {
		a, err := c.Get(t.Context(), base, "invoices?limit=100"+cursor)
		if err != nil || a.Status != http.StatusOK {
			t.Fatalf("list: %d %s, %v", a.Status, a.Body, err)
		}
		var page struct {
			Data []struct {
				ID         string `json:"id"`
				ExternalID string `json:"external_id"`
			} `json:"data"`
			Meta struct {
				NextCursor *string `json:"next_cursor"`
			} `json:"meta"`
		}
		if err := json.Unmarshal([]byte(a.Body), &page); err != nil {
			t.Fatal(err)
		}
		for _, inv := range page.Data {
			found[inv.ExternalID] = append(found[inv.ExternalID], inv.ID)
		}
		if page.Meta.NextCursor == nil {
			return found
		}
		cursor = "&cursor=" + *page.Meta.NextCursor
	}
}

// Status reads an address and returns the status.
func Status(ctx context.Context, url string) (int, error) {
	got, err := (&Client{HTTP: HTTP}).Send(ctx, http.MethodGet, url, "")
	return got.Status, err
}

// Fetch reads an address without an API key.
func Fetch(t *testing.T, url string) []byte {
	t.Helper()
	return []byte((&Client{HTTP: HTTP}).Read(t, url))
}
