package pipeline

import (
	"context"
	"errors"
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// ParseRequest returns the invoice of a stored request by the rules of today. The error is
// fiscal.Problems when an earlier release has registered what these rules refuse; any other
// error means that the request was altered.
func ParseRequest(stored store.Invoice, request []byte) (*fiscal.Invoice, error) {
	return parseRequest(stored, request, fiscal.DecodeRequest)
}

func parseRequest(stored store.Invoice, request []byte, decode func(*strictjson.Document) fiscal.Request) (*fiscal.Invoice, error) {
	parsed, err := strictjson.Parse(request)
	if err != nil {
		return nil, fmt.Errorf("pipeline: stored request of %s: %w", stored.ID, err)
	}
	inv, err := fiscal.New(decode(parsed))
	if err != nil {
		return nil, fmt.Errorf("pipeline: stored request of %s: %w", stored.ID, err)
	}
	return inv, nil
}

// Requested returns the invoice of a stored request, to be read: by the rules of today, or
// by those of earlier releases when these refuse it or when the signed document says that
// it was issued by them.
func (p *Pipeline) Requested(ctx context.Context, inv store.Invoice) (*fiscal.Invoice, error) {
	request, err := p.o.Store.Request(ctx, inv.Scope, inv.ID)
	if err != nil {
		return nil, err
	}
	today, err := ParseRequest(inv, request)
	var problems fiscal.Problems
	switch {
	case errors.As(err, &problems):
		return parseRequest(inv, request, fiscal.DecodeRegistered)
	case err != nil:
		return nil, err
	case !today.Totals.I3.Present || inv.ENCF == "":
		return today, nil
	}
	// Earlier releases took a line at 0 percent for exempt when the label of its tax said so.
	before, err := parseRequest(inv, request, fiscal.DecodeRegistered)
	if err != nil || !before.Totals.Exempt.Present {
		return today, err
	}
	issued, err := p.issued(ctx, inv)
	if err != nil {
		return nil, err
	}
	verified, err := xmlsig.Verify(issued.XML, xmlsig.InvoiceLimits())
	if err != nil {
		return nil, fmt.Errorf("pipeline: stored document %s: %w", issued.DocumentID, err)
	}
	document, _, err := ecf.Read(verified)
	if err != nil {
		return nil, fmt.Errorf("pipeline: stored document %s: %w", issued.DocumentID, err)
	}
	if sameBuckets(&document.Totals, &before.Totals) {
		return before, nil
	}
	return today, nil
}

// sameBuckets reports whether a document has the amounts at 0 percent and the exempt ones of
// an invoice.
func sameBuckets(d *ecf.Totals, inv *fiscal.Totals) bool {
	return d.I3.Base.Equal(inv.I3.Base) && d.I3.Present == inv.I3.Present && d.Exempt.Base.Equal(inv.Exempt.Base)
}
