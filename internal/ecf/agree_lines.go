package ecf

import (
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// lineSums are the sums over the lines of a document.
type lineSums struct {
	unclear   bool      // the class of some line cannot be read
	classes   [5]figure // by IndicadorFacturacion; found when a line has it
	codes     uint64    // of additional taxes, one bit each
	codesBad  bool      // some code cannot be read
	withheld  bool      // some line has a Retencion
	perceived bool      // some Retencion is of the perception regime, which has other totals
	itbis     figure    // withheld
	incomeTax figure    // withheld
}

func (l *lineSums) taxed() bool {
	return l.classes[1].found || l.classes[2].found || l.classes[3].found
}

// lines checks each line and adds it to the sums.
func (a *agreement) lines(sums *lineSums, items xmlsig.Element) {
	n := 0
	for item := range items.Children() {
		n++
		a.line(sums, item, n)
	}
}

func (a *agreement) line(sums *lineSums, item xmlsig.Element, n int) {
	var discount, discounts, surcharge, surcharges xmlsig.Element
	class := -1
	for e := range item.Children() {
		switch e.Name() {
		case "NumeroLinea":
			if number, ok := readInteger(e.Text()); ok && number != n && number > 0 && number <= maxItems {
				a.addAt(n, "NumeroLinea", "", fiscal.CodeOutOfRange, lang.Messagef(
					"must be %d; lines are numbered 1, 2, 3 and so on",
					"debe ser %d; las líneas se numeran 1, 2, 3 y así sucesivamente", n))
			}
		case "IndicadorFacturacion":
			if i, ok := readInteger(e.Text()); ok && i >= 0 && i < len(sums.classes) {
				class = i
			}
		case "Retencion":
			a.retention(sums, e, n)
		case "DescuentoMonto":
			discount = e
		case "TablaSubDescuento":
			discounts = e
		case "RecargoMonto":
			surcharge = e
		case "TablaSubRecargo":
			surcharges = e
		case "TablaImpuestoAdicional":
			for tax := range e.Children() {
				code := additionalTaxCode(tax.Child("TipoImpuesto").Text())
				sums.codes |= 1 << code
				sums.codesBad = sums.codesBad || code == 0
			}
		case "MontoItem":
			if class >= 0 { // IndicadorFacturacion comes before MontoItem
				sums.classes[class] = sums.classes[class].add(figureOf(e))
			}
		}
	}
	sums.unclear = sums.unclear || class < 0
	a.parts(n, discount, discounts, breakdown{"DescuentoMonto", "TablaSubDescuento", "MontoSubDescuento", "discount.value"})
	a.parts(n, surcharge, surcharges, breakdown{"RecargoMonto", "TablaSubRecargo", "MontoSubRecargo", ""})
}

// addAt reports an element of line n.
func (a *agreement) addAt(n int, path, field, code string, want lang.Message) {
	a.add("DetallesItems/Item["+strconv.Itoa(n)+"]/"+path, field, code, want)
}

// retention requires both amounts, even when one is 0.00: the authority refuses a
// Retencion without one of them.
func (a *agreement) retention(sums *lineSums, e xmlsig.Element, n int) {
	sums.withheld = true
	if regime, _ := readInteger(e.Child("IndicadorAgenteRetencionoPercepcion").Text()); regime == 2 {
		sums.perceived = true
	}
	itbis, incomeTax := figureOf(e.Child("MontoITBISRetenido")), figureOf(e.Child("MontoISRRetenido"))
	if !itbis.found {
		a.addAt(n, "Retencion/MontoITBISRetenido", fieldITBISWithheld, fiscal.CodeRequired, requiredInRetention())
	}
	if !incomeTax.found {
		a.addAt(n, "Retencion/MontoISRRetenido", fieldIncomeTaxWithheld, fiscal.CodeRequired, requiredInRetention())
	}
	sums.itbis, sums.incomeTax = sums.itbis.add(itbis), sums.incomeTax.add(incomeTax)
}

func requiredInRetention() lang.Message {
	return lang.Messagef("is required in a Retencion, even when it is 0.00", "es obligatorio en una Retencion, aunque sea 0.00")
}

func requiredWith(other string) lang.Message {
	return lang.Messagef("is required together with %s", "es obligatorio junto con %s", other)
}

func sumOf(parts string, sum figure) lang.Message {
	return lang.Messagef("must be the sum of %s, %s", "debe ser la suma de %s, %s", parts, sum.value.StringFixed(2))
}

// A breakdown is an amount of a line with the table of its parts.
type breakdown struct {
	whole, table, part string
	field              string // of a line in the creation request
}

func (of breakdown) fieldAt(n int) string {
	if of.field == "" {
		return ""
	}
	return "lines." + strconv.Itoa(n-1) + "." + of.field
}

// parts checks that an amount and the table of its parts are both there and
// agree: the authority refuses one without the other.
func (a *agreement) parts(n int, whole, table xmlsig.Element, of breakdown) {
	if whole.IsZero() && table.IsZero() {
		return
	}
	switch {
	case whole.IsZero():
		a.addAt(n, of.whole, of.fieldAt(n), fiscal.CodeRequired, requiredWith(of.table))
		return
	case table.IsZero():
		a.addAt(n, of.table, of.fieldAt(n), fiscal.CodeRequired, requiredWith(of.whole))
		return
	}
	stated, sum := figureOf(whole), figure{}
	for part := range table.Children() {
		sum = sum.add(figureOf(part.Child(of.part)))
	}
	if !stated.bad && !sum.bad && stated.value.Cmp(sum.value) != 0 {
		a.addAt(n, of.whole, of.fieldAt(n), fiscal.CodeTotalMismatch, sumOf(of.part, sum))
	}
}
