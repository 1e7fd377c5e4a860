package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The reasons for which a webhook message is refused. Answer 401 to all of them, and do
// not tell the sender which one it was.
var (
	ErrWebhookHeaders   = errors.New("client: a header of the webhook message is missing or malformed")
	ErrWebhookSignature = errors.New("client: none of the secrets has signed the webhook message")
	ErrWebhookTime      = errors.New("client: the time of the webhook message is too far from now")
)

// DefaultTolerance is how far the time of a webhook message may be from now.
const DefaultTolerance = 5 * time.Minute

const (
	secretPrefix     = "whsec_"
	signatureVersion = "v1,"

	maxWebhookID        = 256
	maxWebhookTimestamp = 12 // digits
	maxWebhookSignature = 2048
)

// VerifyWebhook checks that the service has signed a message with one of the secrets,
// within the last five minutes, and returns its event. The body must be the bytes as
// they arrived: verify before you parse.
//
// After RotateWebhookSecret the service signs with the old and the new secret for a day.
// Pass both secrets until you have replaced the old one everywhere.
//
// VerifyWebhook fails with ErrWebhookHeaders, ErrWebhookSignature or ErrWebhookTime, and
// with another error when a secret is malformed or the signed body is no event.
func VerifyWebhook(header http.Header, body []byte, secrets ...string) (Event, error) {
	return WebhookVerifier{Secrets: secrets}.Verify(header, body)
}

// WebhookVerifier verifies webhook messages with a clock and a tolerance of its own.
type WebhookVerifier struct {
	Secrets   []string         // as the service has shown them, like whsec_…; any of them may sign
	Tolerance time.Duration    // 0 for DefaultTolerance
	Now       func() time.Time // nil for the clock of the machine
}

// Verify is VerifyWebhook with the fields of v. It checks the time last, so that only a
// sender who knows a secret can learn about the clock.
func (v WebhookVerifier) Verify(header http.Header, body []byte) (Event, error) {
	id, okID := onlyValue(header, "Webhook-Id", maxWebhookID)
	timestamp, okTime := onlyValue(header, "Webhook-Timestamp", maxWebhookTimestamp)
	signatures, okSignature := onlyValue(header, "Webhook-Signature", maxWebhookSignature)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if !okID || !okTime || !okSignature || err != nil || strconv.FormatInt(seconds, 10) != timestamp {
		return Event{}, ErrWebhookHeaders
	}
	signed, err := v.signed(signatures, id+"."+timestamp+".", body)
	if err != nil {
		return Event{}, err
	}
	if !signed {
		return Event{}, ErrWebhookSignature
	}
	now, tolerance := v.Now, v.Tolerance
	if now == nil {
		now = time.Now //nolint:forbidigo // the clock of the integrator's machine; tests set Now
	}
	if tolerance == 0 {
		tolerance = DefaultTolerance
	}
	if now().Sub(time.Unix(seconds, 0)).Abs() > tolerance {
		return Event{}, ErrWebhookTime
	}
	var e Event
	if err := json.Unmarshal(body, &e); err != nil {
		return Event{}, fmt.Errorf("client: read the event of a webhook message: %w", err)
	}
	return e, nil
}

// signed reports whether one of the secrets has made one of the signatures. It compares
// all of them, so that its duration reveals nothing.
func (v WebhookVerifier) signed(signatures, head string, body []byte) (bool, error) {
	var given [][]byte
	for _, text := range strings.Split(signatures, " ") {
		encoded, ok := strings.CutPrefix(text, signatureVersion)
		if !ok {
			continue // a signature of another version
		}
		if mac, err := base64.StdEncoding.DecodeString(encoded); err == nil {
			given = append(given, mac)
		}
	}
	found := false
	for _, secret := range v.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
		if err != nil || len(key) == 0 {
			return false, errors.New("client: a webhook secret is empty or malformed; use it as the service has shown it, with whsec_")
		}
		h := hmac.New(sha256.New, key)
		h.Write([]byte(head))
		h.Write(body)
		want := h.Sum(nil)
		for _, mac := range given {
			if hmac.Equal(mac, want) {
				found = true
			}
		}
	}
	return found, nil
}

// onlyValue returns the value of a header that occurs exactly once. Programs differ in
// which of two values they read.
func onlyValue(header http.Header, name string, limit int) (string, bool) {
	values := header.Values(name)
	if len(values) != 1 || values[0] == "" || len(values[0]) > limit {
		return "", false
	}
	return values[0], true
}
