package api

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/envelope"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/rejection"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// documentResource is a fiscal document in the form of the contract.
type documentResource struct {
	ID             string        `json:"id"`
	TaxpayerID     string        `json:"taxpayer_id"`
	InvoiceID      string        `json:"invoice_id"`
	ExternalID     string        `json:"external_id"`
	ECFType        fiscal.Type   `json:"ecf_type"`
	Status         fiscal.Status `json:"status"`
	ENCF           *string       `json:"encf"`
	TrackID        *string       `json:"track_id"`
	Currency       string        `json:"currency"`
	IssueDate      string        `json:"issue_date"`
	Total          string        `json:"total"`
	StatusMessages []string      `json:"status_messages"`
	Links          documentLinks `json:"links"`
	CreatedAt      string        `json:"created_at"`
	UpdatedAt      string        `json:"updated_at"`
}

type documentLinks struct {
	Self string `json:"self"`
	XML  string `json:"xml"`
	PDF  string `json:"pdf"`
}

// newDocumentResource explains the codes of the authority in the language of the
// client.
func (a *API) newDocumentResource(x *exchange, inv store.Invoice) documentResource {
	// Links start with the configured address, never with one that a client sends.
	self := a.baseURL + "/v1/taxpayers/" + inv.TaxpayerID + "/fiscal-documents/" + inv.DocumentID
	messages := rejection.Explained(inv.Status, inv.Messages, x.language)
	if messages == nil {
		messages = []string{}
	}
	return documentResource{
		ID: inv.DocumentID, TaxpayerID: inv.TaxpayerID, InvoiceID: inv.ID, ExternalID: inv.ExternalID,
		ECFType: inv.Type, Status: inv.Status, ENCF: envelope.NullIfEmpty(inv.ENCF), TrackID: envelope.NullIfEmpty(inv.TrackID),
		Currency: inv.Currency, IssueDate: inv.IssueDate, Total: inv.DocumentTotal, StatusMessages: messages,
		Links:     documentLinks{Self: self, XML: self + "/xml", PDF: self + "/pdf"},
		CreatedAt: fiscal.FormatInstant(inv.CreatedAt), UpdatedAt: fiscal.FormatInstant(inv.UpdatedAt),
	}
}

// findDocument answers a list with the document of an external id, or an empty
// list.
func (a *API) findDocument(x *exchange) error {
	query, err := readQuery(x.r, "external_id")
	if err != nil {
		return err
	}
	externalID, err := query.required("external_id")
	if err != nil {
		return err
	}
	ctx, cancel := x.deadline()
	defer cancel()
	found := []documentResource{}
	inv, err := a.store.InvoiceByExternalID(ctx, x.scope, externalID)
	switch {
	case err == nil:
		x.invoiceID = inv.ID
		found = append(found, a.newDocumentResource(x, inv))
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	x.dependsOnLanguage()
	return x.respond(found)
}

// readDocument answers one fiscal document.
func (a *API) readDocument(x *exchange) error {
	inv, err := a.document(x)
	if err != nil {
		return err
	}
	x.dependsOnLanguage()
	return x.respond(a.newDocumentResource(x, inv))
}

// readXML answers the signed XML.
func (a *API) readXML(x *exchange) error {
	return a.artifact(x, a.pipeline.XML, ".xml", "application/xml")
}

// readPDF answers the printed representation.
func (a *API) readPDF(x *exchange) error {
	format, err := pageFormat(x.r)
	if err != nil {
		return err
	}
	read := a.pipeline.PDF
	if format != nil {
		read = func(ctx context.Context, inv store.Invoice) (pipeline.Artifact, error) {
			return a.pipeline.PDFIn(ctx, inv, *format)
		}
	}
	return a.artifact(x, read, ".pdf", "application/pdf")
}

// pageFormat returns the parameter format of a request, or nil when it has none. Other
// parameters are ignored, as at every operation that reads one resource.
func pageFormat(r *http.Request) (*printed.Format, error) {
	var found *printed.Format
	var problems queryProblems
	for part := range strings.SplitSeq(r.URL.RawQuery, "&") {
		name, value, _ := strings.Cut(part, "=")
		if name, ok := unescape(name); !ok || name != "format" {
			continue
		}
		plain, _ := unescape(value) // "", which is no format, when it is malformed
		format, err := printed.ParseFormat(plain)
		switch {
		case len(problems.list) > 0:
		case found != nil:
			problems.add("format", fiscal.CodeDuplicateParameter, sendOnce())
		case err != nil:
			problems.add("format", fiscal.CodeInvalidEnum, lang.Messagef("must be %s", "debe ser %s", lang.OneOf(printed.FormatNames())))
		}
		found = &format
	}
	return found, problems.err()
}

// artifact answers a file of a document. The file never changes: a client that
// has it already is answered 304.
func (a *API) artifact(x *exchange, read func(context.Context, store.Invoice) (pipeline.Artifact, error), extension, mediaType string) error {
	inv, err := a.document(x)
	if err != nil {
		return err
	}
	ctx, cancel := x.deadline()
	defer cancel()
	file, err := read(ctx, inv)
	if errors.Is(err, pipeline.ErrNoArtifact) {
		return artifactNotReady(inv.Status.Final())
	}
	if err != nil {
		return err
	}
	etag := `"sha256:` + hex.EncodeToString(file.Digest) + `"`
	if !x.ifMatch(etag) {
		return preconditionFailed()
	}
	h := x.w.Header()
	h.Set("ETag", etag)
	h.Set("Cache-Control", "private, no-cache")
	h.Set("Accept-Ranges", "none")
	if x.ifNoneMatch(etag) {
		x.writeEmpty(http.StatusNotModified)
		return nil
	}
	h.Set("Repr-Digest", "sha-256=:"+base64.StdEncoding.EncodeToString(file.Digest)+":")
	h.Set("Content-Disposition", `attachment; filename="`+file.Name+extension+`"`)
	h.Set("Content-Type", mediaType)
	return x.write(http.StatusOK, file.Bytes)
}

// reads reports whether the request only reads.
func (x *exchange) reads() bool {
	return x.r.Method == http.MethodGet || x.r.Method == http.MethodHead
}

// ifMatch reports whether the header If-Match is absent or matches a resource with an
// ETag, which is empty when it has none (RFC 9110 §13.1.1). "*" matches every resource.
// A weak ETag never matches.
func (x *exchange) ifMatch(etag string) bool {
	lines := x.r.Header.Values("If-Match")
	return len(lines) == 0 || matchesETag(lines, func(tag string) bool { return tag == etag && etag != "" })
}

// ifNoneMatch reports whether the header If-None-Match names an ETag (RFC 9110 §13.1.2).
// Weak ETags are compared like strong ones.
func (x *exchange) ifNoneMatch(etag string) bool {
	return matchesETag(x.r.Header.Values("If-None-Match"), func(tag string) bool { return strings.TrimPrefix(tag, "W/") == etag })
}

// checkIfMatch refuses a request that changes something and has an If-Match with tags: no
// resource that can be changed has an ETag.
func (x *exchange) checkIfMatch() error {
	if !x.reads() && !x.ifMatch("") {
		return preconditionFailed()
	}
	return nil
}

// matchesETag reports whether the lines of a header are "*" or name an ETag for which is
// returns true. An ETag may have commas and stars, but no quotes, so a part of another one
// is never taken for ours.
func matchesETag(lines []string, is func(tag string) bool) bool {
	all := strings.Join(lines, ",")
	if strings.TrimSpace(all) == "*" {
		return true
	}
	for tag := range strings.SplitSeq(all, ",") {
		if is(strings.TrimSpace(tag)) {
			return true
		}
	}
	return false
}

// document finds the invoice whose document the path names.
func (a *API) document(x *exchange) (store.Invoice, error) {
	id, ok := parseUUID(x.params["document_id"])
	if !ok {
		return store.Invoice{}, notFound()
	}
	ctx, cancel := x.deadline()
	defer cancel()
	inv, err := a.store.InvoiceOfDocument(ctx, x.scope, id)
	if err != nil {
		return store.Invoice{}, err
	}
	x.invoiceID = inv.ID
	return inv, nil
}
