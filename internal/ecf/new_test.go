package ecf_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// request returns a small valid request with changed values at dotted paths; nil
// removes a member.
func request(t testing.TB, changes map[string]any) []byte {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal([]byte(`{"external_id":"X-1","ecf_type":"31","issue_date":"2026-03-05","currency":"DOP","payment_type":"cash",
		"buyer":{"legal_name":"Comprador, SRL","tax_id":"199000021"},
		"lines":[{"line_id":"1","description":"Tornillo","item_kind":"product","quantity":"1","unit_price":"100","discount":null,
			"taxes":[{"code":"ITBIS","label":"ITBIS","rate_percent":"18"}]}],
		"declared_totals":{"subtotal":"100","discount_total":"0","tax_total":"18","total":"118"}}`), &root); err != nil {
		t.Fatal(err)
	}
	// Shorter paths first, because they replace what longer ones change.
	for _, path := range slices.Sorted(maps.Keys(changes)) {
		at, value := root, changes[path]
		keys := strings.Split(path, ".")
		for _, key := range keys[:len(keys)-1] {
			switch next := at[key].(type) {
			case map[string]any:
				at = next
			case []any:
				at = next[0].(map[string]any)
			default:
				made := map[string]any{}
				at[key] = made
				at = made
			}
		}
		if value == nil {
			delete(at, keys[len(keys)-1])
			continue
		}
		at[keys[len(keys)-1]] = value
	}
	raw, err := json.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// document returns the draft of a changed request.
func document(t testing.TB, changes map[string]any) *ecf.Draft {
	t.Helper()
	inv := invoice(t, request(t, changes))
	number := ecf.Number{ENCF: must(fiscal.NewENCF(inv.Type, 1))}
	if inv.Type == fiscal.FiscalCredit {
		number.Expires = must(fiscal.ParseDate("2027-12-31"))
	}
	return must(ecf.New(palmaClara(), number, inv, time.Date(2026, 3, 5, 14, 0, 0, 0, time.UTC)))
}

func TestDocumentOfARequest(t *testing.T) {
	t.Parallel()
	discounted := func(percent, amount, tax, total string) map[string]any {
		return map[string]any{"lines.discount": map[string]any{"kind": "percentage", "value": percent},
			"declared_totals.discount_total": amount, "declared_totals.tax_total": tax, "declared_totals.total": total}
	}
	address := func(more map[string]any) map[string]any {
		changes := map[string]any{"buyer.address": map[string]any{"line1": "Calle 1", "city": "Santiago", "country_code": "DO"}}
		for key, value := range more {
			changes["buyer.address."+key] = value
		}
		return changes
	}
	long := strings.Repeat("ñ", 20)
	tests := []struct {
		name    string
		changes map[string]any
		has     []string // in the XML
		not     []string
	}{
		{"an identifier of 20 characters is copied", map[string]any{"external_id": long}, []string{"<NumeroFacturaInterna>" + long + "<"}, nil},
		{"a longer identifier is left out", map[string]any{"external_id": long + "x"}, nil, []string{"NumeroFacturaInterna"}},
		{"a due date without credit is left out", map[string]any{"due_date": "2026-04-01"}, []string{"<TipoPago>1<"}, []string{"FechaLimitePago"}},
		{"credit states the due date", map[string]any{"payment_type": "credit", "due_date": "2026-04-01"}, []string{"<TipoPago>2</TipoPago><FechaLimitePago>01-04-2026<"}, nil},
		{"free of charge", map[string]any{"payment_type": "free_of_charge"}, []string{"<TipoPago>3<"}, nil},
		{"terms keep letters, digits and spaces", map[string]any{"payment_terms": " 2%/10,\tneto  30 "}, []string{"<TerminoPago>210 neto 30<"}, nil},
		{"terms that are too long are left out whole", map[string]any{"payment_terms": "treinta días fecha"}, nil, []string{"TerminoPago"}},
		{"terms of signs alone are left out", map[string]any{"payment_terms": "--%--"}, nil, []string{"TerminoPago"}},
		{"a purchase order", map[string]any{"purchase_order": "OC-88-2026"}, []string{"<NumeroOrdenCompra>OC-88-2026<"}, []string{"InformacionAdicionalComprador"}},
		{"a long purchase order is information", map[string]any{"purchase_order": strings.Repeat("o", 21)}, []string{"<InformacionAdicionalComprador>OC: ooooooooooooooooooooo<"}, []string{"NumeroOrdenCompra"}},
		{"notes are cut with a mark", map[string]any{"notes": strings.Repeat("n", 251)}, []string{"<InformacionAdicionalEmisor>" + strings.Repeat("n", 249) + "…<"}, nil},
		{"notes that just fit", map[string]any{"notes": strings.Repeat("n", 250)}, []string{">" + strings.Repeat("n", 250) + "<"}, []string{"…"}},
		{"a long name is cut", map[string]any{"buyer.legal_name": strings.Repeat("ñ", 200)}, []string{"<RazonSocialComprador>" + strings.Repeat("ñ", 150) + "<"}, nil},
		{"a foreigner's identifier", map[string]any{"ecf_type": "32", "buyer.tax_id": "1234567890"}, []string{"<IdentificadorExtranjero>1234567890<"}, []string{"RNCComprador"}},
		{"a consumer without identifier", map[string]any{"ecf_type": "32", "buyer.tax_id": nil}, []string{"<Comprador><RazonSocialComprador>"}, []string{"RNCComprador", "FechaVencimientoSecuencia"}},
		{"an e-mail address", map[string]any{"buyer.email": "a.b+c@d-e.example"}, []string{"<CorreoComprador>a.b+c@d-e.example<"}, nil},
		{"an address that the pattern refuses is left out", map[string]any{"buyer.email": "a_b@d.example"}, nil, []string{"CorreoComprador"}},
		{"an address of more than 80 characters is left out", map[string]any{"buyer.email": strings.Repeat("a", 60) + "@" + strings.Repeat("b", 20) + ".do"}, nil, []string{"CorreoComprador"}},
		{"a phone is a contact", map[string]any{"buyer.phone": "+1 (809) 555-0177"}, []string{"<ContactoComprador>+1 (809) 555-0177<"}, nil},

		{"the city determines the province", address(nil), []string{"<DireccionComprador>Calle 1, Santiago<", "<MunicipioComprador>250100</MunicipioComprador><ProvinciaComprador>250000<"}, nil},
		{"case and accents do not matter", address(map[string]any{"city": "sAN PÉDRO  de macoris"}), []string{"<MunicipioComprador>230100<"}, nil},
		{"an unknown city leaves out both", address(map[string]any{"city": "Gotham", "province_or_state": "Santiago"}), []string{">Calle 1, Gotham, Santiago<"}, []string{"MunicipioComprador", "ProvinciaComprador"}},
		{"Santo Domingo without a province is ambiguous", address(map[string]any{"city": "Santo Domingo"}), nil, []string{"MunicipioComprador", "ProvinciaComprador"}},
		{"Santo Domingo of the capital", address(map[string]any{"city": "Santo Domingo", "province_or_state": "Distrito Nacional"}), []string{"<MunicipioComprador>010100</MunicipioComprador><ProvinciaComprador>010000<"}, nil},
		{"a city in another province leaves out the municipality", address(map[string]any{"province_or_state": "La Vega"}), []string{"<ProvinciaComprador>130000<"}, []string{"MunicipioComprador"}},
		{"the irregular code of Neiba", address(map[string]any{"city": "Neiba"}), []string{"<MunicipioComprador>030001</MunicipioComprador><ProvinciaComprador>030000<"}, nil},
		{"abroad there are no codes", address(map[string]any{"country_code": "US", "province_or_state": "Nueva York"}), []string{"<DireccionComprador>Calle 1, Santiago, Nueva York, Estados Unidos<"}, []string{"MunicipioComprador", "ProvinciaComprador"}},
		{"an address is cut at 100", address(map[string]any{"line1": strings.Repeat("a", 120), "country_code": "HT"}), []string{">" + strings.Repeat("a", 100) + "<"}, []string{"Haití"}},

		{"a description of 80 characters is a name", map[string]any{"lines.description": strings.Repeat("d", 80)}, []string{"<NombreItem>" + strings.Repeat("d", 80) + "<"}, []string{"DescripcionItem"}},
		{"a longer description is cut after a word in the name, and whole in the description", map[string]any{"lines.description": strings.Repeat("d", 79) + " ee"}, []string{"<NombreItem>" + strings.Repeat("d", 79) + "<", "<DescripcionItem>" + strings.Repeat("d", 79) + " ee<"}, nil},
		{"a description with a word that ends at 80", map[string]any{"lines.description": strings.Repeat("d", 80) + " e"}, []string{"<NombreItem>" + strings.Repeat("d", 80) + "<"}, nil},
		{"a single long word is cut", map[string]any{"lines.description": strings.Repeat("d", 81)}, []string{"<NombreItem>" + strings.Repeat("d", 80) + "<"}, nil},
		{"line breaks are spaces", map[string]any{"lines.description": "uno\r\n\tdos"}, []string{"<NombreItem>uno dos<"}, nil},
		{"text is composed", map[string]any{"lines.description": "Cafe\u0301"}, []string{"<NombreItem>Café<"}, nil},
		{"text is escaped once", map[string]any{"lines.description": `<a & "b" 'c'> ]]> &amp;`}, []string{`<NombreItem>&lt;a &amp; "b" 'c'&gt; ]]&gt; &amp;amp;<`}, nil},
		{"a stock code", map[string]any{"lines.sku": strings.Repeat("s", 35)}, []string{"<TipoCodigo>Interna</TipoCodigo><CodigoItem>" + strings.Repeat("s", 35) + "<"}, nil},
		{"a long stock code is left out", map[string]any{"lines.sku": strings.Repeat("s", 36)}, nil, []string{"TablaCodigosItem"}},
		{"a unit code has precedence over words", map[string]any{"lines.unit_code": 21, "lines.unit": "caja"}, []string{"<UnidadMedida>21<"}, nil},
		{"a unit code that is not in the authority's table is left out", map[string]any{"lines.unit_code": 63, "lines.unit": "caja"}, nil, []string{"UnidadMedida"}},
		{"a unit in words", map[string]any{"lines.unit": "Cajas"}, []string{"<UnidadMedida>6<"}, nil},
		{"millilitres have a code that requests cannot send", map[string]any{"lines.unit": "ml"}, []string{"<UnidadMedida>59<"}, nil},
		{"quantity and price", map[string]any{"lines.quantity": "2.50", "lines.unit_price": "40.000"}, []string{"<CantidadItem>2.50<", "<PrecioUnitarioItem>40.00<"}, nil},
		{"a price of four decimals", map[string]any{"lines.quantity": "10", "lines.unit_price": "9.9996"}, []string{"<PrecioUnitarioItem>9.9996<", "<MontoItem>100.00<"}, nil},

		{"a discount", discounted("10", "10", "16.20", "106.20"), []string{"<DescuentoMonto>10.00</DescuentoMonto><TablaSubDescuento><SubDescuento><TipoSubDescuento>%</TipoSubDescuento><SubDescuentoPorcentaje>10.00</SubDescuentoPorcentaje><MontoSubDescuento>10.00<"}, nil},
		{"a discount of three decimals is an amount", discounted("7.505", "7.51", "16.65", "109.14"), []string{"<TipoSubDescuento>$</TipoSubDescuento><MontoSubDescuento>7.51<"}, []string{"SubDescuentoPorcentaje"}},
		{"a discount of 0 percent", discounted("0", "0", "18", "118"), nil, []string{"DescuentoMonto", "TablaSubDescuento"}},
		{"a discount that rounds to 0.00", discounted("0.004", "0", "18", "118"), nil, []string{"DescuentoMonto", "TablaSubDescuento"}},
		{"a discount of 100 percent", discounted("100", "100", "0", "0"), []string{"<MontoItem>0.00<", "<MontoGravadoI1>0.00<", "<TotalITBIS1>0.00<", "<MontoTotal>0.00<"}, nil},
		{"an exempt document has no ITBIS", map[string]any{"lines.taxes": []any{}, "declared_totals.tax_total": "0", "declared_totals.total": "100"}, []string{"<MontoExento>100.00<"}, []string{"IndicadorMontoGravado", "ITBIS", "MontoGravado"}},
		{"a zero rate counts as taxed", map[string]any{"lines.taxes": []any{map[string]any{"code": "ITBIS", "label": "x", "rate_percent": "0"}}, "declared_totals.tax_total": "0", "declared_totals.total": "100"}, []string{"<IndicadorMontoGravado>0<", "<MontoGravadoI3>100.00<", "<ITBIS3>0</ITBIS3><TotalITBIS>0.00</TotalITBIS><TotalITBIS3>0.00<"}, []string{"MontoExento"}},
		{"withholdings of income tax alone", map[string]any{"estimated_withholdings": map[string]any{"income_tax_amount": "5", "itbis_amount": "0"}}, []string{"<MontoITBISRetenido>0.00</MontoITBISRetenido><MontoISRRetenido>5.00<", "<TotalITBISRetenido>0.00</TotalITBISRetenido><TotalISRRetencion>5.00<"}, nil},
		{"withholdings of 0.00 are not stated", map[string]any{"estimated_withholdings": map[string]any{"income_tax_amount": "0", "itbis_amount": "0"}}, nil, []string{"Reten"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			d := document(t, test.changes)
			xml := string(d.Unsigned())
			for _, want := range test.has {
				if !strings.Contains(xml, want) {
					t.Errorf("no %s in\n%s", want, indented(xml))
				}
			}
			for _, refused := range test.not {
				if strings.Contains(xml, refused) {
					t.Errorf("unexpected %s in\n%s", refused, indented(xml))
				}
			}
			if err := d.Check(); err != nil {
				t.Errorf("Check() = %v", err)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	inv := invoice(t, request(t, nil))
	at, expires := time.Date(2026, 3, 5, 14, 0, 0, 0, time.UTC), must(fiscal.ParseDate("2027-12-31"))
	credit, consumer := must(fiscal.NewENCF(fiscal.FiscalCredit, 1)), must(fiscal.NewENCF(fiscal.Consumer, 1))
	unnamed := palmaClara()
	unnamed.LegalName = " "
	for name, test := range map[string]struct {
		issuer ecf.Issuer
		number ecf.Number
	}{
		"a number of another type": {palmaClara(), ecf.Number{ENCF: consumer}},
		"no number":                {palmaClara(), ecf.Number{}},
		"a 31 without expiry":      {palmaClara(), ecf.Number{ENCF: credit}},
		"an issuer without a name": {unnamed, ecf.Number{ENCF: credit, Expires: expires}},
		"an empty issuer":          {ecf.Issuer{}, ecf.Number{ENCF: credit, Expires: expires}},
	} {
		if _, err := ecf.New(test.issuer, test.number, inv, at); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	small := invoice(t, request(t, map[string]any{"ecf_type": "32"}))
	if _, err := ecf.New(palmaClara(), ecf.Number{ENCF: consumer, Expires: expires}, small, at); err == nil {
		t.Error("a 32 with expiry: no error")
	}
}

func TestIssuerCheckNamesTheField(t *testing.T) {
	t.Parallel()
	if err := palmaClara().Check(); err != nil {
		t.Errorf("Check() = %v", err)
	}
	if err := ecf.Synthetic().Check(); err != nil {
		t.Errorf("Synthetic().Check() = %v", err)
	}
	for field, change := range map[string]func(*ecf.Issuer){
		"rnc":          func(i *ecf.Issuer) { i.RNC = "1234567890" },
		"legal_name":   func(i *ecf.Issuer) { i.LegalName = strings.Repeat("x", 151) },
		"trade_name":   func(i *ecf.Issuer) { i.TradeName = "a\x00b" },
		"branch":       func(i *ecf.Issuer) { i.Branch = strings.Repeat("x", 21) },
		"address":      func(i *ecf.Issuer) { i.Address = "\t" },
		"municipality": func(i *ecf.Issuer) { i.Municipality = "010000" },
		"province":     func(i *ecf.Issuer) { i.Province = "010100" },
		"phones": func(i *ecf.Issuer) {
			i.Phones = []string{"809-555-0101", "809-555-0102", "809-555-0103", "809-555-0104"}
		},
		"phones.0":          func(i *ecf.Issuer) { i.Phones = []string{"8095550101"} },
		"email":             func(i *ecf.Issuer) { i.Email = "a_b@c.do" },
		"website":           func(i *ecf.Issuer) { i.Website = strings.Repeat("x", 51) },
		"economic_activity": func(i *ecf.Issuer) { i.EconomicActivity = strings.Repeat("x", 101) },
		"income_type":       func(i *ecf.Issuer) { i.IncomeType = "07" },
	} {
		issuer := palmaClara()
		change(&issuer)
		problems, _ := issuer.Check().(fiscal.Problems) //nolint:errorlint // Check returns it unwrapped
		if len(problems) != 1 || problems[0].Field != field {
			t.Errorf("%s: %v", field, problems)
		}
	}
}
