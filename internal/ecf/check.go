package ecf

import (
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Check checks the document that an invoice of an issuer would become, before a
// number is assigned: it builds the document with a placeholder number and time,
// without writing its XML, and checks its structure. Its error is of type fiscal.Problems and
// names the fields of the request.
func Check(issuer Issuer, inv *fiscal.Invoice) error {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, fiscal.Zone())
	encf, err := fiscal.NewENCF(inv.Type, 1)
	if err != nil {
		return err
	}
	number := Number{ENCF: encf}
	if inv.Type == fiscal.FiscalCredit {
		number.Expires = fiscal.DateOf(at)
	}
	d, err := New(issuer, number, inv, at)
	if err != nil {
		return err
	}
	return d.Check()
}

// Check checks the structure of the document, and of its summary when it has one.
// Its error is of type fiscal.Problems and names the fields of the request.
func (d *Draft) Check() error {
	problems, err := inspected(d.tree())
	if err != nil {
		return err
	}
	if len(problems) == 0 && d.HasSummary() {
		if problems, err = inspected(d.emitSummary(xmlsig.NewDocumentWriter("RFCE", 40), SecurityCode{"AAAAAA"})); err != nil {
			return err
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return problems
}

// inspected ends a document of xmlsig.NewDocumentWriter and checks its structure.
func inspected(w *xmlsig.Writer) (fiscal.Problems, error) {
	built, err := w.Document()
	if err != nil {
		return nil, fmt.Errorf("ecf: check: %w", err)
	}
	var problems fiscal.Problems
	for _, f := range Inspect(built.Root()) {
		problems = append(problems, fiscal.Problem{Field: f.Field, Code: f.Code, Message: lang.Messagef(
			"in the fiscal document, %s", "en el comprobante fiscal, %s", f.Message)})
	}
	return problems, nil
}

// Synthetic returns a fictitious issuer, for checks that concern the invoice
// alone.
func Synthetic() Issuer {
	return Issuer{RNC: "101000001", LegalName: "Sandbox", Address: "Sandbox", IncomeType: "01"}
}
