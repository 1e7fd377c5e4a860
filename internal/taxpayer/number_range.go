package taxpayer

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// lastNumber is the largest number of a range: an e-NCF has ten digits for it.
const lastNumber = 9_999_999_999

// RangeSpec describes a range of numbers that the authority has authorised.
type RangeSpec struct {
	Type     fiscal.Type
	From, To int64
	Expires  string // a date; empty: never
}

// ErrSandboxNumbers means that the sandbox uses no numbers.
var ErrSandboxNumbers = errors.New("the sandbox uses no numbers")

// CheckSpan reports whether two numbers are the first and the last one of a range.
func CheckSpan(from, to int64) bool { return from >= 1 && to >= from && to <= lastNumber }

// AddRange stores a range. It fails with fiscal.Problems, whose fields are type, from, to
// and expires; with store.ErrNotFound when there is no such taxpayer; with store.ErrOverlap
// when a taxpayer with the same RNC has a range with one of the numbers; and with
// ErrSandboxNumbers.
func AddRange(ctx context.Context, s *store.Store, scope store.Scope, spec RangeSpec, now time.Time) (store.NumberRange, error) {
	if scope.Environment == fiscal.Sandbox {
		return store.NumberRange{}, ErrSandboxNumbers
	}
	made := store.NumberRange{Scope: scope, ID: store.NewID(), Type: spec.Type, First: spec.From, Last: spec.To, Next: spec.From, CreatedAt: now}
	var all fiscal.Problems
	add := func(field, code, message string) {
		all = append(all, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	if spec.Type != fiscal.FiscalCredit && spec.Type != fiscal.Consumer {
		add("type", fiscal.CodeInvalidEnum, "must be 31 or 32")
	}
	if !CheckSpan(spec.From, spec.To) {
		field := "to"
		if spec.From < 1 || spec.From > lastNumber {
			field = "from"
		}
		add(field, fiscal.CodeOutOfRange, "the first and the last number must be 1 or more and have at most ten digits, and the last one must not be before the first one")
	}
	switch day, err := fiscal.ParseDate(spec.Expires); {
	case spec.Expires == "" && spec.Type == fiscal.FiscalCredit:
		add("expires", fiscal.CodeRequired, "is required for type 31: its documents state the day")
	case spec.Expires == "":
	case err != nil:
		add("expires", fiscal.CodeInvalidDate, err.Error())
	case day.Before(fiscal.DateOf(now)):
		add("expires", fiscal.CodeOutOfRange, spec.Expires+" is in the past")
	default:
		made.Expires = day
	}
	if len(all) > 0 {
		return store.NumberRange{}, all
	}
	return made, s.Update(ctx, func(tx *store.Tx) error { return tx.AddNumberRange(ctx, made) })
}
