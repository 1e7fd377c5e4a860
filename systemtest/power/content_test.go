//go:build linux

package power

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// Random writes, changes of the size, syncs and cuts must leave what a plain copy of the
// file says: without the choice of a seed exactly the bytes of the last sync, and with it
// in each sector the bytes of the last sync, the last bytes, or zeros.
func TestContentAgainstACopy(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		c := newContent(nil)
		var now, synced []byte
		for range 30 {
			switch r.IntN(5) {
			case 0:
				size := r.Int64N(6 * sector)
				c.resize(size)
				now = resized(bytes.Clone(now), size)
			case 1:
				c.sync()
				synced = bytes.Clone(now)
			default:
				p := bytes.Repeat([]byte{byte(1 + r.IntN(255))}, 1+r.IntN(2*sector))
				off := r.Int64N(4 * sector)
				c.write(p, off)
				now = resized(bytes.Clone(now), max(int64(len(now)), off+int64(len(p))))
				copy(now[off:], p)
			}
		}
		if !bytes.Equal(c.data, now) {
			t.Fatal("the data is not what was written")
		}
		if strict := c.survive(chooser{}); !bytes.Equal(strict.data, synced) {
			t.Fatalf("a strict cut leaves %d bytes, not the %d of the last sync", len(strict.data), len(synced))
		}
		after := c.survive(chooser{r}).data
		for at := 0; at < len(after); at += sector {
			end := min(at+sector, len(after))
			same := func(b []byte) bool {
				whole := resized(bytes.Clone(b), int64(max(len(b), end)))
				return bytes.Equal(whole[at:end], after[at:end])
			}
			zeroed := func(b []byte) bool { // the file has shrunk within this sector and grown again
				return bytes.HasPrefix(b[min(at, len(b)):], bytes.TrimRight(after[at:end], "\x00"))
			}
			if !same(now) && !same(synced) && !zeroed(synced) {
				t.Fatalf("the sector at %d has other bytes than were ever there", at)
			}
		}
	}
}
