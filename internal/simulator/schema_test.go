package simulator_test

import (
	"os"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// Each document differs from a valid one in one element.
func TestStructureIsChecked(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	n := 0
	for name, c := range map[string]struct {
		old, with string
		ok        bool
	}{
		"a mail address":             {"<FechaEmision>", "<CorreoEmisor>a.b+c@d-e.do</CorreoEmisor><FechaEmision>", true},
		"a wrong mail address":       {"<FechaEmision>", "<CorreoEmisor>a_b@d.do</CorreoEmisor><FechaEmision>", false},
		"a phone":                    {"<FechaEmision>", "<TablaTelefonoEmisor><TelefonoEmisor>809-555-0000</TelefonoEmisor></TablaTelefonoEmisor><FechaEmision>", true},
		"a wrong phone":              {"<FechaEmision>", "<TablaTelefonoEmisor><TelefonoEmisor>8095550000</TelefonoEmisor></TablaTelefonoEmisor><FechaEmision>", false},
		"terms":                      {"</IdDoc>", "<TerminoPago>30 días</TerminoPago></IdDoc>", true},
		"wrong terms":                {"</IdDoc>", "<TerminoPago>30-60</TerminoPago></IdDoc>", false},
		"a long name":                {"Taladro", strings.Repeat("ñ", 81), false},
		"a name that just fits":      {"Taladro", strings.Repeat("ñ", 80), true},
		"three decimals":             {"<MontoTotal>4425.00", "<MontoTotal>4425.001", false},
		"an impossible date":         {"<FechaEmision>01-06-2026", "<FechaEmision>31-02-2026", false},
		"no quantity":                {"<CantidadItem>3.00", "<CantidadItem>0.00", false},
		"a missing element":          {"<TipoIngresos>01</TipoIngresos>", "", false},
		"an element twice":           {"<TipoPago>1</TipoPago>", "<TipoPago>1</TipoPago><TipoPago>1</TipoPago>", false},
		"an unknown element":         {"<TipoPago>1</TipoPago>", "<TipoPago>1</TipoPago><Otro>1</Otro>", false},
		"a unit":                     {"<PrecioUnitarioItem>", "<UnidadMedida>62</UnidadMedida><PrecioUnitarioItem>", true},
		"a wrong unit":               {"<PrecioUnitarioItem>", "<UnidadMedida>63</UnidadMedida><PrecioUnitarioItem>", false},
		"a municipality":             {"<FechaEmision>", "<Municipio>010100</Municipio><FechaEmision>", true},
		"a wrong municipality":       {"<FechaEmision>", "<Municipio>0101</Municipio><FechaEmision>", false},
		"an order number of digits":  {"<FechaEmision>", "<NumeroPedidoInterno>123</NumeroPedidoInterno><FechaEmision>", true},
		"an order number of letters": {"<FechaEmision>", "<NumeroPedidoInterno>x</NumeroPedidoInterno><FechaEmision>", false},
		"elements in text":           {"Taladro", "<b>x</b>", false},
		"text for elements":          {"<Comprador><RNCComprador>199000021</RNCComprador><RazonSocialComprador>Ferretería El Tornillo Azul, SRL</RazonSocialComprador></Comprador>", "<Comprador>x</Comprador>", false},
		"withholding":                {"<NombreItem>", "<Retencion><IndicadorAgenteRetencionoPercepcion>1</IndicadorAgenteRetencionoPercepcion><MontoITBISRetenido>0.00</MontoITBISRetenido></Retencion><NombreItem>", true},
		"a discount":                 {"<MontoItem>", "<DescuentoMonto>0.00</DescuentoMonto><TablaSubDescuento><SubDescuento><TipoSubDescuento>%</TipoSubDescuento><SubDescuentoPorcentaje>1.5</SubDescuentoPorcentaje><MontoSubDescuento>0.00</MontoSubDescuento></SubDescuento></TablaSubDescuento><MontoItem>", true},
		"a signed amount":            {"</Totales>", "<SaldoAnterior>-1.00</SaldoAnterior></Totales>", true},
		"a foreign currency":         {"</Totales>", "</Totales><OtraMoneda><TipoMoneda>USD</TipoMoneda><TipoCambio>60.1234</TipoCambio><MontoTotalOtraMoneda>73.75</MontoTotalOtraMoneda></OtraMoneda>", true},
		"too many repetitions":       {"<FechaEmision>", "<TablaTelefonoEmisor>" + strings.Repeat("<TelefonoEmisor>809-555-0000</TelefonoEmisor>", 4) + "</TablaTelefonoEmisor><FechaEmision>", false},
	} {
		n++
		must(t, e.Configure(func(c *simulator.Config) { c.MaxParallel = -1 }))
		e.send(encf31(n), e.sign(invoice, encf31(n), c.old, c.with))
		v := e.Documents(simulator.Filter{ENCF: encf31(n)})[0].Verdict
		if ok := v.Row != 3; ok != c.ok {
			t.Errorf("%s: %+v", name, v)
		}
	}
	// For other types only the structure that all types share is checked.
	must(t, e.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error {
		t.Ranges = append(t.Ranges, simulator.Range{Type: "34", From: 1, To: 10})
		return nil
	}))
	credit := e.sign(invoice, "E340000000001", "<TipoeCF>31", "<TipoeCF>34", "<FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia>", "<IndicadorNotaCredito>0</IndicadorNotaCredito>")
	e.upload(reception, issuer+"E340000000001.xml", credit)
	if v := e.Documents(simulator.Filter{ENCF: "E340000000001"})[0].Verdict; v.Code != 1 {
		t.Errorf("a credit note: %+v", v)
	}
}

func TestOfficialSchemaIsUsedWhenConfigured(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("FISCALHUB_XSD")
	e := newEnv(t, func(o *simulator.Options) { o.Config.OfficialSchema, o.Schemas = true, folder }).login()
	// The simulator's own schema accepts this; the official one has a list of municipalities.
	e.send(encf31(1), e.sign(invoice, encf31(1), "<FechaEmision>", "<Municipio>999999</Municipio><FechaEmision>"))
	e.send(encf31(2), e.sign(invoice, encf31(2)))
	docs := e.Documents(simulator.Filter{})
	if docs[0].Verdict.Row != 3 {
		t.Errorf("%+v", docs[0].Verdict)
	}
	needtest.Schemas(t)
	if docs[1].Verdict.Row != 21 {
		t.Errorf("%+v", docs[1].Verdict)
	}
}
