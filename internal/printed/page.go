// Package printed owns the printed representation of electronic fiscal
// documents of types 31 and 32: which items a page shows, where they stand and
// how they look (Technical Report e-CF, printed representation). It is pure:
// the same page always gives the same bytes.
package printed

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// A Format is the paper that a document is printed on.
type Format int

// The formats.
const (
	Letter  Format = iota // 215.9 × 279.4 mm, as many pages as needed
	Receipt               // a roll 80 mm wide, as long as needed
)

// ParseFormat reads the name of a format.
func ParseFormat(s string) (Format, error) {
	switch s {
	case "letter":
		return Letter, nil
	case "receipt":
		return Receipt, nil
	}
	return 0, fmt.Errorf("printed: there is no format %q; want letter or receipt", s)
}

// A Page is all that is printed of one document.
type Page struct {
	Document *ecf.Document
	Code     ecf.SecurityCode
	Stamp    ecf.Stamp
	// Language is "es" or "en", which adds a second caption to the labels that
	// are not fiscal. The fiscal labels are Spanish by law.
	Language    string
	Logo        []byte // PNG or JPEG, nil for none
	Contingency bool   // the document can be looked up only after 72 hours
	Extra       Extra
}

// Extra is what a request says and the signed document has no room for. It is
// zero when only the document is known, which then speaks for itself.
type Extra struct {
	Notes, PaymentTerms, PurchaseOrder string

	DueDate         fiscal.Date
	BuyerPostalCode string
	BuyerCountry    string               // code, of a buyer abroad
	Withholdings    *fiscal.Withholdings // for their bases and rates
	Units           []string             // by line, for lines without a code of the authority's table
}

// ExtraOf returns what only the invoice knows.
func ExtraOf(inv *fiscal.Invoice) Extra {
	e := Extra{
		Notes: inv.Notes, PaymentTerms: inv.PaymentTerms, PurchaseOrder: inv.PurchaseOrder,
		DueDate: inv.DueDate, Withholdings: inv.Withholdings, Units: make([]string, len(inv.Lines)),
	}
	if a := inv.Buyer.Address; a != nil {
		e.BuyerPostalCode = a.PostalCode
		if a.CountryCode != "DO" {
			e.BuyerCountry = a.CountryCode
		}
	}
	for i := range inv.Lines {
		e.Units[i] = inv.Lines[i].Unit
	}
	return e
}

// Render prints the page as a PDF. Without an item that the law demands on
// every page there is an error instead, for such a page proves nothing.
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
		return (&receipt{page: p, logo: logo, qr: code}).sheets(), nil
	}
	return nil, fmt.Errorf("there is no format %d", f)
}

func (p Page) check() error {
	d := p.Document
	switch {
	case d == nil:
		return errors.New("there is no document")
	case d.ENCF.IsZero():
		return errors.New("the document has no e-NCF")
	case d.ENCF.Type() == fiscal.FiscalCredit && d.Expires.IsZero():
		return errors.New("the document does not say when its sequence expires, which type 31 must")
	case d.Issuer.RNC == "" || d.Issuer.LegalName == "":
		return errors.New("the document does not name its issuer")
	case d.IssueDate.IsZero():
		return errors.New("the document has no date of issue")
	case d.SignedAt.IsZero():
		return errors.New("the document is not signed")
	case len(d.Lines) == 0:
		return errors.New("the document has no lines")
	case p.Code == (ecf.SecurityCode{}):
		return errors.New("the document has no security code")
	case !strings.HasSuffix(p.Stamp.String(), "codigoseguridad="+url.QueryEscape(p.Code.String())):
		return errors.New("the stamp is not of the security code")
	case p.Language != "" && p.Language != "es" && p.Language != "en":
		return fmt.Errorf("there is no language %q; want es or en", p.Language)
	}
	return nil
}

// The type of a document in words, as the authority writes them.
func (p Page) typeName() string {
	if p.Document.ENCF.Type() == fiscal.FiscalCredit {
		return "Factura de Crédito Fiscal Electrónica"
	}
	return "Factura de Consumo Electrónica"
}

// contingencyLegend is the authority's text for documents that it has not
// received yet.
const contingencyLegend = "e-CF emitido en modalidad de Contingencia, el cual podrá ser consultado para su validez fiscal, a partir de las setenta y dos (72) horas."
