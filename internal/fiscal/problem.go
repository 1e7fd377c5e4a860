package fiscal

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// The codes of a Problem, and of the details of other errors of the API. The list
// is closed, because the programs of integrators decide by it.
const (
	CodeRequired           = "required"
	CodeInvalidType        = "invalid_type"
	CodeInvalidEnum        = "invalid_enum"
	CodeInvalidFormat      = "invalid_format"
	CodeInvalidDecimal     = "invalid_decimal"
	CodeInvalidDate        = "invalid_date"
	CodeDateInFuture       = "date_in_future"
	CodeDateOrder          = "date_order"
	CodeTooShort           = "too_short"
	CodeTooLong            = "too_long"
	CodeTooFewItems        = "too_few_items"
	CodeTooManyItems       = "too_many_items"
	CodeBlank              = "blank"
	CodeInvalidCharacters  = "invalid_characters"
	CodeUnknownField       = "unknown_field"
	CodeOutOfRange         = "out_of_range"
	CodeTotalMismatch      = "total_mismatch"
	CodeRequiredForType    = "required_for_type"
	CodeNotAllowedForType  = "not_allowed_for_type"
	CodeAlreadyExists      = "already_exists"
	CodeDuplicated         = "duplicated"
	CodeUnknownParameter   = "unknown_parameter"
	CodeDuplicateParameter = "duplicate_parameter"
	CodeInvalidCursor      = "invalid_cursor"
	CodeTooManyErrors      = "too_many_errors"
	CodeUnknownTax         = "unknown_tax"
	CodeUnsupportedTax     = "unsupported_tax"
	CodeTaxConflict        = "tax_conflict"
)

// A Problem is one invalid field of a request.
type Problem struct {
	Field   string       // dotted path, as in lines.0.taxes.1.rate_percent
	Code    string       // one of the Code constants
	Message lang.Message // says what the field must be
}

// Problems are all the problems of a request, in the order of the paths.
type Problems []Problem

// Error returns the problems as one line.
func (p Problems) Error() string {
	var b strings.Builder
	b.WriteString("fiscal: invalid invoice")
	for i, problem := range p {
		b.WriteString(": ")
		if i == 3 {
			b.WriteString("and " + strconv.Itoa(len(p)-i) + " more")
			break
		}
		b.WriteString(problem.Field + " " + problem.Code + " (" + problem.Message.String() + ")")
	}
	return b.String()
}

const (
	maxProblems  = 100
	keptProblems = 512 // bounds the memory for a hostile body with a hundred thousand problems
)

// A report collects problems and keeps the first ones by path.
type report struct {
	list    Problems
	dropped int
}

func (r *report) add(field, code string, message lang.Message) {
	if len(r.list) == keptProblems {
		r.shrink()
	}
	r.list = append(r.list, Problem{field, code, message})
}

func (r *report) shrink() {
	slices.SortFunc(r.list, compareProblems)
	if extra := len(r.list) - maxProblems; extra > 0 {
		r.dropped += extra
		r.list = r.list[:maxProblems]
	}
}

// err returns the problems as an error, or nil when there is none.
func (r *report) err() error {
	if len(r.list) == 0 {
		return nil
	}
	r.shrink()
	if r.dropped > 0 {
		r.list = append(r.list, Problem{"", CodeTooManyErrors, lang.Messagef(
			"%d more problems were found; the list has only the first %d",
			"hay %d problemas más; la lista tiene solo los primeros %d", r.dropped, maxProblems)})
	}
	return r.list
}

func compareProblems(a, b Problem) int {
	return cmp.Or(comparePaths(a.Field, b.Field), strings.Compare(a.Field, b.Field), strings.Compare(a.Code, b.Code), strings.Compare(a.Message.String(), b.Message.String()))
}

// comparePaths orders dotted paths part by part, indexes as numbers and before
// names, so that lines.2 comes before lines.10.
func comparePaths(a, b string) int {
	for {
		x, restA, moreA := strings.Cut(a, ".")
		y, restB, moreB := strings.Cut(b, ".")
		if c := compareParts(x, y); c != 0 {
			return c
		}
		switch {
		case moreA && moreB:
			a, b = restA, restB
		case moreB:
			return -1
		case moreA:
			return 1
		default:
			return 0
		}
	}
}

func compareParts(x, y string) int {
	xi, yi := isDigits(x), isDigits(y)
	switch {
	case x == "" || y == "":
		return cmp.Compare(len(x), len(y))
	case xi && yi:
		return cmp.Or(cmp.Compare(len(x), len(y)), strings.Compare(x, y))
	case xi:
		return -1
	case yi:
		return 1
	}
	return strings.Compare(x, y)
}

// A path names a field of the request. Its text is built only when a problem is
// reported for the field, which for most requests never happens.
type path struct {
	parent *path
	name   string
	index  int // of an element; -1 for a member
}

func (p *path) at(name string) path { return path{p, name, -1} }
func (p *path) item(i int) path     { return path{p, "", i} }

// String returns the dotted path. It copies the names, so that a path may stay
// on the stack.
func (p *path) String() string {
	var parts [8]*path // the deepest field of the API has five parts
	i := len(parts)
	for ; p.parent != nil && i > 0; p = p.parent {
		i--
		parts[i] = p
	}
	var b []byte
	for j, part := range parts[i:] {
		if j > 0 {
			b = append(b, '.')
		}
		if part.index >= 0 {
			b = strconv.AppendInt(b, int64(part.index), 10)
		} else {
			b = append(b, part.name...)
		}
	}
	return string(b)
}
