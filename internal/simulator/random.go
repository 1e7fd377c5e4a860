package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// A random is a reproducible random value. It depends on the seed and on the names of
// what it is used for, and not on the order of calls.
type random [sha256.Size]byte

func newRandom(seed uint64, parts ...string) random {
	b := make([]byte, 0, 128)
	b = strconv.AppendUint(b, seed, 10)
	for _, p := range parts {
		b = append(b, '|')
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

// percent returns a uniform value from 0 up to 100.
func (d random) percent() float64 {
	return float64(binary.BigEndian.Uint64(d[:8])>>11) / (1 << 53) * 100
}

// within returns a uniform duration of a span.
func (d random) within(s *Span) time.Duration {
	width := uint64(max(s.Max-s.Min, 0))
	if width == 0 {
		return time.Duration(s.Min)
	}
	return time.Duration(s.Min) + time.Duration(binary.BigEndian.Uint64(d[8:16])%(width+1)) //nolint:gosec // at most the width of a span
}

// uuid returns the value in the form of a random UUID.
func (d random) uuid() string {
	var u uuid.UUID
	copy(u[:], d[16:])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u.String()
}
