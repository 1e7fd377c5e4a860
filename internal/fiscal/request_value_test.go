package fiscal

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestSmallIntegerIsExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringMatching(`-?(0|[1-9][0-9]{0,4})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		exact, ok := new(big.Rat).SetString(s)
		if !ok {
			t.Fatal(s)
		}
		fits := exact.IsInt() && exact.Sign() >= 0 && exact.Cmp(big.NewRat(1000, 1)) < 0
		got, ok := smallInteger(s)
		if ok != fits || ok && exact.Num().Int64() != int64(got) {
			t.Fatalf("smallInteger(%s) = %d, %v", s, got, ok)
		}
	})
}
