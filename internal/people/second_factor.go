package people

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // RFC 6238: what every authenticator program computes
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrSecondFactor means that a person has a second factor already, or has none to confirm.
var ErrSecondFactor = errors.New("the second factor is not in the state for this change")

// Enrolment is a second factor that is not in force yet.
type Enrolment struct {
	Secret  string // for a person who enters it by hand
	Address string // for the QR code
}

// BeginSecondFactor makes a new secret for a person. The second factor is in force when
// ConfirmSecondFactor has seen a code of it. It fails with ErrSecondFactor when the person
// has one in force.
func (p *People) BeginSecondFactor(ctx context.Context, u store.User) error {
	secret := make([]byte, totpSecret)
	if _, err := rand.Read(secret); err != nil {
		return fmt.Errorf("people: make second factor: %w", err)
	}
	return p.o.Secrets.Update(ctx, func(tx *store.Tx, seal access.Sealer) error {
		sealed, err := seal(access.SecondFactorBinding(u.ID), secret)
		if err != nil {
			return err
		}
		return tx.UpdateUser(ctx, u.ID, "user.second_factor_begin", func(u *store.User) error {
			if !u.SecondFactorAt.IsZero() {
				return ErrSecondFactor
			}
			u.SecondFactor = sealed.Sealed
			return nil
		})
	})
}

// PendingSecondFactor returns the second factor of a person that is not in force yet. It
// reports false when there is none.
func (p *People) PendingSecondFactor(u store.User) (Enrolment, bool, error) {
	if len(u.SecondFactor) == 0 || !u.SecondFactorAt.IsZero() {
		return Enrolment{}, false, nil
	}
	secret, err := p.o.Secrets.Open(access.SecondFactorBinding(u.ID), u.SecondFactor)
	if err != nil {
		return Enrolment{}, false, err
	}
	return Enrolment{Secret: secretEncoding.EncodeToString(secret), Address: otpAddress(u.Email, secret)}, true, nil
}

// ConfirmSecondFactor puts a person's new second factor in force, ends the person's other
// sessions, and returns recovery codes, which nothing can show again. It fails with
// ErrDenied when the code is wrong, and with ErrSecondFactor when there is nothing to
// confirm.
func (p *People) ConfirmSecondFactor(ctx context.Context, u store.User, session store.UserSession, text string) ([]string, error) {
	if len(u.SecondFactor) == 0 || !u.SecondFactorAt.IsZero() {
		return nil, ErrSecondFactor
	}
	secret, err := p.o.Secrets.Open(access.SecondFactorBinding(u.ID), u.SecondFactor)
	if err != nil {
		return nil, err
	}
	step, ok := matchCode(secret, text, p.o.Now())
	if !ok {
		return nil, ErrDenied
	}
	codes, digests, err := newRecoveryCodes()
	if err != nil {
		return nil, err
	}
	_, err = p.update(ctx, u.ID, "user.second_factor", func(tx *store.Tx, now *store.User) error {
		if !now.SecondFactorAt.IsZero() || string(now.SecondFactor) != string(u.SecondFactor) {
			return ErrSecondFactor
		}
		now.SecondFactorAt, now.LastStep = p.o.Now(), step
		if err := tx.SetRecoveryCodes(ctx, u.ID, digests); err != nil {
			return err
		}
		return tx.EndUserSessions(ctx, u.ID, session.ID)
	})
	return codes, err
}

// RemoveSecondFactor removes the second factor of a person who knows the password. It fails
// with ErrDenied, with a *LimitedError, and with ErrBusy.
func (p *People) RemoveSecondFactor(ctx context.Context, u store.User, password string) error {
	if err := p.checkPassword(ctx, u, password); err != nil {
		return err
	}
	_, err := p.update(ctx, u.ID, "user.second_factor_remove", func(tx *store.Tx, u *store.User) error {
		u.SecondFactor, u.SecondFactorAt = nil, time.Time{}
		return tx.SetRecoveryCodes(ctx, u.ID, nil)
	})
	return err
}

// RecoveryCodesLeft returns how many recovery codes a person has left.
func (p *People) RecoveryCodesLeft(ctx context.Context, userID string) (int, error) {
	return p.o.Store.CountRecoveryCodes(ctx, userID)
}

// checkSecondFactor checks the code of a person whose second factor is in force, and uses
// it up. It fails with ErrDenied.
func (p *People) checkSecondFactor(ctx context.Context, tx *store.Tx, u store.User, text string) error {
	if u.SecondFactorAt.IsZero() {
		return nil
	}
	secret, err := p.o.Secrets.Open(access.SecondFactorBinding(u.ID), u.SecondFactor)
	if err != nil {
		return err
	}
	fresh := false
	if step, ok := matchCode(secret, text, p.o.Now()); ok {
		fresh, err = tx.UseSecondFactor(ctx, u.ID, step)
	} else {
		fresh, err = tx.UseRecoveryCode(ctx, u.ID, recoveryDigest(text))
	}
	if err == nil && !fresh {
		return ErrDenied
	}
	return err
}

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
