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
	// Tolerance is how far the time of a message may be from now.
	Tolerance = 5 * time.Minute

	version      = "v1,"
	maxID        = 256
	maxTimestamp = 12 // digits: enough for thirty thousand years
	maxSignature = 2048
)

// What is wrong with a message. Who sent it need not be told which.
var (
	ErrMissing   = errors.New("webhook: a header is missing or cannot be read")
	ErrSignature = errors.New("webhook: the signature is not by a secret of the sender")
	ErrStale     = errors.New("webhook: the message is of another time")
)

// Sign returns the header webhook-signature of a message that is sent at a time:
// one signature for each secret, so that whoever knows either verifies it.
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

// Verify tells whether a message, as its bytes came, was signed with one of the
// secrets, and not long ago: nil, ErrMissing, ErrSignature or ErrStale. The time
// is judged last, so that only who knows a secret learns anything of our clock.
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

// one returns the value of a header that is there once. Two would be read
// differently by different readers.
func one(header http.Header, name string, limit int) (string, bool) {
	values := header.Values(name)
	if len(values) != 1 || values[0] == "" || len(values[0]) > limit {
		return "", false
	}
	return values[0], true
}

// signed tells whether any of the signatures is by any of the secrets. It looks
// at all of both, whatever it finds.
func signed(signatures, id, timestamp string, body []byte, secrets []Secret) bool {
	var given [][]byte
	for text := range strings.SplitSeq(signatures, " ") {
		encoded, ok := strings.CutPrefix(text, version)
		if !ok {
			continue // of another version
		}
		if mac, err := decode(encoded); err == nil {
			given = append(given, mac)
		}
	}
	found := false
	for _, s := range secrets {
		if s.IsZero() {
			continue // anybody can sign with nothing
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
