package strictjson_test

import (
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

func TestClosestName(t *testing.T) {
	t.Parallel()
	known := []string{"external_id", "ecf_type", "issue_date", "due_date", "income_tax_amount", "line1", "line2", "sku"}
	for name, want := range map[string]string{
		"External_Id":             "external_id", // case
		"externalId":              "external_id", // another style
		"incomeTaxAmount":         "income_tax_amount",
		"income-tax-amount":       "income_tax_amount",
		"externl_id":              "external_id", // a letter less
		"external_iid":            "external_id", // a letter more
		"exterñal_id":             "external_id", // another letter
		"exetrnal_id":             "external_id", // two in the other order
		"line3":                   "line1",
		"sk":                      "sku",
		"externlid":               "", // two letters
		"date":                    "",
		"":                        "",
		strings.Repeat("x", 1000): "",
	} {
		got, ok := strictjson.ClosestName(name, known)
		if got != want || ok != (want != "") {
			t.Errorf("ClosestName(%.20q) = %q, %t, want %q", name, got, ok, want)
		}
	}
}
