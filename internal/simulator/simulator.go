package simulator

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"
)

// ErrNotFound is something that the simulator does not have.
var ErrNotFound = errors.New("simulator: not found")

// emulatorRNC is the taxpayer that DGII plays in testecf.
const emulatorRNC = "131880681"

// emulatorHolder is the person who signs for it.
const emulatorHolder = "00113188068"

// Options are what a simulator is made of. Now is required.
type Options struct {
	Now func() time.Time
	// Sleep waits; nil is for real. It is not called while the clock is frozen.
	Sleep   func(context.Context, time.Duration) error
	Seed    uint64
	Fixture *Fixture
	Config  Config       // unless the fixture has one
	Log     *slog.Logger // every firing of a rule; nil is nowhere
	Client  *http.Client // to push to the service under test; nil is one of its own
	Schemas string       // folder of the official schemas, for Config.OfficialSchema
}

// A Simulator is the authority. Its methods may be called at any time, from
// anywhere.
type Simulator struct {
	clock     *clock
	log       *slog.Logger
	client    *http.Client
	schemas   string
	structure structure
	closing   sync.Once

	mu        sync.Mutex // over all that follows
	config    *Config    // replaced, never changed
	fixture   Fixture
	state     *state
	authority *authority
	trust     *x509.CertPool
	chains    map[[sha256.Size]byte]bool // certificates that chain to it
	journal   journal
	inflight  map[string]int // calls by host
}

// New makes a simulator with the state of its fixture.
func New(o Options) (*Simulator, error) {
	if o.Now == nil {
		return nil, errors.New("simulator: it needs a clock")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		o.Client = &http.Client{Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	s := &Simulator{clock: newClock(o.Now, o.Sleep), log: o.Log, client: o.Client, schemas: o.Schemas, structure: newStructure(), inflight: map[string]int{}}
	key, err := rootKey()
	if err != nil {
		return nil, fmt.Errorf("simulator: key: %w", err)
	}
	authority, err := newAuthority("Autoridad del Simulador", key, o.Now())
	if err != nil {
		return nil, err
	}
	s.authority = authority
	fixture := Fixture{}
	if o.Fixture != nil {
		fixture = *o.Fixture
	}
	if fixture.Config == nil {
		fixture.Config = &o.Config
	}
	return s, s.start(o.Seed, fixture)
}

// start empties the state and puts a fixture into it.
func (s *Simulator) start(seed uint64, f Fixture) error {
	config := &Config{}
	if f.Config != nil {
		config = f.Config.clone()
	}
	if err := config.check(); err != nil {
		return err
	}
	st := newState(seed)
	st.addTaxpayer(Taxpayer{RNC: emulatorRNC, Name: "DGII", Delegates: []Delegate{{ID: emulatorHolder}}, Receiver: &Receiver{}})
	for _, t := range f.Taxpayers {
		if err := t.check(); err != nil {
			return err
		}
		st.addTaxpayer(t)
	}
	for _, r := range f.Rules {
		if _, err := st.addRule(r); err != nil {
			return err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	trust, err := roots(s.authority, f.Trust)
	if err != nil {
		return err
	}
	s.fixture, s.state, s.trust, s.chains = f, st, trust, map[[sha256.Size]byte]bool{}
	s.journal = journal{}
	profile := config.Profile
	s.config, config.Profile = config, ""
	return s.setProfile(profile)
}

func roots(a *authority, trust []string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	for i, text := range trust {
		if !pool.AppendCertsFromPEM([]byte(text)) {
			return nil, fmt.Errorf("simulator: trust %d: no certificate in PEM", i+1)
		}
	}
	return pool, nil
}

// Reset empties the state and keeps the fixture, or puts another in its place; one
// without a configuration takes the one there was. The clock, the root and the
// certificates stay.
func (s *Simulator) Reset(replacement *Fixture) error {
	s.mu.Lock()
	fixture, seed := s.fixture, s.state.Seed
	s.mu.Unlock()
	if replacement != nil {
		config := fixture.Config
		if fixture = *replacement; fixture.Config == nil {
			fixture.Config = config
		}
	}
	return s.start(seed, fixture)
}

// Close ends every call that waits on purpose.
func (s *Simulator) Close() { s.closing.Do(func() { close(s.clock.closed) }) }

// Now is the time of the simulator.
func (s *Simulator) Now() time.Time { return s.clock.now() }

// Freeze stops the clock.
func (s *Simulator) Freeze() { s.clock.freeze(true) }

// Thaw lets the clock go on from where it stands.
func (s *Simulator) Thaw() { s.clock.freeze(false) }

// SetClock sets the clock; when it is not frozen it goes on from there.
func (s *Simulator) SetClock(t time.Time) { s.clock.set(t) }

// Advance moves the clock.
func (s *Simulator) Advance(d time.Duration) { s.clock.advance(d) }

// Config returns how the simulator behaves.
func (s *Simulator) Config() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.config.clone()
}

// Configure changes how the simulator behaves, from the next call on.
func (s *Simulator) Configure(change func(*Config)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.config.clone()
	change(next)
	if err := next.check(); err != nil {
		return err
	}
	before, profile := s.config, next.Profile
	s.config, next.Profile = next, before.Profile
	if profile == before.Profile {
		return nil
	}
	err := s.setProfile(profile)
	if err != nil {
		s.config = before
	}
	return err
}

// SetSeed changes the seed of what is drawn from now on.
func (s *Simulator) SetSeed(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Seed = seed
}
