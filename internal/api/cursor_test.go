package api

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const cursorTestID = "01999999-1111-7222-8333-444444444444"

func testCursors() cursors {
	return cursors{keys: [][]byte{bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)}}
}

func testList() []byte {
	return listScope(store.Scope{Environment: fiscal.Sandbox, TaxpayerID: "t"}, store.InvoiceFilter{})
}

// P-39, in full: every other character at every place, and every length.
func TestP39EveryChangeOfACursorIsRefused(t *testing.T) {
	t.Parallel()
	c, list := testCursors(), testList()
	text := c.make(cursorTestID, list)
	if id, ok := c.read(text, list); !ok || id != cursorTestID {
		t.Fatalf("read gives %q, %t", id, ok)
	}
	for i := range len(text) {
		for b := range 256 {
			changed := text[:i] + string([]byte{byte(b)}) + text[i+1:]
			if id, ok := c.read(changed, list); ok && changed != text {
				t.Errorf("byte %d as %#x is read as %s", i, b, id)
			}
			if id, ok := c.read(text[:i]+string([]byte{byte(b)})+text[i:], list); ok {
				t.Errorf("with %#x before byte %d it is read as %s", b, i, id)
			}
		}
		if id, ok := c.read(text[:i], list); ok {
			t.Errorf("the first %d characters are read as %s", i, id)
		}
	}
}

func TestCursorKeysThatWereRotated(t *testing.T) {
	t.Parallel()
	list := testList()
	both := testCursors()
	old, fresh := cursors{keys: both.keys[1:]}, cursors{keys: both.keys[:1]}
	if _, ok := both.read(old.make(cursorTestID, list), list); !ok {
		t.Error("a cursor of the previous key is refused")
	}
	if both.make(cursorTestID, list) != fresh.make(cursorTestID, list) {
		t.Error("the newest key does not make the cursors")
	}
	if _, ok := old.read(fresh.make(cursorTestID, list), list); ok {
		t.Error("a cursor of a key that is not known is read")
	}
	if _, ok := (cursors{}).read(fresh.make(cursorTestID, list), list); ok {
		t.Error("a cursor is read without any key")
	}
}

// The parts of a scope are told apart by their lengths, so that no two lists
// share a print.
func TestListScopesAreApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, env := range []fiscal.Environment{"sandbox", "production", "sandbox1:"} {
		for _, taxpayer := range []string{"", "a", "ab", "1:a"} {
			for _, external := range []string{"", "a", "b", "0:", "1:a", "8:accepted"} {
				for _, status := range []fiscal.Status{"", "accepted", "a"} {
					name := strings.Join([]string{string(env), taxpayer, external, string(status)}, "|")
					print := string(listScope(store.Scope{Environment: env, TaxpayerID: taxpayer}, store.InvoiceFilter{ExternalID: external, Status: status}))
					if other, ok := seen[print]; ok {
						t.Errorf("%s and %s have one print", name, other)
					}
					seen[print] = name
				}
			}
		}
	}
	a := store.InvoiceFilter{Limit: 1, Before: "x"}
	if !bytes.Equal(listScope(store.Scope{}, a), listScope(store.Scope{}, store.InvoiceFilter{Limit: 2})) {
		t.Error("the page size or the place is part of the list")
	}
}

// Whatever the text, reading it never panics, and what is read is what we made.
func FuzzCursor(f *testing.F) {
	c, list := testCursors(), testList()
	good := c.make(cursorTestID, list)
	other := cursors{keys: [][]byte{bytes.Repeat([]byte{3}, 32)}}
	for _, seed := range []string{
		"", "A", good, good + "\n", "\r\n" + good, good[:10] + "\n" + good[10:], good + "==", strings.ToUpper(good), other.make(cursorTestID, list),
		base64.RawURLEncoding.EncodeToString(make([]byte, cursorSize)), base64.StdEncoding.EncodeToString([]byte(good)), strings.Repeat("A", 501), "\xff",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := c.read(text, list)
		if !ok {
			return
		}
		old := cursors{keys: c.keys[1:]}
		if text != c.make(id, list) && text != old.make(id, list) {
			t.Errorf("%q is read as %s and we never made it", text, id)
		}
	})
}
