package cursor

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/uuid"
)

func testID() uuid.UUID { return uuid.MustParse("01999999-1111-7222-8333-444444444444") }

func testKeys() Keys { return Keys{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)} }

func testList() List { return NewList("invoices", "sandbox", "t") }

// The test tries every other byte at every position, every insertion and every
// shorter text.
func TestReadRefusesAChangedCursor(t *testing.T) {
	t.Parallel()
	c, list := testKeys(), testList()
	text := c.Make(testID(), list)
	if id, ok := c.Read(text, list); !ok || id != testID() {
		t.Fatalf("Read = %q, %t", id, ok)
	}
	for i := range len(text) {
		for b := range 256 {
			changed := text[:i] + string([]byte{byte(b)}) + text[i+1:]
			if id, ok := c.Read(changed, list); ok && changed != text {
				t.Errorf("with byte %d changed to %#x it is read as %s", i, b, id)
			}
			if id, ok := c.Read(text[:i]+string([]byte{byte(b)})+text[i:], list); ok {
				t.Errorf("with %#x before byte %d it is read as %s", b, i, id)
			}
		}
		if id, ok := c.Read(text[:i], list); ok {
			t.Errorf("the first %d characters are read as %s", i, id)
		}
	}
}

func TestReadAcceptsCursorsOfOlderKeys(t *testing.T) {
	t.Parallel()
	list := testList()
	both := testKeys()
	old, fresh := both[1:], both[:1]
	if _, ok := both.Read(old.Make(testID(), list), list); !ok {
		t.Error("a cursor of the previous key is refused")
	}
	if both.Make(testID(), list) != fresh.Make(testID(), list) {
		t.Error("Make does not use the newest key")
	}
	if _, ok := old.Read(fresh.Make(testID(), list), list); ok {
		t.Error("a cursor of an unknown key is accepted")
	}
	if _, ok := (Keys{}).Read(fresh.Make(testID(), list), list); ok {
		t.Error("a cursor is accepted without any key")
	}
}

func TestDifferentListsHaveDifferentHashes(t *testing.T) {
	t.Parallel()
	seen := map[List]string{}
	parts := []string{"", "a", "b", "ab", "0:", "1:a", "8:accepted"}
	for _, x := range parts {
		for _, y := range parts {
			for _, z := range parts {
				name := strings.Join([]string{x, y, z}, "|")
				hash := NewList(x, y, z)
				if other, ok := seen[hash]; ok {
					t.Errorf("%s and %s have the same hash", name, other)
				}
				seen[hash] = name
			}
		}
	}
}

// Read never panics, and it accepts only cursors that Make has made.
func FuzzRead(f *testing.F) {
	c, list := testKeys(), testList()
	good := c.Make(testID(), list)
	other := Keys{bytes.Repeat([]byte{3}, 32)}
	for _, seed := range []string{
		"", "A", good, good + "\n", "\r\n" + good, good[:10] + "\n" + good[10:], good + "==", strings.ToUpper(good), other.Make(testID(), list),
		base64.RawURLEncoding.EncodeToString(make([]byte, size)), base64.StdEncoding.EncodeToString([]byte(good)), strings.Repeat("A", 501), "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := c.Read(text, list)
		if !ok {
			return
		}
		if text != c.Make(id, list) && text != c[1:].Make(id, list) {
			t.Errorf("Read accepts %q as %s, and Make did not make it", text, id)
		}
	})
}
