package notify

import (
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// Overlap is how long the old secret of an endpoint or source stays valid after a
// rotation, unless the operator chooses another time.
const Overlap = 24 * time.Hour

const maxOverlap = 7 * 24 * time.Hour

// checkOverlap fails for an overlap that is not allowed.
func checkOverlap(overlap time.Duration) error {
	if overlap < 0 || overlap > maxOverlap {
		return lang.Errorf("the overlap must be between 0 and %s", "el traslape debe estar entre 0 y %s", maxOverlap)
	}
	return nil
}

// endpointSecrets returns the secrets of an endpoint that are valid now, the newest
// first.
func endpointSecrets(s *access.Secrets, e store.Endpoint, now time.Time) ([]webhook.Secret, error) {
	return openSecrets(s, now, e.Secret, e.OldSecret, e.OldUntil, func(version int64) access.Binding {
		return access.EndpointBinding(e.Scope, e.ID, version)
	})
}

// openSecrets decrypts the current secret, and the old one if it is valid now. row
// returns the binding of a version.
func openSecrets(s *access.Secrets, now time.Time, current, old store.SealedSecret, until time.Time, row func(int64) access.Binding) ([]webhook.Secret, error) {
	sealed := []store.SealedSecret{current}
	if len(old.Sealed) > 0 && now.Before(until) {
		sealed = append(sealed, old)
	}
	secrets := make([]webhook.Secret, 0, len(sealed))
	for _, one := range sealed {
		plain, err := s.Open(row(one.Version), one.Sealed)
		if err != nil {
			return nil, err
		}
		secret, err := webhook.ParseSecret(string(plain))
		clear(plain)
		if err != nil {
			return nil, fmt.Errorf("notify: parse a stored secret: %w", err)
		}
		secrets = append(secrets, secret)
	}
	return secrets, nil
}
