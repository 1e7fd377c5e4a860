package ecf

import (
	"math/bits"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A bucket names the elements of the totals that belong to one class of lines.
type bucket struct {
	base, rate, tax string
	percent         int
}

// buckets are indexed by IndicadorFacturacion; lines of class 0 are not invoiced.
var buckets = [5]bucket{
	1: {"MontoGravadoI1", "ITBIS1", "TotalITBIS1", 18},
	2: {"MontoGravadoI2", "ITBIS2", "TotalITBIS2", 16},
	3: {"MontoGravadoI3", "ITBIS3", "TotalITBIS3", 0},
	4: {base: "MontoExento"},
}

func (a *agreement) total(name string) figure { return figureOf(a.totals.Child(name)) }

func (a *agreement) addTotal(name, code string, want lang.Message) {
	a.add("Encabezado/Totales/"+name, fieldTotal, code, want)
}

// when checks that a total is there if, and only if, it should be; why returns the
// condition in words.
func (a *agreement) when(name string, should bool, why func() lang.Message) {
	switch is := !a.totals.Child(name).IsZero(); {
	case should && !is:
		a.addTotal(name, fiscal.CodeTotalMismatch, lang.Messagef("is required, because %s", "es obligatorio, porque %s", why()))
	case is && !should:
		a.addTotal(name, fiscal.CodeTotalMismatch, lang.Messagef("must be left out; it belongs here only if %s", "debe omitirse; solo corresponde si %s", why()))
	}
}

// totalsOf compares the totals of an e-CF with its lines.
func (a *agreement) totalsOf(lines *lineSums) {
	if !lines.unclear {
		a.present(lines)
		a.bases(lines)
	}
	a.additional(lines)
	if a.kind == kind31 && !lines.perceived {
		a.withholding("TotalITBISRetenido", "MontoITBISRetenido", fieldITBISWithheld, lines.withheld, lines.itbis)
		a.withholding("TotalISRRetencion", "MontoISRRetenido", fieldIncomeTaxWithheld, lines.withheld, lines.incomeTax)
	}
}

// present checks that the totals have the classes of the lines and no others.
func (a *agreement) present(lines *lineSums) {
	for class, b := range buckets {
		for _, name := range [...]string{b.base, b.rate, b.tax} {
			if name != "" {
				a.when(name, lines.classes[class].found, func() lang.Message {
					return lang.Messagef("a line has IndicadorFacturacion %d", "una línea tiene IndicadorFacturacion %d", class)
				})
			}
		}
		if b.rate == "" {
			continue
		}
		if rate, ok := readInteger(a.totals.Child(b.rate).Text()); ok && rate != b.percent {
			a.addTotal(b.rate, fiscal.CodeOutOfRange, lang.Messagef("must be %d", "debe ser %d", b.percent))
		}
	}
	why := func() lang.Message {
		return lang.Messagef("a line has IndicadorFacturacion 1, 2 or 3", "una línea tiene IndicadorFacturacion 1, 2 o 3")
	}
	a.when("MontoGravadoTotal", lines.taxed(), why)
	a.when("TotalITBIS", lines.taxed(), why)
}

// bases compares the amount of each class with the sum of its lines. It does
// nothing when prices include ITBIS or the document has discounts or surcharges
// on its total, because the amounts then differ from the sums.
func (a *agreement) bases(lines *lineSums) {
	indicator, _ := readInteger(a.head.Child("IndicadorMontoGravado").Text()) // absent when no line has ITBIS
	if indicator != 0 || a.adjusted {
		return
	}
	for class, b := range buckets {
		if b.base == "" || !lines.classes[class].found {
			continue
		}
		a.equal(b.base, lines.classes[class], func() lang.Message {
			return lang.Messagef("the sum of MontoItem of IndicadorFacturacion %d", "la suma de MontoItem de IndicadorFacturacion %d", class)
		})
	}
}

// equal reports a total that is present and differs from the wanted amount; what
// returns that amount in words.
func (a *agreement) equal(name string, want figure, what func() lang.Message) {
	got := a.total(name)
	if !got.found || got.bad || want.bad || got.value.Cmp(want.value) == 0 {
		return
	}
	a.addTotal(name, fiscal.CodeTotalMismatch, lang.Messagef("must be %s, %s", "debe ser %s, %s", what(), want.value.StringFixed(2)))
}

// additional compares the additional tax codes of the lines with those of the
// totals.
func (a *agreement) additional(lines *lineSums) {
	var codes uint64
	for tax := range a.totals.Child("ImpuestosAdicionales").Children() {
		code := additionalTaxCode(tax.Child("TipoImpuesto").Text())
		if code == 0 {
			return
		}
		if codes&(1<<code) != 0 {
			a.addTotal("ImpuestosAdicionales", fiscal.CodeDuplicated, lang.Messagef("must have code %03d once", "debe tener el código %03d una sola vez", code))
		}
		codes |= 1 << code
	}
	if lines.codesBad {
		return
	}
	for missing := lines.codes &^ codes; missing != 0; missing &= missing - 1 {
		a.addTotal("ImpuestosAdicionales", fiscal.CodeTaxConflict, lang.Messagef(
			"must have code %03d, which a line has", "debe tener el código %03d, que una línea tiene", bits.TrailingZeros64(missing)))
	}
	for extra := codes &^ lines.codes; extra != 0; extra &= extra - 1 {
		a.addTotal("ImpuestosAdicionales", fiscal.CodeTaxConflict, lang.Messagef(
			"must not have code %03d, which no line has", "no debe tener el código %03d, que ninguna línea tiene", bits.TrailingZeros64(extra)))
	}
}

func (a *agreement) withholding(name, of, field string, stated bool, sum figure) {
	path := "Encabezado/Totales/" + name
	switch got := a.total(name); {
	case got.bad || sum.bad:
	case stated && !got.found:
		a.add(path, field, fiscal.CodeTotalMismatch, lang.Messagef(
			"is required when a line has a Retencion", "es obligatorio cuando una línea tiene Retencion"))
	case got.found && got.value.Cmp(sum.value) != 0:
		a.add(path, field, fiscal.CodeTotalMismatch, sumOf(of, sum))
	}
}

// sums compares the totals with one another; a summary has nothing else to
// compare.
func (a *agreement) sums() {
	if a.kind == kindRFCE {
		a.pairs()
	}
	i1, i2, i3 := a.total("MontoGravadoI1"), a.total("MontoGravadoI2"), a.total("MontoGravadoI3")
	a.equal("MontoGravadoTotal", i1.add(i2).add(i3), func() lang.Message {
		return lang.Messagef("the sum of MontoGravadoI1, MontoGravadoI2 and MontoGravadoI3", "la suma de MontoGravadoI1, MontoGravadoI2 y MontoGravadoI3")
	})
	t1, t2, t3 := a.total("TotalITBIS1"), a.total("TotalITBIS2"), a.total("TotalITBIS3")
	a.equal("TotalITBIS", t1.add(t2).add(t3), func() lang.Message {
		return lang.Messagef("the sum of TotalITBIS1, TotalITBIS2 and TotalITBIS3", "la suma de TotalITBIS1, TotalITBIS2 y TotalITBIS3")
	})

	var taxes figure
	for tax := range a.totals.Child("ImpuestosAdicionales").Children() {
		for _, name := range [...]string{"MontoImpuestoSelectivoConsumoEspecifico", "MontoImpuestoSelectivoConsumoAdvalorem", "OtrosImpuestosAdicionales"} {
			taxes = taxes.add(positiveOf(tax.Child(name)))
		}
	}
	additional := positiveOf(a.totals.Child("MontoImpuestoAdicional"))
	if !taxes.bad && !additional.bad {
		a.when("MontoImpuestoAdicional", taxes.found, func() lang.Message {
			return lang.Messagef("ImpuestosAdicionales has an amount", "ImpuestosAdicionales tiene un monto")
		})
		a.equal("MontoImpuestoAdicional", taxes, func() lang.Message {
			return lang.Messagef("the sum of the amounts of ImpuestosAdicionales", "la suma de los montos de ImpuestosAdicionales")
		})
	}
	a.equal("MontoTotal", a.total("MontoGravadoTotal").add(a.total("MontoExento")).add(a.total("TotalITBIS")).add(additional),
		func() lang.Message {
			return lang.Messagef("the sum of MontoGravadoTotal, MontoExento, TotalITBIS and MontoImpuestoAdicional",
				"la suma de MontoGravadoTotal, MontoExento, TotalITBIS y MontoImpuestoAdicional")
		})
}

// pairs checks that a summary, which has no lines, has both totals of a class or
// neither.
func (a *agreement) pairs() {
	taxed := false
	for _, b := range buckets {
		if b.tax == "" {
			continue
		}
		has := !a.totals.Child(b.base).IsZero()
		a.when(b.tax, has, func() lang.Message { return lang.Messagef("there is %s", "existe %s", b.base) })
		taxed = taxed || has
	}
	why := func() lang.Message {
		return lang.Messagef("there is MontoGravadoI1, MontoGravadoI2 or MontoGravadoI3", "existe MontoGravadoI1, MontoGravadoI2 o MontoGravadoI3")
	}
	a.when("MontoGravadoTotal", taxed, why)
	a.when("TotalITBIS", taxed, why)
}
