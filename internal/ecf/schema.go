package ecf

import (
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// A docKind is a set of the documents that the schemas describe.
type docKind uint8

const (
	kind31 docKind = 1 << iota
	kind32
	kindRFCE
	anyKind = kind31 | kind32 | kindRFCE
)

// name names a document in messages.
func (k docKind) name() lang.Message {
	switch k {
	case kind31:
		return lang.Messagef("type 31", "el tipo 31")
	case kind32:
		return lang.Messagef("type 32", "el tipo 32")
	default:
		return lang.Messagef("a summary (RFCE)", "un resumen (RFCE)")
	}
}

// A spec describes one element of a schema. The order of a list of specs is the
// order of the elements. The lists do not change after they are built.
type spec struct {
	name   string
	on     docKind // the documents that have the element
	needed docKind // the documents that require it
	most   int     // how often it may occur
	check  simpleType
	holds  []spec // its children, in order; nil when it holds text
	// field is the field of the creation request that the element comes from,
	// with # for the index of the first repeated element on its path.
	field string
}

func optional(name string, check simpleType) spec {
	return spec{name: name, on: anyKind, most: 1, check: check}
}

func required(name string, check simpleType) spec {
	return optional(name, check).must()
}

// section is an optional element with children.
func section(name string, holds ...spec) spec {
	return spec{name: name, on: anyKind, most: 1, holds: holds}
}

func (s spec) must() spec { return s.mustOn(anyKind) }

func (s spec) mustOn(k docKind) spec {
	s.needed = k
	return s
}

// only limits an element to some documents.
func (s spec) only(k docKind) spec {
	s.on, s.needed = k, s.needed&k
	return s
}

// upTo lets an element occur up to n times, and at least once: its section would
// otherwise be empty, which the authority refuses.
func (s spec) upTo(n int) spec {
	s.most, s.needed = n, anyKind
	return s
}

func (s spec) from(field string) spec {
	s.field = field
	return s
}

// allFrom is from, for every spec that has no field of its own.
func allFrom(field string, specs ...spec) []spec {
	for i := range specs {
		if specs[i].field == "" {
			specs[i].field = field
		}
		allFrom(field, specs[i].holds...)
	}
	return specs
}

// optionals are optional elements of the same type.
func optionals(check simpleType, names ...string) []spec {
	specs := make([]spec, len(names))
	for i, name := range names {
		specs[i] = optional(name, check)
	}
	return specs
}

func join(lists ...[]spec) []spec {
	var all []spec
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// list makes a list of specs, for join.
func list(specs ...spec) []spec { return specs }

// ecfSchema is the schema of the e-CF of types 31 and 32, which differ in a few
// elements.
var ecfSchema = sync.OnceValue(func() *spec {
	root := section("ECF",
		section("Encabezado",
			required("Version", versionType),
			identificationSpec(),
			issuerSpec(),
			buyerSpec(),
			shipmentSpec(),
			transportSpec(),
			totalsSpec(),
			otherCurrencySpec(),
		).must(),
		section("DetallesItems", itemSpec()).must().from("lines"),
		subtotalsSpec(),
		adjustmentsSpec(),
		paginationSpec(),
		section("InformacionReferencia",
			optional("NCFModificado", textType(11, 19)),
			optional("RNCOtroContribuyente", rncType),
			optional("FechaNCFModificado", dateType),
			optional("CodigoModificacion", codeType(1, 5)),
		),
		required("FechaHoraFirma", instantType),
	)
	return &root
})

func identificationSpec() spec {
	return section("IdDoc",
		required("TipoeCF", codeType(31, 32)).from("ecf_type"),
		required("eNCF", encfType),
		required("FechaVencimientoSecuencia", dateType).only(kind31),
		optional("IndicadorEnvioDiferido", codeType(1, 1)),
		optional("IndicadorMontoGravado", codeType(0, 1)),
		optional("IndicadorServicioTodoIncluido", codeType(1, 1)),
		required("TipoIngresos", incomeType).from("taxpayer.income_type"),
		required("TipoPago", codeType(1, 3)).from("payment_type"),
		optional("FechaLimitePago", dateType).from("due_date"),
		optional("TerminoPago", termType).from("payment_terms"),
		section("TablaFormasPago",
			section("FormaDePago",
				required("FormaPago", codeType(1, 8)),
				required("MontoPago", amountType),
			).upTo(7),
		),
		optional("TipoCuentaPago", enumType("CT", "AH", "OT")),
		optional("NumeroCuentaPago", textType(1, 28)),
		optional("BancoPago", textType(1, 75)),
		optional("FechaDesde", dateType),
		optional("FechaHasta", dateType),
		optional("TotalPaginas", integerType(2, 9999, 4)),
	).must()
}

func issuerSpec() spec {
	return section("Emisor",
		required("RNCEmisor", rncType).from("taxpayer.rnc"),
		required("RazonSocialEmisor", textType(1, 150)).from("taxpayer.legal_name"),
		optional("NombreComercial", textType(1, 150)).from("taxpayer.trade_name"),
		optional("Sucursal", textType(1, 20)).from("taxpayer.branch"),
		required("DireccionEmisor", textType(1, 100)).from("taxpayer.address"),
		optional("Municipio", regionType).from("taxpayer.municipality"),
		optional("Provincia", regionType).from("taxpayer.province"),
		section("TablaTelefonoEmisor",
			optional("TelefonoEmisor", phoneType).upTo(3).from("taxpayer.phones.#"),
		).from("taxpayer.phones"),
		optional("CorreoEmisor", mailType).from("taxpayer.email"),
		optional("WebSite", textType(1, 50)).from("taxpayer.website"),
		optional("ActividadEconomica", textType(1, 100)).from("taxpayer.economic_activity"),
		optional("CodigoVendedor", textType(1, 60)),
		optional("NumeroFacturaInterna", textType(1, 20)).from("external_id"),
		optional("NumeroPedidoInterno", digitsType(20)),
		optional("ZonaVenta", textType(1, 20)),
		optional("RutaVenta", textType(1, 20)),
		optional("InformacionAdicionalEmisor", textType(1, 250)).from("notes"),
		required("FechaEmision", dateType).from("issue_date"),
	).must()
}

func buyerSpec() spec {
	return section("Comprador",
		optional("RNCComprador", rncType).mustOn(kind31).from("buyer.tax_id"),
		optional("IdentificadorExtranjero", textType(1, 20)).only(kind32).from("buyer.tax_id"),
		optional("RazonSocialComprador", textType(1, 150)).mustOn(kind31).from("buyer.legal_name"),
		optional("ContactoComprador", textType(1, 80)).from("buyer.phone"),
		optional("CorreoComprador", mailType).from("buyer.email"),
		optional("DireccionComprador", textType(1, 100)).from("buyer.address.line1"),
		optional("MunicipioComprador", regionType).from("buyer.address.city"),
		optional("ProvinciaComprador", regionType).from("buyer.address.province_or_state"),
		optional("FechaEntrega", dateType),
		optional("ContactoEntrega", textType(1, 100)),
		optional("DireccionEntrega", textType(1, 100)),
		optional("TelefonoAdicional", phoneType),
		optional("FechaOrdenCompra", dateType),
		optional("NumeroOrdenCompra", textType(1, 20)).from("purchase_order"),
		optional("CodigoInternoComprador", textType(1, 20)),
		optional("ResponsablePago", lettersType),
		optional("InformacionAdicionalComprador", textType(1, 150)).from("purchase_order"),
	).must().from("buyer")
}

func shipmentSpec() spec {
	return section("InformacionesAdicionales",
		optional("FechaEmbarque", dateType),
		optional("NumeroEmbarque", textType(1, 25)),
		optional("NumeroContenedor", textType(1, 100)),
		optional("NumeroReferencia", digitsType(20)),
		optional("PesoBruto", amountType),
		optional("PesoNeto", amountType),
		optional("UnidadPesoBruto", unitType),
		optional("UnidadPesoNeto", unitType),
		optional("CantidadBulto", amountType),
		optional("UnidadBulto", unitType),
		optional("VolumenBulto", positiveType),
		optional("UnidadVolumen", unitType),
	)
}

func transportSpec() spec {
	return section("Transporte",
		optional("Conductor", textType(1, 20)),
		optional("DocumentoTransporte", digitsType(20)),
		optional("Ficha", textType(1, 10)),
		optional("Placa", textType(1, 7)),
		optional("RutaTransporte", textType(1, 20)),
		optional("ZonaTransporte", textType(1, 20)),
		optional("NumeroAlbaran", textType(1, 20)),
	)
}

func totalsSpec() spec {
	return section("Totales", allFrom(fieldTotal, join(
		optionals(amountType, "MontoGravadoTotal", "MontoGravadoI1", "MontoGravadoI2", "MontoGravadoI3", "MontoExento"),
		optionals(digitsType(2), "ITBIS1", "ITBIS2", "ITBIS3"),
		optionals(amountType, "TotalITBIS", "TotalITBIS1", "TotalITBIS2", "TotalITBIS3"),
		list(
			optional("MontoImpuestoAdicional", positiveType),
			section("ImpuestosAdicionales",
				section("ImpuestoAdicional", additionalTaxSpec("")...).upTo(20),
			),
			required("MontoTotal", amountType),
			optional("MontoNoFacturable", signedType),
			optional("MontoPeriodo", signedType),
			optional("SaldoAnterior", signedType),
			optional("MontoAvancePago", amountType),
			optional("ValorPagar", signedType),
			optional("TotalITBISRetenido", amountType).only(kind31).from(fieldITBISWithheld),
			optional("TotalISRRetencion", amountType).only(kind31).from(fieldIncomeTaxWithheld),
			optional("TotalITBISPercepcion", amountType).only(kind31),
			optional("TotalISRPercepcion", amountType).only(kind31),
		),
	)...)...).must().from("declared_totals")
}

// additionalTaxSpec describes a tax besides ITBIS in the totals. The elements of
// another currency have a suffix.
func additionalTaxSpec(suffix string) []spec {
	return list(
		required("TipoImpuesto"+suffix, additionalTaxType),
		required("TasaImpuestoAdicional"+suffix, percentType),
		optional("MontoImpuestoSelectivoConsumoEspecifico"+suffix, positiveType),
		optional("MontoImpuestoSelectivoConsumoAdvalorem"+suffix, positiveType),
		optional("OtrosImpuestosAdicionales"+suffix, positiveType),
	)
}

func otherCurrencySpec() spec {
	return section("OtraMoneda", join(
		list(
			// CHY and SCP are in the schema instead of CNY and GBP.
			optional("TipoMoneda", enumType("BRL", "CAD", "CHF", "CHY", "XDR", "DKK", "EUR", "GBP", "JPY",
				"NOK", "SCP", "SEK", "USD", "VEF", "HTG", "MXN", "COP")),
			optional("TipoCambio", exchangeType),
		),
		optionals(amountType, "MontoGravadoTotalOtraMoneda", "MontoGravado1OtraMoneda", "MontoGravado2OtraMoneda",
			"MontoGravado3OtraMoneda", "MontoExentoOtraMoneda", "TotalITBISOtraMoneda", "TotalITBIS1OtraMoneda",
			"TotalITBIS2OtraMoneda", "TotalITBIS3OtraMoneda"),
		list(
			optional("MontoImpuestoAdicionalOtraMoneda", positiveType),
			section("ImpuestosAdicionalesOtraMoneda",
				section("ImpuestoAdicionalOtraMoneda", additionalTaxSpec("OtraMoneda")...).upTo(20),
			),
			optional("MontoTotalOtraMoneda", amountType),
		),
	)...)
}
