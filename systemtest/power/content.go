//go:build linux

package power

import (
	"maps"
	"slices"
)

// sector is what a disk writes as a whole.
const sector = 512

// A content is the data of a file, as programs see it, with what is needed to know what
// the disk has of it.
type content struct {
	data   []byte
	before map[int64][]byte // the sectors that were written since the last sync, as they were then
	size   int64            // at the last sync
	shrunk int64            // smallest size since the last sync; below 0: it did not shrink
}

func newContent(data []byte) content {
	return content{data: data, before: map[int64][]byte{}, size: int64(len(data)), shrunk: -1}
}

func (c *content) write(p []byte, off int64) {
	end := off + int64(len(p))
	if end > int64(len(c.data)) {
		c.resize(end)
	}
	c.save(off, end)
	copy(c.data[off:], p)
}

// save keeps the sectors from one offset to another as they are, before they are written
// for the first time since the last sync.
func (c *content) save(off, end int64) {
	for s := off / sector; s*sector < end; s++ {
		if _, saved := c.before[s]; !saved {
			at := s * sector
			c.before[s] = slices.Clone(c.data[min(at, c.size):min(at+sector, c.size)])
		}
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
	if size < old {
		c.save(size, old)
		c.data = c.data[:size]
		if c.shrunk < 0 || size < c.shrunk {
			c.shrunk = size
		}
		return
	}
	c.save(old, size)
	c.data = resized(c.data, size)
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
func (c *content) sync() { *c = newContent(c.data) }

// durable returns what the disk has for certain.
func (c *content) durable() []byte {
	b := make([]byte, c.size)
	copy(b, c.data)
	for s, old := range c.before {
		if at := s * sector; at < c.size {
			copy(b[at:], old)
		}
	}
	return b
}

// survive returns the content after a power cut. A disk that has not shrunk the file has
// kept nothing that was written after it. It may have kept each other sector, or each page
// of eight sectors, and it may have the new size with zeros where it has kept nothing.
func (c *content) survive(keep chooser) content {
	kept, chance := c.durable(), keep.chance()
	if chance == 0 || len(c.before) == 0 {
		return newContent(kept)
	}
	if c.shrunk >= 0 {
		kept = kept[:min(c.shrunk, int64(len(kept)))]
	}
	size := int64(len(c.data))
	if more := size - int64(len(kept)); more > 0 && chance < 1 && keep.IntN(2) == 0 {
		size -= keep.Int64N(more + 1)
	}
	kept = resized(kept, size)
	unit := int64(1)
	if keep.IntN(2) == 0 {
		unit = 8 // a page of 4096 bytes
	}
	decided := map[int64]bool{}
	for _, s := range slices.Sorted(maps.Keys(c.before)) {
		yes, done := decided[s/unit]
		if !done {
			yes = keep.Float64() < chance
			decided[s/unit] = yes
		}
		if at := s * sector; yes && at < size {
			copy(kept[at:min(at+sector, size)], c.data[at:])
		}
	}
	return newContent(kept)
}
