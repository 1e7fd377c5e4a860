package simulator_test

import (
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// The documents have less common amounts: taxes, discounts and small differences.
func TestArithmeticOfUncommonDocuments(t *testing.T) {
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
			e := newEnv(t).login()
			e.send(encf31(1), e.sign(invoice, encf31(1), c.changes...))
			if v := e.Documents(simulator.Filter{})[0].Verdict; v.Code != c.want {
				t.Errorf("%+v, want %d", v, c.want)
			}
		})
	}
}
