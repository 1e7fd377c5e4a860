package fiscal_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// An oracle computes the totals of an invoice with exact fractions. It shares no
// code with the package.
type oracle struct {
	items                []item
	gross, net, discount *big.Rat
	taxHeader, taxLine   *big.Rat
	bases                map[string]*big.Rat
}

func rat(s string) *big.Rat {
	r, _ := new(big.Rat).SetString(s)
	return r
}

// cents rounds half up by integer arithmetic: floor(100x + 1/2).
func cents(x *big.Rat) *big.Rat {
	x = new(big.Rat).Add(new(big.Rat).Mul(x, rat("100")), rat("1/2"))
	return new(big.Rat).SetFrac(new(big.Int).Div(x.Num(), x.Denom()), big.NewInt(100))
}

func percent(x *big.Rat, rate string) *big.Rat {
	return new(big.Rat).Mul(new(big.Rat).Mul(x, rat(rate)), rat("1/100"))
}

func newOracle(items []item) *oracle {
	o := &oracle{items: items, bases: map[string]*big.Rat{}}
	for _, z := range []**big.Rat{&o.gross, &o.net, &o.discount, &o.taxHeader, &o.taxLine} {
		*z = new(big.Rat)
	}
	for _, it := range items {
		exact := new(big.Rat).Mul(rat(it.quantity), rat(it.price))
		discount := new(big.Rat)
		if it.discount != "" {
			discount = cents(percent(exact, it.discount))
		}
		amount := new(big.Rat).Sub(cents(exact), discount)
		o.gross.Add(o.gross, cents(exact))
		o.discount.Add(o.discount, discount)
		o.net.Add(o.net, amount)
		for _, tax := range strings.Fields(it.taxes) {
			if o.bases[tax] == nil {
				o.bases[tax] = new(big.Rat)
			}
			o.bases[tax].Add(o.bases[tax], amount)
			if code, rate, _ := strings.Cut(tax, "="); code == "ITBIS" {
				o.taxLine.Add(o.taxLine, cents(percent(amount, rate)))
			}
		}
	}
	for tax, base := range o.bases {
		_, rate, _ := strings.Cut(tax, "=")
		amount := cents(percent(base, rate))
		o.taxHeader.Add(o.taxHeader, amount)
		if !strings.HasPrefix(tax, "ITBIS") {
			o.taxLine.Add(o.taxLine, amount)
		}
	}
	return o
}

// totals returns the four declared totals, with the subtotal before or after
// discounts and ITBIS rounded once or by line.
func (o *oracle) totals(net, byLine bool) [4]*big.Rat {
	tax := o.taxHeader
	if byLine {
		tax = o.taxLine
	}
	subtotal, total := o.gross, new(big.Rat).Add(o.net, tax)
	if net {
		subtotal = o.net
	}
	return [4]*big.Rat{subtotal, o.discount, tax, total}
}

func spell(totals [4]*big.Rat) string {
	return fmt.Sprintf("%s %s %s %s", totals[0].FloatString(2), totals[1].FloatString(2), totals[2].FloatString(2), totals[3].FloatString(2))
}

var genItem = rapid.Custom(func(t *rapid.T) item {
	it := item{
		quantity: rapid.StringMatching(`[1-9][0-9]{0,3}(\.[0-9]{1,2})?`).Draw(t, "quantity"),
		price:    rapid.StringMatching(`(0|[1-9][0-9]{0,5})(\.[0-9]{1,4})?`).Draw(t, "price"),
		taxes:    rapid.SampledFrom([]string{"", "ITBIS=18", "ITBIS=18", "ITBIS=16", "ITBIS=0", "ITBIS=18 001=10", "ITBIS=18 002=2 004=10", "003=16"}).Draw(t, "taxes"),
	}
	if rapid.Bool().Draw(t, "discounted") {
		it.discount = rapid.StringMatching(`([0-9]|[1-9][0-9])(\.[0-9]{1,4})?|100`).Draw(t, "discount")
	}
	return it
})

func TestRightTotalsAreAcceptedAndWrongOnesRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		o := newOracle(rapid.SliceOfN(genItem, 1, 25).Draw(rt, "items"))
		want := new(big.Rat).Add(o.net, o.taxHeader).FloatString(2)
		for _, net := range []bool{false, true} {
			for _, byLine := range []bool{false, true} {
				right := o.totals(net, byLine)
				inv, problems := build(t, invoice("31", spell(right), o.items...))
				if problems != nil {
					rt.Fatalf("net %v, by line %v: %v", net, byLine, problems)
				}
				if got := inv.Totals.Total.StringFixed(2); got != want {
					rt.Fatalf("total is %s, want %s", got, want)
				}
				for i := range right {
					for _, by := range []string{"1", "-1"} {
						wrong := right
						wrong[i] = new(big.Rat).Add(right[i], rat(by))
						if wrong[i].Sign() < 0 || otherReading(o, wrong) {
							continue
						}
						if inv, _ := build(t, invoice("31", spell(wrong), o.items...)); inv != nil {
							rt.Fatalf("%s is accepted, the right totals are %s", spell(wrong), spell(right))
						}
					}
				}
			}
		}
	})
}

// otherReading reports whether a change by one peso made the totals right under
// the other meaning of the subtotal. This happens when the discounts are about
// one peso.
func otherReading(o *oracle, totals [4]*big.Rat) bool {
	for _, subtotal := range []*big.Rat{o.gross, o.net} {
		distance := new(big.Rat).Sub(totals[0], subtotal)
		if distance.Abs(distance).Cmp(rat("0.30")) <= 0 {
			sum := new(big.Rat).Add(totals[0], totals[2])
			if subtotal == o.gross {
				sum.Sub(sum, totals[1])
			}
			distance = sum.Sub(sum, totals[3])
			if distance.Abs(distance).Cmp(rat("0.01")) <= 0 {
				tax := new(big.Rat).Sub(totals[2], o.taxHeader)
				discount := new(big.Rat).Sub(totals[1], o.discount)
				return tax.Abs(tax).Cmp(rat("0.80")) <= 0 && discount.Abs(discount).Cmp(rat("0.80")) <= 0
			}
		}
	}
	return false
}

func TestNewIsDeterministicAndReportsEachFieldOnce(t *testing.T) {
	t.Parallel()
	values := []any{nil, "", " ", "x", "18", "-1", true, map[string]any{}, []any{}, gone{}}
	fields := []string{"zzz", "buyer.zzz", "lines.0.zzz", "lines.1.taxes", "buyer.address", "lines", "declared_totals"}
	for field := range textFields {
		fields = append(fields, field)
	}
	rapid.Check(t, func(rt *rapid.T) {
		body := base
		for range rapid.IntRange(0, 6).Draw(rt, "changes") {
			field, value := rapid.SampledFrom(fields).Draw(rt, "field"), rapid.SampledFrom(values).Draw(rt, "value")
			if holds(body, field) {
				body = with(t, body, map[string]any{field: value})
			}
		}
		doc, err := strictjson.Parse([]byte(body))
		if err != nil {
			rt.Fatal(err)
		}
		request := fiscal.DecodeRequest(doc)
		one, errOne := fiscal.New(request)
		two, errTwo := fiscal.New(request)
		if (one == nil) != (two == nil) || !cmp.Equal(errOne, errTwo) || (one == nil) == (errOne == nil) {
			rt.Fatalf("the same request gave two results: %v, %v", errOne, errTwo)
		}
		seen := map[string]bool{}
		problems, _ := errOne.(fiscal.Problems) //nolint:errorlint // the type itself is promised
		for _, p := range problems {
			if seen[p.Field] {
				rt.Fatalf("%s is reported twice: %v", p.Field, problems)
			}
			seen[p.Field] = true
		}
	})
}

// holds reports whether the body still has the object that a field belongs to.
func holds(body, field string) bool {
	doc, err := strictjson.Parse([]byte(body))
	if err != nil {
		return false
	}
	at := doc.Root()
	parts := strings.Split(field, ".")
	for _, part := range parts[:len(parts)-1] {
		found := false
		for name, v := range at.Members() {
			if name == part {
				at, found = v, true
				break
			}
		}
		for i, v := range at.Items() {
			if !found && fmt.Sprint(i) == part {
				at, found = v, true
				break
			}
		}
		if !found {
			return false
		}
	}
	return at.Kind() == strictjson.Object
}
