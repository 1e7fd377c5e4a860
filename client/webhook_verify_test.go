package client

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	newSecret = "whsec_bmV3IHNlY3JldCBvZiB0aGUgZW5kcG9pbnQ="
	oldSecret = "whsec_b2xkIHNlY3JldCBvZiB0aGUgZW5kcG9pbnQ="
	otherOne  = "whsec_c2VjcmV0IG9mIGFub3RoZXIgZW5kcG9pbnQ="

	testEvent = `{"id":"evt_1","type":"webhook.test","data":{"id":"e1","url":"https://a/"}}`
)

// sign returns the headers of the message evt_1, with a signature of each secret.
func sign(t *testing.T, at time.Time, body string, secrets ...string) http.Header {
	t.Helper()
	const id = "evt_1"
	timestamp := strconv.FormatInt(at.Unix(), 10)
	var list []string
	for _, secret := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		if err != nil {
			t.Fatal(err)
		}
		h := hmac.New(sha256.New, key)
		h.Write([]byte(id + "." + timestamp + "." + body))
		list = append(list, "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)))
	}
	header := http.Header{}
	header.Set("webhook-id", id)
	header.Set("webhook-timestamp", timestamp)
	header.Set("webhook-signature", strings.Join(list, " "))
	return header
}

// The signature is that of the example in the Standard Webhooks specification.
func TestVerifyWebhookReadsAKnownSignature(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	header.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	header.Set("webhook-timestamp", "1614265330")
	header.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	v := WebhookVerifier{Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}, Now: func() time.Time { return time.Unix(1614265330, 0) }}
	if _, err := v.Verify(header, []byte(`{"test": 2432232314}`)); err != nil {
		t.Error(err)
	}
}

func TestVerifyWebhook(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	for name, tt := range map[string]struct {
		signers []string // newSecret when nil
		change  func(http.Header)
		body    string
		late    time.Duration
		want    error
	}{
		"genuine":                       {},
		"during a rotation":             {signers: []string{newSecret, oldSecret}},
		"signed with the old secret":    {signers: []string{oldSecret}},
		"a signature of another secret": {signers: []string{otherOne}, want: ErrWebhookSignature},
		"another secret, then ours":     {signers: []string{otherOne, newSecret}},
		"another version beside ours":   {change: func(h http.Header) { h.Set("webhook-signature", "v2,AAAA "+h.Get("webhook-signature")) }},
		"five minutes late":             {late: 5 * time.Minute},
		"five minutes early":            {late: -5 * time.Minute},
		"too late":                      {late: 5*time.Minute + time.Second, want: ErrWebhookTime},
		"too early":                     {late: -5*time.Minute - time.Second, want: ErrWebhookTime},
		"late and forged":               {late: time.Hour, body: `{"id":"evt_2"}`, want: ErrWebhookSignature},
		"another body":                  {body: `{"id":"evt_2"}`, want: ErrWebhookSignature},
		"another id":                    {change: set("webhook-id", "evt_2"), want: ErrWebhookSignature},
		"no base64":                     {change: set("webhook-signature", "v1,!!!!"), want: ErrWebhookSignature},
		"no signature":                  {change: set("webhook-signature", ""), want: ErrWebhookHeaders},
		"no id":                         {change: func(h http.Header) { h.Del("webhook-id") }, want: ErrWebhookHeaders},
		"two ids":                       {change: func(h http.Header) { h.Add("webhook-id", "evt_1") }, want: ErrWebhookHeaders},
		"a time in words":               {change: set("webhook-timestamp", "now"), want: ErrWebhookHeaders},
		"a time with a zero before":     {change: set("webhook-timestamp", "0"+strconv.FormatInt(now.Unix(), 10)), want: ErrWebhookHeaders},
	} {
		signers, body := tt.signers, testEvent
		if signers == nil {
			signers = []string{newSecret}
		}
		header := sign(t, now, testEvent, signers...)
		if tt.change != nil {
			tt.change(header)
		}
		if tt.body != "" {
			body = tt.body
		}
		v := WebhookVerifier{Secrets: []string{newSecret, oldSecret}, Now: func() time.Time { return now.Add(tt.late) }}
		e, err := v.Verify(header, []byte(body))
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if (e.ID == "evt_1") != (tt.want == nil) {
			t.Errorf("%s: event %+v", name, e)
		}
	}
}

func TestVerifyWebhookTakesAToleranceAndTheClockOfTheMachine(t *testing.T) {
	t.Parallel()
	now := time.Now()
	header := sign(t, now.Add(-time.Hour), testEvent, newSecret)
	if _, err := (WebhookVerifier{Secrets: []string{newSecret}, Tolerance: 2 * time.Hour}).Verify(header, []byte(testEvent)); err != nil {
		t.Errorf("with a tolerance of two hours: %v", err)
	}
	if _, err := VerifyWebhook(header, []byte(testEvent), newSecret); !errors.Is(err, ErrWebhookTime) {
		t.Errorf("an hour late: %v", err)
	}
	e, err := VerifyWebhook(sign(t, now, testEvent, newSecret), []byte(testEvent), newSecret)
	if err != nil || e.Data != (EndpointData{ID: "e1", URL: "https://a/"}) {
		t.Errorf("%+v, %v", e, err)
	}
}

func TestVerifyWebhookRefusesBadSecretsAndBodies(t *testing.T) {
	t.Parallel()
	header := sign(t, time.Now(), testEvent, newSecret)
	if _, err := VerifyWebhook(header, []byte(testEvent)); !errors.Is(err, ErrWebhookSignature) {
		t.Errorf("without a secret: %v", err)
	}
	for _, secret := range []string{"", "whsec_", "whsec_%%"} {
		if _, err := VerifyWebhook(header, []byte(testEvent), secret); err == nil || errors.Is(err, ErrWebhookSignature) || strings.Contains(err.Error(), "%%") {
			t.Errorf("secret %q: %v, want an error about the secret, without the secret", secret, err)
		}
	}
	if _, err := VerifyWebhook(sign(t, time.Now(), "[]", newSecret), []byte("[]"), newSecret); err == nil {
		t.Error("a list was read as an event")
	}
}
