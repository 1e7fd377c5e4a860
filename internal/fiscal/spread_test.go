package fiscal

import (
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

func TestSpreadAddsUpAndIsFair(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Uint64Range(0, 1e15), 1, 20).Draw(t, "weights")
		amount := rapid.Uint64Range(0, 1e17).Draw(t, "amount")
		var sum, total uint64
		for _, w := range weights {
			sum += w
		}
		shares := spread(amount, weights)
		for i, share := range shares {
			total += share
			if sum == 0 {
				continue
			}
			exact := new(big.Rat).SetFrac(
				new(big.Int).Mul(new(big.Int).SetUint64(amount), new(big.Int).SetUint64(weights[i])), new(big.Int).SetUint64(sum))
			distance := exact.Sub(exact, new(big.Rat).SetInt(new(big.Int).SetUint64(share)))
			if distance.Abs(distance).Cmp(big.NewRat(1, 1)) >= 0 {
				t.Fatalf("share %d of %v is %d", i, weights, share)
			}
		}
		if sum > 0 && total != amount {
			t.Fatalf("shares of %d add up to %d", amount, total)
		}
	})
}
