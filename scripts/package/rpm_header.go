package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
)

// The types of values in a header of an .rpm file.
const (
	rpmInt16       = 3
	rpmInt32       = 4
	rpmString      = 6
	rpmBinary      = 7
	rpmStringArray = 8
	rpmTranslated  = 9
)

// A region is an entry that covers all others. rpm checks digests over it.
const (
	rpmSignatureRegion = 62
	rpmHeaderRegion    = 63
)

// rpmEntry is an entry of a header.
type rpmEntry struct {
	tag, kind uint32
	count     int
	body      []byte
}

// rpmHeader is a header of an .rpm file: the signature header or the main header. See the
// chapter "RPM Package File Structure" of the Linux Standard Base.
type rpmHeader struct{ entries []rpmEntry }

func (h *rpmHeader) text(tag uint32, value string) {
	h.entries = append(h.entries, rpmEntry{tag, rpmString, 1, append([]byte(value), 0)})
}

// translated adds a text that could have translations, and has none.
func (h *rpmHeader) translated(tag uint32, value string) {
	h.entries = append(h.entries, rpmEntry{tag, rpmTranslated, 1, append([]byte(value), 0)})
}

func (h *rpmHeader) texts(tag uint32, values []string) {
	var b []byte
	for _, v := range values {
		b = append(append(b, v...), 0)
	}
	h.entries = append(h.entries, rpmEntry{tag, rpmStringArray, len(values), b})
}

func (h *rpmHeader) numbers(tag uint32, values ...uint32) {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint32(b, v)
	}
	h.entries = append(h.entries, rpmEntry{tag, rpmInt32, len(values), b})
}

func (h *rpmHeader) shorts(tag uint32, values []uint16) {
	var b []byte
	for _, v := range values {
		b = binary.BigEndian.AppendUint16(b, v)
	}
	h.entries = append(h.entries, rpmEntry{tag, rpmInt16, len(values), b})
}

func (h *rpmHeader) bytes(tag uint32, value []byte) {
	h.entries = append(h.entries, rpmEntry{tag, rpmBinary, len(value), value})
}

// encode returns the bytes of the header: its magic number, the index and the values. The
// first entry of the index is the region, and its value, a trailer, comes last.
func (h *rpmHeader) encode(region uint32) []byte {
	slices.SortFunc(h.entries, func(a, b rpmEntry) int { return cmp.Compare(a.tag, b.tag) })
	var index, values bytes.Buffer
	entry := func(to *bytes.Buffer, tag, kind uint32, offset int32, count int) {
		_ = binary.Write(to, binary.BigEndian, []uint32{tag, kind, uint32(offset), uint32(count)}) //nolint:gosec // small numbers of our own; a buffer does not fail
	}
	for _, e := range h.entries {
		align := map[uint32]int{rpmInt16: 2, rpmInt32: 4}[e.kind]
		for align > 0 && values.Len()%align != 0 {
			values.WriteByte(0)
		}
		entry(&index, e.tag, e.kind, int32(values.Len()), e.count) //nolint:gosec // a header has few bytes
		values.Write(e.body)
	}
	const trailerSize = 16
	size := int32(16 * (len(h.entries) + 1)) //nolint:gosec // few entries
	trailerAt := int32(values.Len())         //nolint:gosec // few bytes
	entry(&values, region, rpmBinary, -size, trailerSize)

	var b bytes.Buffer
	b.Write([]byte{0x8e, 0xad, 0xe8, 0x01, 0, 0, 0, 0})
	_ = binary.Write(&b, binary.BigEndian, []uint32{uint32(len(h.entries) + 1), uint32(values.Len())}) //nolint:gosec // see above
	entry(&b, region, rpmBinary, trailerAt, trailerSize)
	b.Write(index.Bytes())
	b.Write(values.Bytes())
	return b.Bytes()
}
