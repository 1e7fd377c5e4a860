package simulator

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A saved is a snapshot. It holds the key of the root, which is worth nothing
// elsewhere, so that certificates issued before it was taken are trusted after.
type saved struct {
	State   *state
	Config  *Config
	Fixture Fixture
	Root    []byte
	Key     []byte
	Serial  int64
	Now     time.Time
	Frozen  bool
}

// Snapshot returns the whole state, but for the journal.
func (s *Simulator) Snapshot() ([]byte, error) {
	now, frozen := s.clock.now(), s.clock.isFrozen()
	s.mu.Lock()
	defer s.mu.Unlock()
	key, err := x509.MarshalPKCS8PrivateKey(s.authority.key)
	if err != nil {
		return nil, fmt.Errorf("simulator: snapshot: %w", err)
	}
	s.authority.mu.Lock()
	serial := s.authority.serial
	s.authority.mu.Unlock()
	return json.Marshal(saved{s.state, s.config, s.fixture, s.authority.certificate.Raw, key, serial, now, frozen})
}

// Restore puts a snapshot in place of the state.
func (s *Simulator) Restore(snapshot []byte) error {
	in := saved{State: newState(0)}
	if err := json.Unmarshal(snapshot, &in); err != nil {
		return fmt.Errorf("simulator: restore: %w", err)
	}
	certificate, err := x509.ParseCertificate(in.Root)
	if err != nil {
		return fmt.Errorf("simulator: restore: %w", err)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(in.Key)
	if err != nil {
		return fmt.Errorf("simulator: restore: %w", err)
	}
	key, ok := parsed.(crypto.Signer)
	if !ok || in.State == nil || in.Config == nil {
		return errors.New("simulator: restore: it is no snapshot")
	}
	for _, amb := range []string{TestECF, CertECF, ECF} {
		if e := in.State.Environments[amb]; e == nil || e.Documents == nil || e.Numbers == nil || e.Seeds == nil {
			return errors.New("simulator: restore: it is no snapshot")
		}
	}
	authority := &authority{certificate: certificate, key: key, serial: in.Serial, identities: map[string]*xmlsig.Identity{}}
	trust, err := roots(authority, in.Fixture.Trust)
	if err != nil {
		return err
	}
	s.clock.freeze(in.Frozen)
	s.clock.set(in.Now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.config, s.fixture, s.authority, s.trust = in.State, in.Config, in.Fixture, authority, trust
	s.chains = map[[sha256.Size]byte]bool{}
	return nil
}
