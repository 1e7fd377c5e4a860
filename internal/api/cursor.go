package api

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"

	"github.com/google/uuid"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// A cursor is base64url of: a version byte, the id of the last row shown, a
// print of the list it belongs to, and a MAC over all of that. Nobody can make
// or change one, and it is good for its own list alone.
const (
	cursorVersion = 1
	cursorPrint   = 16
	cursorMAC     = 16
	cursorSize    = 1 + 16 + cursorPrint + cursorMAC
)

// cursors makes and reads cursors. Older keys are still read.
type cursors struct{ keys [][]byte }

// listScope names a list: whose it is and how it is filtered. The page size may
// change from page to page.
func listScope(scope store.Scope, f store.InvoiceFilter) []byte {
	h := sha256.New()
	for _, part := range []string{"invoices", string(scope.Environment), scope.TaxpayerID, f.ExternalID, string(f.Status)} {
		_, _ = h.Write([]byte(strconv.Itoa(len(part)) + ":" + part)) // a hash never fails
	}
	return h.Sum(nil)[:cursorPrint]
}

func (c cursors) make(id string, list []byte) string {
	parsed := uuid.MustParse(id)
	b := make([]byte, 0, cursorSize)
	b = append(b, cursorVersion)
	b = append(b, parsed[:]...)
	b = append(b, list...)
	b = append(b, cursorSum(c.keys[0], b)...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// read gives the id that a cursor of this list points at.
func (c cursors) read(text string, list []byte) (string, bool) {
	if len(text) != base64.RawURLEncoding.EncodedLen(cursorSize) {
		return "", false // the decoder would let line breaks pass
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(b) != cursorSize || b[0] != cursorVersion {
		return "", false
	}
	signed, sum := b[:cursorSize-cursorMAC], b[cursorSize-cursorMAC:]
	for _, key := range c.keys {
		if hmac.Equal(sum, cursorSum(key, signed)) && hmac.Equal(signed[17:], list) {
			id, err := uuid.FromBytes(signed[1:17])
			return id.String(), err == nil
		}
	}
	return "", false
}

func cursorSum(key, signed []byte) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(signed) // a hash never fails
	return h.Sum(nil)[:cursorMAC]
}
