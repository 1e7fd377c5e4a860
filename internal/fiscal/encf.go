package fiscal

import (
	"errors"
	"fmt"
	"strconv"
)

// maxNumber is the largest number that ten digits write.
const maxNumber = 9_999_999_999

var errENCF = errors.New("want the letter E, the type 31 or 32 and ten digits, as in E310000000001")

// An ENCF is an electronic fiscal number: the letter E, the two digits of a
// document type and ten digits of sequence. The zero ENCF is no number at all.
type ENCF struct {
	kind   Type
	number int64
}

// NewENCF returns number n of the documents of a type.
func NewENCF(t Type, n int64) (ENCF, error) {
	if t != FiscalCredit && t != Consumer {
		return ENCF{}, fmt.Errorf("fiscal: %q is not a document type; want 31 or 32", string(t))
	}
	if n < 1 || n > maxNumber {
		return ENCF{}, fmt.Errorf("fiscal: number %d is outside 1 to %d", n, int64(maxNumber))
	}
	return ENCF{t, n}, nil
}

// ParseENCF reads an electronic fiscal number as String writes it.
func ParseENCF(s string) (ENCF, error) {
	if len(s) != 13 || s[0] != 'E' {
		return ENCF{}, fmt.Errorf("fiscal: e-NCF: %w", errENCF)
	}
	n, err := strconv.ParseUint(s[3:], 10, 63)
	if err != nil {
		return ENCF{}, fmt.Errorf("fiscal: e-NCF: %w", errENCF)
	}
	e, err := NewENCF(Type(s[1:3]), int64(n))
	if err != nil {
		return ENCF{}, fmt.Errorf("fiscal: e-NCF: %w", errENCF)
	}
	return e, nil
}

// Type returns the type of the documents that the number belongs to.
func (e ENCF) Type() Type { return e.kind }

// Number returns the number within its type.
func (e ENCF) Number() int64 { return e.number }

// IsZero tells whether e is no number at all.
func (e ENCF) IsZero() bool { return e == ENCF{} }

// String returns the form that the authority prints, as in E310000000001, and
// nothing for the zero ENCF.
func (e ENCF) String() string {
	if e.IsZero() {
		return ""
	}
	return string(e.Append(make([]byte, 0, 13)))
}

// Append appends what String returns for a number that is not zero.
func (e ENCF) Append(b []byte) []byte {
	b = append(b, 'E')
	b = append(b, e.kind...)
	return AppendPadded(b, e.number, 10)
}
