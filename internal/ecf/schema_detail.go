package ecf

import (
	"sync"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

const (
	fieldTotal             = "declared_totals.total"
	fieldWithholdings      = "estimated_withholdings"
	fieldITBISWithheld     = "estimated_withholdings.itbis_amount"
	fieldIncomeTaxWithheld = "estimated_withholdings.income_tax_amount"
)

// maxItems is the largest number of lines that the schemas allow.
const maxItems = fiscal.MaxLines

func itemSpec() spec {
	return section("Item",
		required("NumeroLinea", integerType(1, maxItems, 4)),
		section("TablaCodigosItem", allFrom("lines.#.sku",
			section("CodigosItem",
				required("TipoCodigo", textType(1, 14)),
				required("CodigoItem", textType(1, 35)),
			).upTo(5),
		)...).from("lines.#.sku"),
		required("IndicadorFacturacion", codeType(0, 4)).from("lines.#.billing_indicator"),
		section("Retencion",
			optional("IndicadorAgenteRetencionoPercepcion", codeType(1, 2)).from(fieldWithholdings),
			optional("MontoITBISRetenido", amountType).from(fieldITBISWithheld),
			optional("MontoISRRetenido", amountType).from(fieldIncomeTaxWithheld),
		).only(kind31).from(fieldWithholdings),
		required("NombreItem", textType(1, 80)).from("lines.#.description"),
		required("IndicadorBienoServicio", codeType(1, 2)).from("lines.#.item_kind"),
		optional("DescripcionItem", textType(1, 1000)).from("lines.#.description"),
		required("CantidadItem", positiveType).from("lines.#.quantity"),
		optional("UnidadMedida", unitType).from("lines.#.unit_code"),
		optional("CantidadReferencia", amountType),
		optional("UnidadReferencia", unitType),
		section("TablaSubcantidad",
			section("SubcantidadItem",
				optional("Subcantidad", quantityType),
				optional("CodigoSubcantidad", unitType),
			).upTo(5),
		),
		optional("GradosAlcohol", percentType),
		optional("PrecioUnitarioReferencia", positiveType),
		optional("FechaElaboracion", dateType),
		optional("FechaVencimientoItem", dateType),
		section("Mineria",
			optional("PesoNetoKilogramo", quantityType),
			optional("PesoNetoMineria", quantityType),
			optional("TipoAfiliacion", codeType(1, 2)),
			optional("Liquidacion", codeType(1, 2)),
		).only(kind32),
		required("PrecioUnitarioItem", priceType).from("lines.#.unit_price"),
		optional("DescuentoMonto", amountType).from("lines.#.discount.value"),
		section("TablaSubDescuento", allFrom("lines.#.discount.value",
			section("SubDescuento",
				required("TipoSubDescuento", enumType("$", "%")),
				optional("SubDescuentoPorcentaje", percentType),
				optional("MontoSubDescuento", amountType),
			).upTo(12),
		)...).from("lines.#.discount.value"),
		optional("RecargoMonto", amountType),
		section("TablaSubRecargo",
			section("SubRecargo",
				required("TipoSubRecargo", enumType("$", "%")),
				optional("SubRecargoPorcentaje", percentType),
				optional("MontoSubRecargo", amountType),
			).upTo(12),
		),
		section("TablaImpuestoAdicional", allFrom("lines.#.taxes",
			section("ImpuestoAdicional",
				required("TipoImpuesto", additionalTaxType),
			).upTo(2),
		)...).from("lines.#.taxes"),
		section("OtraMonedaDetalle",
			optional("PrecioOtraMoneda", priceType),
			optional("DescuentoOtraMoneda", amountType),
			optional("RecargoOtraMoneda", amountType),
			optional("MontoItemOtraMoneda", amountType),
		),
		required("MontoItem", amountType).from("lines.#.unit_price"),
	).upTo(maxItems).from("lines")
}

func subtotalsSpec() spec {
	return section("Subtotales",
		section("Subtotal", join(
			list(
				optional("NumeroSubTotal", digitsType(2)),
				optional("DescripcionSubtotal", textType(1, 40)),
				optional("Orden", digitsType(2)),
			),
			// The schema spells SubTota without the last letter.
			optionals(amountType, "SubTotalMontoGravadoTotal", "SubTotalMontoGravadoI1", "SubTotalMontoGravadoI2",
				"SubTotalMontoGravadoI3", "SubTotaITBIS", "SubTotaITBIS1", "SubTotaITBIS2", "SubTotaITBIS3",
				"SubTotalImpuestoAdicional", "SubTotalExento", "MontoSubTotal"),
			list(optional("Lineas", digitsType(2))),
		)...).upTo(20),
	)
}

func adjustmentsSpec() spec {
	return section("DescuentosORecargos",
		section("DescuentoORecargo",
			required("NumeroLinea", digitsType(2)),
			required("TipoAjuste", enumType("D", "R")),
			optional("IndicadorNorma1007", codeType(0, 1)),
			optional("DescripcionDescuentooRecargo", textType(1, 45)),
			optional("TipoValor", enumType("$", "%")),
			optional("ValorDescuentooRecargo", percentType),
			optional("MontoDescuentooRecargo", amountType),
			optional("MontoDescuentooRecargoOtraMoneda", amountType),
			optional("IndicadorFacturacionDescuentooRecargo", codeType(1, 4)),
		).upTo(20),
	)
}

func paginationSpec() spec {
	return section("Paginacion",
		section("Pagina", join(
			optionals(integerType(1, maxItems, 4), "PaginaNo", "NoLineaDesde", "NoLineaHasta"),
			optionals(amountType, "SubtotalMontoGravadoPagina", "SubtotalMontoGravado1Pagina",
				"SubtotalMontoGravado2Pagina", "SubtotalMontoGravado3Pagina", "SubtotalExentoPagina",
				"SubtotalItbisPagina", "SubtotalItbis1Pagina", "SubtotalItbis2Pagina", "SubtotalItbis3Pagina"),
			list(
				optional("SubtotalImpuestoAdicionalPagina", positiveType),
				section("SubtotalImpuestoAdicional",
					optional("SubtotalImpuestoSelectivoConsumoEspecificoPagina", positiveType),
					optional("SubtotalOtrosImpuesto", positiveType),
				),
				optional("MontoSubtotalPagina", amountType),
				optional("SubtotalMontoNoFacturablePagina", amountType),
			),
		)...).upTo(1000),
	)
}

// rfceSchema is the schema of the summary of a consumer invoice. It has the names
// of the e-CF, but types of its own: amounts have no decimals or exactly two.
var rfceSchema = sync.OnceValue(func() *spec {
	root := section("RFCE",
		section("Encabezado",
			required("Version", exactVersionType),
			section("IdDoc",
				required("TipoeCF", codeType(32, 32)).from("ecf_type"),
				required("eNCF", encfType),
				required("TipoIngresos", trimmed(incomeType)).from("taxpayer.income_type"),
				required("TipoPago", codeType(1, 3)).from("payment_type"),
				section("TablaFormasPago",
					section("FormaDePago",
						optional("FormaPago", codeType(1, 8)),
						optional("MontoPago", exactAmountType),
					).upTo(7),
				),
			).must(),
			section("Emisor",
				required("RNCEmisor", trimmed(rncType)).from("taxpayer.rnc"),
				required("RazonSocialEmisor", textType(1, 150)).from("taxpayer.legal_name"),
				required("FechaEmision", trimmed(dateType)).from("issue_date"),
			).must(),
			section("Comprador",
				optional("RNCComprador", trimmed(rncType)).from("buyer.tax_id"),
				optional("IdentificadorExtranjero", textType(1, 20)).from("buyer.tax_id"),
				optional("RazonSocialComprador", textType(1, 150)).from("buyer.legal_name"),
			).must().from("buyer"),
			section("Totales", allFrom(fieldTotal, join(
				optionals(exactAmountType, "MontoGravadoTotal", "MontoGravadoI1", "MontoGravadoI2", "MontoGravadoI3",
					"MontoExento", "TotalITBIS", "TotalITBIS1", "TotalITBIS2", "TotalITBIS3"),
				list(
					optional("MontoImpuestoAdicional", exactPositiveType),
					section("ImpuestosAdicionales",
						section("ImpuestoAdicional",
							optional("TipoImpuesto", additionalTaxType),
							optional("MontoImpuestoSelectivoConsumoEspecifico", exactPositiveType),
							optional("MontoImpuestoSelectivoConsumoAdvalorem", exactPositiveType),
							optional("OtrosImpuestosAdicionales", exactPositiveType),
						).upTo(20),
					),
					required("MontoTotal", exactAmountType),
					optional("MontoNoFacturable", exactSignedType),
					optional("MontoPeriodo", exactSignedType),
				),
			)...)...).must().from("declared_totals"),
			required("CodigoSeguridadeCF", securityCodeType),
		).must(),
	)
	return &root
})
