// Package printed owns the printed representation of electronic fiscal documents
// of types 31 and 32: the content and the layout of a page (Technical Report
// e-CF, printed representation). It is pure: the same page always gives the same
// bytes.
package printed

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A Format is a paper format.
type Format int

// The formats.
const (
	Letter    Format = iota // 215.9 × 279.4 mm, as many pages as needed
	Receipt                 // a roll 80 mm wide, as long as needed
	Receipt58               // a roll 58 mm wide, as long as needed
	formats
)

// String returns the name of a format, as the API and the commands use it.
func (f Format) String() string {
	switch f {
	case Letter:
		return "letter"
	case Receipt:
		return "receipt"
	case Receipt58:
		return "receipt58"
	case formats:
	}
	return fmt.Sprintf("format %d", int(f))
}

// FormatNames lists the names that ParseFormat accepts, for messages.
func FormatNames() []string { return []string{"letter", "receipt", "receipt58"} }

// ParseFormat returns the format of a name, and fails on any other name.
func ParseFormat(s string) (Format, error) {
	for f := range formats {
		if s == f.String() {
			return f, nil
		}
	}
	return 0, fmt.Errorf("printed: format %q: must be %s", s, lang.OneOf(FormatNames()))
}

// A Page is the content of the printed representation of one document.
type Page struct {
	Document *ecf.Document
	Code     ecf.SecurityCode
	Stamp    ecf.Stamp
	// Language is "es" or "en". "en" adds an English caption to every label. The
	// labels themselves stay in Spanish, as the authority requires.
	Language    string
	Logo        []byte // PNG or JPEG, nil for no logo
	Contingency bool   // the authority may know the document only after 72 hours
	Extra       Extra
}

// Extra holds values of a request that the signed document cannot carry in full.
// It is zero when the request is not known; the page then shows what the document
// carries.
type Extra struct {
	Notes, PaymentTerms, PurchaseOrder string

	DueDate         fiscal.Date
	BuyerPostalCode string
	BuyerCountry    string               // the country code of a foreign buyer
	Withholdings    *fiscal.Withholdings // for their bases and rates
	Units           []string             // by line; used when the line has no code of the authority's table
}

// ExtraOf returns the extra values of an invoice.
func ExtraOf(inv *fiscal.Invoice) Extra {
	e := Extra{
		Notes: inv.Notes, PaymentTerms: inv.PaymentTerms, PurchaseOrder: inv.PurchaseOrder,
		DueDate: inv.DueDate, Withholdings: inv.Withholdings, Units: make([]string, len(inv.Lines)),
	}
	if a := inv.Buyer.Address; a != nil {
		e.BuyerPostalCode = a.PostalCode
		if a.CountryCode != fiscal.DominicanRepublic {
			e.BuyerCountry = a.CountryCode
		}
	}
	for i := range inv.Lines {
		e.Units[i] = inv.Lines[i].Unit
	}
	return e
}

// Render returns the page as a PDF. It fails when a value that the law requires
// on every page is missing, or when the logo is not a valid image.
func (p Page) Render(f Format) ([]byte, error) {
	logo, err := decodeLogo(p.Logo)
	if err != nil {
		return nil, fmt.Errorf("printed: logo: %w", err)
	}
	sheets, err := p.layout(f, logo)
	if err != nil {
		return nil, fmt.Errorf("printed: %w", err)
	}
	pdf, err := p.write(sheets, logo)
	if err != nil {
		return nil, fmt.Errorf("printed: %w", err)
	}
	return pdf, nil
}

func (p Page) layout(f Format, logo *logo) ([]sheet, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	code, err := encodeQR(p.Stamp.String())
	if err != nil {
		return nil, fmt.Errorf("stamp: %w", err)
	}
	switch f {
	case Letter:
		return (&letter{page: p, logo: logo, qr: code}).sheets(), nil
	case Receipt:
		return newReceipt(p, logo, code, roll80()).sheets(), nil
	case Receipt58:
		return newReceipt(p, logo, code, roll58()).sheets(), nil
	case formats:
	}
	return nil, fmt.Errorf("format %d does not exist", f)
}

func (p Page) check() error {
	d := p.Document
	switch {
	case d == nil:
		return errors.New("the page has no document")
	case d.ENCF.IsZero():
		return errors.New("the document has no e-NCF")
	case d.ENCF.Type() == fiscal.FiscalCredit && d.Expires.IsZero():
		return errors.New("the document is of type 31 and does not state when its number range expires")
	case d.Issuer.RNC == "" || d.Issuer.LegalName == "":
		return errors.New("the document does not name its issuer")
	case d.IssueDate.IsZero():
		return errors.New("the document has no date of issue")
	case d.SignedAt.IsZero():
		return errors.New("the document has no time of signature")
	case len(d.Lines) == 0:
		return errors.New("the document has no lines")
	case p.Code == (ecf.SecurityCode{}):
		return errors.New("the document has no security code")
	case !strings.HasSuffix(p.Stamp.String(), "codigoseguridad="+url.QueryEscape(p.Code.String())):
		return errors.New("the stamp does not have the security code of the document")
	case p.Language != "" && p.Language != "es" && p.Language != "en":
		return fmt.Errorf("language %q: must be es or en", p.Language)
	}
	return nil
}

// english reports whether labels have English captions.
func (p Page) english() bool { return p.Language == "en" }

// typeName returns the name of the document type, as the authority writes it.
func (p Page) typeName() string {
	if p.Document.ENCF.Type() == fiscal.FiscalCredit {
		return "Factura de Crédito Fiscal Electrónica"
	}
	return "Factura de Consumo Electrónica"
}

// typeCaption returns the name of the document type in English, or "" on a page
// in Spanish.
func (p Page) typeCaption() string {
	switch {
	case !p.english():
		return ""
	case p.Document.ENCF.Type() == fiscal.FiscalCredit:
		return "Electronic Fiscal Credit Invoice"
	}
	return "Electronic Consumer Invoice"
}

// contingencyLegend is the authority's text for documents issued in contingency,
// which it has not received yet.
const contingencyLegend = "e-CF emitido en modalidad de Contingencia, el cual podrá ser consultado para su validez fiscal, a partir de las setenta y dos (72) horas."

// contingencyCaption is contingencyLegend in English.
const contingencyCaption = "e-CF issued in contingency mode. Its fiscal validity can be checked after seventy-two (72) hours."

// pageNumber returns the number of a page in the words of the authority, with its
// English caption on an English page.
func (p Page) pageNumber(page, of int) (text, caption string) {
	text = fmt.Sprintf("Página No. %d de %d", page, of)
	if p.english() {
		caption = fmt.Sprintf("Page %d of %d", page, of)
	}
	return text, caption
}
