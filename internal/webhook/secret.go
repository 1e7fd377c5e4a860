// Package webhook signs, verifies and posts events in the format of Standard Webhooks
// 1.0.0. It makes one attempt; package notify decides when to retry.
package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
)

// ErrSecret means that a text does not have the format of a secret.
var ErrSecret = errors.New("webhook: malformed secret")

const (
	secretLead = "whsec_"
	secretLen  = 32
	redacted   = "[redacted]"
)

// A Secret is a signing key that we share with one receiver or source. It prints as
// [redacted] when it is formatted, logged or encoded; only Reveal returns its text. The
// zero Secret signs nothing and verifies nothing.
type Secret struct {
	// key is a pointer to a string because fmt calls no methods on an unexported field
	// of another struct. It would print the bytes of a slice, also behind a pointer,
	// but prints only the address of a pointer to a string.
	key *string

	_ [0]func() // not comparable: == would compare the addresses
}

// NewSecret returns a new secret of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, secretLen)
	_, _ = rand.Read(key) // never fails; it would end the program
	return secretFromKey(key)
}

func secretFromKey(key []byte) Secret {
	text := string(key)
	return Secret{key: &text}
}

// ParseSecret parses a secret: "whsec_" and the base64 of 24 to 64 bytes. It fails with
// ErrSecret.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretLead)
	if !ok || len(encoded) > base64.StdEncoding.EncodedLen(64) {
		return Secret{}, ErrSecret
	}
	key, err := decode(encoded)
	if err != nil || len(key) < 24 || len(key) > 64 {
		return Secret{}, ErrSecret // err may repeat a part of the secret
	}
	return secretFromKey(key), nil
}

// Reveal returns the text of the secret. Show it once, to the owner of the receiver or
// source.
func (s Secret) Reveal() string {
	if s.key == nil {
		return ""
	}
	return secretLead + base64.StdEncoding.EncodeToString([]byte(*s.key))
}

// IsZero reports whether s is the zero Secret.
func (s Secret) IsZero() bool { return s.key == nil }

// String returns [redacted].
func (s Secret) String() string { return redacted }

// GoString returns [redacted].
func (s Secret) GoString() string { return redacted }

// MarshalJSON encodes the string [redacted].
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText encodes [redacted].
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// LogValue returns the string [redacted].
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// decode decodes strict base64: each value has exactly one valid encoding.
func decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") { // the decoder ignores line breaks
		return nil, ErrSecret
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}
