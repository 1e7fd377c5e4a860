// Package apikey owns the shape of our API credentials,
// fh_<prefix>_<secret>: it makes them, reads them, digests them for storage
// and names the scopes they may carry. It stores nothing and grants nothing.
package apikey

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"math/big"
	"strings"
)

// ErrMalformed says that a text has not the shape of a key: it was mistyped,
// cut short, or never was one.
var ErrMalformed = errors.New("apikey: malformed key")

const (
	lead        = "fh_"
	prefixLen   = 12
	entropyLen  = 43 // 32 random bytes in base 62
	checksumLen = 6  // 32 bits in base 62
	prefixEnd   = len(lead) + prefixLen
	secretStart = prefixEnd + 1
	checkStart  = secretStart + entropyLen
	keyLen      = checkStart + checksumLen

	lower36 = "0123456789abcdefghijklmnopqrstuvwxyz"

	// In ascending byte order, so that encodings of one length compare as
	// the numbers they stand for.
	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

	// The base 62 form of 2^256-1; 43 digits could say a little more than
	// 32 bytes can hold.
	maxEntropy = "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1"

	redacted = "[redacted]"
)

// Key is a whole credential, secret included. It prints as [redacted]
// wherever it is formatted, logged or encoded; Reveal alone gives its text.
// The zero Key is no key; one made by New or Parse is well formed.
type Key struct {
	// Behind a pointer because fmt calls no method on an unexported field of
	// another struct: it would print a string, and prints an address.
	text *string

	_ [0]func() // not comparable: == would compare the addresses
}

// New returns a fresh key of an environment ("production", "certification" or
// "sandbox"), made of the randomness of rand.
func New(env string, rand io.Reader) (Key, error) {
	letter, err := environmentLetter(env)
	if err != nil {
		return Key{}, err
	}
	var b strings.Builder
	b.Grow(keyLen)
	b.WriteString(lead)
	b.WriteByte(letter)
	var one [1]byte
	for b.Len() < prefixEnd {
		if _, err := io.ReadFull(rand, one[:]); err != nil {
			return Key{}, fmt.Errorf("apikey: read randomness: %w", err)
		}
		// 252 is the last multiple of 36 in a byte; the rest would favour
		// the first characters.
		if one[0] < 252 {
			b.WriteByte(lower36[one[0]%36])
		}
	}
	b.WriteByte('_')
	var entropy [32]byte
	if _, err := io.ReadFull(rand, entropy[:]); err != nil {
		return Key{}, fmt.Errorf("apikey: read randomness: %w", err)
	}
	b.WriteString(encode62(new(big.Int).SetBytes(entropy[:]), entropyLen))
	b.WriteString(checksum(b.String()))
	text := b.String()
	return Key{text: &text}, nil
}

// Parse reads a key, and returns ErrMalformed for any text that New cannot
// have made. It costs the same little for every text of the right length, and
// nothing for any other.
func Parse(text string) (Key, error) {
	if len(text) != keyLen ||
		text[:len(lead)] != lead ||
		!strings.ContainsRune("pcs", rune(text[len(lead)])) ||
		!only(text[len(lead):prefixEnd], lower36) ||
		text[prefixEnd] != '_' ||
		!only(text[secretStart:], base62) ||
		text[secretStart:checkStart] > maxEntropy ||
		text[checkStart:] != checksum(text[:checkStart]) {
		return Key{}, ErrMalformed
	}
	text = strings.Clone(text) // lets go of the header it may be a part of
	return Key{text: &text}, nil
}

// Prefix returns the public part, under which a key is found and by which it
// is named in logs.
func (k Key) Prefix() string {
	if k.text == nil {
		return ""
	}
	return (*k.text)[len(lead):prefixEnd]
}

// Digest returns what is stored in place of the key: HMAC-SHA-256 of its whole
// text under the pepper. The secret holds 256 random bits, so nothing is gained
// by a slow hash. Compare digests with hmac.Equal.
func (k Key) Digest(pepper []byte) [32]byte {
	h := hmac.New(sha256.New, pepper)
	h.Write([]byte(k.Reveal()))
	return [32]byte(h.Sum(nil))
}

// Reveal returns the text of the key, to be shown once to whoever it is for.
func (k Key) Reveal() string {
	if k.text == nil {
		return ""
	}
	return *k.text
}

// String returns [redacted].
func (k Key) String() string { return redacted }

// GoString returns [redacted].
func (k Key) GoString() string { return redacted }

// MarshalJSON encodes the string [redacted].
func (k Key) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText encodes [redacted].
func (k Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns the string [redacted].
func (k Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// environmentLetter returns the first character of a prefix, which tells where
// a leaked key belongs without asking any database.
func environmentLetter(env string) (byte, error) {
	switch env {
	case "production", "certification", "sandbox":
		return env[0], nil
	default:
		return 0, fmt.Errorf("apikey: %q is not an environment", env)
	}
}

func checksum(text string) string {
	sum := crc32.ChecksumIEEE([]byte(text))
	return encode62(new(big.Int).SetUint64(uint64(sum)), checksumLen)
}

// encode62 writes n in exactly width base 62 digits; n fits them.
func encode62(n *big.Int, width int) string {
	digits := make([]byte, width)
	base, digit := big.NewInt(int64(len(base62))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		digits[i] = base62[digit.Int64()]
	}
	return string(digits)
}

func only(text, alphabet string) bool {
	for i := range len(text) {
		if strings.IndexByte(alphabet, text[i]) < 0 {
			return false
		}
	}
	return true
}
