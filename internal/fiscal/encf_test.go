package fiscal

import "testing"

func TestENCFParsesAndWritesItsForm(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"E310000000001", "E320000000201", "E319999999999"} {
		e, err := ParseENCF(s)
		if err != nil || e.String() != s {
			t.Errorf("ParseENCF(%q) = %v, %v", s, e, err)
		}
	}
	for _, s := range []string{"", "E31000000001", "E3100000000011", "e310000000001", "E330000000001", "E310000000000", "E31-000000001", "E31+000000001", "B310000000001", "E31000000000٣"} {
		if e, err := ParseENCF(s); err == nil {
			t.Errorf("ParseENCF(%q) = %v, want an error", s, e)
		}
	}
	for _, n := range []int64{0, -1, maxNumber + 1} {
		if e, err := NewENCF(FiscalCredit, n); err == nil {
			t.Errorf("NewENCF(31, %d) = %v, want an error", n, e)
		}
	}
	if e, err := NewENCF("33", 1); err == nil {
		t.Errorf("NewENCF(33, 1) = %v, want an error", e)
	}
	if (ENCF{}).String() != "" {
		t.Error("the zero ENCF is not written as an empty text")
	}
}
