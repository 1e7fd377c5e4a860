package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
)

func TestNewSecretIsRandomAndParses(t *testing.T) {
	t.Parallel()
	a, b := NewSecret(), NewSecret()
	if !regexp.MustCompile(`^whsec_[A-Za-z0-9+/]{43}=$`).MatchString(a.Reveal()) || a.Reveal() == b.Reveal() {
		t.Error("the secrets are not 32 random bytes each")
	}
	again, err := ParseSecret(a.Reveal())
	if err != nil || again.Reveal() != a.Reveal() {
		t.Errorf("ParseSecret refuses the text of Reveal: %v", err)
	}
	if !(Secret{}).IsZero() || (Secret{}).Reveal() != "" || a.IsZero() {
		t.Error("the zero Secret is not zero")
	}
}

func TestParseSecretChecksTheFormat(t *testing.T) {
	t.Parallel()
	of := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, text := range []string{"whsec_" + of(24), "whsec_" + of(64)} {
		if _, err := ParseSecret(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	good := of(32)
	for _, text := range []string{
		"", "whsec_", good, "WHSEC_" + good, "whsec_" + of(23), "whsec_" + of(65), "whsec_" + of(1<<20),
		"whsec_" + strings.TrimSuffix(good, "="), "whsec_" + good + "=", "whsec_" + good + "\n", "whsec_" + good[:10] + "\r\n" + good[10:], " whsec_" + good,
		"whsec_" + good[:42] + "B=", // bits that are not part of the key
		"whsec_" + strings.Repeat("-", 43) + "=",
	} {
		if _, err := ParseSecret(text); !errors.Is(err, ErrSecret) {
			t.Errorf("%.80q: %v", text, err)
		}
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	t.Parallel()
	secret := NewSecret()
	type holder struct {
		Public Secret
		hidden Secret
		list   []Secret
	}
	h := holder{secret, secret, []Secret{secret}}
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	log.Info("x", "secret", secret, "holder", h, "message", Message{Secrets: []Secret{secret}})
	slog.New(slog.NewTextHandler(&out, nil)).Info("x", "secret", secret, "holder", h)
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		_, _ = fmt.Fprintf(&out, format+format+format+format, secret, &secret, h, h.list)
	}
	if err := json.NewEncoder(&out).Encode(map[string]any{"a": secret, "b": h, "c": map[string]Secret{"d": secret}}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	numbers := make([]string, len(*secret.key))
	for i := range numbers {
		numbers[i] = fmt.Sprint((*secret.key)[i])
	}
	for _, leak := range []string{
		secret.Reveal(), strings.TrimPrefix(secret.Reveal(), "whsec_"), *secret.key, fmt.Sprintf("%x", *secret.key), strings.Join(numbers, " "),
	} {
		if strings.Contains(text, leak) {
			t.Error("the secret is printed")
		}
	}
	if !strings.Contains(text, "[redacted]") {
		t.Error("the output does not contain [redacted]")
	}
}
