package taxpayer

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
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
var ErrSandboxNumbers = lang.Errorf("the sandbox uses no numbers", "el sandbox no usa secuencias")

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
	add := func(field, code string, message lang.Message) {
		all = append(all, fiscal.Problem{Field: field, Code: code, Message: message})
	}
	if spec.Type != fiscal.FiscalCredit && spec.Type != fiscal.Consumer {
		add("type", fiscal.CodeInvalidEnum, lang.Messagef("must be 31 or 32", "debe ser 31 o 32"))
	}
	if !CheckSpan(spec.From, spec.To) {
		field := "to"
		if spec.From < 1 || spec.From > lastNumber {
			field = "from"
		}
		add(field, fiscal.CodeOutOfRange, lang.Messagef("the first and the last number must be 1 or more and have at most ten digits, and the last one must not be before the first one",
			"el primer y el último número deben ser 1 o más y tener un máximo de diez dígitos, y el último no debe ser menor que el primero"))
	}
	switch day, err := fiscal.ParseDate(spec.Expires); {
	case spec.Expires == "" && spec.Type == fiscal.FiscalCredit:
		add("expires", fiscal.CodeRequired, lang.Messagef("is required for type 31: its documents state the day", "es obligatorio para el tipo 31: sus documentos declaran el día"))
	case spec.Expires == "":
	case err != nil:
		add("expires", fiscal.CodeInvalidDate, lang.OfError(err))
	case day.Before(fiscal.DateOf(now)):
		add("expires", fiscal.CodeOutOfRange, lang.Messagef("%s is in the past", "%s está en el pasado", spec.Expires))
	case day.Year() > fiscal.LastYear: // documents state the day
		add("expires", fiscal.CodeInvalidDate, lang.Messagef("must be a date of the years %d to %d", "debe ser una fecha de los años %d a %d", fiscal.FirstYear, fiscal.LastYear))
	default:
		made.Expires = day
	}
	if len(all) > 0 {
		return store.NumberRange{}, all
	}
	return made, s.Update(ctx, func(tx *store.Tx) error { return tx.AddNumberRange(ctx, made) })
}
