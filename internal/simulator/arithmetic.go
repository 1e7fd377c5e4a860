package simulator

import (
	"strconv"

	"github.com/quagmt/udecimal"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// arithmetic recomputes the amounts of a document whose structure is valid.
type arithmetic struct {
	x         *examination
	tolerance udecimal.Decimal
	lines     int
	sums      [5]udecimal.Decimal              // of the lines, by billing indicator
	other     map[string]udecimal.Decimal      // bases of the taxes 001 to 005, by code
	totals    func(string) udecimal.Decimal    // the stated totals; zero if missing
	within    func(a, b udecimal.Decimal) bool // compares with the tolerance of the document
}

// amount reads an amount; a missing one is zero.
func amount(e xmlsig.Element) udecimal.Decimal {
	d, _ := udecimal.Parse(e.Text()) // the structure has been checked
	return d
}

func (a *arithmetic) check() {
	head := a.x.root.Child("Encabezado").Child("Totales")
	a.totals = func(name string) udecimal.Decimal { return amount(head.Child(name)) }
	if a.x.rfce {
		a.within = func(p, q udecimal.Decimal) bool { return p.Equal(q) }
		a.total(a.totals("MontoGravadoTotal").Add(a.totals("MontoExento")).Add(a.totals("TotalITBIS")).Add(a.totals("MontoImpuestoAdicional")))
		a.buckets(nil)
		return
	}
	a.other = map[string]udecimal.Decimal{}
	for item := range a.x.root.Child("DetallesItems").Children() {
		a.line(item)
	}
	whole := a.tolerance.Mul64(uint64(a.lines)) //nolint:gosec // never negative
	a.within = func(p, q udecimal.Decimal) bool { return p.Sub(q).Abs().LessThanOrEqual(whole) }
	a.adjust(a.x.root.Child("DescuentosORecargos"))
	a.recompute(head)
}

// line checks one line and adds it to the sums.
func (a *arithmetic) line(item xmlsig.Element) {
	a.lines++
	get := func(name string) udecimal.Decimal { return amount(item.Child(name)) }
	stated := get("MontoItem")
	want := get("PrecioUnitarioItem").Mul(get("CantidadItem")).Sub(get("DescuentoMonto")).Add(get("RecargoMonto"))
	if want.Sub(stated).Abs().GreaterThan(a.tolerance) {
		a.x.addFinding(rowLine, 90017, "El campo MontoItem de la línea %s no es correcto.", item.Child("NumeroLinea").Text())
	}
	if class := item.Child("IndicadorFacturacion").Text(); len(class) == 1 && class[0] <= '4' {
		a.sums[class[0]-'0'] = a.sums[class[0]-'0'].Add(stated)
	}
	for tax := range item.Child("TablaImpuestoAdicional").Children() {
		code := tax.Child("TipoImpuesto").Text()
		a.other[code] = a.other[code].Add(stated)
	}
}

// adjust applies the discounts and surcharges of the whole document.
func (a *arithmetic) adjust(section xmlsig.Element) {
	for e := range section.Children() {
		class := e.Child("IndicadorFacturacionDescuentooRecargo").Text()
		if class == "" {
			continue
		}
		by := amount(e.Child("MontoDescuentooRecargo"))
		if e.Child("TipoAjuste").Text() == "D" {
			by = by.Neg()
		}
		a.sums[class[0]-'0'] = a.sums[class[0]-'0'].Add(by)
	}
}

// recompute computes the totals from the lines and compares them with the stated ones.
func (a *arithmetic) recompute(head xmlsig.Element) {
	percent := func(rate string) udecimal.Decimal {
		d, _ := udecimal.Parse(rate) // the structure has been checked
		return d.Mul(udecimal.MustFromUint64(1, 2))
	}
	bases := [4]udecimal.Decimal{1: a.sums[1], 2: a.sums[2], 3: a.sums[3]}
	if a.x.root.Child("Encabezado").Child("IdDoc").Child("IndicadorMontoGravado").Text() == "1" {
		for class, divisor := range map[int]uint64{1: 118, 2: 116} {
			if q, err := a.sums[class].Div(udecimal.MustFromUint64(divisor, 2)); err == nil {
				bases[class] = q.RoundHAZ(2)
			}
		}
	}
	additional, selective := udecimal.Zero, udecimal.Zero
	for tax := range head.Child("ImpuestosAdicionales").Children() {
		isc := amount(tax.Child("MontoImpuestoSelectivoConsumoEspecifico")).Add(amount(tax.Child("MontoImpuestoSelectivoConsumoAdvalorem")))
		code := tax.Child("TipoImpuesto").Text()
		if code <= "005" {
			additional = additional.Add(a.other[code].Mul(percent(tax.Child("TasaImpuestoAdicional").Text())).RoundHAZ(2))
			continue
		}
		additional, selective = additional.Add(isc), selective.Add(isc)
	}
	itbis := [4]udecimal.Decimal{
		1: bases[1].Add(selective).Mul(percent("18")).RoundHAZ(2),
		2: bases[2].Mul(percent("16")).RoundHAZ(2),
	}
	taxed := bases[1].Add(bases[2]).Add(bases[3])
	a.total(taxed.Add(a.sums[4]).Add(itbis[1]).Add(itbis[2]).Add(additional))
	a.buckets(func(n int) bool {
		text := strconv.Itoa(n)
		if rate := head.Child("ITBIS" + text).Text(); rate != "" && rate != []string{1: "18", 2: "16", 3: "0"}[n] {
			return false
		}
		return a.within(a.totals("MontoGravadoI"+text), bases[n]) && a.within(a.totals("TotalITBIS"+text), itbis[n])
	})
}

// total checks the total of the document (row 18 of the table of checks).
func (a *arithmetic) total(want udecimal.Decimal) {
	if !a.within(a.totals("MontoTotal"), want) {
		a.x.addFinding(rowTotal, 3205, "El campo MontoTotal del área Totales de la sección Encabezado no es correcto.")
	}
}

// buckets checks the sums of each tax rate and their totals (row 19).
func (a *arithmetic) buckets(class func(n int) bool) {
	wrong := func(field string) { a.x.addFieldFinding(rowBuckets, 1920, field, "Totales") }
	t := a.totals
	if !a.within(t("MontoGravadoTotal"), t("MontoGravadoI1").Add(t("MontoGravadoI2")).Add(t("MontoGravadoI3"))) {
		wrong("MontoGravadoTotal")
	}
	if !a.within(t("TotalITBIS"), t("TotalITBIS1").Add(t("TotalITBIS2")).Add(t("TotalITBIS3"))) {
		wrong("TotalITBIS")
	}
	if class == nil {
		return
	}
	for n := 1; n <= 3; n++ {
		if !class(n) {
			wrong("MontoGravadoI" + strconv.Itoa(n))
		}
	}
}
