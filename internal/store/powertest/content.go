//go:build linux

package powertest

import (
	"maps"
	"slices"
)

// sector is what a disk writes as a whole.
const sector = 512

// A content is the data of a file, as programs see it and as the disk has it.
type content struct {
	data    []byte
	durable []byte
	written map[int64]bool // numbers of the sectors that differ
	shrunk  int64          // smallest size since the last sync; below 0: it did not shrink
}

func newContent() content { return content{written: map[int64]bool{}, shrunk: -1} }

func (c *content) write(p []byte, off int64) {
	end := off + int64(len(p))
	if end > int64(len(c.data)) {
		c.resize(end)
	}
	copy(c.data[off:], p)
	c.mark(off, end)
}

// mark records that the bytes from one offset to another were written.
func (c *content) mark(off, end int64) {
	for s := off / sector; s*sector < end; s++ {
		c.written[s] = true
	}
}

func (c *content) read(p []byte, off int64) int {
	if off >= int64(len(c.data)) {
		return 0
	}
	return copy(p, c.data[off:])
}

// resize changes the size. New bytes are zero.
func (c *content) resize(size int64) {
	old := int64(len(c.data))
	c.data = resized(c.data, size)
	if size > old {
		c.mark(old, size)
		return
	}
	if size < old && (c.shrunk < 0 || size < c.shrunk) {
		c.shrunk = size
	}
}

// resized returns a slice of another size that has the same bytes, and zeros behind them.
func resized(b []byte, size int64) []byte {
	old := int64(len(b))
	if size <= old {
		return b[:size]
	}
	b = slices.Grow(b, int(size-old))[:size]
	clear(b[old:])
	return b
}

// sync makes the data durable.
func (c *content) sync() {
	if c.shrunk >= 0 && c.shrunk < int64(len(c.durable)) {
		c.durable = c.durable[:c.shrunk]
	}
	c.durable = resized(c.durable, int64(len(c.data)))
	for s := range c.written {
		if at := s * sector; at < int64(len(c.data)) {
			copy(c.durable[at:min(at+sector, int64(len(c.data)))], c.data[at:])
		}
	}
	clear(c.written)
	c.shrunk = -1
}

// survive returns the content after a power cut. A disk that has not shrunk the file has
// kept nothing that was written after it. It may have kept each other sector, or each page
// of eight sectors, and it may have the new size with zeros where it has kept nothing.
func (c *content) survive(keep chooser) content {
	after := newContent()
	chance := keep.chance()
	if chance == 0 || len(c.written) == 0 && c.shrunk < 0 {
		after.data, after.durable = slices.Clone(c.durable), c.durable
		return after
	}
	kept := slices.Clone(c.durable)
	if c.shrunk >= 0 {
		kept = kept[:min(c.shrunk, int64(len(kept)))]
	}
	size := int64(len(c.data))
	if len(kept) < len(c.data) && chance < 1 && keep.IntN(2) == 0 {
		size = int64(len(kept)) + keep.Int64N(size-int64(len(kept))+1)
	}
	kept = resized(kept, size)
	unit := int64(1)
	if keep.IntN(2) == 0 {
		unit = 8 // a page of 4096 bytes
	}
	decided := map[int64]bool{}
	for _, s := range slices.Sorted(maps.Keys(c.written)) {
		yes, done := decided[s/unit]
		if !done {
			yes = keep.Float64() < chance
			decided[s/unit] = yes
		}
		if at := s * sector; yes && at < size {
			copy(kept[at:min(at+sector, size)], c.data[at:min(at+sector, int64(len(c.data)))])
		}
	}
	after.data, after.durable = kept, slices.Clone(kept)
	return after
}
