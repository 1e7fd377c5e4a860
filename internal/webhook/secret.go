// Package webhook owns one event on its way to somebody else's server, in the
// form of Standard Webhooks 1.0.0: it signs, verifies what others have signed,
// and posts once. When to post, and again, is not decided here.
package webhook

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"log/slog"
	"strings"
)

// ErrSecret says that a text is no secret of this form.
var ErrSecret = errors.New("webhook: malformed secret")

const (
	secretLead = "whsec_"
	secretLen  = 32
	redacted   = "[redacted]"
)

// A Secret is what one receiver and we sign with. It prints as [redacted]
// wherever it is formatted, logged or encoded; Reveal alone gives its text. The
// zero Secret is none: it signs nothing and verifies nothing.
type Secret struct {
	// Behind a pointer, and that to a string, because fmt calls no method on an
	// unexported field of another struct: it would print bytes, follows a
	// pointer to a slice, and prints the address of a string.
	key *string

	_ [0]func() // not comparable: == would compare the addresses
}

// NewSecret returns a fresh secret of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, secretLen)
	_, _ = rand.Read(key) // never fails: it ends the program instead
	return secretOf(key)
}

func secretOf(key []byte) Secret {
	text := string(key)
	return Secret{key: &text}
}

// ParseSecret reads a secret: "whsec_" and the base64 of 24 to 64 bytes.
func ParseSecret(text string) (Secret, error) {
	encoded, ok := strings.CutPrefix(text, secretLead)
	if !ok || len(encoded) > base64.StdEncoding.EncodedLen(64) {
		return Secret{}, ErrSecret
	}
	key, err := decode(encoded)
	if err != nil || len(key) < 24 || len(key) > 64 {
		return Secret{}, ErrSecret // the cause would repeat a part of it
	}
	return secretOf(key), nil
}

// Reveal returns the text of the secret, to be shown once to whoever it is for.
func (s Secret) Reveal() string {
	if s.key == nil {
		return ""
	}
	return secretLead + base64.StdEncoding.EncodeToString([]byte(*s.key))
}

// IsZero tells whether it is no secret.
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

// decode reads base64 in its one spelling.
func decode(text string) ([]byte, error) {
	if strings.ContainsAny(text, "\r\n") { // which the decoder passes over
		return nil, ErrSecret
	}
	return base64.StdEncoding.Strict().DecodeString(text)
}
