// Package cursor makes and reads the cursors of paged lists. Nobody else can make
// or change one, and each is good for its own list alone.
package cursor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"github.com/google/uuid"
)

// A cursor is base64url of: a version byte, the id of the last row shown, the
// print of its list, and a MAC over all of that.
const (
	version   = 1
	printSize = 16
	macSize   = 16
	size      = 1 + 16 + printSize + macSize
)

// A List is the print of a list: whose it is and how it is filtered.
type List [printSize]byte

// NewList names a list by its parts, which are told apart by their lengths.
func NewList(parts ...string) List {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // a hash never fails
	}
	return List(h.Sum(nil))
}

// Keys authenticate cursors: the first makes them, and all are accepted.
type Keys [][]byte

// Make returns the cursor that continues a list after the row with this id.
func (k Keys) Make(id uuid.UUID, list List) string {
	b := make([]byte, 0, size)
	b = append(b, version)
	b = append(b, id[:]...)
	b = append(b, list[:]...)
	b = append(b, sum(k[0], b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Read returns the id that a cursor of this list points at.
func (k Keys) Read(text string, list List) (id uuid.UUID, ok bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(size) {
		return id, false // the decoder would let line breaks pass
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != size || b[0] != version {
		return id, false
	}
	signed, mac := b[:size-macSize], b[size-macSize:]
	for _, key := range k {
		if hmac.Equal(mac, sum(key, signed)) && hmac.Equal(signed[17:], list[:]) {
			return uuid.UUID(signed[1:17]), true
		}
	}
	return id, false
}

func sum(key, signed []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(signed) // a hash never fails
	return h.Sum(nil)[:macSize]
}
