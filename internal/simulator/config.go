package simulator

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/quagmt/udecimal"
)

// A Duration is a time.Duration that is text in JSON.
type Duration time.Duration

// MarshalText writes the duration as time.Duration does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText reads what time.ParseDuration reads.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}

// A Span is the range of a random delay.
type Span struct {
	Min Duration `json:"min"`
	Max Duration `json:"max"`
}

// Fixed returns the span of a constant delay.
func Fixed(d time.Duration) *Span { return &Span{Duration(d), Duration(d)} }

// Between returns the span of a uniformly random delay.
func Between(least, most time.Duration) *Span { return &Span{Duration(least), Duration(most)} }

// A Wire is the form in which answers are written.
type Wire string

// The wire forms: as captured from DGII, and as in its documentation.
const (
	Observed   Wire = "observed"
	Documented Wire = "documented"
)

// A DuplicateMode is how the simulator treats a number that is posted again.
type DuplicateMode string

// The modes. Reject is what DGII does.
const (
	DuplicateReject      DuplicateMode = "reject"       // a new trackId with the verdict rejected
	DuplicateSameVerdict DuplicateMode = "same_verdict" // for the same bytes a new trackId with the first verdict
	DuplicateSameTrackID DuplicateMode = "same_trackid" // for the same bytes the first trackId
)

// Config is the behaviour of the simulator. The zero value has the defaults.
type Config struct {
	Wire          Wire          `json:"wire,omitempty"`
	DuplicateMode DuplicateMode `json:"duplicate_mode,omitempty"`
	// CertECFFull makes certecf offer the services that the real one lacks.
	CertECFFull bool `json:"certecf_full,omitempty"`
	// Latency of every response; 5 to 30 ms by default, none while the clock is
	// frozen.
	Latency *Span `json:"latency,omitempty"`
	// ValidationDelays of documents by environment, and ValidationDelay for the
	// environments that have none. Without either the delay is random, from 150 ms
	// to 5 min.
	ValidationDelay  *Span            `json:"validation_delay,omitempty"`
	ValidationDelays map[string]*Span `json:"validation_delays,omitempty"`
	// VisibilityLag is how long look-ups do not find a new document; zero by
	// default.
	VisibilityLag *Span `json:"visibility_lag,omitempty"`
	// Tolerance in pesos for each line, 1.00 by default.
	Tolerance string `json:"tolerance,omitempty"`
	// CheckBuyer is off, digit (the default: checks the check digit) or registry
	// (checks also that the buyer is a taxpayer).
	CheckBuyer string `json:"check_buyer,omitempty"`
	// Strict turns every conditional acceptance into a rejection, and counts it as
	// a reset of the certification.
	Strict bool `json:"strict,omitempty"`
	// MagicNumbers makes the last three digits 901 to 907 of an e-NCF select a
	// fault.
	MagicNumbers bool `json:"magic_numbers,omitempty"`
	// Maintenance makes every service of the authority answer 503.
	Maintenance bool `json:"maintenance,omitempty"`
	// ClockSkew is how far the servers' clock is ahead of the simulator's.
	ClockSkew Duration `json:"clock_skew,omitempty"`
	// StatusKey is the API key of the status service. If it is empty, the service
	// refuses every call.
	StatusKey string `json:"status_key,omitempty"`
	// MaxParallel is how many calls at once to a host are no violation; 8 by
	// default, no limit if negative.
	MaxParallel int `json:"max_parallel,omitempty"`
	// PollInterval is the shortest allowed time between two look-ups of a trackId;
	// 1 s by default, no limit if negative.
	PollInterval Duration `json:"poll_interval,omitempty"`
	// JournalSize is how many requests the journal keeps; 2000 by default.
	JournalSize int `json:"journal_size,omitempty"`
	// Lean keeps neither a journal nor the bytes of documents, for benchmarks.
	Lean bool `json:"lean,omitempty"`
	// OfficialSchema also validates with the schemas in Options.Schemas. It is slow.
	OfficialSchema bool `json:"official_schema,omitempty"`
	// Profile is the profile that was set last.
	Profile string `json:"profile,omitempty"`
}

// Quick returns a configuration without delays, for tests.
func Quick() Config { return Config{Latency: Fixed(0), ValidationDelay: Fixed(0)} }

func (c Config) check() error {
	if c.Wire != "" && c.Wire != Observed && c.Wire != Documented {
		return fmt.Errorf("simulator: wire %q must be observed or documented", c.Wire)
	}
	if !slices.Contains([]DuplicateMode{"", DuplicateReject, DuplicateSameVerdict, DuplicateSameTrackID}, c.DuplicateMode) {
		return fmt.Errorf("simulator: duplicate_mode %q must be reject, same_verdict or same_trackid", c.DuplicateMode)
	}
	if !slices.Contains([]string{"", "off", "digit", "registry"}, c.CheckBuyer) {
		return fmt.Errorf("simulator: check_buyer %q must be off, digit or registry", c.CheckBuyer)
	}
	if c.Tolerance != "" {
		if _, err := udecimal.Parse(c.Tolerance); err != nil {
			return fmt.Errorf("simulator: tolerance %q must be an amount in pesos, such as 1.00", c.Tolerance)
		}
	}
	for amb := range c.ValidationDelays {
		if !isEnvironment(amb) {
			return fmt.Errorf("simulator: validation_delays: environment %q must be testecf, certecf or ecf", amb)
		}
	}
	spans := append(slices.Collect(maps.Values(c.ValidationDelays)), c.Latency, c.ValidationDelay, c.VisibilityLag)
	for _, s := range spans {
		if s != nil && (s.Min < 0 || s.Max < s.Min) {
			return fmt.Errorf("simulator: a delay from %s to %s is not valid", time.Duration(s.Min), time.Duration(s.Max))
		}
	}
	return nil
}

// clone returns a deep copy: decoding JSON into a shallow one would change the spans
// of the original.
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

// defaultParallel is MaxParallel when it is not set.
const defaultParallel = 8

// pollInterval is 5 % shorter than configured, because the network may delay one poll
// and not the next.
func (c *Config) pollInterval() time.Duration {
	if c.PollInterval == 0 {
		return time.Second - 50*time.Millisecond
	}
	return time.Duration(c.PollInterval) * 19 / 20
}

func (c *Config) journalSize() int {
	if c.Lean {
		return 0
	}
	return cmp.Or(c.JournalSize, 2000)
}

// validationDelay returns how long a document is in process.
func (c *Config) validationDelay(amb string, d random) time.Duration {
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

func (c *Config) latency(d random) time.Duration {
	if c.Latency != nil {
		return d.within(c.Latency)
	}
	return d.within(Between(5*time.Millisecond, 30*time.Millisecond))
}
