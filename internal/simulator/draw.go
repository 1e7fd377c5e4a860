package simulator

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// A draw is chance that can be repeated: it depends on the seed and on what it
// is drawn for, and on no order in time.
type draw [sha256.Size]byte

func newDraw(seed uint64, parts ...string) draw {
	b := make([]byte, 0, 128)
	b = strconv.AppendUint(b, seed, 10)
	for _, p := range parts {
		b = append(b, '|')
		b = append(b, p...)
	}
	return sha256.Sum256(b)
}

// percent is evenly from 0 up to 100.
func (d draw) percent() float64 {
	return float64(binary.BigEndian.Uint64(d[:8])>>11) / (1 << 53) * 100
}

// within is evenly from the least to the most of a span.
func (d draw) within(s *Span) time.Duration {
	width := uint64(max(s.Max-s.Min, 0))
	if width == 0 {
		return time.Duration(s.Min)
	}
	return time.Duration(s.Min) + time.Duration(binary.BigEndian.Uint64(d[8:16])%(width+1)) //nolint:gosec // at most a Duration
}

// uuid has the form of a random one.
func (d draw) uuid() string {
	var u uuid.UUID
	copy(u[:], d[16:])
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u.String()
}
