// Package apikey defines the format of API keys, fh_<prefix>_<secret>, and their
// scopes. It makes and parses keys and computes the digests that are stored. It does
// not store keys and does not decide about access.
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

// ErrMalformed means that a text does not have the format of a key: it has a typing
// error, was cut, or is something else.
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

	// The digits are in ascending byte order, so that encodings of equal length
	// compare like the numbers that they encode.
	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

	// maxEntropy is 2^256-1 in base 62. 43 digits can encode greater numbers, which do
	// not fit in 32 bytes.
	maxEntropy = "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1"

	redacted = "[redacted]"
)

// Key is an API key with its secret. It prints as [redacted] when it is formatted,
// logged or encoded; only Reveal returns its text. The zero Key is not a valid key.
type Key struct {
	// text is a pointer because fmt calls no methods on an unexported field of another
	// struct: it would print the string itself, but prints only the address of a
	// pointer.
	text *string

	_ [0]func() // not comparable: == would compare the addresses
}

// New returns a new key for an environment ("production", "certification" or
// "sandbox"). It fails for another environment, and when it cannot read enough random
// bytes from rand.
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
		// 252 is the greatest multiple of 36 in a byte. Greater bytes would make the
		// first characters more likely.
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

// Parse parses a key. It fails with ErrMalformed for a text that New cannot have made.
// It is cheap, also for very long texts.
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
	text = strings.Clone(text) // text may be part of a large header, which can then be freed
	return Key{text: &text}, nil
}

// Prefix returns the public part of the key. The database finds a key by its prefix,
// and logs show it.
func (k Key) Prefix() string {
	if k.text == nil {
		return ""
	}
	return (*k.text)[len(lead):prefixEnd]
}

// OfSandbox reports whether the key is one of the sandbox.
func (k Key) OfSandbox() bool { return strings.HasPrefix(k.Prefix(), "s") }

// Digest returns the HMAC-SHA-256 of the key's text under the pepper. The database
// stores the digest and not the key. A slow hash is not necessary, because the secret
// has 256 random bits. Compare digests with hmac.Equal.
func (k Key) Digest(pepper []byte) [32]byte {
	h := hmac.New(sha256.New, pepper)
	h.Write([]byte(k.Reveal()))
	return [32]byte(h.Sum(nil))
}

// Reveal returns the text of the key. Show it once, to the owner of the key.
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

// environmentLetter returns the first character of a prefix. It shows the environment
// of a leaked key without a look-up in the database.
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

// encode62 returns n as exactly width digits in base 62. The digits must be enough
// for n.
func encode62(n *big.Int, width int) string {
	digits := make([]byte, width)
	base, digit := big.NewInt(int64(len(base62))), new(big.Int)
	for i := width - 1; i >= 0; i-- {
		n.DivMod(n, base, digit)
		digits[i] = base62[digit.Int64()]
	}
	return string(digits)
}

// only reports whether text has no characters outside the alphabet.
func only(text, alphabet string) bool {
	for i := range len(text) {
		if strings.IndexByte(alphabet, text[i]) < 0 {
			return false
		}
	}
	return true
}
