package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Document is the fiscal document of an invoice.
type Document struct {
	ID             string    `json:"id"`
	TaxpayerID     string    `json:"taxpayer_id"`
	InvoiceID      string    `json:"invoice_id"`
	ExternalID     string    `json:"external_id"`
	ECFType        string    `json:"ecf_type"`
	Status         Status    `json:"status"`
	ENCF           string    `json:"encf"`     // empty before the document has a number
	TrackID        string    `json:"track_id"` // empty before the authority has given one
	Currency       string    `json:"currency"`
	IssueDate      string    `json:"issue_date"`
	Total          string    `json:"total"`
	StatusMessages []string  `json:"status_messages"`
	Links          Links     `json:"links"`
	CreatedAt      time.Time `json:"created_at"`
	UpdatedAt      time.Time `json:"updated_at"`
}

// Links are the addresses of a fiscal document and of its artifacts.
type Links struct {
	Self string `json:"self"`
	XML  string `json:"xml"`
	PDF  string `json:"pdf"`
}

// FindDocument returns the fiscal document of the invoice with an external id. It
// returns ErrNoDocument when there is none.
func (c *Client) FindDocument(ctx context.Context, externalID string) (Response[Document], error) {
	list, err := fetch[[]Document](ctx, c, call{
		method: http.MethodGet, path: "/fiscal-documents",
		query: url.Values{"external_id": {externalID}}, want: http.StatusOK,
	})
	if err != nil {
		return Response[Document]{Meta: list.Meta}, err
	}
	if len(list.Data) == 0 {
		return Response[Document]{Meta: list.Meta}, ErrNoDocument
	}
	return Response[Document]{Data: list.Data[0], Meta: list.Meta}, nil
}

// Document reads one fiscal document.
func (c *Client) Document(ctx context.Context, id string) (Response[Document], error) {
	path, err := documentPath(id)
	if err != nil {
		return Response[Document]{}, err
	}
	return fetch[Document](ctx, c, call{method: http.MethodGet, path: path, want: http.StatusOK})
}

// DocumentXML downloads the signed XML of a fiscal document. It fails with
// CodeArtifactNotReady while the document has none.
func (c *Client) DocumentXML(ctx context.Context, id string) (Response[[]byte], error) {
	return c.artifact(ctx, id, "/xml", maxXML, nil)
}

// DocumentPDF downloads the printed representation of a fiscal document, in the
// format of the taxpayer. It fails with CodeArtifactNotReady while the document has
// none.
func (c *Client) DocumentPDF(ctx context.Context, id string) (Response[[]byte], error) {
	return c.artifact(ctx, id, "/pdf", maxPDF, nil)
}

// A PageFormat is the paper of a printed representation.
type PageFormat string

// The formats of printed representations.
const (
	Letter    PageFormat = "letter"
	Receipt   PageFormat = "receipt"   // a roll of 80 mm
	Receipt58 PageFormat = "receipt58" // a roll of 58 mm
)

// DocumentPDFIn downloads the printed representation of a fiscal document in a
// format. It fails with CodeArtifactNotReady while the document has none.
func (c *Client) DocumentPDFIn(ctx context.Context, id string, format PageFormat) (Response[[]byte], error) {
	return c.artifact(ctx, id, "/pdf", maxPDF, url.Values{"format": {string(format)}})
}

func (c *Client) artifact(ctx context.Context, id, kind string, limit int64, query url.Values) (Response[[]byte], error) {
	path, err := documentPath(id)
	if err != nil {
		return Response[[]byte]{}, err
	}
	a, err := c.send(ctx, call{method: http.MethodGet, path: path + kind, query: query, want: http.StatusOK, limit: limit})
	if err != nil {
		return Response[[]byte]{}, err
	}
	return Response[[]byte]{Data: a.body, Meta: a.meta()}, nil
}

func documentPath(id string) (string, error) {
	if !isUUID(id) {
		return "", fmt.Errorf("client: fiscal document id %q is not a UUID", id)
	}
	return "/fiscal-documents/" + id, nil
}
