package strictjson

import (
	"cmp"
	"slices"
	"strings"
)

// fewMembers is the number of members up to which insertion sort is fastest.
const fewMembers = 24

// A member is a member of an object that is being sorted.
type member struct {
	key uint64 // the sortKey of the name, which decides most comparisons
	at  uint32 // index of the name's node
}

// sortMembers sorts by the UTF-16 code units of the names.
func (d *Document) sortMembers(m []member) {
	if len(m) > fewMembers {
		slices.SortFunc(m, d.compareMembers)
		return
	}
	for i := 1; i < len(m); i++ {
		moved, j := m[i], i
		for j > 0 && (moved.key < m[j-1].key || moved.key == m[j-1].key && d.compareMembers(moved, m[j-1]) < 0) {
			m[j] = m[j-1]
			j--
		}
		m[j] = moved
	}
}

func (d *Document) compareMembers(a, b member) int {
	if a.key != b.key {
		return cmp.Compare(a.key, b.key)
	}
	return compareUTF16(d.content(a.at), d.content(b.at))
}

func compareUTF16(a, b string) int {
	for len(a) > 8 && len(b) > 8 {
		if x, y := sortKey(a), sortKey(b); x != y {
			return cmp.Compare(x, y)
		}
		a, b = a[8:], b[8:]
	}
	// One of the names ends within this key. A key does not distinguish the end
	// of a name from a NUL character, so equal keys need a comparison.
	return cmp.Or(cmp.Compare(sortKey(a), sortKey(b)), strings.Compare(a, b))
}

// sortKey packs the first eight bytes of a name so that keys order as UTF-16
// does. That is the order of the bytes of UTF-8, except that characters beyond
// U+FFFF (lead bytes f0 to f4), which UTF-16 writes with surrogates, come
// before U+E000 to U+FFFF (lead bytes ee and ef).
func sortKey(name string) uint64 {
	if len(name) >= 8 {
		key := uint64(name[7]) | uint64(name[6])<<8 | uint64(name[5])<<16 | uint64(name[4])<<24 |
			uint64(name[3])<<32 | uint64(name[2])<<40 | uint64(name[1])<<48 | uint64(name[0])<<56
		if key&0x8080808080808080 == 0 {
			return key // eight ASCII characters
		}
	}
	var key uint64
	for i := range min(len(name), 8) {
		c := name[i]
		switch {
		case c < 0xee:
		case c >= 0xf0:
			c -= 2
		default:
			c += 5
		}
		key |= uint64(c) << (56 - 8*i)
	}
	return key
}
