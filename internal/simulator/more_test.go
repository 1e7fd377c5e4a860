package simulator_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// TestArithmetic has documents whose amounts are right in less common ways.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	const totals = "<MontoGravadoTotal>3750.00</MontoGravadoTotal><MontoGravadoI1>3750.00</MontoGravadoI1><ITBIS1>18</ITBIS1><TotalITBIS>675.00</TotalITBIS><TotalITBIS1>675.00</TotalITBIS1><MontoTotal>4425.00</MontoTotal>"
	for _, c := range []struct {
		name    string
		changes []string
		want    int
	}{
		{"prices that include ITBIS", []string{"<IndicadorMontoGravado>0", "<IndicadorMontoGravado>1", "<PrecioUnitarioItem>1250.00", "<PrecioUnitarioItem>1475.00", "<MontoItem>3750.00", "<MontoItem>4425.00"}, 1},
		{"a discount on the whole", []string{"</DetallesItems>", "</DetallesItems><DescuentosORecargos><DescuentoORecargo><NumeroLinea>1</NumeroLinea><TipoAjuste>D</TipoAjuste><TipoValor>$</TipoValor><MontoDescuentooRecargo>750.00</MontoDescuentooRecargo><IndicadorFacturacionDescuentooRecargo>1</IndicadorFacturacionDescuentooRecargo></DescuentoORecargo></DescuentosORecargos>",
			"3750.00</MontoGravado", "3000.00</MontoGravado", "675.00", "540.00", "4425.00", "3540.00"}, 1},
		{"a legal tip", []string{totals, strings.Replace(totals, "<MontoTotal>4425.00", "<MontoImpuestoAdicional>375.00</MontoImpuestoAdicional><ImpuestosAdicionales><ImpuestoAdicional><TipoImpuesto>001</TipoImpuesto><TasaImpuestoAdicional>10</TasaImpuestoAdicional><OtrosImpuestosAdicionales>375.00</OtrosImpuestosAdicionales></ImpuestoAdicional></ImpuestosAdicionales><MontoTotal>4800.00", 1),
			"<MontoItem>", "<TablaImpuestoAdicional><ImpuestoAdicional><TipoImpuesto>001</TipoImpuesto></ImpuestoAdicional></TablaImpuestoAdicional><MontoItem>"}, 1},
		{"a selective tax, which bears ITBIS", []string{totals, "<MontoGravadoTotal>3750.00</MontoGravadoTotal><MontoGravadoI1>3750.00</MontoGravadoI1><ITBIS1>18</ITBIS1><TotalITBIS>693.00</TotalITBIS><TotalITBIS1>693.00</TotalITBIS1><MontoImpuestoAdicional>100.00</MontoImpuestoAdicional><ImpuestosAdicionales><ImpuestoAdicional><TipoImpuesto>006</TipoImpuesto><TasaImpuestoAdicional>632.58</TasaImpuestoAdicional><MontoImpuestoSelectivoConsumoEspecifico>100.00</MontoImpuestoSelectivoConsumoEspecifico></ImpuestoAdicional></ImpuestosAdicionales><MontoTotal>4543.00</MontoTotal>"}, 1},
		{"off by no more than a peso a line", []string{"<MontoTotal>4425.00", "<MontoTotal>4426.00"}, 1},
		{"off by a cent more", []string{"<MontoTotal>4425.00", "<MontoTotal>4426.01"}, 4},
		{"a line off by a peso", []string{"<PrecioUnitarioItem>1250.00", "<PrecioUnitarioItem>1250.3333"}, 1},
		{"another rate of 16 %", []string{"<IndicadorFacturacion>1", "<IndicadorFacturacion>2", totals, "<MontoGravadoTotal>3750.00</MontoGravadoTotal><MontoGravadoI2>3750.00</MontoGravadoI2><ITBIS2>16</ITBIS2><TotalITBIS>600.00</TotalITBIS><TotalITBIS2>600.00</TotalITBIS2><MontoTotal>4350.00</MontoTotal>"}, 1},
		{"exempt without an indicator", []string{"<IndicadorMontoGravado>0</IndicadorMontoGravado>", "", "<IndicadorFacturacion>1", "<IndicadorFacturacion>4", totals, "<MontoExento>3750.00</MontoExento><MontoTotal>3750.00</MontoTotal>"}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).login()
			r.send(encf31(1), r.sign(invoice, encf31(1), c.changes...))
			if v := r.Documents(simulator.Filter{})[0].Verdict; v.Code != c.want {
				t.Errorf("%+v, want %d", v, c.want)
			}
		})
	}
}

// TestStructure has documents that are wrong in one element each.
func TestStructure(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	n := 0
	for name, c := range map[string]struct {
		old, with string
		ok        bool
	}{
		"a mail address":          {"<FechaEmision>", "<CorreoEmisor>a.b+c@d-e.do</CorreoEmisor><FechaEmision>", true},
		"a wrong mail address":    {"<FechaEmision>", "<CorreoEmisor>a_b@d.do</CorreoEmisor><FechaEmision>", false},
		"a phone":                 {"<FechaEmision>", "<TablaTelefonoEmisor><TelefonoEmisor>809-555-0000</TelefonoEmisor></TablaTelefonoEmisor><FechaEmision>", true},
		"a wrong phone":           {"<FechaEmision>", "<TablaTelefonoEmisor><TelefonoEmisor>8095550000</TelefonoEmisor></TablaTelefonoEmisor><FechaEmision>", false},
		"terms":                   {"</IdDoc>", "<TerminoPago>30 días</TerminoPago></IdDoc>", true},
		"wrong terms":             {"</IdDoc>", "<TerminoPago>30-60</TerminoPago></IdDoc>", false},
		"a long name":             {"Taladro", strings.Repeat("ñ", 81), false},
		"a name that just fits":   {"Taladro", strings.Repeat("ñ", 80), true},
		"three decimals":          {"<MontoTotal>4425.00", "<MontoTotal>4425.001", false},
		"an impossible date":      {"<FechaEmision>01-06-2026", "<FechaEmision>31-02-2026", false},
		"no quantity":             {"<CantidadItem>3.00", "<CantidadItem>0.00", false},
		"a missing element":       {"<TipoIngresos>01</TipoIngresos>", "", false},
		"an element twice":        {"<TipoPago>1</TipoPago>", "<TipoPago>1</TipoPago><TipoPago>1</TipoPago>", false},
		"an unknown element":      {"<TipoPago>1</TipoPago>", "<TipoPago>1</TipoPago><Otro>1</Otro>", false},
		"a unit":                  {"<PrecioUnitarioItem>", "<UnidadMedida>62</UnidadMedida><PrecioUnitarioItem>", true},
		"a unit that is none":     {"<PrecioUnitarioItem>", "<UnidadMedida>63</UnidadMedida><PrecioUnitarioItem>", false},
		"a place":                 {"<FechaEmision>", "<Municipio>010100</Municipio><FechaEmision>", true},
		"a place that is none":    {"<FechaEmision>", "<Municipio>0101</Municipio><FechaEmision>", false},
		"an order of digits":      {"<FechaEmision>", "<NumeroPedidoInterno>123</NumeroPedidoInterno><FechaEmision>", true},
		"an order of letters":     {"<FechaEmision>", "<NumeroPedidoInterno>x</NumeroPedidoInterno><FechaEmision>", false},
		"elements in text":        {"Taladro", "<b>x</b>", false},
		"text for elements":       {"<Comprador><RNCComprador>199000021</RNCComprador><RazonSocialComprador>Ferretería El Tornillo Azul, SRL</RazonSocialComprador></Comprador>", "<Comprador>x</Comprador>", false},
		"withholding":             {"<NombreItem>", "<Retencion><IndicadorAgenteRetencionoPercepcion>1</IndicadorAgenteRetencionoPercepcion><MontoITBISRetenido>0.00</MontoITBISRetenido></Retencion><NombreItem>", true},
		"a discount":              {"<MontoItem>", "<DescuentoMonto>0.00</DescuentoMonto><TablaSubDescuento><SubDescuento><TipoSubDescuento>%</TipoSubDescuento><SubDescuentoPorcentaje>1.5</SubDescuentoPorcentaje><MontoSubDescuento>0.00</MontoSubDescuento></SubDescuento></TablaSubDescuento><MontoItem>", true},
		"a signed amount":         {"</Totales>", "<SaldoAnterior>-1.00</SaldoAnterior></Totales>", true},
		"a foreign currency":      {"</Totales>", "</Totales><OtraMoneda><TipoMoneda>USD</TipoMoneda><TipoCambio>60.1234</TipoCambio><MontoTotalOtraMoneda>73.75</MontoTotalOtraMoneda></OtraMoneda>", true},
		"too many of a repeating": {"<FechaEmision>", "<TablaTelefonoEmisor>" + strings.Repeat("<TelefonoEmisor>809-555-0000</TelefonoEmisor>", 4) + "</TablaTelefonoEmisor><FechaEmision>", false},
	} {
		n++
		must(t, r.Configure(func(c *simulator.Config) { c.MaxParallel = -1 }))
		r.send(encf31(n), r.sign(invoice, encf31(n), c.old, c.with))
		v := r.Documents(simulator.Filter{ENCF: encf31(n)})[0].Verdict
		if ok := v.Row != 3; ok != c.ok {
			t.Errorf("%s: %+v", name, v)
		}
	}
	// Of other types only what all share is looked at.
	must(t, r.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error {
		t.Ranges = append(t.Ranges, simulator.Range{Type: "34", From: 1, To: 10})
		return nil
	}))
	credit := r.sign(invoice, "E340000000001", "<TipoeCF>31", "<TipoeCF>34", "<FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia>", "<IndicadorNotaCredito>0</IndicadorNotaCredito>")
	r.upload(reception, issuer+"E340000000001.xml", credit)
	if v := r.Documents(simulator.Filter{ENCF: "E340000000001"})[0].Verdict; v.Code != 1 {
		t.Errorf("a credit note: %+v", v)
	}
}

func TestOfficialSchema(t *testing.T) {
	t.Parallel()
	folder := os.Getenv("FISCALHUB_XSD")
	r := newRig(t, func(o *simulator.Options) { o.Config.OfficialSchema, o.Schemas = true, folder }).login()
	// The simulator's own table lets this pass; the schema has a list of places.
	r.send(encf31(1), r.sign(invoice, encf31(1), "<FechaEmision>", "<Municipio>999999</Municipio><FechaEmision>"))
	r.send(encf31(2), r.sign(invoice, encf31(2)))
	docs := r.Documents(simulator.Filter{})
	if docs[0].Verdict.Row != 3 {
		t.Errorf("%+v", docs[0].Verdict)
	}
	if folder == "" {
		t.Skip("set FISCALHUB_XSD to the folder of the authority's schemas to have them asked")
	}
	if docs[1].Verdict.Row != 21 {
		t.Errorf("%+v", docs[1].Verdict)
	}
}

func TestCheckDigitsOfPersons(t *testing.T) {
	t.Parallel()
	r := newRig(t).login()
	for n, c := range []struct {
		id   string
		want int
	}{{"00113918205", 1}, {"22400022111", 1}, {"00113918204", 4}, {"101023122", 1}, {"131880600", 4}} {
		r.send(encf31(n+1), r.sign(invoice, encf31(n+1), "<RNCComprador>"+buyer, "<RNCComprador>"+c.id))
		if v := r.Documents(simulator.Filter{ENCF: encf31(n + 1)})[0].Verdict; v.Code != c.want {
			t.Errorf("%s: %+v", c.id, v)
		}
	}
}

func TestLatencyIsSlept(t *testing.T) {
	t.Parallel()
	var slept atomic.Int64
	r := newRig(t, func(o *simulator.Options) {
		o.Config.Latency = nil
		o.Sleep = func(_ context.Context, d time.Duration) error { slept.Store(int64(d)); return nil }
	})
	r.get(seedURL)
	if d := time.Duration(slept.Load()); d < 5*time.Millisecond || d > 30*time.Millisecond {
		t.Errorf("slept %s", d)
	}
	slept.Store(0)
	r.Freeze()
	r.get(seedURL)
	if slept.Load() != 0 {
		t.Error("slept while the clock is frozen")
	}
	r.Thaw()
	// And for real, where nobody says how.
	real := newRig(t, func(o *simulator.Options) { o.Now, o.Config.Latency = time.Now, simulator.Fixed(time.Millisecond) })
	if a := real.get(seedURL); a.status != http.StatusOK {
		t.Errorf("%d", a.status)
	}
}

func TestConfigIsACopy(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.Config()
	c.Latency.Max = simulator.Duration(time.Hour)
	if got := r.Config().Latency.Max; got != 0 {
		t.Errorf("the configuration was changed from outside: %s", time.Duration(got))
	}
	if err := r.Configure(func(c *simulator.Config) { c.Profile = "moon" }); err == nil || r.Config().Profile != "" {
		t.Errorf("%v, profile %q", err, r.Config().Profile)
	}
	must(t, r.Configure(func(c *simulator.Config) { c.Strict = true }))
	must(t, r.SetProfile("certification-strict"))
	must(t, r.SetProfile("happy"))
	if r.Config().Strict {
		t.Error("the profile is gone and its strictness is not")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]simulator.Options{
		"no clock":         {},
		"a wrong taxpayer": {Now: time.Now, Fixture: &simulator.Fixture{Taxpayers: []simulator.Taxpayer{{RNC: "1"}}}},
		"a wrong rule":     {Now: time.Now, Fixture: &simulator.Fixture{Rules: []simulator.Rule{{}}}},
		"a wrong root":     {Now: time.Now, Fixture: &simulator.Fixture{Trust: []string{"x"}}},
		"a wrong setting":  {Now: time.Now, Config: simulator.Config{Wire: "x"}},
		"a wrong profile":  {Now: time.Now, Config: simulator.Config{Profile: "x"}},
	} {
		if _, err := simulator.New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestCertificateFlavours(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for flavour, want := range map[string]int{"": 200, "pbes2": 200, "legacy": 200, "expired": 400, "wrong-ca": 400} {
		c, err := r.IssueCertificate(simulator.CertificateRequest{Holder: person, Flavour: flavour})
		must(t, err)
		if a := r.authenticate(seedURL, tokenURL, open(t, c)); a.status != want {
			t.Errorf("%s: %d %s", flavour, a.status, a.body)
		}
	}
	if _, err := r.IssueCertificate(simulator.CertificateRequest{Holder: person, Flavour: "rsa1024"}); err != nil {
		t.Error(err)
	}
}
