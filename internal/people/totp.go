package people

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6238: what every authenticator program computes
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// The second factor is a time-based one-time password (RFC 6238) with the parameters that
// every authenticator program knows: SHA-1, 6 digits, 30 seconds.
const (
	totpSecret = 20 // bytes
	totpStep   = 30 // seconds
	totpDigits = 6
	totpModulo = 1_000_000
	// totpDrift is how many steps the clock of a phone may be off, before or behind.
	totpDrift = 1

	recoveryCodes = 10
	recoveryBytes = 10 // of one code: 80 random bits
)

var secretEncoding = base32.StdEncoding.WithPadding(base32.NoPadding)

// code returns the one-time password of a step.
func code(secret []byte, step int64) string {
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, step) // a hash never fails
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 0x0f
	number := binary.BigEndian.Uint32(sum[at:]) & 0x7fffffff
	return fmt.Sprintf("%0*d", totpDigits, number%totpModulo)
}

// stepOf returns the step of an instant.
func stepOf(t time.Time) int64 { return t.Unix() / totpStep }

// matchCode returns the step whose one-time password is the given text, near the step of
// now. It compares with every step, so that the duration reveals nothing.
func matchCode(secret []byte, text string, now time.Time) (step int64, ok bool) {
	text = strings.ReplaceAll(strings.TrimSpace(text), " ", "")
	middle := stepOf(now)
	for one := middle - totpDrift; one <= middle+totpDrift; one++ {
		if subtle.ConstantTimeCompare([]byte(code(secret, one)), []byte(text)) == 1 {
			step, ok = one, true
		}
	}
	return step, ok
}

// otpAddress returns the address that an authenticator program reads from a QR code.
func otpAddress(account string, secret []byte) string {
	label := url.PathEscape("fiscalhub:" + account)
	return "otpauth://totp/" + label + "?" + url.Values{
		"secret": {secretEncoding.EncodeToString(secret)}, "issuer": {"fiscalhub"}, "algorithm": {"SHA1"}, "digits": {"6"}, "period": {"30"},
	}.Encode()
}

// newRecoveryCodes returns new recovery codes and their digests.
func newRecoveryCodes() (codes []string, digests [][]byte, err error) {
	for range recoveryCodes {
		bits := make([]byte, recoveryBytes)
		if _, err := rand.Read(bits); err != nil {
			return nil, nil, fmt.Errorf("people: make recovery code: %w", err)
		}
		text := secretEncoding.EncodeToString(bits)
		shown := text[0:4] + "-" + text[4:8] + "-" + text[8:12] + "-" + text[12:16]
		codes, digests = append(codes, shown), append(digests, recoveryDigest(shown))
	}
	return codes, digests, nil
}

// recoveryDigest returns the digest of a recovery code, however the person writes it.
func recoveryDigest(text string) []byte {
	text = strings.ToUpper(strings.Map(func(r rune) rune {
		if r == '-' || r == ' ' {
			return -1
		}
		return r
	}, text))
	sum := sha256.Sum256([]byte(text))
	return sum[:]
}
