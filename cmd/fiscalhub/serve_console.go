package main

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/console"
	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

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

// servedConsole is the console of the process.
type servedConsole struct {
	handler  *console.Console
	people   *people.People
	baseURL  string
	listener net.Listener // nil: that of the API
}

// consoleParts are the parts of the process that the console needs.
type consoleParts struct {
	store   *store.Store
	keys    *seal.Keys
	ring    *access.Keyring
	clients *capacity.ClientFinder
	limits  *capacity.Capacity
	admit   func(*http.Request) bool // a request without a session
	log     *slog.Logger

	endpoints   *notify.Endpoints
	trusted     bool
	receiverURL string

	pipeline *pipeline.Pipeline
	circuits func() map[string]bool // nil in the sandbox
	exports  *export.Jobs
	release  func(ctx context.Context, scope store.Scope) error // nil in the sandbox
	services func() ([]overview.ServiceFigures, error)          // nil in the sandbox
	clock    func() (ahead time.Duration, known bool)           // nil in the sandbox
}

// newConsole builds the console, and opens its listener if it has one of its own. It
// returns nil when the process serves no console.
func (f consoleFlags) newConsole(ctx context.Context, all *listeners, config serveConfig, p consoleParts) (*servedConsole, error) {
	if !f.serves(config.env) {
		return nil, nil //nolint:nilnil // no console is no error
	}
	served := &servedConsole{baseURL: config.baseURL}
	var err error
	if f.ConsoleListen != "" {
		if served.listener, err = all.open(ctx, f.ConsoleListen); err != nil {
			return nil, err
		}
		served.baseURL = config.scheme() + "://" + reachable(f.ConsoleListen, served.listener.Addr())
	}
	if f.ConsoleBaseURL != "" {
		served.baseURL = strings.TrimRight(f.ConsoleBaseURL, "/")
	}
	if served.people, err = newPeople(p.store, p.keys); err != nil {
		return nil, err
	}
	served.handler, err = console.New(console.Options{
		Store: p.store, People: served.people, Keyring: p.ring, Environment: config.env, BaseURL: served.baseURL,
		Clients: p.clients, Capacity: p.limits, Limit: p.admit, Now: p.store.Now, Log: p.log, RequireSecondFactor: f.ConsoleRequireSecondFactor,
		Certificates: access.NewCertificates(p.store, p.keys, p.store.Now),
		Endpoints:    p.endpoints,
		Trusted:      p.trusted,
		ReceiverURL:  p.receiverURL,
		Pipeline:     p.pipeline,
		Circuits:     p.circuits,
		Exports:      p.exports,
		Services:     p.services, AuthorityClock: p.clock, Release: p.release,
	})
	if err != nil {
		return nil, err
	}
	// Commands make links with this address.
	return served, p.store.Update(ctx, func(tx *store.Tx) error { return tx.SetConsoleAddress(ctx, config.env, served.baseURL) })
}

// newPeople returns the people of a database.
func newPeople(s *store.Store, keys *seal.Keys) (*people.People, error) {
	return people.New(people.Options{Store: s, Secrets: access.NewSecrets(s, keys), Hasher: people.NewArgon2(), Now: s.Now})
}

// mount adds the console to the handler of the API, or to the listeners.
func (s *servedConsole) mount(all *listeners, config serveConfig, next http.Handler, log *slog.Logger) http.Handler {
	if s == nil {
		return next
	}
	if s.listener != nil {
		all.add(config.tls.wrap(all.limit(s.listener), false), below(s.baseURL, s.handler), log)
		return next
	}
	mounted := api.Mount(next, console.Serves, s.handler)
	if config.env == fiscal.Sandbox {
		mounted = console.Home(s.baseURL, mounted)
	}
	return mounted
}

// address returns the address of the first page; empty without a console.
func (s *servedConsole) address() string {
	if s == nil {
		return ""
	}
	return s.baseURL + "/console/"
}

// bootstrap creates the operator demo in a database without people, and returns the link
// with which the person sets a password. It returns an empty text otherwise.
func (s *servedConsole) bootstrap(ctx context.Context, from *store.Store) (link string, err error) {
	if s == nil {
		return "", nil
	}
	all, err := from.Users(ctx)
	if err != nil || len(all) > 0 {
		return "", err
	}
	_, token, err := s.people.Create(ctx, people.Invitation{Name: "demo", Email: "demo@localhost", Role: store.RoleOperator})
	if err != nil {
		return "", err
	}
	return console.WelcomeAddress(s.baseURL, token), nil
}
