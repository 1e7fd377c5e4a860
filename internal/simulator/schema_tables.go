package simulator

// The schemas of documents, from the authority's format documents (e-CF v1.0, RFCE v1.0)
// and XSD files. parseSchema explains the notation.

const ecfSchema = `
Encabezado 1
 Version 1 enum:1.0,1
 IdDoc 1
  TipoeCF 1 enum:31,32,33,34,41,43,44,45,46,47
  eNCF 1 encf
  FechaVencimientoSecuencia 1 date @31
  IndicadorEnvioDiferido ? enum:1
  IndicadorMontoGravado ? enum:0,1
  IndicadorServicioTodoIncluido ? enum:1
  TipoIngresos 1 enum:01,02,03,04,05,06
  TipoPago 1 enum:1,2,3
  FechaLimitePago ? date
  TerminoPago ? alphanumeric:15
  TablaFormasPago ?
   FormaDePago 1..7
    FormaPago ? upto:8
    MontoPago ? amount
  TipoCuentaPago ? enum:CT,AH,OT
  NumeroCuentaPago ? text:28
  BancoPago ? text:75
  FechaDesde ? date
  FechaHasta ? date
  TotalPaginas ? upto:9999
 Emisor 1
  RNCEmisor 1 rnc
  RazonSocialEmisor 1 text:150
  NombreComercial ? text:150
  Sucursal ? text:20
  DireccionEmisor 1 text:100
  Municipio ? municipality
  Provincia ? municipality
  TablaTelefonoEmisor ?
   TelefonoEmisor 1..3 phone
  CorreoEmisor ? mail
  WebSite ? text:50
  ActividadEconomica ? text:100
  CodigoVendedor ? text:60
  NumeroFacturaInterna ? text:20
  NumeroPedidoInterno ? int:20
  ZonaVenta ? text:20
  RutaVenta ? text:20
  InformacionAdicionalEmisor ? text:250
  FechaEmision 1 date
 Comprador 1
  RNCComprador 1 rnc @31
  RNCComprador ? rnc @32
  IdentificadorExtranjero ? text:20 @32
  RazonSocialComprador 1 text:150 @31
  RazonSocialComprador ? text:150 @32
  ContactoComprador ? text:80
  CorreoComprador ? mail
  DireccionComprador ? text:100
  MunicipioComprador ? municipality
  ProvinciaComprador ? municipality
  FechaEntrega ? date
  ContactoEntrega ? text:100
  DireccionEntrega ? text:100
  TelefonoAdicional ? phone
  FechaOrdenCompra ? date
  NumeroOrdenCompra ? text:20
  CodigoInternoComprador ? text:20
  ResponsablePago ? text:20
  InformacionAdicionalComprador ? text:150
 InformacionesAdicionales ?
  FechaEmbarque ? date
  NumeroEmbarque ? text:25
  NumeroContenedor ? text:100
  NumeroReferencia ? int:20
  PesoBruto ? amount
  PesoNeto ? amount
  UnidadPesoBruto ? upto:62
  UnidadPesoNeto ? upto:62
  CantidadBulto ? amount
  UnidadBulto ? upto:62
  VolumenBulto ? positive
  UnidadVolumen ? upto:62
 Transporte ?
  Conductor ? text:20
  DocumentoTransporte ? int:20
  Ficha ? text:10
  Placa ? text:7
  RutaTransporte ? text:20
  ZonaTransporte ? text:20
  NumeroAlbaran ? text:20
 Totales 1
  MontoGravadoTotal ? amount
  MontoGravadoI1 ? amount
  MontoGravadoI2 ? amount
  MontoGravadoI3 ? amount
  MontoExento ? amount
  ITBIS1 ? int:2
  ITBIS2 ? int:2
  ITBIS3 ? int:2
  TotalITBIS ? amount
  TotalITBIS1 ? amount
  TotalITBIS2 ? amount
  TotalITBIS3 ? amount
  MontoImpuestoAdicional ? positive
  ImpuestosAdicionales ?
   ImpuestoAdicional 1..20
    TipoImpuesto 1 tax
    TasaImpuestoAdicional 1 percent
    MontoImpuestoSelectivoConsumoEspecifico ? positive
    MontoImpuestoSelectivoConsumoAdvalorem ? positive
    OtrosImpuestosAdicionales ? positive
  MontoTotal 1 amount
  MontoNoFacturable ? signed
  MontoPeriodo ? signed
  SaldoAnterior ? signed
  MontoAvancePago ? amount
  ValorPagar ? signed
  TotalITBISRetenido ? amount @31
  TotalISRRetencion ? amount @31
  TotalITBISPercepcion ? amount @31
  TotalISRPercepcion ? amount @31
 OtraMoneda ?
  TipoMoneda 1 enum:BRL,CAD,CHF,CHY,XDR,DKK,EUR,GBP,JPY,NOK,SCP,SEK,USD,VEF,HTG,MXN,COP
  TipoCambio 1 rate
  MontoGravadoTotalOtraMoneda ? amount
  MontoGravado1OtraMoneda ? amount
  MontoGravado2OtraMoneda ? amount
  MontoGravado3OtraMoneda ? amount
  MontoExentoOtraMoneda ? amount
  TotalITBISOtraMoneda ? amount
  TotalITBIS1OtraMoneda ? amount
  TotalITBIS2OtraMoneda ? amount
  TotalITBIS3OtraMoneda ? amount
  MontoImpuestoAdicionalOtraMoneda ? positive
  ImpuestosAdicionalesOtraMoneda ?
   ImpuestoAdicionalOtraMoneda 1..20
    TipoImpuestoOtraMoneda 1 tax
    TasaImpuestoAdicionalOtraMoneda 1 percent
    MontoImpuestoSelectivoConsumoEspecificoOtraMoneda ? positive
    MontoImpuestoSelectivoConsumoAdvaloremOtraMoneda ? positive
    OtrosImpuestosAdicionalesOtraMoneda ? positive
  MontoTotalOtraMoneda 1 amount
DetallesItems 1
 Item 1..1000
  NumeroLinea 1 upto:1000
  TablaCodigosItem ?
   CodigosItem 1..5
    TipoCodigo 1 text:14
    CodigoItem 1 text:35
  IndicadorFacturacion 1 enum:0,1,2,3,4
  Retencion ? @31
   IndicadorAgenteRetencionoPercepcion 1 enum:1,2 @31
   MontoITBISRetenido ? amount @31
   MontoISRRetenido ? amount @31
  NombreItem 1 text:80
  IndicadorBienoServicio 1 enum:1,2
  DescripcionItem ? text:1000
  CantidadItem 1 positive
  UnidadMedida ? upto:62
  CantidadReferencia ? amount
  UnidadReferencia ? upto:62
  TablaSubcantidad ?
   SubcantidadItem 1..5
    Subcantidad ? thousandths
    CodigoSubcantidad ? upto:62
  GradosAlcohol ? percent
  PrecioUnitarioReferencia ? positive
  FechaElaboracion ? date
  FechaVencimientoItem ? date
  Mineria ? @32
   PesoNetoKilogramo ? amount @32
   PesoNetoMineria ? amount @32
   TipoAfiliacion ? enum:1,2 @32
   Liquidacion ? enum:1,2 @32
  PrecioUnitarioItem 1 price
  DescuentoMonto ? amount
  TablaSubDescuento ?
   SubDescuento 1..12
    TipoSubDescuento 1 enum:$,%
    SubDescuentoPorcentaje ? percent
    MontoSubDescuento 1 amount
  RecargoMonto ? amount
  TablaSubRecargo ?
   SubRecargo 1..12
    TipoSubRecargo 1 enum:$,%
    SubRecargoPorcentaje ? percent
    MontoSubRecargo 1 amount
  TablaImpuestoAdicional ?
   ImpuestoAdicional 1..2
    TipoImpuesto 1 tax
  OtraMonedaDetalle ?
   PrecioOtraMoneda ? price
   DescuentoOtraMoneda ? amount
   RecargoOtraMoneda ? amount
   MontoItemOtraMoneda ? amount
  MontoItem 1 amount
Subtotales ?
 Subtotal 1..20
  NumeroSubTotal ? int:2
  DescripcionSubtotal ? text:40
  Orden ? int:2
  SubTotalMontoGravadoTotal ? amount
  SubTotalMontoGravadoI1 ? amount
  SubTotalMontoGravadoI2 ? amount
  SubTotalMontoGravadoI3 ? amount
  SubTotaITBIS ? amount
  SubTotaITBIS1 ? amount
  SubTotaITBIS2 ? amount
  SubTotaITBIS3 ? amount
  SubTotalImpuestoAdicional ? amount
  SubTotalExento ? amount
  MontoSubTotal ? amount
  Lineas ? int:2
DescuentosORecargos ?
 DescuentoORecargo 1..20
  NumeroLinea 1 int:2
  TipoAjuste 1 enum:D,R
  IndicadorNorma1007 ? enum:0,1
  DescripcionDescuentooRecargo ? text:45
  TipoValor ? enum:$,%
  ValorDescuentooRecargo ? percent
  MontoDescuentooRecargo ? amount
  MontoDescuentooRecargoOtraMoneda ? amount
  IndicadorFacturacionDescuentooRecargo ? enum:1,2,3,4
Paginacion ?
 Pagina 1..1000
  PaginaNo 1 upto:1000
  NoLineaDesde 1 upto:1000
  NoLineaHasta 1 upto:1000
  SubtotalMontoGravadoPagina ? amount
  SubtotalMontoGravado1Pagina ? amount
  SubtotalMontoGravado2Pagina ? amount
  SubtotalMontoGravado3Pagina ? amount
  SubtotalExentoPagina ? amount
  SubtotalItbisPagina ? amount
  SubtotalItbis1Pagina ? amount
  SubtotalItbis2Pagina ? amount
  SubtotalItbis3Pagina ? amount
  SubtotalImpuestoAdicionalPagina ? positive
  SubtotalImpuestoAdicional ?
   SubtotalImpuestoSelectivoConsumoEspecificoPagina ? positive
   SubtotalOtrosImpuesto ? positive
  MontoSubtotalPagina ? amount
  SubtotalMontoNoFacturablePagina ? signed
InformacionReferencia ?
 NCFModificado 1 text:19
 RNCOtroContribuyente ? rnc
 FechaNCFModificado ? date
 CodigoModificacion 1 enum:1,2,3,4,5
FechaHoraFirma 1 datetime
`

// The amounts of a summary have no decimals or two.
const rfceSchema = `
Encabezado 1
 Version 1 enum:1.0
 IdDoc 1
  TipoeCF 1 enum:31,32,33,34,41,43,44,45,46,47
  eNCF 1 encf
  TipoIngresos 1 enum:01,02,03,04,05,06
  TipoPago 1 enum:1,2,3
  TablaFormasPago ?
   FormaDePago 0..7
    FormaPago ? upto:8
    MontoPago ? exact
 Emisor 1
  RNCEmisor 1 rnc
  RazonSocialEmisor 1 text:150
  FechaEmision 1 date
 Comprador 1
  RNCComprador ? rnc
  IdentificadorExtranjero ? text:20
  RazonSocialComprador ? text:150
 Totales 1
  MontoGravadoTotal ? exact
  MontoGravadoI1 ? exact
  MontoGravadoI2 ? exact
  MontoGravadoI3 ? exact
  MontoExento ? exact
  TotalITBIS ? exact
  TotalITBIS1 ? exact
  TotalITBIS2 ? exact
  TotalITBIS3 ? exact
  MontoImpuestoAdicional ? exact
  ImpuestosAdicionales ?
   ImpuestoAdicional 0..20
    TipoImpuesto 1 tax
    MontoImpuestoSelectivoConsumoEspecifico ? exact
    MontoImpuestoSelectivoConsumoAdvalorem ? exact
    OtrosImpuestosAdicionales ? exact
  MontoTotal 1 exact
  MontoNoFacturable ? signed
  MontoPeriodo ? signed
 CodigoSeguridadeCF 1 code
`

// commonSchema has what all types of e-CF share.
const commonSchema = `
Encabezado 1
 Version 1 enum:1.0,1
 IdDoc 1
  TipoeCF 1 enum:31,32,33,34,41,43,44,45,46,47
  eNCF 1 encf
 Emisor 1
  RNCEmisor 1 rnc
  RazonSocialEmisor 1 text:150
  FechaEmision 1 date
 Comprador ?
  RNCComprador ? rnc
  RazonSocialComprador ? text:150
 Totales 1
  MontoTotal 1 amount
DetallesItems 1
 Item 1..1000
  NumeroLinea 1 upto:1000
  IndicadorFacturacion 1 enum:0,1,2,3,4
  NombreItem 1 text:80
  CantidadItem 1 positive
  PrecioUnitarioItem 1 price
  MontoItem 1 amount
FechaHoraFirma 1 datetime
`
