package ecf

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// maxNumber is the largest number that ten digits write.
const maxNumber = 9_999_999_999

var errENCF = errors.New("want the letter E, the type 31 or 32 and ten digits, as in E310000000001")

// An ENCF is an electronic fiscal number: the letter E, the two digits of a
// document type and ten digits of sequence. The zero ENCF is no number at all.
type ENCF struct {
	kind   fiscal.Type
	number int64
}

// NewENCF returns number n of the documents of a type.
func NewENCF(t fiscal.Type, n int64) (ENCF, error) {
	if t != fiscal.FiscalCredit && t != fiscal.Consumer {
		return ENCF{}, fmt.Errorf("ecf: %q is not a document type; want 31 or 32", string(t))
	}
	if n < 1 || n > maxNumber {
		return ENCF{}, fmt.Errorf("ecf: number %d is outside 1 to %d", n, int64(maxNumber))
	}
	return ENCF{t, n}, nil
}

// ParseENCF reads an electronic fiscal number as String writes it.
func ParseENCF(s string) (ENCF, error) {
	if len(s) != 13 || s[0] != 'E' {
		return ENCF{}, fmt.Errorf("ecf: e-NCF: %w", errENCF)
	}
	n, err := strconv.ParseUint(s[3:], 10, 63)
	if err != nil {
		return ENCF{}, fmt.Errorf("ecf: e-NCF: %w", errENCF)
	}
	e, err := NewENCF(fiscal.Type(s[1:3]), int64(n))
	if err != nil {
		return ENCF{}, fmt.Errorf("ecf: e-NCF: %w", errENCF)
	}
	return e, nil
}

// Type returns the type of the documents that the number belongs to.
func (e ENCF) Type() fiscal.Type { return e.kind }

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
	return string(e.append(make([]byte, 0, 13)))
}

func (e ENCF) append(b []byte) []byte {
	b = append(b, 'E')
	b = append(b, e.kind...)
	return appendPadded(b, e.number, 10)
}

// appendPadded appends a number that is not negative with leading zeros.
func appendPadded(b []byte, n int64, width int) []byte {
	start := len(b)
	for range width {
		b = append(b, '0')
	}
	for i := len(b) - 1; i >= start; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
	return b
}
