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

// A snapshot is the JSON form of a simulator. It holds the key of the root, so that
// certificates that were issued before stay trusted. Nothing else trusts that key.
type snapshot struct {
	State   *state
	Config  *Config
	Fixture Fixture
	Root    []byte
	Key     []byte
	Serial  int64
	Now     time.Time
	Frozen  bool
}

// Snapshot returns the whole state except the journal.
func (s *Simulator) Snapshot() ([]byte, error) {
	now, frozen := s.clock.now(), s.clock.isFrozen()
	s.mu.Lock()
	defer s.mu.Unlock()
	key, err := x509.MarshalPKCS8PrivateKey(s.ca.key)
	if err != nil {
		return nil, fmt.Errorf("simulator: snapshot: %w", err)
	}
	s.ca.mu.Lock()
	serial := s.ca.serial
	s.ca.mu.Unlock()
	return json.Marshal(snapshot{s.state, s.config, s.fixture, s.ca.certificate.Raw, key, serial, now, frozen})
}

// Restore replaces the state by a snapshot. It fails when data is not a snapshot.
func (s *Simulator) Restore(data []byte) error {
	in := snapshot{State: newState(0)}
	if err := json.Unmarshal(data, &in); err != nil {
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
		return errors.New("simulator: restore: not a snapshot")
	}
	for _, amb := range []string{TestECF, CertECF, ECF} {
		if e := in.State.Environments[amb]; e == nil || e.Documents == nil || e.Numbers == nil || e.Seeds == nil {
			return errors.New("simulator: restore: not a snapshot")
		}
	}
	authority := &certificateAuthority{certificate: certificate, key: key, serial: in.Serial, identities: map[string]*xmlsig.Identity{}}
	trust, err := rootPool(authority, in.Fixture.Trust)
	if err != nil {
		return err
	}
	s.clock.freeze(in.Frozen)
	s.clock.set(in.Now)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.config, s.fixture, s.ca, s.trust = in.State, in.Config, in.Fixture, authority, trust
	s.chains = map[[sha256.Size]byte]bool{}
	return nil
}
