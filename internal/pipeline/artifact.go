package pipeline

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// ErrNoArtifact says that a document has no such file in its status, or never has one.
var ErrNoArtifact = errors.New("pipeline: the document has no such artifact")

// Artifact is a file of a document. Its bytes never change.
type Artifact struct {
	Name   string // as the authority wants files to be called, without an ending
	Digest []byte // SHA-256
	Bytes  []byte
}

// XML returns the signed document: once it is valid, and as evidence when it was
// rejected.
func (p *Pipeline) XML(ctx context.Context, inv store.Invoice) (Artifact, error) {
	if !inv.Status.Final() || inv.Status == fiscal.ValidationFailed {
		return Artifact{}, ErrNoArtifact
	}
	issued, err := p.issued(ctx, inv)
	if err != nil {
		return Artifact{}, err
	}
	return Artifact{issued.RNC + issued.ENCF, issued.XMLDigest, issued.XML}, nil
}

// PDF returns the printed page of a valid document in the format of its taxpayer, as
// PDFIn does.
func (p *Pipeline) PDF(ctx context.Context, inv store.Invoice) (Artifact, error) {
	name, err := p.o.Store.PageFormat(ctx, inv.TaxpayerID)
	if err != nil {
		return Artifact{}, err
	}
	format := printed.Letter
	if name != "" {
		if format, err = printed.ParseFormat(name); err != nil {
			return Artifact{}, fmt.Errorf("pipeline: taxpayer %s: %w", inv.TaxpayerID, err)
		}
	}
	return p.PDFIn(ctx, inv, format)
}

// PDFIn returns the printed page of a valid document in a format. It is rendered when
// it is first asked for and then kept, so that a new layout never changes an old page.
func (p *Pipeline) PDFIn(ctx context.Context, inv store.Invoice, format printed.Format) (Artifact, error) {
	contingent := false
	switch inv.Status {
	case fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
	default:
		var err error
		if contingent, err = p.contingent(ctx, inv); err != nil {
			return Artifact{}, err
		}
		if !contingent {
			return Artifact{}, ErrNoArtifact
		}
	}
	issued, err := p.issued(ctx, inv)
	if err != nil {
		return Artifact{}, err
	}
	name := issued.RNC + issued.ENCF
	if contingent {
		// It gives way to the final page, and so is never kept.
		pdf, err := p.render(ctx, inv, issued, format, true)
		sum := sha256.Sum256(pdf)
		return Artifact{name, sum[:], pdf}, err
	}
	page, err := p.printedPage(ctx, inv, format)
	if err == nil {
		return Artifact{name, page.Digest, page.PDF}, nil
	}
	if !errors.Is(err, store.ErrNotFound) {
		return Artifact{}, err
	}
	pdf, err := p.render(ctx, inv, issued, format, false)
	if err != nil {
		return Artifact{}, err
	}
	sum := sha256.Sum256(pdf)
	page, err = p.keepPrintedPage(ctx, inv, format, store.PrintedPage{Digest: sum[:], PDF: pdf})
	return Artifact{name, page.Digest, page.PDF}, err
}

func (p *Pipeline) printedPage(ctx context.Context, inv store.Invoice, format printed.Format) (store.PrintedPage, error) {
	if format == printed.Letter {
		return p.o.Store.PrintedPage(ctx, inv.Scope, inv.DocumentID)
	}
	return p.o.Store.PrintedReceipt(ctx, inv.Scope, inv.DocumentID, format.String())
}

func (p *Pipeline) keepPrintedPage(ctx context.Context, inv store.Invoice, format printed.Format, page store.PrintedPage) (store.PrintedPage, error) {
	if format == printed.Letter {
		return p.o.Store.KeepPrintedPage(ctx, inv.Scope, inv.DocumentID, page)
	}
	return p.o.Store.KeepPrintedReceipt(ctx, inv.Scope, inv.DocumentID, format.String(), page)
}

func (p *Pipeline) issued(ctx context.Context, inv store.Invoice) (store.Issued, error) {
	issued, err := p.o.Store.IssuedDocument(ctx, inv.Scope, inv.DocumentID)
	if errors.Is(err, store.ErrNotFound) {
		return issued, ErrNoArtifact // as in the sandbox, which signs nothing
	}
	return issued, err
}

// render prints the signed document, with the data that only the request has.
func (p *Pipeline) render(ctx context.Context, inv store.Invoice, issued store.Issued, format printed.Format, contingent bool) ([]byte, error) {
	verified, err := xmlsig.Verify(issued.XML, xmlsig.InvoiceLimits())
	if err != nil {
		return nil, fmt.Errorf("pipeline: stored document %s: %w", issued.DocumentID, err)
	}
	document, code, err := ecf.Read(verified)
	if err != nil {
		return nil, fmt.Errorf("pipeline: stored document %s: %w", issued.DocumentID, err)
	}
	stamp, err := document.Stamp(code, p.o.Stamp)
	if err != nil {
		return nil, err
	}
	taxpayer, err := p.o.Store.Taxpayer(ctx, inv.TaxpayerID)
	if err != nil {
		return nil, err
	}
	request, err := p.Requested(ctx, inv)
	if err != nil {
		return nil, err
	}
	// Rendering takes as long as several signatures: two at a time leave the
	// rest of the machine to the others.
	select {
	case p.printers <- struct{}{}:
		defer func() { <-p.printers }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: too many pages are being printed", store.ErrUnavailable)
	}
	return printed.Page{
		Document: document, Code: code, Stamp: stamp, Language: request.Language, Logo: taxpayer.Logo,
		Contingency: contingent, Extra: printed.ExtraOf(request),
	}.Render(format)
}

// contingent reports whether a signed document without a verdict is printed with
// the legend of the contingency.
func (p *Pipeline) contingent(ctx context.Context, inv store.Invoice) (bool, error) {
	switch inv.Status {
	case fiscal.Queued, fiscal.Submitted, fiscal.Processing, fiscal.OutcomeUnknown:
	default:
		return false, nil
	}
	if inv.ENCF == "" {
		return false, nil // the number is not shown yet
	}
	return InContingency(ctx, p.o.Store, p.o.Env)
}
