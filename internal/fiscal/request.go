package fiscal

// A Request holds the values of a request, each checked alone, and the problems
// of the invalid ones. New checks whether the values agree with one another. New
// refuses the zero Request.
type Request struct {
	problems report
	object   bool // the body is a JSON object
	// registered says that the rules of earlier releases apply, see DecodeRegistered.
	registered bool

	head         content // the fields that no rule compares with others
	kind         opt[Type]
	issueDate    opt[Date]
	dueDate      opt[Date]
	payment      opt[PaymentType]
	buyer        state
	taxID        opt[string]
	country      opt[string]
	lines        []lineRequest
	linesState   state
	declared     declaredRequest
	withholdings *withholdingsRequest
}

// A state says whether a field is absent, invalid or valid. A rule may report an
// absent field; the problem of an invalid field is already reported.
type state uint8

const (
	absent state = iota
	invalid
	valid
)

// An opt is the value of a field together with its state.
type opt[T any] struct {
	value T
	state state
}

func (o opt[T]) ok() bool { return o.state == valid }

func good[T any](v T) opt[T] { return opt[T]{v, valid} }
func bad[T any]() opt[T]     { return opt[T]{state: invalid} }

type lineRequest struct {
	id, description, sku, unit string
	kind                       ItemKind
	unitCode                   int
	indicator                  opt[int]
	quantity, price            opt[Decimal]
	discount                   opt[Decimal] // valid and zero when null
	taxes                      []Tax
	goodTaxes                  uint16 // bit i is set when code, label and rate of taxes[i] are valid
	taxesState                 state
}

type declaredRequest struct {
	subtotal, discountTotal, taxTotal, total opt[Amount]
}

func (d declaredRequest) ok() bool {
	return d.subtotal.ok() && d.discountTotal.ok() && d.taxTotal.ok() && d.total.ok()
}

type withholdingRequest struct {
	amount, base, rate opt[Decimal]
}

type withholdingsRequest struct {
	incomeTax, itbis withholdingRequest
}
