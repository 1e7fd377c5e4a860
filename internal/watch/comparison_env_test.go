package watch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/watch"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// perMinute is the budget of the comparer in tests.
const perMinute = 30

// compareEnv is an env with a comparer and its log.
type compareEnv struct {
	*env
	address string
	*watch.Comparer
	logged *bytes.Buffer
}

func newCompareEnv(t *testing.T, address string) *compareEnv {
	t.Helper()
	c := &compareEnv{env: newEnv(t, address, envOptions{}), address: address, logged: new(bytes.Buffer)}
	c.Must(c.Sim.Configure(func(c *simulator.Config) { c.JournalSize = 100_000 }))
	c.restart(nil)
	return c
}

// restart makes a new comparer that knows nothing but the rows. Without an argument the
// taxpayers have the certificate of the env.
func (c *compareEnv) restart(identities watch.Identities) {
	c.T.Helper()
	if identities == nil {
		identities = c.Options.Identities
	}
	var err error
	c.Comparer, err = watch.NewComparer(watch.ComparerOptions{
		Store: c.Store(), Env: c.Options.Env, Authority: c.Client, Lookups: c.Client.Spare(), Identities: identities, PerMinute: perMinute,
		Now: c.Now, Log: slog.New(slog.NewTextHandler(c.logged, nil)),
		AskAgain: func(ctx context.Context, tx *store.Tx, scope store.Scope, documentID string) error {
			return live.AskAgain(ctx, tx, scope, documentID, c.Now())
		},
	})
	c.Must(err)
}

// rounds lets time pass in steps, and compares after each.
func (c *compareEnv) rounds(n int, step time.Duration) {
	c.T.Helper()
	for range n {
		c.Clock.Advance(step)
		c.Must(c.Compare(c.T.Context()))
	}
}

// questions returns the numbers that the authority was asked about, in order.
func (c *compareEnv) questions() (encfs []string) {
	for _, service := range []simulator.Service{simulator.StateLookup, simulator.RFCELookup} {
		for _, r := range c.Asked(service) {
			encfs = append(encfs, r.ENCF)
		}
	}
	return encfs
}

func (c *compareEnv) alarms() int {
	return strings.Count(c.logged.String(), "level=ERROR msg=\"The tax authority shows an accepted document differently.")
}

// rows returns the rows of every table but those of the comparer.
func (c *compareEnv) rows() map[string][]string {
	c.T.Helper()
	c.Feed() // gives the events their numbers
	db := storetest.OpenSQL(c.T, c.address)
	all := map[string][]string{}
	for _, table := range []string{"documents", "issued_documents", "evidence", "attempts", "history", "events", "jobs", "number_ranges", "burned", "webhook_deliveries", "notified", "contingencies"} {
		rows, err := db.QueryContext(c.T.Context(), `SELECT * FROM `+table)
		c.Must(err)
		columns, err := rows.Columns()
		c.Must(err)
		for rows.Next() {
			values := make([]any, len(columns))
			to := make([]any, len(columns))
			for i := range values {
				to[i] = &values[i]
			}
			c.Must(rows.Scan(to...))
			all[table] = append(all[table], fmt.Sprintf("%v", values))
		}
		c.Must(errors.Join(rows.Err(), rows.Close()))
		slices.Sort(all[table])
	}
	return all
}

// accepted makes one document of each way to the authority, accepted and conditionally
// accepted.
func (c *compareEnv) accepted() []store.Invoice {
	c.T.Helper()
	var all []store.Invoice
	for _, code := range []int{1, 4} {
		made := []store.Invoice{c.Create(fiscal.FiscalCredit, 1000), c.Create(fiscal.Consumer, 1000), c.Create(fiscal.Consumer, 300_000)}
		for _, service := range []simulator.Service{simulator.Reception, simulator.RFCE} {
			c.Rule(0, service, livetest.Verdict(code, true, "aviso"))
		}
		c.Drive(time.Hour)
		c.Sim.ClearRules()
		for _, inv := range made {
			want := map[int]fiscal.Status{1: fiscal.Accepted, 4: fiscal.AcceptedConditional}[code]
			if got := c.Read(inv); got.Status != want {
				c.T.Fatalf("%s is %s, want %s", got.ENCF, got.Status, want)
			}
			all = append(all, c.Read(inv))
		}
	}
	return all
}

func (c *compareEnv) differences() []string {
	c.T.Helper()
	open, err := c.Store().OpenDifferences(c.T.Context(), c.Scope)
	c.Must(err)
	var all []string
	for _, d := range open {
		all = append(all, fmt.Sprintf("%s %s: %s, not %s", d.ExternalID, d.Kind, d.Theirs, d.Ours))
	}
	return all
}

// dies lets a node claim the comparison and end before it asks.
func (c *compareEnv) dies() {
	c.T.Helper()
	dead := make(chan struct{})
	node, err := watch.NewComparer(watch.ComparerOptions{
		Store: c.Store(), Env: c.Options.Env, Authority: c.Client, Lookups: deadNode{dead}, Identities: c.Options.Identities, PerMinute: perMinute,
		Now: c.Now, Log: slog.New(slog.DiscardHandler),
	})
	c.Must(err)
	go func() { _ = node.Compare(c.T.Context()) }()
	<-dead
}

// deadNode is a node that ends when it asks the authority.
type deadNode struct{ dead chan struct{} }

func (n deadNode) State(context.Context, *xmlsig.Identity, fiscal.Query) (fiscal.AuthorityAnswer, error) {
	close(n.dead)
	select {} // a killed process does not go on
}

func (n deadNode) SummaryState(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error) {
	return n.State(ctx, id, q)
}

// noIdentities has no certificate.
type noIdentities struct{}

func (noIdentities) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	return nil, errors.New("no certificate")
}
