package access

import (
	"context"
	"fmt"
	"slices"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// rewrapper moves sealed bytes to another master key.
type rewrapper func(sealed, aad []byte) ([]byte, error)

// optional rewraps sealed bytes, or returns nil when there are none.
func (r rewrapper) optional(sealed []byte, row Binding) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	return r(sealed, row.aad())
}

// A move rewraps one row and stores it.
type move func() error

// newMoves returns a move for each row.
func newMoves[Row any](rows []Row, err error, one func(Row) error) ([]move, error) {
	all := make([]move, len(rows))
	for i, row := range rows {
		all[i] = func() error { return one(row) }
	}
	return all, err
}

func keyMoves(ctx context.Context, tx *store.Tx, rewrap rewrapper) ([]move, error) {
	rows, err := tx.LockSecrets(ctx)
	return newMoves(rows, err, func(s store.Secret) (err error) {
		if s.Sealed, err = rewrap(s.Sealed, keyAAD(s.Kind, s.Version)); err != nil {
			return fmt.Errorf("access: rewrap %s %d: %w", s.Kind, s.Version, err)
		}
		return tx.RewrapSecret(ctx, s)
	})
}

func certificateMoves(ctx context.Context, tx *store.Tx, rewrap rewrapper) ([]move, error) {
	rows, err := tx.Certificates(ctx)
	return newMoves(rows, err, func(c store.Certificate) (err error) {
		if c.Sealed, err = rewrap(c.Sealed, certificateAAD(c)); err != nil {
			return fmt.Errorf("access: rewrap certificate %s: %w", c.ID, err)
		}
		return tx.RewrapCertificate(ctx, c)
	})
}

func endpointMoves(ctx context.Context, tx *store.Tx, rewrap rewrapper) ([]move, error) {
	rows, err := tx.AllEndpoints(ctx)
	return newMoves(rows, err, func(e store.Endpoint) (err error) {
		if e.Secret.Sealed, err = rewrap(e.Secret.Sealed, EndpointBinding(e.Scope, e.ID, e.Secret.Version).aad()); err == nil {
			e.OldSecret.Sealed, err = rewrap.optional(e.OldSecret.Sealed, EndpointBinding(e.Scope, e.ID, e.OldSecret.Version))
		}
		if err != nil {
			return fmt.Errorf("access: rewrap webhook endpoint %s: %w", e.ID, err)
		}
		return tx.RewrapEndpoint(ctx, e)
	})
}

func sourceMoves(ctx context.Context, tx *store.Tx, rewrap rewrapper) ([]move, error) {
	rows, err := tx.Sources(ctx)
	return newMoves(rows, err, func(s store.Source) (err error) {
		if s.Secret.Sealed, err = rewrap(s.Secret.Sealed, SourceBinding(s.Scope, s.ID, s.Secret.Version).aad()); err == nil {
			s.OldSecret.Sealed, err = rewrap.optional(s.OldSecret.Sealed, SourceBinding(s.Scope, s.ID, s.OldSecret.Version))
		}
		if err != nil {
			return fmt.Errorf("access: rewrap event source %s: %w", s.ID, err)
		}
		return tx.RewrapSource(ctx, s)
	})
}

func answerMoves(ctx context.Context, tx *store.Tx, rewrap rewrapper) ([]move, error) {
	rows, err := tx.SealedAnswers(ctx)
	return newMoves(rows, err, func(a store.SealedAnswer) (err error) {
		if a.Secret.Sealed, err = rewrap(a.Secret.Sealed, AnswerBinding(a.Scope, a.Operation, a.Key).aad()); err != nil {
			return fmt.Errorf("access: rewrap the answer of %s: %w", a.Operation, err)
		}
		return tx.RewrapAnswer(ctx, a)
	})
}

func secondFactorMoves(ctx context.Context, tx *store.Tx, rewrap rewrapper) ([]move, error) {
	rows, err := tx.Users(ctx)
	rows = slices.DeleteFunc(rows, func(u store.User) bool { return len(u.SecondFactor) == 0 })
	return newMoves(rows, err, func(u store.User) (err error) {
		if u.SecondFactor, err = rewrap(u.SecondFactor, SecondFactorBinding(u.ID).aad()); err != nil {
			return fmt.Errorf("access: rewrap the second factor of user %s: %w", u.ID, err)
		}
		return tx.RewrapUser(ctx, u)
	})
}
