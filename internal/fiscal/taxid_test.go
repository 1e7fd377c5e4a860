package fiscal

import (
	"testing"
)

func TestCheckDigitHolds(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"101023122": true, "131880681": true, "130862346": true, "130359334": true, "102320705": true, "401506254": true, "199000048": true,
		"131880600": false, "401007374": false, "131188691": false,
		"00113918205": true, "22400022111": true, "00113918204": false, "1234567890": false, "": false,
	} {
		if got := CheckDigitHolds(id); got != want {
			t.Errorf("CheckDigitHolds(%s) = %v", id, got)
		}
	}
}

func TestIsRNC(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"131880681": true, "00113918205": true, "": false, "1318806811": false, "13188068A": false, "13188068٣": false,
	} {
		if got := IsRNC(s); got != want {
			t.Errorf("IsRNC(%q) = %v", s, got)
		}
	}
}
