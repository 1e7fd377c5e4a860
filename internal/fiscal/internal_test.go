package fiscal

import (
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
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

func TestCheckDigits(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"101023122": true, "131880681": true, "130862346": true, "130359334": true, "102320705": true, "401506254": true, "199000048": true,
		"131880600": false, "401007374": false, "131188691": false,
		"00113918205": true, "22400022111": true, "00113918204": false, "1234567890": false, "": false,
	} {
		if got := checkDigitHolds(id); got != want {
			t.Errorf("checkDigitHolds(%s) = %v", id, got)
		}
	}
}

func TestPathsAreInOrder(t *testing.T) {
	t.Parallel()
	want := []string{"", "0", "2", "10", "1a", "9a", "a", "a.b", "lines", "lines.2", "lines.2.taxes", "lines.2.taxes.0.code", "lines.2.taxes.10.code", "lines.10.quantity", "lines.x", "lines2"}
	got := slices.Clone(want)
	slices.Reverse(got)
	slices.SortFunc(got, comparePaths)
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestCutKeepsSixtyFourCharacters(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "abc", strings.Repeat("é", 64), strings.Repeat("x", 64)} {
		if cut(s) != s {
			t.Errorf("cut(%q) = %q", s, cut(s))
		}
	}
	for _, s := range []string{strings.Repeat("é", 65), strings.Repeat("x", 1000)} {
		if got := []rune(cut(s)); len(got) != 64 || got[63] != '…' {
			t.Errorf("cut of %d bytes is %q", len(s), string(got))
		}
	}
}

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

func TestSmallInteger(t *testing.T) {
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
