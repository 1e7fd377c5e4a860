package fiscal

// A Request is what an integrator sent, read field by field: each value that
// is good alone, and all that is wrong with the others. Whether the values
// agree with one another is for New to say. The zero Request is a request for
// nothing, which New refuses.
type Request struct {
	problems report
	object   bool // the whole is an object, so that it is worth looking further

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

// A state tells a field that was not sent from one that is wrong: of the first
// a rule may complain, of the second somebody already has.
type state uint8

const (
	absent state = iota
	invalid
	valid
)

// An opt is a field that may have been left out or be wrong.
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
	goodTaxes                  uint16 // bit i: code, label and rate of taxes[i] are all good
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
