// Package cursor makes and reads the cursors of paged lists. A cursor is
// authenticated: a client cannot make or change one, and a cursor of one list is not
// valid for another.
package cursor

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"github.com/google/uuid"
)

// A cursor is base64url of a version byte, the id of the last row of the page, the
// hash of the list, and a MAC over all of these.
const (
	version  = 1
	idSize   = 16
	hashSize = 16
	macSize  = 16
	size     = 1 + idSize + hashSize + macSize
)

// A List is a hash that identifies a list: its owner and its filters.
type List [hashSize]byte

// NewList returns the hash of the parts that identify a list. The hash includes the
// length of each part, so that different parts never give the same list.
func NewList(parts ...string) List {
	h := sha256.New()
	for _, part := range parts {
		_, _ = h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // a hash never fails
	}
	return List(h.Sum(nil))
}

// Keys authenticate cursors. Make uses the first key; Read accepts every key.
type Keys [][]byte

// Make returns the cursor that continues a list after the row with this id. There must
// be at least one key.
func (k Keys) Make(id uuid.UUID, list List) string {
	b := make([]byte, 0, size)
	b = append(b, version)
	b = append(b, id[:]...)
	b = append(b, list[:]...)
	b = append(b, sum(k[0], b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Read returns the row id in a cursor. ok is false when the cursor was not made by Make
// for this list with one of the keys.
func (k Keys) Read(text string, list List) (id uuid.UUID, ok bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(size) {
		return id, false // the decoder ignores line breaks
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != size || b[0] != version {
		return id, false
	}
	signed, mac := b[:size-macSize], b[size-macSize:]
	for _, key := range k {
		if hmac.Equal(mac, sum(key, signed)) && hmac.Equal(signed[1+idSize:], list[:]) {
			return uuid.UUID(signed[1 : 1+idSize]), true
		}
	}
	return id, false
}

func sum(key, signed []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(signed) // a hash never fails
	return h.Sum(nil)[:macSize]
}
