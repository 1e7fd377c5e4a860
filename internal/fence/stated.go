package fence

import (
	"context"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Stated is the highest number of a range that anybody may have seen, as an operator knows
// it. The number 0 says that nobody has seen any number of the type.
type Stated struct {
	Type   fiscal.Type
	Number int64
}

// ParseStated reads a number such as E310000000120. E310000000000 stands for none.
func ParseStated(text string) (Stated, bool) {
	if !fiscal.IsENCF(text) {
		return Stated{}, false
	}
	kind := fiscal.Type(text[1:3])
	if number, err := strconv.ParseInt(text[3:], 10, 64); err == nil && number == 0 && (kind == fiscal.FiscalCredit || kind == fiscal.Consumer) {
		return Stated{Type: kind}, true
	}
	encf, err := fiscal.ParseENCF(text)
	return Stated{encf.Type(), encf.Number()}, err == nil
}

// statedOf returns the highest number of a range that an operator says was seen. The number
// before the first one says that none was. A number of a later range says that all of this
// one were. A number of an earlier range says nothing, because in an outage documents take
// numbers of the range that ends last.
func statedOf(all []Stated, s store.NumberRange) (highest int64, ok bool) {
	within := false
	for _, n := range all {
		switch {
		case n.Type != s.Type:
		case n.Number >= s.First && n.Number <= s.Last:
			if !within {
				highest = 0
			}
			highest, within, ok = max(highest, n.Number), true, true
		case n.Number > s.Last && !within:
			highest, ok = s.Last, true
		case n.Number == 0, n.Number == s.First-1:
			ok = true
		}
	}
	return highest, ok
}

// checkStated refuses a stated number above all ranges of the taxpayer: it is a mistake,
// and every number would be abandoned.
func (r Releaser) checkStated(ctx context.Context, scope store.Scope) error {
	for _, n := range r.Stated {
		ranges, err := r.Store.NumberRangesOf(ctx, scope, n.Type)
		if err != nil {
			return err
		}
		last := int64(0)
		for _, s := range ranges {
			last = max(last, s.Last)
		}
		if n.Number > last {
			return lang.Errorf("--sent-up-to: no range of type %s of this taxpayer has the number %d; see `fiscalhub range list`",
				"--sent-up-to: ningún rango del tipo %s de este contribuyente tiene la secuencia %d; vea `fiscalhub range list`", n.Type, n.Number)
		}
	}
	return nil
}
