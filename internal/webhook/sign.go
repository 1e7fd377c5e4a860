package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers that carry a signature.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

const (
	// Tolerance is the greatest difference between the time of a message and now.
	Tolerance = 5 * time.Minute

	version      = "v1,"
	maxID        = 256
	maxTimestamp = 12 // digits, enough for the next thirty thousand years
	maxSignature = 2048
)

// The reasons for which Verify refuses a message. Do not tell the sender which one.
var (
	ErrMissing   = errors.New("webhook: a header is missing or malformed")
	ErrSignature = errors.New("webhook: no valid secret has made the signature")
	ErrStale     = errors.New("webhook: the timestamp is too far from now")
)

// Sign returns the value of the header Webhook-Signature for a message that is sent at
// this time. It has one signature for each secret, so a receiver with any of the
// secrets can verify it. It is empty without a secret.
func Sign(id string, at time.Time, body []byte, secrets ...Secret) string {
	var list []string
	for _, s := range secrets {
		if !s.IsZero() {
			list = append(list, version+base64.StdEncoding.EncodeToString(s.mac(id, strconv.FormatInt(at.Unix(), 10), body)))
		}
	}
	return strings.Join(list, " ")
}

func (s Secret) mac(id, timestamp string, body []byte) []byte {
	h := hmac.New(sha256.New, []byte(*s.key))
	h.Write([]byte(id + "." + timestamp + "."))
	h.Write(body)
	return h.Sum(nil)
}

// Verify checks that a message was signed with one of the secrets, and recently. It
// fails with ErrMissing, ErrSignature or ErrStale. It checks the time last, so that
// only a sender with a valid secret can learn about our clock.
func Verify(header http.Header, body []byte, now time.Time, secrets ...Secret) error {
	id, okID := one(header, HeaderID, maxID)
	timestamp, okTime := one(header, HeaderTimestamp, maxTimestamp)
	signatures, okSignature := one(header, HeaderSignature, maxSignature)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if !okID || !okTime || !okSignature || err != nil || strconv.FormatInt(seconds, 10) != timestamp {
		return ErrMissing
	}
	if !signed(signatures, id, timestamp, body, secrets) {
		return ErrSignature
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > Tolerance {
		return ErrStale
	}
	return nil
}

// one returns the value of a header that occurs exactly once. Programs differ in which
// of two values they read.
func one(header http.Header, name string, limit int) (string, bool) {
	values := header.Values(name)
	if len(values) != 1 || values[0] == "" || len(values[0]) > limit {
		return "", false
	}
	return values[0], true
}

// signed reports whether one of the secrets has made one of the signatures. It always
// compares all of them, so that its duration reveals nothing.
func signed(signatures, id, timestamp string, body []byte, secrets []Secret) bool {
	var given [][]byte
	for text := range strings.SplitSeq(signatures, " ") {
		encoded, ok := strings.CutPrefix(text, version)
		if !ok {
			continue // a signature of another version
		}
		if mac, err := decode(encoded); err == nil {
			given = append(given, mac)
		}
	}
	found := false
	for _, s := range secrets {
		if s.IsZero() {
			continue // everybody can sign with an empty secret
		}
		want := s.mac(id, timestamp, body)
		for _, mac := range given {
			if hmac.Equal(mac, want) {
				found = true
			}
		}
	}
	return found
}
