package main

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // America/Santo_Domingo on machines without zone files

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/node"
)

type serveCmd struct {
	Environment     string        `help:"sandbox, certification or production." enum:"sandbox,certification,production" default:"sandbox"`
	Listen          string        `help:"Address to listen on (default 127.0.0.1:8080)." default:"127.0.0.1:8080" placeholder:"ADDR"`
	BaseURL         string        `name:"base-url" help:"Public address of the service, used in links. By default the address of --listen." placeholder:"URL"`
	RateLimit       *int64        `help:"Requests per minute for each credential; 0 turns the limit off. By default 600 in the sandbox and 1200 elsewhere." placeholder:"N"`
	ReceiverListen  string        `help:"Address of a separate listener for the paths under /fe/, which other taxpayers call. By default the API's listener serves them." placeholder:"ADDR"`
	MetricsListen   string        `help:"Address of a separate listener for /metrics. By default the API's listener serves it to this machine only." placeholder:"ADDR"`
	TrustedProxy    []string      `help:"Network of proxies whose X-Forwarded-For header the service trusts; may be repeated." placeholder:"CIDR"`
	MemoryLimit     string        `help:"Memory limit of the process, for example 512MiB. By default nine tenths of the limit of its control group, or a half of the memory of the machine." placeholder:"SIZE"`
	SecurityContact []string      `help:"Address (mailto: or https:) for reports of vulnerabilities, served as /.well-known/security.txt; may be repeated (default mailto:security@fiscalhub.example, which reaches nobody)." placeholder:"URI" default:"mailto:security@fiscalhub.example"`
	NoBootstrap     bool          `help:"Do not create a demonstration taxpayer and API key in an empty sandbox database."`
	NoMigrate       bool          `help:"Do not migrate the database. The service refuses to start when a migration is missing: run fiscalhub migrate first."`
	DrainDelay      time.Duration `help:"How long to answer requests after SIGTERM, while /readyz already fails." default:"5s"`
	CompareRate     int           `help:"Look-ups per minute, of all nodes together, that compare accepted documents with what the tax authority shows, at most 600; 0 turns the comparison off (default 30)." default:"30" placeholder:"N"`
	NoConsoleData   bool          `help:"Do not keep the search index, the counts and the log of requests that the console shows." hidden:""`
	LogLevel        logLevel      `help:"debug, info, warn or error." default:"info"`
	consoleFlags
	tlsFlags
	liveFlags
	privateFlag
	peerFlag

	ready func(baseURL string) `kong:"-"` // called when the service listens; nil outside of the demo
}

// serveConfig is the parsed command line of serve.
type serveConfig struct {
	env       fiscal.Environment
	baseURL   string             // empty: the address of the listener
	rateLimit int64              // requests per minute; 0 for no limit
	tls       *servedCertificate // nil: no TLS
	proxies   []netip.Prefix
	memory    capacity.Memory
	// consoleData says that the process keeps what the console shows besides documents:
	// the search index, the counts and the log of requests.
	consoleData bool
}

// maxCompareRate is the highest --compare-rate: the comparison is slow on purpose.
const maxCompareRate = 600

// check parses the flags. It fails before anything is created or opened.
func (c serveCmd) check() (config serveConfig, err error) {
	config.env, config.baseURL = fiscal.Environment(c.Environment), strings.TrimRight(c.BaseURL, "/")
	config.consoleData = c.serves(config.env) && !c.NoConsoleData
	if config.baseURL != "" {
		if err := checkBaseURL(config.baseURL); err != nil {
			return config, err
		}
	}
	if err := errors.Join(c.liveFlags.check(config.env), c.privateFlag.check(config.env), c.consoleFlags.check()); err != nil {
		return config, err
	}
	config.rateLimit = api.DefaultRateLimit(config.env)
	if c.RateLimit != nil {
		if config.rateLimit = *c.RateLimit; config.rateLimit < 0 {
			return config, wrongUsage("--rate-limit must be 0 or more",
				"--rate-limit debe ser 0 o más")
		}
	}
	if c.CompareRate < 0 || c.CompareRate > maxCompareRate {
		return config, wrongUsage("--compare-rate must be between 0 and 600",
			"--compare-rate debe estar entre 0 y 600")
	}
	if config.tls, err = c.certificate(); err != nil {
		return config, err
	}
	if config.memory, err = memoryLimit(c.MemoryLimit); err != nil {
		return config, err
	}
	for _, text := range c.TrustedProxy {
		network, err := netip.ParsePrefix(text)
		if err != nil {
			return config, wrongUsage("--trusted-proxy must be a network like 10.0.0.0/8",
				"--trusted-proxy debe ser una red como 10.0.0.0/8")
		}
		config.proxies = append(config.proxies, network)
	}
	for _, contact := range c.SecurityContact {
		if u, err := url.Parse(contact); err != nil || (u.Scheme != "mailto" && u.Scheme != "https" && u.Scheme != "tel") {
			return config, wrongUsage("--security-contact must be an address like mailto:security@invoices.example or https://invoices.example/security",
				"--security-contact debe ser una dirección como mailto:security@invoices.example o https://invoices.example/security")
		}
	}
	return config, checkZone()
}

func (c serveConfig) scheme() string {
	if c.tls != nil {
		return "https"
	}
	return "http"
}

// checkBaseURL returns a usageError when an address cannot be the public address
// of the service.
func checkBaseURL(address string) error { return checkPublicURL("--base-url", address) }

// checkPublicURL returns a usageError when the address of a flag cannot be a public one. It
// may have a path, under which a proxy serves the service. Links go on after it, so it has
// only the characters of a URI: others are percent-encoded.
func checkPublicURL(flag, address string) error {
	u, err := url.Parse(strings.TrimRight(address, "/"))
	foreign := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\"<>\\^`{|}", r) }
	if err != nil || strings.ContainsFunc(address, foreign) || !isPort(u.Port()) || (u.Scheme != "http" && u.Scheme != "https") || isUnspecified(u.Hostname()) || u.User != nil ||
		strings.ContainsAny(address, "?#") || u.Path != "" && path.Clean(u.Path) != u.Path || u.RawPath != "" && u.RawPath != u.Path {
		return wrongUsage("%s must be an address like https://invoices.example or https://example.com/invoices, without user, query and fragment",
			"%s debe ser una dirección como https://invoices.example o https://example.com/invoices, sin usuario, parámetros ni fragmento", flag)
	}
	return nil
}

// isPort reports whether the port of an address is one, or is left out.
func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return s == "" || err == nil && n > 0
}

// checkZone fails when the zone data of this machine contradict fiscal.Zone,
// which says that the country is four hours behind UTC the whole year.
func checkZone() error {
	zone, err := time.LoadLocation("America/Santo_Domingo")
	if err != nil {
		return err
	}
	for _, month := range []time.Month{time.January, time.July} {
		instant := time.Date(time.Now().Year(), month, 1, 0, 0, 0, 0, zone)
		_, offset := instant.Zone()
		if _, want := instant.In(fiscal.Zone()).Zone(); offset != want {
			return lang.Errorf("the zone data give America/Santo_Domingo another offset than UTC-4, and this version supports only that: install a version that knows the new offset",
				"los datos de zona horaria dan a America/Santo_Domingo otra diferencia que UTC-4, la única que esta versión admite: instale una versión que conozca la nueva")
		}
	}
	return nil
}

// consoleFlags are the flags of serve for the console.
type consoleFlags struct {
	Console                    bool   `help:"Serve the console under /console/, at the address of the API. The sandbox always does, unless the console has a listener of its own."`
	ConsoleListen              string `help:"Address of a separate listener for the console." placeholder:"ADDR"`
	ConsoleBaseURL             string `name:"console-base-url" help:"Public address of the console, used in links. By default that of its listener." placeholder:"URL"`
	ConsoleRequireSecondFactor bool   `help:"Operators must set up a second factor before they use the console."`
}

// serves reports whether the process serves the console in an environment.
func (f consoleFlags) serves(env fiscal.Environment) bool {
	return f.Console || f.ConsoleListen != "" || env == fiscal.Sandbox
}

func (f consoleFlags) check() error {
	if f.ConsoleBaseURL == "" {
		return nil
	}
	return checkConsoleURL(f.ConsoleBaseURL)
}

// checkConsoleURL returns a usageError when an address cannot be the public address of the
// console.
func checkConsoleURL(address string) error {
	return checkPublicURL("--console-base-url", address)
}

// console returns the configuration of the console; nil when the process serves none. own is
// its listener, if it has one of its own.
func (f consoleFlags) console(t *terminal, config serveConfig, own net.Listener) *node.ConsoleConfig {
	if !f.serves(config.env) {
		return nil
	}
	c := &node.ConsoleConfig{
		BaseURL: config.baseURL, Apart: own != nil, RequireSecondFactor: f.ConsoleRequireSecondFactor, Exports: filepath.Join(t.cli.Data, "exports"),
	}
	if own != nil {
		c.BaseURL = config.address(f.ConsoleListen, own)
	}
	if f.ConsoleBaseURL != "" {
		c.BaseURL = strings.TrimRight(f.ConsoleBaseURL, "/")
	}
	return c
}

// peerFlag is the flag about the receivers of buyers.
type peerFlag struct {
	PeerAuthentication string `help:"When the service authenticates to the receivers of buyers, that is, signs a seed of theirs: on-demand (after a receiver has refused a delivery without a token) or never." enum:"on-demand,never" default:"on-demand"`
}

// neverAuthenticates reports whether the service authenticates to no receiver.
func (f peerFlag) neverAuthenticates() bool { return f.PeerAuthentication == "never" }
