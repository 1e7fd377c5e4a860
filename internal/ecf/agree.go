package ecf

import (
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// agree tells where elements contradict one another in what no schema sees. A
// rule is silent when something that it looks at is wrong by itself.
func agree(in *inspector, root xmlsig.Element) {
	head := root.Child("Encabezado")
	a := agreement{
		inspector: in,
		root:      root.Name(),
		head:      head.Child("IdDoc"),
		issuer:    head.Child("Emisor"),
		buyer:     head.Child("Comprador"),
		totals:    head.Child("Totales"),
	}
	headSound, buyerSound := a.sound("Encabezado/IdDoc"), a.sound("Encabezado/Comprador")
	totalsSound, linesSound := a.sound("Encabezado/Totales"), a.sound("DetallesItems")
	a.adjusted = !root.Child("DescuentosORecargos").IsZero()

	if headSound {
		a.number()
		if in.kind != kindRFCE {
			a.dates()
		}
	}
	if linesSound && in.kind != kindRFCE {
		lines := &lineSums{}
		a.lines(lines, root.Child("DetallesItems"))
		if headSound {
			a.inclusion(lines)
		}
		if headSound && totalsSound {
			a.totalsOf(lines)
		}
	}
	if totalsSound {
		a.sums()
	}
	if buyerSound && totalsSound {
		a.whoBuys()
	}
}

// An agreement is a document of which the elements are compared.
type agreement struct {
	*inspector
	root                        string
	head, issuer, buyer, totals xmlsig.Element
	adjusted                    bool // there are discounts or surcharges on the whole
}

// sound tells whether a section, by its path below the root, has the elements
// it should. A value that is wrong by itself is told by reading it.
func (a *agreement) sound(section string) bool {
	section = a.root + "/" + section
	for _, f := range a.faults {
		switch f.Code {
		case fiscal.CodeUnknownField, fiscal.CodeRequired, fiscal.CodeRequiredForType, fiscal.CodeNotAllowedForType,
			fiscal.CodeTooFewItems, fiscal.CodeTooManyItems, fiscal.CodeBlank:
			if within(f.Path, section) || within(section, f.Path) {
				return false
			}
		}
	}
	return true
}

// within tells whether a path is another or below it.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '/')
}

func (a *agreement) add(path, field, code, want string) {
	a.report(Fault{a.root + "/" + path, field, code, path[strings.LastIndexByte(path, '/')+1:] + ": " + want})
}

// number compares the number of a document with its type.
func (a *agreement) number() {
	kind, ok := readInteger(a.head.Child("TipoeCF").Text())
	number, err := fiscal.ParseENCF(a.head.Child("eNCF").Text())
	if ok && err == nil && (kind == 31 || kind == 32) && string(number.Type()) != strconv.Itoa(kind) {
		a.add("Encabezado/IdDoc/eNCF", "", fiscal.CodeInvalidFormat, "must be a number of type "+strconv.Itoa(kind)+", as TipoeCF says")
	}
}

// dates compares the due date with the kind of payment and the day of issue.
func (a *agreement) dates() {
	payment, ok := readInteger(a.head.Child("TipoPago").Text())
	if !ok || payment < 1 || payment > 3 {
		return
	}
	const path, field = "Encabezado/IdDoc/FechaLimitePago", "due_date"
	due := a.head.Child("FechaLimitePago")
	switch credit := payment == 2; {
	case credit && due.IsZero():
		a.add(path, field, fiscal.CodeRequired, "is required for credit, which is what TipoPago 2 says")
	case !credit && !due.IsZero():
		a.add(path, field, fiscal.CodeNotAllowedForType, "is for credit alone, which TipoPago "+strconv.Itoa(payment)+" is not")
	case credit:
		day, _ := readDay(due.Text())
		issued, _ := readDay(a.issuer.Child("FechaEmision").Text())
		if day != 0 && day < issued {
			a.add(path, field, fiscal.CodeDateOrder, "must not be before FechaEmision")
		}
	}
}

// inclusion asks whether prices include ITBIS exactly when some line has any.
func (a *agreement) inclusion(lines *lineSums) {
	const path = "Encabezado/IdDoc/IndicadorMontoGravado"
	switch stated := !a.head.Child("IndicadorMontoGravado").IsZero(); {
	case lines.unclear:
	case lines.taxed() && !stated:
		a.add(path, "", fiscal.CodeRequired, "is required when a line has IndicadorFacturacion 1, 2 or 3")
	case stated && !lines.taxed():
		a.add(path, "", fiscal.CodeTaxConflict, "is for documents with a line of IndicadorFacturacion 1, 2 or 3 alone")
	}
}

// whoBuys asks for the buyer of a large consumer invoice, and that a summary be
// not of one.
func (a *agreement) whoBuys() {
	rnc, foreign := a.buyer.Child("RNCComprador"), a.buyer.Child("IdentificadorExtranjero")
	if !rnc.IsZero() && !foreign.IsZero() {
		a.add("Encabezado/Comprador/IdentificadorExtranjero", "buyer.tax_id", fiscal.CodeNotAllowedForType, "must not stand beside RNCComprador")
	}
	total, ok := readAmount(a.totals.Child("MontoTotal").Text())
	if !ok || total.Cmp(fiscal.SummaryLimit()) < 0 {
		return
	}
	if a.kind == kindRFCE {
		a.add("Encabezado/Totales/MontoTotal", fieldTotal, fiscal.CodeOutOfRange, "must be less than 250000.00 in a summary")
	}
	if a.kind == kind32 {
		if rnc.IsZero() && foreign.IsZero() {
			a.add("Encabezado/Comprador/RNCComprador", "buyer.tax_id", fiscal.CodeRequiredForType, "or IdentificadorExtranjero is required for type 32 from 250000.00")
		}
		if a.buyer.Child("RazonSocialComprador").IsZero() {
			a.add("Encabezado/Comprador/RazonSocialComprador", "buyer.legal_name", fiscal.CodeRequiredForType, "is required for type 32 from 250000.00")
		}
	}
}

// A figure is an amount that may be absent or not be one.
type figure struct {
	value fiscal.Decimal
	found bool
	bad   bool
}

func figureOf(e xmlsig.Element) figure {
	if e.IsZero() {
		return figure{}
	}
	d, ok := readAmount(e.Text())
	return figure{d, true, !ok}
}

// positiveOf is figureOf where 0 is no amount.
func positiveOf(e xmlsig.Element) figure {
	f := figureOf(e)
	f.bad = f.bad || f.found && f.value.IsZero()
	return f
}

// add adds a figure that may be absent.
func (f figure) add(other figure) figure {
	return figure{f.value.Add(other.value), f.found || other.found, f.bad || other.bad}
}
