package ecf

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

var (
	placeholder  = regexp.MustCompile(`(?s)<Signature.*</Signature>`)
	betweenTags  = regexp.MustCompile(`>\s+<`)
	sampleNumber = regexp.MustCompile(`^\d\d`)
)

// sampleXML returns a document of testdata without its placeholder of a
// signature, which has a comment, and without white space.
func sampleXML(t testing.TB, number string) string {
	t.Helper()
	names, err := filepath.Glob("testdata/" + number + "-*.xml")
	if err != nil || len(names) != 1 {
		t.Fatalf("sample %s: %v %v", number, names, err)
	}
	raw, err := os.ReadFile(names[0])
	if err != nil {
		t.Fatal(err)
	}
	return betweenTags.ReplaceAllString(placeholder.ReplaceAllString(string(raw), ""), "><")
}

func inspectXML(t testing.TB, xml string) []Fault {
	t.Helper()
	doc, err := xmlsig.Parse([]byte(xml), xmlsig.InvoiceLimits())
	if err != nil {
		t.Fatalf("%v\n%s", err, xml)
	}
	return Inspect(doc.Root())
}

func TestInspectAcceptsTheSamples(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("testdata/*.xml")
	if err != nil || len(names) < 8 {
		t.Fatalf("samples: %v %v", names, err)
	}
	for _, name := range names {
		number := sampleNumber.FindString(filepath.Base(name))
		if number == "" {
			continue
		}
		xml := sampleXML(t, number)
		if faults := inspectXML(t, xml); faults != nil {
			t.Errorf("%s: %v", name, faults)
		}
		signed := strings.Replace(xml, "</"+rootName(xml)+">", `<Signature xmlns="http://www.w3.org/2000/09/xmldsig#"><SignedInfo></SignedInfo></Signature></`+rootName(xml)+">", 1)
		if faults := inspectXML(t, signed); faults != nil {
			t.Errorf("%s with a signature: %v", name, faults)
		}
	}
}

func rootName(xml string) string {
	if strings.HasSuffix(strings.TrimSpace(xml), "</RFCE>") {
		return "RFCE"
	}
	return "ECF"
}

// An edit is a change of a sample and the one fault that it causes.
type edit struct {
	name     string
	sample   string
	old, new string
	path     string // below the root
	field    string
	code     string
}

func (e edit) run(t *testing.T) {
	t.Helper()
	t.Parallel()
	xml := sampleXML(t, e.sample)
	changed := strings.Replace(xml, e.old, e.new, 1)
	if changed == xml {
		t.Fatalf("the sample has no %q", e.old)
	}
	got := inspectXML(t, changed)
	for i := range got {
		if got[i].Message.IsZero() || !strings.Contains(got[i].Message.String(), ": ") {
			t.Errorf("message %q does not name its element", got[i].Message)
		}
		got[i].Message = lang.Message{}
	}
	want := []Fault{{Path: rootName(xml) + "/" + e.path, Field: e.field, Code: e.code}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
}

func TestInspectReportsTheElementAndTheField(t *testing.T) {
	t.Parallel()
	const (
		head, issuer, buyer, totals = "Encabezado/IdDoc/", "Encabezado/Emisor/", "Encabezado/Comprador/", "Encabezado/Totales/"
		line1                       = "DetallesItems/Item[1]/"
	)
	long := strings.Repeat("ñ", 200)
	lines01 := part(sampleXML(t, "01"), "DetallesItems")
	totals06 := part(sampleXML(t, "06"), "Totales")
	for _, e := range []edit{
		// The schemas refuse these.
		{"31 without the buyer's RNC", "01", "<RNCComprador>199000021</RNCComprador>", "", buyer + "RNCComprador", "buyer.tax_id", "required_for_type"},
		{"RNC of 10 digits", "01", "<RNCEmisor>199000013<", "<RNCEmisor>1990000131<", issuer + "RNCEmisor", "taxpayer.rnc", "invalid_format"},
		{"buyer's RNC of 10 digits", "01", "<RNCComprador>", "<RNCComprador>1", buyer + "RNCComprador", "buyer.tax_id", "invalid_format"},
		{"quantity of three decimals", "01", "<CantidadItem>3.00<", "<CantidadItem>3.125<", line1 + "CantidadItem", "lines.0.quantity", "invalid_decimal"},
		{"quantity of zero", "01", "<CantidadItem>3.00<", "<CantidadItem>0<", line1 + "CantidadItem", "lines.0.quantity", "out_of_range"},
		{"price of five decimals", "01", "<PrecioUnitarioItem>1250.00<", "<PrecioUnitarioItem>1250.00001<", line1 + "PrecioUnitarioItem", "lines.0.unit_price", "invalid_decimal"},
		{"unit 63", "02", "<UnidadMedida>15<", "<UnidadMedida>63<", line1 + "UnidadMedida", "lines.0.unit_code", "out_of_range"},
		{"one page", "01", "</IdDoc>", "<TotalPaginas>1</TotalPaginas></IdDoc>", head + "TotalPaginas", "", "out_of_range"},
		{"empty branch", "03", "<DireccionEmisor>", "<Sucursal></Sucursal><DireccionEmisor>", issuer + "Sucursal", "taxpayer.branch", "blank"},
		{"blank branch", "03", "<DireccionEmisor>", "<Sucursal>  </Sucursal><DireccionEmisor>", issuer + "Sucursal", "taxpayer.branch", "blank"},
		{"percentage of three decimals", "02", "<SubDescuentoPorcentaje>7.50<", "<SubDescuentoPorcentaje>7.505<", line1 + "TablaSubDescuento/SubDescuento[1]/SubDescuentoPorcentaje", "lines.0.discount.value", "invalid_decimal"},
		{"percentage of zero", "02", "<SubDescuentoPorcentaje>7.50<", "<SubDescuentoPorcentaje>0<", line1 + "TablaSubDescuento/SubDescuento[1]/SubDescuentoPorcentaje", "lines.0.discount.value", "out_of_range"},
		{"three additional taxes on a line", "07", "<TablaImpuestoAdicional>", "<TablaImpuestoAdicional><ImpuestoAdicional><TipoImpuesto>002</TipoImpuesto></ImpuestoAdicional>", line1 + "TablaImpuestoAdicional/ImpuestoAdicional[3]", "lines.0.taxes", "too_many_items"},
		{"additional tax of 0.00", "07", "<MontoImpuestoAdicional>508.30<", "<MontoImpuestoAdicional>0.00<", totals + "MontoImpuestoAdicional", "declared_totals.total", "out_of_range"},
		{"swapped order", "01", "<TipoIngresos>01</TipoIngresos><TipoPago>1</TipoPago>", "<TipoPago>1</TipoPago><TipoIngresos>01</TipoIngresos>", head + "TipoIngresos", "taxpayer.income_type", "unknown_field"},
		{"32 with the expiry of its sequence", "04", "</eNCF>", "</eNCF><FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia>", head + "FechaVencimientoSecuencia", "", "not_allowed_for_type"},
		{"32 with a withholding", "04", "</IndicadorFacturacion>", "</IndicadorFacturacion><Retencion><MontoITBISRetenido>0.00</MontoITBISRetenido></Retencion>", line1 + "Retencion", "estimated_withholdings", "not_allowed_for_type"},
		{"32 with withholdings in its totals", "04", "</MontoTotal>", "</MontoTotal><TotalITBISRetenido>0.00</TotalITBISRetenido>", totals + "TotalITBISRetenido", "estimated_withholdings.itbis_amount", "not_allowed_for_type"},
		{"32 without a buyer", "08", "<Comprador><RazonSocialComprador>Consumidor final</RazonSocialComprador></Comprador>", "", "Encabezado/Comprador", "buyer", "required"},
		{"summary without a buyer", "06", "<Comprador><RazonSocialComprador>Consumidor final</RazonSocialComprador></Comprador>", "", "Encabezado/Comprador", "buyer", "required"},
		{"summary with an amount of one decimal", "06", "<MontoGravadoI1>1601.00<", "<MontoGravadoI1>1601.0<", totals + "MontoGravadoI1", "declared_totals.total", "invalid_decimal"},
		{"summary with a rate", "06", "<TotalITBIS>", "<ITBIS1>18</ITBIS1><TotalITBIS>", totals + "ITBIS1", "", "unknown_field"},
		{"summary with an additional rate", "06", "</TipoImpuesto>", "</TipoImpuesto><TasaImpuestoAdicional>10</TasaImpuestoAdicional>", totals + "ImpuestosAdicionales/ImpuestoAdicional[1]/TasaImpuestoAdicional", "", "unknown_field"},
		{"summary with a time of signature", "06", "</Encabezado>", "</Encabezado><FechaHoraFirma>07-03-2026 10:00:00</FechaHoraFirma>", "FechaHoraFirma", "", "unknown_field"},
		{"summary with a code of 5 characters", "06", "k7Qx+2", "k7Qx+", "Encabezado/CodigoSeguridadeCF", "", "invalid_format"},
		{"name too long", "01", "<NombreItem>", "<NombreItem>" + long, line1 + "NombreItem", "lines.0.description", "too_long"},
		{"no name", "01", "<NombreItem>Taladro percutor 600 W</NombreItem>", "", line1 + "NombreItem", "lines.0.description", "required"},
		{"empty name", "01", "<NombreItem>Taladro percutor 600 W</NombreItem>", "<NombreItem/>", line1 + "NombreItem", "lines.0.description", "required"},
		{"elements in a name", "01", "Taladro percutor 600 W", "<b>Taladro</b>", line1 + "NombreItem", "lines.0.description", "unknown_field"},
		{"text in a section", "08", "<RazonSocialComprador>Consumidor final</RazonSocialComprador>", "Consumidor final", "Encabezado/Comprador", "buyer", "unknown_field"},
		{"code of an item", "05", "PE-12KW", strings.Repeat("x", 36), line1 + "TablaCodigosItem/CodigosItem[1]/CodigoItem", "lines.0.sku", "too_long"},
		{"issuer's name too long", "01", "<RazonSocialEmisor>", "<RazonSocialEmisor>" + long, issuer + "RazonSocialEmisor", "taxpayer.legal_name", "too_long"},
		{"unknown region", "03", "<Municipio>010100<", "<Municipio>019999<", issuer + "Municipio", "taxpayer.municipality", "invalid_enum"},
		{"telephone", "03", "<TelefonoEmisor>809-555-0112</TelefonoEmisor>", "<TelefonoEmisor>809-555-0112</TelefonoEmisor><TelefonoEmisor>8095550112</TelefonoEmisor>", issuer + "TablaTelefonoEmisor/TelefonoEmisor[2]", "taxpayer.phones.1", "invalid_format"},
		{"e-mail with an underscore", "03", "<CorreoEmisor>f", "<CorreoEmisor>f_", issuer + "CorreoEmisor", "taxpayer.email", "invalid_format"},
		{"payment term with a percent sign", "03", "30 días", "30 %", head + "TerminoPago", "payment_terms", "invalid_format"},
		{"buyer's name twice", "01", "<RazonSocialComprador>", "<RazonSocialComprador>x</RazonSocialComprador><RazonSocialComprador>", buyer + "RazonSocialComprador", "buyer.legal_name", "too_many_items"},
		{"an element of no schema", "01", "<NombreItem>", "<Nombre>x</Nombre><NombreItem>", line1 + "Nombre", "", "unknown_field"},
		{"no lines", "01", lines01, "<DetallesItems></DetallesItems>", "DetallesItems/Item", "lines", "too_few_items"},
		{"no section of lines", "01", lines01, "", "DetallesItems", "lines", "required"},
		{"a signature that is not the last", "01", "<FechaHoraFirma>", "<Signature></Signature><FechaHoraFirma>", "Signature", "", "unknown_field"},

		// The schemas accept these.
		{"e-NCF in lower case", "01", "<eNCF>E", "<eNCF>e", head + "eNCF", "", "invalid_format"},
		{"e-NCF of another type", "01", "<eNCF>E31", "<eNCF>E32", head + "eNCF", "", "invalid_format"},
		{"e-NCF of number 0", "01", "E310000000101", "E310000000000", head + "eNCF", "", "invalid_format"},
		{"type of no invoice", "01", "<TipoeCF>31<", "<TipoeCF>33<", head + "TipoeCF", "ecf_type", "invalid_enum"},
		{"credit without a due date", "03", "<FechaLimitePago>05-04-2026</FechaLimitePago>", "", head + "FechaLimitePago", "due_date", "required"},
		{"cash with a due date", "01", "</TipoPago>", "</TipoPago><FechaLimitePago>05-04-2026</FechaLimitePago>", head + "FechaLimitePago", "due_date", "not_allowed_for_type"},
		{"due before issue", "03", "<FechaLimitePago>05-04-2026<", "<FechaLimitePago>05-03-2026<", head + "FechaLimitePago", "due_date", "date_order"},
		{"31st of February", "01", "<FechaEmision>05-03-2026<", "<FechaEmision>31-02-2026<", issuer + "FechaEmision", "issue_date", "invalid_date"},
		{"signed on the 31st of April", "03", "<FechaHoraFirma>06-03-2026", "<FechaHoraFirma>31-04-2026", "FechaHoraFirma", "", "invalid_date"},
		{"32 with an empty buyer", "08", "<RazonSocialComprador>Consumidor final</RazonSocialComprador>", "", "Encabezado/Comprador", "buyer", "required"},
		{"taxed without IndicadorMontoGravado", "01", "<IndicadorMontoGravado>0</IndicadorMontoGravado>", "", head + "IndicadorMontoGravado", "", "required"},
		{"exempt with IndicadorMontoGravado", "08", "<TipoIngresos>", "<IndicadorMontoGravado>0</IndicadorMontoGravado><TipoIngresos>", head + "IndicadorMontoGravado", "", "tax_conflict"},
		{"discount without its table", "02", "<TablaSubDescuento><SubDescuento><TipoSubDescuento>%</TipoSubDescuento><SubDescuentoPorcentaje>7.50</SubDescuentoPorcentaje><MontoSubDescuento>83.52</MontoSubDescuento></SubDescuento></TablaSubDescuento>", "", line1 + "TablaSubDescuento", "lines.0.discount.value", "required"},
		{"table without its discount", "02", "<DescuentoMonto>83.52</DescuentoMonto>", "", line1 + "DescuentoMonto", "lines.0.discount.value", "required"},
		{"discounts that do not add up", "02", "<MontoSubDescuento>83.52<", "<MontoSubDescuento>83.53<", line1 + "DescuentoMonto", "lines.0.discount.value", "total_mismatch"},
		{"withholding without its ITBIS", "03", "<MontoITBISRetenido>0.00</MontoITBISRetenido>", "", "DetallesItems/Item[3]/Retencion/MontoITBISRetenido", "estimated_withholdings.itbis_amount", "required"},
		{"withholdings that do not add up", "03", "<TotalISRRetencion>13050.05<", "<TotalISRRetencion>13050.06<", totals + "TotalISRRetencion", "estimated_withholdings.income_tax_amount", "total_mismatch"},
		{"withholdings without a total", "03", "<TotalITBISRetenido>6777.03</TotalITBISRetenido>", "", totals + "TotalITBISRetenido", "estimated_withholdings.itbis_amount", "total_mismatch"},
		{"large 32 without its buyer's identity", "05", "<RNCComprador>00199000019</RNCComprador>", "", buyer + "RNCComprador", "buyer.tax_id", "required_for_type"},
		{"large 32 without its buyer's name", "05", "<RazonSocialComprador>María Isabel Prueba Ficticia</RazonSocialComprador>", "", buyer + "RazonSocialComprador", "buyer.legal_name", "required_for_type"},
		{"foreigner with an RNC", "05", "</RNCComprador>", "</RNCComprador><IdentificadorExtranjero>P123</IdentificadorExtranjero>", buyer + "IdentificadorExtranjero", "buyer.tax_id", "not_allowed_for_type"},
		{"lines out of sequence", "02", "<NumeroLinea>3<", "<NumeroLinea>4<", "DetallesItems/Item[3]/NumeroLinea", "", "out_of_range"},
		{"base of a class that no line has", "01", "<ITBIS1>", "<MontoExento>0.00</MontoExento><ITBIS1>", totals + "MontoExento", "declared_totals.total", "total_mismatch"},
		{"no rate", "01", "<ITBIS1>18</ITBIS1>", "", totals + "ITBIS1", "declared_totals.total", "total_mismatch"},
		{"no sum of ITBIS", "01", "<TotalITBIS>675.00</TotalITBIS><TotalITBIS1>675.00</TotalITBIS1><MontoTotal>4425.00<", "<TotalITBIS1>675.00</TotalITBIS1><MontoTotal>3750.00<", totals + "TotalITBIS", "declared_totals.total", "total_mismatch"},
		{"ITBIS that is not the sum", "01", "<TotalITBIS1>675.00<", "<TotalITBIS1>675.01<", totals + "TotalITBIS", "declared_totals.total", "total_mismatch"},
		{"base that is not the sum of its lines", "01", "<MontoItem>3750.00<", "<MontoItem>3750.01<", totals + "MontoGravadoI1", "declared_totals.total", "total_mismatch"},
		{"another rate", "01", "<ITBIS1>18<", "<ITBIS1>16<", totals + "ITBIS1", "declared_totals.total", "out_of_range"},
		{"total that is not the sum", "01", "<MontoTotal>4425.00<", "<MontoTotal>4425.01<", totals + "MontoTotal", "declared_totals.total", "total_mismatch"},
		{"additional tax that is not the sum", "07", "<OtrosImpuestosAdicionales>84.72<", "<OtrosImpuestosAdicionales>84.73<", totals + "MontoImpuestoAdicional", "declared_totals.total", "total_mismatch"},
		{"code on a line alone", "07", "<TablaImpuestoAdicional><ImpuestoAdicional><TipoImpuesto>002<", "<TablaImpuestoAdicional><ImpuestoAdicional><TipoImpuesto>004<", totals + "ImpuestosAdicionales", "declared_totals.total", "tax_conflict"},
		{"summary from the limit", "06", totals06, "<Totales><MontoExento>250000.00</MontoExento><MontoTotal>250000.00</MontoTotal></Totales>", totals + "MontoTotal", "declared_totals.total", "out_of_range"},
		{"summary whose total is not the sum", "06", "<MontoTotal>2049.28<", "<MontoTotal>2049.29<", totals + "MontoTotal", "declared_totals.total", "total_mismatch"},
		{"summary without the ITBIS of a base", "06", totals06, "<Totales><MontoGravadoTotal>0.00</MontoGravadoTotal><MontoGravadoI1>0.00</MontoGravadoI1><TotalITBIS>0.00</TotalITBIS><MontoTotal>0.00</MontoTotal></Totales>", totals + "TotalITBIS1", "declared_totals.total", "total_mismatch"},
	} {
		t.Run(e.name, e.run)
	}
}

// part returns an element of a document.
func part(xml, name string) string {
	return regexp.MustCompile("<" + name + ">.*</" + name + ">").FindString(xml)
}

// The format allows forms that our documents never have.
func TestInspectAcceptsWhatTheFormatAllows(t *testing.T) {
	t.Parallel()
	for _, e := range []edit{
		{name: "due on the day of issue", sample: "03", old: "<FechaLimitePago>05-04-2026<", new: "<FechaLimitePago>06-03-2026<"},
		{name: "days and months of one digit", sample: "03", old: "<FechaLimitePago>05-04-2026<", new: "<FechaLimitePago>5-4-2026<"},
		{name: "version 1", sample: "01", old: "<Version>1.0<", new: "<Version>1<"},
		{name: "amounts of one decimal", sample: "01", old: "<MontoTotal>4425.00<", new: "<MontoTotal>04425.0<"},
		{name: "free of charge", sample: "01", old: "<TipoPago>1<", new: "<TipoPago>3<"},
		{name: "prices that include ITBIS", sample: "01", old: "<IndicadorMontoGravado>0</IndicadorMontoGravado>", new: "<IndicadorMontoGravado>1</IndicadorMontoGravado>"},
		{name: "foreigner", sample: "05", old: "<RNCComprador>00199000019</RNCComprador>", new: "<IdentificadorExtranjero>P-1234</IdentificadorExtranjero>"},
		{name: "small 32 without a name", sample: "08", old: "<RazonSocialComprador>Consumidor final</RazonSocialComprador>", new: "<RNCComprador>199000021</RNCComprador>"},
		{name: "discount on the total", sample: "01", old: "</DetallesItems>", new: "</DetallesItems><DescuentosORecargos><DescuentoORecargo><NumeroLinea>1</NumeroLinea><TipoAjuste>D</TipoAjuste></DescuentoORecargo></DescuentosORecargos>"},
		{name: "perception", sample: "01", old: "</IndicadorFacturacion>", new: "</IndicadorFacturacion><Retencion><IndicadorAgenteRetencionoPercepcion>2</IndicadorAgenteRetencionoPercepcion><MontoITBISRetenido>1.00</MontoITBISRetenido><MontoISRRetenido>0.00</MontoISRRetenido></Retencion>"},
		{name: "line that is not invoiced", sample: "01", old: "</Item>", new: "</Item><Item><NumeroLinea>2</NumeroLinea><IndicadorFacturacion>0</IndicadorFacturacion><NombreItem>Envase</NombreItem><IndicadorBienoServicio>1</IndicadorBienoServicio><CantidadItem>1</CantidadItem><PrecioUnitarioItem>5</PrecioUnitarioItem><MontoItem>5</MontoItem></Item>"},
		{name: "additional tax of a line without a price", sample: "08", old: "<MontoTotal>", new: "<ImpuestosAdicionales><ImpuestoAdicional><TipoImpuesto>001</TipoImpuesto><TasaImpuestoAdicional>10</TasaImpuestoAdicional></ImpuestoAdicional></ImpuestosAdicionales><MontoTotal>"},
	} {
		xml := sampleXML(t, e.sample)
		changed := strings.Replace(xml, e.old, e.new, 1)
		switch e.name {
		case "prices that include ITBIS", "discount on the total": // the base is not the sum of the lines
			changed = strings.Replace(changed, "<MontoItem>3750.00<", "<MontoItem>4425.00<", 1)
		case "additional tax of a line without a price":
			changed = strings.Replace(changed, "<MontoItem>", "<TablaImpuestoAdicional><ImpuestoAdicional><TipoImpuesto>001</TipoImpuesto></ImpuestoAdicional></TablaImpuestoAdicional><MontoItem>", 1)
		}
		if faults := inspectXML(t, changed); changed == xml || faults != nil {
			t.Errorf("%s: %v", e.name, faults)
		}
	}
}

// xmllint and .NET interpret these patterns differently, so xmllint cannot judge.
func TestPatternsAcceptWhatXMLSchemaAndDotNetAccept(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"a@b.do": true, "ana.maria+x@palma-clara.com.do": true, "ñandú@caña.do": true, "a@b.c.d-e": true,
		"a@b+c.do": false, "a++b@c.do": false, "a$b@c.do": false, "a_b@c.do": false, "a@b": false, "a@b-c": false, "@b.do": false, "a@b.do.": false, "a@@b.do": false, "a²@b.do": false,
	} {
		if code, _ := mailType(text); (code == "") != ok {
			t.Errorf("e-mail %q: %q", text, code)
		}
	}
	for text, ok := range map[string]bool{
		"30 días": true, "Contado": true, "a\u0301": true, "٣": true, "30\tdias": true,
		"30 %": false, "2/10": false, "a_b": false, "5€": false, "a+b": false, "½": false, "a\u00a0b": false, "1234567890123456": false,
	} {
		if code, _ := termType(text); (code == "") != ok {
			t.Errorf("payment term %q: %q", text, code)
		}
	}
}

func TestInspectReportsEachFaultOnce(t *testing.T) {
	t.Parallel()
	xml := sampleXML(t, "02")
	for _, change := range [][2]string{
		{"<MontoGravadoI1>2030.19<", "<MontoGravadoI1>2030,19<"},
		{"<MontoGravadoI1>", "<MontoGravadoX>0</MontoGravadoX><MontoGravadoI1>"},
		{"<MontoGravadoI1>2030.19</MontoGravadoI1>", "<MontoGravadoI1></MontoGravadoI1>"},
		{"<MontoTotal>31358.49</MontoTotal>", ""},
		{"<IndicadorFacturacion>1<", "<IndicadorFacturacion>5<"},
		{"<MontoItem>1030.14<", "<MontoItem>-1030.14<"},
		{"<MontoItem>1030.14</MontoItem>", ""},
		{"<TipoPago>1</TipoPago>", "<TipoPago>9</TipoPago>"},
		{part(xml, "Totales"), ""},
		{part(xml, "IdDoc"), "<IdDoc><TipoeCF>31</TipoeCF><eNCF>E310000000001</eNCF><FechaVencimientoSecuencia>31-12-2027</FechaVencimientoSecuencia><TipoIngresos>01</TipoIngresos></IdDoc>"},
	} {
		changed := strings.Replace(xml, change[0], change[1], 1)
		if changed == xml {
			t.Errorf("the sample has no %q", change[0])
		}
		if faults := inspectXML(t, changed); len(faults) != 1 {
			t.Errorf("%.60q for %.60q: want one fault, got %d: %v", change[1], change[0], len(faults), faults)
		}
	}
}

func TestInspectRefusesOtherDocuments(t *testing.T) {
	t.Parallel()
	for xml, want := range map[string]struct {
		fault Fault
		text  string
	}{
		"<ARECF></ARECF>":     {Fault{"ARECF", "", "unknown_field", lang.Message{}}, "the document must be an ECF or an RFCE"},
		"<ECF></ECF>":         {Fault{"ECF/Encabezado/IdDoc/TipoeCF", "ecf_type", "invalid_enum", lang.Message{}}, "TipoeCF: must be 31 or 32"},
		"<ECF>text</ECF>":     {Fault{"ECF/Encabezado/IdDoc/TipoeCF", "ecf_type", "invalid_enum", lang.Message{}}, "TipoeCF: must be 31 or 32"},
		"<RFCE></RFCE>":       {Fault{"RFCE/Encabezado", "", "required", lang.Message{}}, "Encabezado: is required"},
		"<RFCE>text</RFCE>":   {Fault{"RFCE", "", "unknown_field", lang.Message{}}, "RFCE: must hold elements, not text"},
		"<" + longName + "/>": {Fault{strings.Repeat("x", 59) + "…", "", "unknown_field", lang.Message{}}, "the document must be an ECF or an RFCE"},
		"<ecf><a>1</a></ecf>": {Fault{"ecf", "", "unknown_field", lang.Message{}}, "the document must be an ECF or an RFCE"},
	} {
		got := inspectXML(t, xml)
		text := got[0].Message.String()
		got[0].Message = lang.Message{}
		if diff := cmp.Diff([]Fault{want.fault}, got); diff != "" || text != want.text {
			t.Errorf("%.40s: %q, want %q (-want +got):\n%s", xml, text, want.text, diff)
		}
	}
	if faults := Inspect(xmlsig.Element{}); len(faults) != 1 {
		t.Errorf("no document: %v", faults)
	}
}

var longName = strings.Repeat("x", 500)

// manyLines repeats the line of sample 01.
func manyLines(t testing.TB, n int, line func(i int, s string) string) string {
	t.Helper()
	xml := sampleXML(t, "01")
	item := part(xml, "Item")
	var b strings.Builder
	for i := range n {
		b.WriteString(line(i, strings.Replace(item, "<NumeroLinea>1<", "<NumeroLinea>"+strconv.Itoa(i+1)+"<", 1)))
	}
	return strings.Replace(xml, item, b.String(), 1)
}

func TestInspectReportsAtMostAHundredFaults(t *testing.T) {
	t.Parallel()
	xml := manyLines(t, 1000, func(_ int, s string) string { return strings.Replace(s, "3.00", "0", 1) })
	faults := inspectXML(t, xml)
	if len(faults) != 100 {
		t.Fatalf("got %d faults, want 100", len(faults))
	}
	want := Fault{"ECF/DetallesItems/Item[100]/CantidadItem", "lines.99.quantity", "out_of_range", named("CantidadItem", lang.Messagef("must be more than 0", "debe ser mayor que 0"))}
	if diff := cmp.Diff(want, faults[99]); diff != "" {
		t.Error(diff)
	}
	xml = manyLines(t, 1001, func(_ int, s string) string { return s })
	if faults := inspectXML(t, xml); len(faults) != 1 || faults[0].Code != "too_many_items" || faults[0].Field != "lines" {
		t.Errorf("1001 lines: %v", faults)
	}
}

// The sums have more digits than any amount.
func TestInspectAddsAmountsWithoutOverflow(t *testing.T) {
	t.Parallel()
	xml := manyLines(t, 2, func(_ int, s string) string {
		return strings.Replace(s, "<MontoItem>3750.00<", "<MontoItem>9999999999999999.99<", 1)
	})
	faults := inspectXML(t, xml)
	if len(faults) != 1 || !strings.HasSuffix(faults[0].Message.String(), ", 19999999999999999.98") {
		t.Errorf("got %v", faults)
	}
}

func BenchmarkInspect1000(b *testing.B) {
	const more = "<TablaImpuestoAdicional><ImpuestoAdicional><TipoImpuesto>001</TipoImpuesto></ImpuestoAdicional></TablaImpuestoAdicional>"
	xml := manyLines(b, 1000, func(_ int, s string) string {
		s = strings.Replace(s, "</NumeroLinea>", "</NumeroLinea><TablaCodigosItem><CodigosItem><TipoCodigo>Interna</TipoCodigo><CodigoItem>A-1</CodigoItem></CodigosItem></TablaCodigosItem>", 1)
		s = strings.Replace(s, "</CantidadItem>", "</CantidadItem><UnidadMedida>43</UnidadMedida>", 1)
		return strings.Replace(s, "</PrecioUnitarioItem>", "</PrecioUnitarioItem><DescuentoMonto>1.00</DescuentoMonto><TablaSubDescuento><SubDescuento><TipoSubDescuento>$</TipoSubDescuento><MontoSubDescuento>1.00</MontoSubDescuento></SubDescuento></TablaSubDescuento>"+more, 1)
	})
	base := "3750000.00"
	for _, r := range [][2]string{
		{"<MontoGravadoTotal>3750.00<", "<MontoGravadoTotal>" + base + "<"}, {"<MontoGravadoI1>3750.00<", "<MontoGravadoI1>" + base + "<"},
		{"</TotalITBIS1>", "</TotalITBIS1><MontoImpuestoAdicional>1.00</MontoImpuestoAdicional><ImpuestosAdicionales><ImpuestoAdicional><TipoImpuesto>001</TipoImpuesto><TasaImpuestoAdicional>10</TasaImpuestoAdicional><OtrosImpuestosAdicionales>1.00</OtrosImpuestosAdicionales></ImpuestoAdicional></ImpuestosAdicionales>"},
		{"<MontoTotal>4425.00<", "<MontoTotal>3750676.00<"},
	} {
		xml = strings.Replace(xml, r[0], r[1], 1)
	}
	doc, err := xmlsig.Parse([]byte(xml), xmlsig.InvoiceLimits())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if faults := Inspect(doc.Root()); faults != nil {
			b.Fatal(faults)
		}
	}
}
