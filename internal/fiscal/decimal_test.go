package fiscal

import (
	"testing"
)

func TestRound2IsHalfUp(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"1.005": "1.01", "2.345": "2.35", "0.125": "0.13", "1.004": "1.00", "0.0049999999999999": "0.00", "0.005": "0.01",
		"349.0875": "349.09", "99999999999999.995": "100000000000000.00", "7": "7.00", "0": "0.00",
	} {
		d, err := ParseDecimal(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := money(round2(d)); got != want {
			t.Errorf("round2(%s) = %s, want %s", in, got, want)
		}
	}
}
