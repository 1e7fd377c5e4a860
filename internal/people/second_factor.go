package people

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
