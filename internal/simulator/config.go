package simulator

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quagmt/udecimal"
)

// A Duration is a time.Duration that reads and writes as text in JSON.
type Duration time.Duration

// MarshalText writes the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// A Span is from where to where a delay is drawn.
type Span struct {
	Min Duration `json:"min"`
	Max Duration `json:"max"`
}

// Fixed is a delay that is always the same.
func Fixed(d time.Duration) *Span { return &Span{Duration(d), Duration(d)} }

// Between is a delay drawn evenly.
func Between(least, most time.Duration) *Span { return &Span{Duration(least), Duration(most)} }

// A Wire is how answers are written.
type Wire string

// The wire profiles: as captured from DGII, and as its documents have them.
const (
	Observed   Wire = "observed"
	Documented Wire = "documented"
)

// A DuplicateMode is what becomes of a number that is posted again.
type DuplicateMode string

// The modes. Reject is what DGII does.
const (
	DuplicateReject      DuplicateMode = "reject"       // another trackId, which ends rejected
	DuplicateSameVerdict DuplicateMode = "same_verdict" // another trackId with the verdict of the first, for the same bytes
	DuplicateSameTrackID DuplicateMode = "same_trackid" // the first trackId again, for the same bytes
)

// Config is how the simulator behaves. The zero value is the default.
type Config struct {
	Wire          Wire          `json:"wire,omitempty"`
	DuplicateMode DuplicateMode `json:"duplicate_mode,omitempty"`
	// CertECFFull offers in certecf the services that it has not.
	CertECFFull bool `json:"certecf_full,omitempty"`
	// Latency of every answer; 5 to 30 ms by default, none while the clock is
	// frozen.
	Latency *Span `json:"latency,omitempty"`
	// ValidationDelay of documents, by environment and for the others; without
	// either a mixture from 150 ms to 5 min is drawn.
	ValidationDelay  *Span            `json:"validation_delay,omitempty"`
	ValidationDelays map[string]*Span `json:"validation_delays,omitempty"`
	// VisibilityLag is how long look-ups do not find a new document; none by
	// default.
	VisibilityLag *Span `json:"visibility_lag,omitempty"`
	// Tolerance in pesos by line, 1.00 by default.
	Tolerance string `json:"tolerance,omitempty"`
	// CheckBuyer is off, digit (the default: its check digit) or registry (and
	// that it is a taxpayer).
	CheckBuyer string `json:"check_buyer,omitempty"`
	// Strict makes every conditional a rejection, and counts it as a reset of
	// the certification.
	Strict bool `json:"strict,omitempty"`
	// MagicNumbers gives the last three digits 901 to 907 of an e-NCF their
	// faults.
	MagicNumbers bool `json:"magic_numbers,omitempty"`
	// Maintenance closes every service.
	Maintenance bool `json:"maintenance,omitempty"`
	// ClockSkew of the servers from the clock.
	ClockSkew Duration `json:"clock_skew,omitempty"`
	// StatusKey is the API key of the status service; without it nobody may ask.
	StatusKey string `json:"status_key,omitempty"`
	// MaxParallel calls to a host are no violation; 8 by default, below 0 any.
	MaxParallel int `json:"max_parallel,omitempty"`
	// PollInterval is how often a trackId may be asked for; 1 s by default,
	// below 0 at will.
	PollInterval Duration `json:"poll_interval,omitempty"`
	// JournalSize is how many requests are remembered; 2000 by default.
	JournalSize int `json:"journal_size,omitempty"`
	// Lean keeps neither journal nor bytes of documents, for benches.
	Lean bool `json:"lean,omitempty"`
	// OfficialSchema also asks the schemas of Options.Schemas. It is slow.
	OfficialSchema bool `json:"official_schema,omitempty"`
	// Profile is the last one set.
	Profile string `json:"profile,omitempty"`
}

// Quick is a configuration without any delay, for tests.
func Quick() Config { return Config{Latency: Fixed(0), ValidationDelay: Fixed(0)} }

func (c Config) check() error {
	if c.Wire != "" && c.Wire != Observed && c.Wire != Documented {
		return fmt.Errorf("simulator: wire %q: want observed or documented", c.Wire)
	}
	if !slices.Contains([]DuplicateMode{"", DuplicateReject, DuplicateSameVerdict, DuplicateSameTrackID}, c.DuplicateMode) {
		return fmt.Errorf("simulator: duplicate_mode %q: want reject, same_verdict or same_trackid", c.DuplicateMode)
	}
	if !slices.Contains([]string{"", "off", "digit", "registry"}, c.CheckBuyer) {
		return fmt.Errorf("simulator: check_buyer %q: want off, digit or registry", c.CheckBuyer)
	}
	if c.Tolerance != "" {
		if _, err := udecimal.Parse(c.Tolerance); err != nil {
			return fmt.Errorf("simulator: tolerance %q: want pesos, as in 1.00", c.Tolerance)
		}
	}
	for amb := range c.ValidationDelays {
		if !isEnvironment(amb) {
			return fmt.Errorf("simulator: validation_delays: no environment %q", amb)
		}
	}
	spans := append(slices.Collect(maps.Values(c.ValidationDelays)), c.Latency, c.ValidationDelay, c.VisibilityLag)
	for _, s := range spans {
		if s != nil && (s.Min < 0 || s.Max < s.Min) {
			return fmt.Errorf("simulator: a delay from %s to %s is none", time.Duration(s.Min), time.Duration(s.Max))
		}
	}
	return nil
}

// clone copies the spans as well, which whoever decodes into a copy would write
// through.
func (c Config) clone() *Config {
	span := func(s *Span) *Span {
		if s == nil {
			return nil
		}
		own := *s
		return &own
	}
	c.Latency, c.ValidationDelay, c.VisibilityLag = span(c.Latency), span(c.ValidationDelay), span(c.VisibilityLag)
	c.ValidationDelays = maps.Clone(c.ValidationDelays)
	for amb, s := range c.ValidationDelays {
		c.ValidationDelays[amb] = span(s)
	}
	return &c
}

func (c *Config) documented() bool { return c.Wire == Documented }

func (c *Config) tolerance() udecimal.Decimal {
	if d, err := udecimal.Parse(c.Tolerance); err == nil {
		return d
	}
	return udecimal.MustFromUint64(1, 0)
}

func (c *Config) maxParallel() int {
	if c.MaxParallel == 0 {
		return 8
	}
	return c.MaxParallel
}

// pollInterval leaves a twentieth to the network, which delays one poll and not
// the next.
func (c *Config) pollInterval() time.Duration {
	if c.PollInterval == 0 {
		return time.Second - 50*time.Millisecond
	}
	return time.Duration(c.PollInterval) * 19 / 20
}

func (c *Config) journalSize() int {
	switch {
	case c.Lean:
		return 0
	case c.JournalSize == 0:
		return 2000
	}
	return c.JournalSize
}

// validationDelay draws how long a document is in process.
func (c *Config) validationDelay(amb string, d draw) time.Duration {
	if s := c.ValidationDelays[amb]; s != nil {
		return d.within(s)
	}
	if c.ValidationDelay != nil {
		return d.within(c.ValidationDelay)
	}
	switch band := d.percent(); {
	case band < 80:
		return d.within(Between(150*time.Millisecond, 400*time.Millisecond))
	case band < 95:
		return d.within(Between(400*time.Millisecond, 3*time.Second))
	case band < 99:
		return d.within(Between(3*time.Second, 30*time.Second))
	}
	return d.within(Between(30*time.Second, 5*time.Minute))
}

func (c *Config) latency(d draw) time.Duration {
	if c.Latency != nil {
		return d.within(c.Latency)
	}
	return d.within(Between(5*time.Millisecond, 30*time.Millisecond))
}
