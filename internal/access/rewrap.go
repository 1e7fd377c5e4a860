package access

import (
	"context"
	"fmt"

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

func moveCertificates(ctx context.Context, tx *store.Tx, rewrap rewrapper) (n int, err error) {
	all, err := tx.Certificates(ctx)
	if err != nil {
		return 0, err
	}
	for _, c := range all {
		if c.Sealed, err = rewrap(c.Sealed, certificateAAD(c)); err != nil {
			return 0, fmt.Errorf("access: rewrap certificate %s: %w", c.ID, err)
		}
		if err := tx.RewrapCertificate(ctx, c); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func moveEndpoints(ctx context.Context, tx *store.Tx, rewrap rewrapper) (n int, err error) {
	all, err := tx.AllEndpoints(ctx)
	if err != nil {
		return 0, err
	}
	for _, e := range all {
		if e.Secret.Sealed, err = rewrap(e.Secret.Sealed, EndpointBinding(e.Scope, e.ID, e.Secret.Version).aad()); err == nil {
			e.OldSecret.Sealed, err = rewrap.optional(e.OldSecret.Sealed, EndpointBinding(e.Scope, e.ID, e.OldSecret.Version))
		}
		if err != nil {
			return 0, fmt.Errorf("access: rewrap webhook endpoint %s: %w", e.ID, err)
		}
		if err := tx.RewrapEndpoint(ctx, e); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func moveSources(ctx context.Context, tx *store.Tx, rewrap rewrapper) (n int, err error) {
	all, err := tx.Sources(ctx)
	if err != nil {
		return 0, err
	}
	for _, s := range all {
		if s.Secret.Sealed, err = rewrap(s.Secret.Sealed, SourceBinding(s.Scope, s.ID, s.Secret.Version).aad()); err == nil {
			s.OldSecret.Sealed, err = rewrap.optional(s.OldSecret.Sealed, SourceBinding(s.Scope, s.ID, s.OldSecret.Version))
		}
		if err != nil {
			return 0, fmt.Errorf("access: rewrap event source %s: %w", s.ID, err)
		}
		if err := tx.RewrapSource(ctx, s); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func moveAnswers(ctx context.Context, tx *store.Tx, rewrap rewrapper) (n int, err error) {
	all, err := tx.SealedAnswers(ctx)
	if err != nil {
		return 0, err
	}
	for _, a := range all {
		if a.Secret.Sealed, err = rewrap(a.Secret.Sealed, AnswerBinding(a.Scope, a.Operation, a.Key).aad()); err != nil {
			return 0, fmt.Errorf("access: rewrap the answer of %s: %w", a.Operation, err)
		}
		if err := tx.RewrapAnswer(ctx, a); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

func moveSecondFactors(ctx context.Context, tx *store.Tx, rewrap rewrapper) (n int, err error) {
	all, err := tx.Users(ctx)
	if err != nil {
		return 0, err
	}
	for _, u := range all {
		if len(u.SecondFactor) == 0 {
			continue
		}
		if u.SecondFactor, err = rewrap(u.SecondFactor, SecondFactorBinding(u.ID).aad()); err != nil {
			return 0, fmt.Errorf("access: rewrap the second factor of user %s: %w", u.ID, err)
		}
		if err := tx.RewrapUser(ctx, u); err != nil {
			return 0, err
		}
		n++
	}
	return n, nil
}
