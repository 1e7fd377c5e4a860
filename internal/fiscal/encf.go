package fiscal

import (
	"errors"
	"fmt"
	"strconv"
)

// maxNumber is the largest number of ten digits.
const maxNumber = 9_999_999_999

var errENCF = errors.New("must be the letter E, the type 31 or 32 and ten digits, as in E310000000001")

// An ENCF is an electronic fiscal number (e-NCF) of a document type that we
// issue: the letter E, the two digits of the type and ten digits of sequence.
// The zero ENCF means that there is no number.
type ENCF struct {
	kind   Type
	number int64
}

// NewENCF returns number n of a document type. It fails when the type is not one
// that we issue, or n is outside 1 to 9,999,999,999.
func NewENCF(t Type, n int64) (ENCF, error) {
	if t != FiscalCredit && t != Consumer {
		return ENCF{}, fmt.Errorf("fiscal: document type %q: must be 31 or 32", string(t))
	}
	if n < 1 || n > maxNumber {
		return ENCF{}, fmt.Errorf("fiscal: fiscal number %d: must be from 1 to %d", n, int64(maxNumber))
	}
	return ENCF{t, n}, nil
}

// IsENCF reports whether s has the form of an electronic fiscal number of any
// document type: the letter E and twelve digits. Documents that others issue may
// be of types that we do not issue.
func IsENCF(s string) bool { return len(s) == 13 && s[0] == 'E' && isDigits(s[1:]) }

// ParseENCF reads an electronic fiscal number as String writes it. It fails when
// the number is zero or its type is not one that we issue.
func ParseENCF(s string) (ENCF, error) {
	if !IsENCF(s) {
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

// Type returns the document type of the number.
func (e ENCF) Type() Type { return e.kind }

// Number returns the number within its type.
func (e ENCF) Number() int64 { return e.number }

// IsZero reports whether e is the zero ENCF.
func (e ENCF) IsZero() bool { return e == ENCF{} }

// String returns the number as the authority writes it, as in E310000000001, and
// "" for the zero ENCF.
func (e ENCF) String() string {
	if e.IsZero() {
		return ""
	}
	return string(e.Append(make([]byte, 0, 13)))
}

// Append appends the number as String writes it. The number must not be zero.
func (e ENCF) Append(b []byte) []byte {
	b = append(b, 'E')
	b = append(b, e.kind...)
	return appendPadded(b, e.number, 10)
}
