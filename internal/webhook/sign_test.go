package webhook

import (
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"pgregory.net/rapid"
)

const eventID = "evt_0191d0c2b4f97a1c8e5d2f3a4b5c6d7e"

func signedHeader(id string, at time.Time, body []byte, secrets ...Secret) http.Header {
	h := http.Header{}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, strconv.FormatInt(at.Unix(), 10))
	h.Set(HeaderSignature, Sign(id, at, body, secrets...))
	return h
}

// The values come from the reference implementation of the specification.
func TestSignMatchesTheSpecification(t *testing.T) {
	t.Parallel()
	secret, err := ParseSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	if err != nil {
		t.Fatal(err)
	}
	got := Sign("msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`), secret)
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTheReferenceLibraryAgrees(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret, other := NewSecret(), NewSecret()
		library, err := standardwebhooks.NewWebhook(secret.Reveal())
		if err != nil {
			t.Fatal(err)
		}
		now := time.Now() // the library has no other clock
		id := rapid.StringMatching(`[!-~]{1,64}`).Draw(t, "id")
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		header := signedHeader(id, now, body, other, secret)
		if err := library.Verify(body, header); err != nil {
			t.Fatalf("the library refuses our signature: %v", err)
		}
		theirs, err := library.Sign(id, now, body)
		if err != nil {
			t.Fatal(err)
		}
		header.Set(HeaderSignature, "v1a,AAAA "+theirs)
		if err := Verify(header, body, now, other, secret); err != nil {
			t.Fatalf("Verify refuses the signature of the library: %v", err)
		}
		if err := Verify(header, body, now, other); !errors.Is(err, ErrSignature) {
			t.Fatalf("another secret: %v", err)
		}
		if err := Verify(header, append(body, ' '), now, secret); !errors.Is(err, ErrSignature) {
			t.Fatalf("another body: %v", err)
		}
	})
}

func TestVerifyChecksHeadersSignatureAndTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 0, 11, 45, 0, time.UTC)
	body := []byte(`{"a":1}`)
	secret, old, other := NewSecret(), NewSecret(), NewSecret()
	forged := func(h http.Header, timestamp string) {
		h.Set(HeaderTimestamp, timestamp)
		h.Set(HeaderSignature, "v1,"+base64.StdEncoding.EncodeToString(secret.mac(eventID, timestamp, body)))
	}
	set := func(name, value string) func(http.Header) { return func(h http.Header) { h.Set(name, value) } }
	for name, tt := range map[string]struct {
		change func(http.Header)
		body   string
		now    time.Time
		want   error
	}{
		"unchanged":                     {},
		"five minutes late":             {now: now.Add(5 * time.Minute)},
		"five minutes early":            {now: now.Add(-5 * time.Minute)},
		"too late":                      {now: now.Add(5*time.Minute + time.Second), want: ErrStale},
		"too early":                     {now: now.Add(-5*time.Minute - time.Second), want: ErrStale},
		"stale and forged":              {now: now.Add(time.Hour), body: `{"a":2}`, want: ErrSignature},
		"another body":                  {body: `{"a":2}`, want: ErrSignature},
		"a blank body":                  {body: " ", want: ErrSignature},
		"another id":                    {change: set(HeaderID, "evt_2"), want: ErrSignature},
		"another time":                  {change: set(HeaderTimestamp, strconv.FormatInt(now.Unix()+1, 10)), want: ErrSignature},
		"id and time split differently": {change: func(h http.Header) { h.Set(HeaderID, "evt"); h.Set(HeaderTimestamp, "1") }, want: ErrSignature},
		"another version":               {change: func(h http.Header) { h.Set(HeaderSignature, "v2"+h.Get(HeaderSignature)[2:]) }, want: ErrSignature},
		"without a version":             {change: func(h http.Header) { h.Set(HeaderSignature, h.Get(HeaderSignature)[3:]) }, want: ErrSignature},
		"cut short":                     {change: func(h http.Header) { h.Set(HeaderSignature, h.Get(HeaderSignature)[:20]) }, want: ErrSignature},
		"an empty signature":            {change: set(HeaderSignature, "v1,"), want: ErrSignature},
		"no base64":                     {change: set(HeaderSignature, "v1,!!!!"), want: ErrSignature},
		"an empty secret":               {change: set(HeaderSignature, "v1,"+base64.StdEncoding.EncodeToString(secretFromKey(nil).mac(eventID, strconv.FormatInt(now.Unix(), 10), body))), want: ErrSignature},
		"another secret":                {change: set(HeaderSignature, Sign(eventID, now, body, other)), want: ErrSignature},
		"another secret and ours":       {change: set(HeaderSignature, Sign(eventID, now, body, other, secret))},
		"the old secret":                {change: set(HeaderSignature, Sign(eventID, now, body, old))},
		"with other words":              {change: func(h http.Header) { h.Set(HeaderSignature, "  x v1 v1,AAAA "+h.Get(HeaderSignature)+" ") }},
		"no id":                         {change: func(h http.Header) { h.Del(HeaderID) }, want: ErrMissing},
		"no time":                       {change: func(h http.Header) { h.Del(HeaderTimestamp) }, want: ErrMissing},
		"no signature":                  {change: func(h http.Header) { h.Del(HeaderSignature) }, want: ErrMissing},
		"an empty id":                   {change: set(HeaderID, ""), want: ErrMissing},
		"two ids":                       {change: func(h http.Header) { h.Add(HeaderID, eventID) }, want: ErrMissing},
		"two signature headers":         {change: func(h http.Header) { h.Add(HeaderSignature, h.Get(HeaderSignature)) }, want: ErrMissing},
		"an id that is too long":        {change: set(HeaderID, strings.Repeat("a", maxID+1)), want: ErrMissing},
		"too many signatures":           {change: set(HeaderSignature, strings.Repeat("v1,AAAA ", 1<<16)), want: ErrMissing},
		"a time in words":               {change: func(h http.Header) { forged(h, "now") }, want: ErrMissing},
		"a time with a sign":            {change: func(h http.Header) { forged(h, "+"+strconv.FormatInt(now.Unix(), 10)) }, want: ErrMissing},
		"a time with a zero before":     {change: func(h http.Header) { forged(h, "0"+strconv.FormatInt(now.Unix(), 10)) }, want: ErrMissing},
		"a time with a fraction":        {change: func(h http.Header) { forged(h, strconv.FormatInt(now.Unix(), 10)+".0") }, want: ErrMissing},
		"a time out of range":           {change: func(h http.Header) { forged(h, "9223372036854775807") }, want: ErrMissing},
		"a time in the far future":      {change: func(h http.Header) { forged(h, "999999999999") }, want: ErrStale},
		"a negative time":               {change: func(h http.Header) { forged(h, "-99999999999") }, want: ErrStale},
		"milliseconds":                  {change: func(h http.Header) { forged(h, strconv.FormatInt(now.UnixMilli(), 10)) }, want: ErrMissing},
	} {
		h := signedHeader(eventID, now, body, secret)
		if tt.change != nil {
			tt.change(h)
		}
		b, at := body, now
		if tt.body != "" {
			b = []byte(tt.body)
		}
		if !tt.now.IsZero() {
			at = tt.now
		}
		if err := Verify(h, b, at, Secret{}, old, secret); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	h := signedHeader(eventID, now, body, secret)
	if err := Verify(h, body, now); !errors.Is(err, ErrSignature) {
		t.Errorf("without any secret: %v", err)
	}
}

func TestSignHasOneSignaturePerSecret(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	old, current := NewSecret(), NewSecret()
	both := signedHeader(eventID, now, nil, current, old)
	if strings.Count(both.Get(HeaderSignature), "v1,") != 2 || Verify(both, nil, now, old) != nil || Verify(both, nil, now, current) != nil {
		t.Errorf("%s", both.Get(HeaderSignature))
	}
	after := signedHeader(eventID, now, nil, current)
	if Verify(after, nil, now, current) != nil || !errors.Is(Verify(after, nil, now, old), ErrSignature) {
		t.Error("the old secret still verifies")
	}
	if Sign(eventID, now, nil) != "" || Sign(eventID, now, nil, Secret{}) != "" {
		t.Error("Sign returns a signature without a secret")
	}
}
