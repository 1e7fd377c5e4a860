package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/printed"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// filesView is the printed page and the XML of a document.
type filesView struct {
	Invoice store.Invoice
	Final   bool   // the files do not change any more
	PDF     string // address of the printed page; empty: there is none
	XML     *xmlView
	Sandbox bool
}

// xmlView is a signed document, readable, and the result of its verification.
type xmlView struct {
	Checks []xmlCheck
	Rows   []xmlRow
	Cut    bool   // Rows or Raw are only the beginning
	Raw    string // as it is
	Size   int
	SHA256 string
}

// xmlCheck is one part of the verification of a document.
type xmlCheck struct {
	Tone tone
	Name string
	Text string
}

// xmlRow is an element of a document.
type xmlRow struct {
	Depth int
	Name  string
	Text  string
	Group bool // it has other elements inside
}

const (
	maxXMLRows = 600
	maxXMLRaw  = 200 << 10
)

// files reads what can be shown of the files of a document.
func (x *request) files(inv store.Invoice) (v filesView, err error) {
	v = filesView{Invoice: inv, Final: inv.Status.Final(), Sandbox: inv.Environment == fiscal.Sandbox}
	xml, err := x.console.o.Pipeline.XML(x.Context(), inv)
	if err != nil && !errors.Is(err, pipeline.ErrNoArtifact) {
		return v, err
	}
	if err == nil {
		v.XML = x.newXMLView(xml, inv)
	}
	printable, err := x.printable(inv)
	if printable {
		v.PDF = documentAddress(inv.DocumentID) + "/pdf"
	}
	return v, err
}

// printable reports whether a document has a printed page: a signed one that is valid, or
// that waits during a contingency.
func (x *request) printable(inv store.Invoice) (bool, error) {
	switch inv.Status {
	case fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Delivered:
		return inv.ENCF != "" && inv.Environment != fiscal.Sandbox, nil
	case fiscal.Queued, fiscal.Submitted, fiscal.Processing, fiscal.OutcomeUnknown:
	case fiscal.Rejected, fiscal.ValidationFailed:
		return false, nil
	}
	last, err := x.console.o.Store.Contingency(x.Context(), inv.Environment)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil && last.EndedAt.IsZero() && inv.ENCF != "", err
}

// newXMLView verifies a signed document and makes it readable.
func (x *request) newXMLView(file pipeline.Artifact, inv store.Invoice) *xmlView {
	v := &xmlView{Size: len(file.Bytes), SHA256: hex.EncodeToString(file.Digest), Cut: len(file.Bytes) > maxXMLRaw}
	v.Raw = string(file.Bytes[:min(len(file.Bytes), maxXMLRaw)])
	check := func(ok bool, name, text string) {
		c := xmlCheck{good, x.text("check." + name), text}
		if !ok {
			c.Tone = bad
		}
		v.Checks = append(v.Checks, c)
	}
	sum := sha256.Sum256(file.Bytes)
	unchanged := bytes.Equal(sum[:], file.Digest)
	check(unchanged, "unchanged", x.either(unchanged, "xml.unchanged_yes", "xml.unchanged_no"))
	verified, err := xmlsig.Verify(file.Bytes, xmlsig.InvoiceLimits())
	if err != nil {
		check(false, "signature", x.text("xml.signature_no", lang.ErrorText(err, x.language)))
		return v
	}
	check(true, "signature", x.text("xml.signature_yes", verified.Certificate.Subject.CommonName, verified.Certificate.Issuer.CommonName))
	document, code, err := ecf.Read(verified)
	if err != nil {
		check(false, "format", err.Error())
		return v
	}
	x.checkSigner(check, verified, document)
	same := document.ENCF.String() == inv.ENCF
	check(same, "number", document.ENCF.String()+" · "+x.text("xml.code", code.String()))
	faults := ecf.Inspect(verified.Root())
	check(len(faults) == 0, "format", x.count(int64(len(faults)), false, "xml.faults"))
	for _, f := range faults {
		check(false, "fault", f.Path+": "+f.Message.In(x.language))
	}
	v.addRows(verified.Root(), 0)
	return v
}

// either returns one of two texts.
func (x *request) either(yes bool, key, other string) string {
	if yes {
		return x.text(key)
	}
	return x.text(other)
}

// checkSigner checks that the certificate was valid when the document was signed.
func (x *request) checkSigner(check func(bool, string, string), verified *xmlsig.Verified, document *ecf.Document) {
	c, day := verified.Certificate, func(at time.Time) string { return at.In(fiscal.Zone()).Format("02/01/2006") }
	valid := !document.SignedAt.Before(c.NotBefore) && !document.SignedAt.After(c.NotAfter)
	check(valid, "certificate", x.text("xml.certificate_dates", day(c.NotBefore), day(c.NotAfter), document.SignedAt.In(fiscal.Zone()).Format("02/01/2006 15:04:05")))
}

// addRows adds an element and those inside of it.
func (v *xmlView) addRows(e xmlsig.Element, depth int) {
	if len(v.Rows) >= maxXMLRows {
		v.Cut = true
		return
	}
	row := xmlRow{Depth: min(depth, 6), Name: e.Name(), Group: e.HasChildren()}
	if !row.Group {
		row.Text = e.Text()
	}
	v.Rows = append(v.Rows, row)
	for child := range e.Children() {
		v.addRows(child, depth+1)
	}
}

// pdfPolicy is the policy of a printed page. The page of its document shows it in a frame,
// and the viewer of a browser draws it with styles of its own.
const pdfPolicy = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'self'"

// showPDF answers the printed page of a document: inside of a frame, or as a download.
func (c *Console) showPDF(x *request, inv store.Invoice) error {
	read := c.o.Pipeline.PDF
	if name := x.URL.Query().Get("format"); name != "" {
		format, err := printed.ParseFormat(name)
		if err != nil {
			return errBadRequest
		}
		read = func(ctx context.Context, inv store.Invoice) (pipeline.Artifact, error) {
			return c.o.Pipeline.PDFIn(ctx, inv, format)
		}
	}
	x.w.Header().Set("Content-Security-Policy", pdfPolicy)
	return x.file(inv, read, ".pdf", "application/pdf")
}

// downloadXML answers the signed XML of a document.
func (c *Console) downloadXML(x *request, inv store.Invoice) error {
	return x.file(inv, c.o.Pipeline.XML, ".xml", "application/xml")
}

// file answers a file of a document. It fails with store.ErrNotFound when the document has
// no such file.
func (x *request) file(inv store.Invoice, read func(context.Context, store.Invoice) (pipeline.Artifact, error), extension, mediaType string) error {
	found, err := read(x.Context(), inv)
	if errors.Is(err, pipeline.ErrNoArtifact) {
		err = store.ErrNotFound
	}
	if err != nil {
		x.w.Header().Set("Content-Security-Policy", contentSecurityPolicy)
		return err
	}
	how := "inline"
	if extension != ".pdf" || x.URL.Query().Has("download") {
		how = "attachment"
	}
	h := x.w.Header()
	h.Set("Content-Type", mediaType)
	h.Set("Content-Disposition", how+`; filename="`+found.Name+extension+`"`)
	h.Set("Content-Length", strconv.Itoa(len(found.Bytes)))
	x.w.WriteHeader(http.StatusOK)
	if x.Method != http.MethodHead {
		_, _ = x.w.Write(found.Bytes) // if it fails, the browser has left
	}
	return nil
}
