package fiscal_test

import (
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// A draft has the totals of the lines that are valid, every other problem of the request,
// and an invoice that declares the computed totals once all is valid.
func TestADraftHasTotalsAndProblems(t *testing.T) {
	t.Parallel()
	draft := func(buyer, second string) fiscal.Draft {
		document, err := strictjson.Parse([]byte(`{"external_id":"1","ecf_type":"32","issue_date":"2026-11-15","currency":"DOP","payment_type":"cash","buyer":` + buyer + `,
			"lines":[{"line_id":"1","description":"a","item_kind":"product","billing_indicator":1,"quantity":"2","unit_price":"50","discount":null,"taxes":[]},
				{"line_id":"2","description":"b","item_kind":"product","billing_indicator":4,"quantity":` + second + `,"unit_price":"10","discount":null,"taxes":[]}],
			"declared_totals":{"subtotal":"0","discount_total":"0","tax_total":"0","total":"0"}}`))
		if err != nil {
			t.Fatal(err)
		}
		return fiscal.NewDraft(fiscal.DecodeRequest(document))
	}
	complete := draft(`{"legal_name":"Ana"}`, `"1"`)
	if complete.Invoice == nil || complete.Invoice.Declared.Total.Text != "128.00" || len(complete.Problems) > 0 {
		t.Errorf("the complete draft is %+v", complete)
	}
	wrong := draft(`{}`, `"x"`)
	if wrong.Invoice != nil || wrong.Totals.Total.String() != "118" || !wrong.Computed[0] || wrong.Computed[1] {
		t.Errorf("the wrong draft is %+v", wrong)
	}
	if len(wrong.Problems) != 2 || wrong.Problems[0].Field != "buyer.legal_name" || wrong.Problems[1].Field != "lines.1.quantity" {
		t.Errorf("its problems are %v", wrong.Problems)
	}
}
