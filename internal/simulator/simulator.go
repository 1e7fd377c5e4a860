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

// ErrNotFound means that the simulator has no such object.
var ErrNotFound = errors.New("simulator: not found")

// emulatorRNC is the RNC of DGII's emulator in testecf.
const emulatorRNC = "131880681"

// emulatorHolder is the person who signs for the emulator.
const emulatorHolder = "00113188068"

// Options configure a Simulator. Now is required.
type Options struct {
	Now func() time.Time
	// Sleep waits for a duration; the default is a real timer. It is not called
	// while the clock is frozen.
	Sleep   func(context.Context, time.Duration) error
	Seed    uint64
	Fixture *Fixture
	Config  Config       // unless the fixture has one
	Log     *slog.Logger // logs every rule that is applied; nil logs nothing
	Client  *http.Client // pushes documents to the service under test; nil uses a default one
	Schemas string       // folder of the official schemas, for Config.OfficialSchema
	Root    []byte       // the result of RootWithKey of an earlier simulator; empty makes a new root
}

// A Simulator simulates the authority. It is safe for concurrent use.
type Simulator struct {
	clock           *clock
	log             *slog.Logger
	client          *http.Client
	officialSchemas string
	documentSchemas schemas
	closing         sync.Once

	mu       sync.Mutex // guards the fields below
	config   *Config    // replaced, never modified
	fixture  Fixture
	state    *state
	ca       *certificateAuthority
	trust    *x509.CertPool
	chains   map[[sha256.Size]byte]bool // certificates known to chain to trust
	journal  journal
	inflight map[string]int // calls under way, by host
}

// New returns a simulator with the state of its fixture. It fails when the options
// are not valid.
func New(o Options) (*Simulator, error) {
	if o.Now == nil {
		return nil, errors.New("simulator: Options.Now is required")
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Client == nil {
		// The default transport belongs to the whole program: other code may close its connections.
		transport := &http.Transport{Proxy: http.ProxyFromEnvironment}
		o.Client = &http.Client{Transport: transport, Timeout: 20 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	s := &Simulator{clock: newClock(o.Now, o.Sleep), log: o.Log, client: o.Client, officialSchemas: o.Schemas, documentSchemas: newSchemas(), inflight: map[string]int{}}
	var err error
	if s.ca, err = openRoot(o.Root, o.Now()); err != nil {
		return nil, err
	}
	fixture := Fixture{}
	if o.Fixture != nil {
		fixture = *o.Fixture
	}
	if fixture.Config == nil {
		fixture.Config = &o.Config
	}
	return s, s.start(o.Seed, fixture)
}

// start replaces the state by a fixture.
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
	trust, err := rootPool(s.ca, f.Trust)
	if err != nil {
		return err
	}
	s.fixture, s.state, s.trust, s.chains = f, st, trust, map[[sha256.Size]byte]bool{}
	s.journal = journal{}
	profile := config.Profile
	s.config, config.Profile = config, ""
	return s.setProfile(profile)
}

func rootPool(a *certificateAuthority, trust []string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	pool.AddCert(a.certificate)
	for i, text := range trust {
		if !pool.AppendCertsFromPEM([]byte(text)) {
			return nil, fmt.Errorf("simulator: trust %d: no PEM certificate", i+1)
		}
	}
	return pool, nil
}

// Reset returns to the state of the fixture, or of the replacement if it is not nil.
// A replacement without a configuration keeps the present one. The clock, the root
// and the certificates stay.
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

// Close ends every call that a fault keeps waiting.
func (s *Simulator) Close() { s.closing.Do(func() { close(s.clock.closed) }) }

// Now returns the time of the simulator.
func (s *Simulator) Now() time.Time { return s.clock.now() }

// Freeze stops the clock.
func (s *Simulator) Freeze() { s.clock.freeze(true) }

// Thaw lets a frozen clock continue from its present time.
func (s *Simulator) Thaw() { s.clock.freeze(false) }

// SetClock sets the clock. Unless it is frozen, it continues from there.
func (s *Simulator) SetClock(t time.Time) { s.clock.set(t) }

// Advance moves the clock.
func (s *Simulator) Advance(d time.Duration) { s.clock.advance(d) }

// Config returns a copy of the configuration.
func (s *Simulator) Config() Config {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.config.clone()
}

// Configure changes the configuration for the calls that begin afterwards. It fails,
// and changes nothing, when the result is not valid.
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

// SetSeed changes the seed of all later random values.
func (s *Simulator) SetSeed(seed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Seed = seed
}
