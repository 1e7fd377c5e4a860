package ecf

import (
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// agree reports elements that contradict one another, which no schema checks. A
// rule reports nothing when one of its elements is already invalid.
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

// An agreement compares the elements of one document.
type agreement struct {
	*inspector
	root                        string
	head, issuer, buyer, totals xmlsig.Element
	adjusted                    bool // the document has discounts or surcharges on its total
}

// sound reports whether a section, by its path below the root, has all its
// elements and no others. The values themselves are checked when they are read.
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

// within reports whether a path is equal to other or below it.
func within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '/')
}

func (a *agreement) add(path, field, code string, want lang.Message) {
	a.report(Fault{a.root + "/" + path, field, code, named(path[strings.LastIndexByte(path, '/')+1:], want)})
}

// number compares the number of a document with its type.
func (a *agreement) number() {
	kind, ok := readInteger(a.head.Child("TipoeCF").Text())
	number, err := fiscal.ParseENCF(a.head.Child("eNCF").Text())
	if ok && err == nil && (kind == 31 || kind == 32) && string(number.Type()) != strconv.Itoa(kind) {
		a.add("Encabezado/IdDoc/eNCF", "", fiscal.CodeInvalidFormat, lang.Messagef(
			"must be a number of type %d, as TipoeCF says", "debe ser un número del tipo %d, como dice TipoeCF", kind))
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
		a.add(path, field, fiscal.CodeRequired, lang.Messagef("is required when TipoPago is 2 (credit)", "es obligatorio cuando TipoPago es 2 (crédito)"))
	case !credit && !due.IsZero():
		a.add(path, field, fiscal.CodeNotAllowedForType, lang.Messagef(
			"must be left out unless TipoPago is 2 (credit); TipoPago is %d",
			"debe omitirse salvo que TipoPago sea 2 (crédito); TipoPago es %d", payment))
	case credit:
		day, _ := readDay(due.Text())
		issued, _ := readDay(a.issuer.Child("FechaEmision").Text())
		if day != 0 && day < issued {
			a.add(path, field, fiscal.CodeDateOrder, lang.Messagef("must not be before FechaEmision", "no debe ser anterior a FechaEmision"))
		}
	}
}

// inclusion checks that the document says whether prices include ITBIS if, and
// only if, some line has ITBIS.
func (a *agreement) inclusion(lines *lineSums) {
	const path = "Encabezado/IdDoc/IndicadorMontoGravado"
	switch stated := !a.head.Child("IndicadorMontoGravado").IsZero(); {
	case lines.unclear:
	case lines.taxed() && !stated:
		a.add(path, "", fiscal.CodeRequired, lang.Messagef(
			"is required when a line has IndicadorFacturacion 1, 2 or 3", "es obligatorio cuando una línea tiene IndicadorFacturacion 1, 2 o 3"))
	case stated && !lines.taxed():
		a.add(path, "", fiscal.CodeTaxConflict, lang.Messagef(
			"must be left out unless a line has IndicadorFacturacion 1, 2 or 3",
			"debe omitirse salvo que una línea tenga IndicadorFacturacion 1, 2 o 3"))
	}
}

// whoBuys checks that a consumer invoice from SummaryLimit names its buyer, and
// that a summary is below SummaryLimit.
func (a *agreement) whoBuys() {
	rnc, foreign := a.buyer.Child("RNCComprador"), a.buyer.Child("IdentificadorExtranjero")
	if !rnc.IsZero() && !foreign.IsZero() {
		a.add("Encabezado/Comprador/IdentificadorExtranjero", "buyer.tax_id", fiscal.CodeNotAllowedForType, lang.Messagef(
			"must be left out when there is RNCComprador", "debe omitirse cuando existe RNCComprador"))
	}
	limit := fiscal.SummaryLimit().StringFixed(2)
	total, ok := readAmount(a.totals.Child("MontoTotal").Text())
	if !ok || total.Cmp(fiscal.SummaryLimit()) < 0 {
		return
	}
	if a.kind == kindRFCE {
		a.add("Encabezado/Totales/MontoTotal", fieldTotal, fiscal.CodeOutOfRange, lang.Messagef(
			"must be less than %s in a summary", "debe ser menor que %s en un resumen", limit))
	}
	if a.kind == kind32 {
		if rnc.IsZero() && foreign.IsZero() {
			a.add("Encabezado/Comprador/RNCComprador", "buyer.tax_id", fiscal.CodeRequiredForType, lang.Messagef(
				"or IdentificadorExtranjero is required for type 32 from %s", "o IdentificadorExtranjero es obligatorio en el tipo 32 desde %s", limit))
		}
		if a.buyer.Child("RazonSocialComprador").IsZero() {
			a.add("Encabezado/Comprador/RazonSocialComprador", "buyer.legal_name", fiscal.CodeRequiredForType, lang.Messagef(
				"is required for type 32 from %s", "es obligatorio en el tipo 32 desde %s", limit))
		}
	}
}

// A figure is an amount that may be absent or invalid.
type figure struct {
	value fiscal.Decimal
	found bool
	bad   bool // the text is not an amount
}

func figureOf(e xmlsig.Element) figure {
	if e.IsZero() {
		return figure{}
	}
	d, ok := readAmount(e.Text())
	return figure{d, true, !ok}
}

// positiveOf is figureOf for an amount that must not be 0.
func positiveOf(e xmlsig.Element) figure {
	f := figureOf(e)
	f.bad = f.bad || f.found && f.value.IsZero()
	return f
}

// add returns the sum; an absent figure counts as 0.
func (f figure) add(other figure) figure {
	return figure{f.value.Add(other.value), f.found || other.found, f.bad || other.bad}
}
