package node

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/capacity"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/netguard"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/trace"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// Config is what differs between two nodes. Environment, Store, Keys, Keyring, BaseURL and
// Log are required. The caller closes the store. Its clock is the clock of the node.
type Config struct {
	Environment fiscal.Environment
	Store       *store.Store
	Keys        *seal.Keys // the master key
	Keyring     *access.Keyring
	BaseURL     string // public address of the API, without a slash at the end
	Log         *slog.Logger
	Pace        wake.Pace              // divides every background wait
	Metrics     *prometheus.Registry   // nil: a new one
	Tracer      *trace.Tracer          // nil: spans are not exported
	Capacity    *capacity.Capacity     // nil: the capacity of a small machine
	Clients     *capacity.ClientFinder // nil: no proxy is trusted

	// The API.
	RateLimit        int64 // requests per minute for each credential; 0 for no limit
	SecurityContacts []string
	KeepRequests     bool // keep the log of requests, the search index and the counts of the console

	// The tax authority and buyers. The sandbox uses none of it.
	Authority   dgii.Options   // Hosts, and what else differs: the node sets the clock, the log, the roots and the pace
	Roots       *x509.CertPool // roots that other parties' signatures must chain to; nil: none is trusted
	Stamp       ecf.Authority  // the authority's environment in QR codes; empty: the one of Environment
	Witness     string         // file of the witness; empty: the node has none
	CompareRate int            // questions per minute that compare judged documents with the authority; 0 for none
	Identities  Identities     // nil: the certificates of the database
	ReceiverURL string         // address of a listener for the receiver alone; empty: the API's listener serves it

	// Webhooks.
	Guard  netguard.Guard
	Poster notify.Poster // nil: the network, with Guard

	Console *ConsoleConfig // nil: the node serves no console

	// For tests.
	Plan   func(pipeline.Plan) pipeline.Plan // replaces the plan
	Point  func(name string) error           // called at every commit and every write of the witness
	Random func(n int64) int64               // a number from 0 to n-1 for the jitter of pauses
}

// ConsoleConfig is what differs between the consoles of two nodes.
type ConsoleConfig struct {
	BaseURL             string // public address of the console
	Apart               bool   // the console has a listener of its own
	RequireSecondFactor bool
	Exports             string        // folder of exports while they are made
	Hasher              people.Hasher // of passwords; nil: Argon2id
}

// Identities provide the certificate and key that sign for a taxpayer.
type Identities interface {
	Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error)
}

// live reports whether the node sends documents to the authority.
func (c Config) live() bool { return c.Environment != fiscal.Sandbox }

// complete checks the configuration and sets what is left out.
func (c *Config) complete() error {
	if c.Environment == "" || c.Store == nil || c.Keys == nil || c.Keyring == nil || c.Log == nil {
		return errors.New("node: Config.Environment, Store, Keys, Keyring or Log is missing")
	}
	if c.Metrics == nil {
		c.Metrics = prometheus.NewRegistry()
	}
	if c.Capacity == nil {
		c.Capacity = capacity.New(capacity.DefaultLimits(1<<30, 2))
	}
	if c.Clients == nil {
		c.Clients = capacity.NewClientFinder(nil, c.Store.Now, c.Log)
	}
	if c.Identities == nil {
		c.Identities = access.NewCertificates(c.Store, c.Keys, c.Store.Now)
	}
	return nil
}
