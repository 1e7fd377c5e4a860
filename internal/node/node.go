// Package node composes one node of the service, for the commands serve and demo, for the
// simulation and for tests. Open builds the parts that an environment needs, Work runs what
// happens in the background, and Serve answers requests until the process stops. A Config
// says what differs between two nodes.
package node

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/console"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/monitor"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/people"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/receiver"
	"github.com/fiscalhub/fiscalhub/internal/requestlog"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/watch"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// A Node is the parts of one process. The parts that an environment or a configuration
// does without are nil: the sandbox has no authority, fence, watcher and comparer.
type Node struct {
	Config

	Fence     *fence.Fence
	Authority *dgii.Client
	Pipeline  *pipeline.Pipeline
	Inbox     *inbox.Inbox
	Watcher   *watch.Watcher
	Comparer  *watch.Comparer

	Feed      *notify.Feed
	Sender    *notify.Sender
	Endpoints *notify.Endpoints
	Sources   *notify.Sources

	API      *api.API
	Receiver *receiver.Receiver
	Console  *console.Console
	People   *people.People
	Exports  *export.Jobs
	Indexer  *overview.Indexer

	requests *requestlog.Log
	poster   *webhook.Sender // nil: Config has another one
}

// Open builds a node. It works and serves nothing before Work and Serve. The caller closes
// it.
func Open(ctx context.Context, c Config) (*Node, error) {
	if err := c.complete(); err != nil {
		return nil, err
	}
	n := &Node{Config: c}
	for _, build := range []func(context.Context) error{n.openMonitor, n.openFence, n.openEvents, n.openPipeline, n.openWatcher, n.openAPI, n.openConsole} {
		if err := build(ctx); err != nil {
			return nil, errors.Join(err, n.Close())
		}
	}
	return n, nil
}

// Close closes the connections and the witness of the node, after its work has ended.
func (n *Node) Close() error {
	if n.Authority != nil {
		n.Authority.Close()
	}
	if n.poster != nil {
		n.poster.Close()
	}
	return n.Fence.Close()
}

// openMonitor registers the metrics of the database.
func (n *Node) openMonitor(ctx context.Context) error {
	n.warnReplication(ctx)
	figures, err := monitor.New(monitor.Options{Store: n.Store, Env: n.Environment, Now: n.Store.Now, Log: n.Log})
	if err != nil {
		return err
	}
	n.Metrics.MustRegister(figures)
	registerCommits(n.Metrics, n.Store)
	return nil
}

// openFence opens the witness, and fences the ranges whose last number is behind it.
func (n *Node) openFence(ctx context.Context) (err error) {
	if n.Witness == "" || !n.live() {
		return nil
	}
	n.Fence, err = fence.Open(ctx, fence.Options{Store: n.Store, Env: n.Environment, Path: n.Witness, Now: n.Store.Now, Log: n.Log, Pace: n.Pace})
	return err
}

// openEvents builds the feed, the sender of webhooks, and the sources that may send events
// to the service.
func (n *Node) openEvents(context.Context) (err error) {
	s, secrets := n.Store, access.NewSecrets(n.Store, n.Keys)
	if n.Poster == nil {
		if n.poster, err = webhook.New(webhook.Options{Now: s.Now, Guard: n.Guard}); err != nil {
			return err
		}
		n.Poster = n.poster
	}
	n.Feed = notify.NewFeed(s)
	if n.Sources, err = notify.NewSources(notify.SourcesOptions{Store: s, Secrets: secrets, Now: s.Now}); err != nil {
		return err
	}
	n.Sender, err = notify.NewSender(notify.SenderOptions{
		Store: s, Secrets: secrets, Poster: n.Poster, Env: n.Environment, Now: s.Now, Log: n.Log, Pace: n.Pace, BaseURL: n.BaseURL,
		OnCommit: n.committed, OnAttempt: attemptMetrics(n.Metrics, n.Environment), Tracer: n.Tracer, Point: n.Point, Random: n.Random,
	})
	if err != nil {
		return err
	}
	n.Endpoints, err = notify.NewEndpoints(notify.EndpointsOptions{
		Store: s, Secrets: secrets, Poster: n.Poster, Guard: n.Guard, Now: s.Now, WakeSender: n.Sender.Wake,
	})
	return err
}

// committed wakes the feed and the sender after events of a taxpayer were committed.
func (n *Node) committed(scope store.Scope) {
	n.Feed.Wake(scope)
	n.Sender.Wake()
}

// openPipeline builds the pipeline with the plan of the environment, and the inbox.
func (n *Node) openPipeline(context.Context) (err error) {
	s, plan := n.Store, pipeline.Plan(pipeline.Sandbox{Pace: n.Pace})
	if n.live() {
		if plan, err = n.openPlan(); err != nil {
			return err
		}
	}
	if n.Plan != nil {
		plan = n.Plan(plan)
	}
	n.Pipeline, err = pipeline.New(pipeline.Options{
		Store: s, Plan: plan, Env: n.Environment, Now: s.Now, Log: n.Log, Pace: n.Pace, Stamp: n.Stamp, OnCommit: n.committed,
		OnStage: stageMetrics(n.Metrics, n.Environment), Tracer: n.Tracer, Point: n.Point,
	})
	if err != nil {
		return err
	}
	n.Inbox, err = inbox.New(inbox.Options{
		Store: s, Env: n.Environment, Now: s.Now, Log: n.Log, Settler: plan, Roots: n.Roots, Publish: n.Pipeline.Publish, OnResponse: responseMetrics(n.Metrics),
	})
	return err
}

// openPlan builds the client of the authority and the plan of a live environment.
func (n *Node) openPlan() (_ pipeline.Plan, err error) {
	o := n.Config.Authority
	o.Now, o.Log, o.Roots, o.Pace = n.Store.Now, n.Log, n.Roots, n.Pace
	o.OnExchange, o.OnPeerAuthentication = exchangeMetrics(n.Metrics), peerMetrics(n.Metrics)
	if n.Authority, err = dgii.New(o); err != nil {
		return nil, err
	}
	n.Metrics.MustRegister(newCircuitCollector(n.Authority))
	return live.New(live.Options{
		Store: n.Store, Env: n.Environment, Authority: n.Authority, Identities: n.Identities, Now: n.Store.Now, Log: n.Log, Pace: n.Pace,
		Fence: n.Fence, Point: n.Point, Random: n.Random,
	})
}

// openWatcher builds the background checks of a live environment.
func (n *Node) openWatcher(context.Context) (err error) {
	if !n.live() {
		return nil
	}
	if n.CompareRate > 0 {
		n.Comparer, err = watch.NewComparer(watch.ComparerOptions{
			Store: n.Store, Env: n.Environment, Authority: n.Authority, Lookups: n.Authority.Spare(), Identities: n.Identities, PerMinute: n.CompareRate,
			Now: n.Store.Now, Log: n.Log, Pace: n.Pace, Metrics: n.Metrics,
			AskAgain: func(ctx context.Context, tx *store.Tx, scope store.Scope, documentID string) error {
				return live.AskAgain(ctx, tx, scope, documentID, n.Store.Now())
			},
		})
		if err != nil {
			return err
		}
	}
	n.Watcher, err = watch.New(watch.Options{
		Store: n.Store, Env: n.Environment, Authority: n.Authority, Now: n.Store.Now, Log: n.Log, Pace: n.Pace, Metrics: n.Metrics,
		// Messages of buyers wait for their document, or for their signer to become known.
		ApplyParked: func(ctx context.Context) error {
			_, err := n.Inbox.ApplyConfirmed(ctx)
			return errors.Join(err, n.Inbox.ApplyParked(ctx))
		},
	})
	return err
}

// openAPI builds the API and the services under /fe/.
func (n *Node) openAPI(context.Context) (err error) {
	s := n.Store
	if n.requests, err = requestlog.New(requestlog.Options{Store: s, Env: n.Environment, Log: n.Log, Metrics: n.Metrics}); err != nil {
		return err
	}
	if n.Indexer, err = overview.NewIndexer(overview.IndexerOptions{Store: s, Now: s.Now, Log: n.Log}); err != nil {
		return err
	}
	if n.API, err = api.New(n.APIOptions(n.Metrics)); err != nil {
		return err
	}
	o := receiver.Options{Environment: n.Environment, Now: s.Now, Log: n.Log, Capacity: n.Capacity, Clients: n.Clients}
	if n.live() {
		o.Roots, o.Keys, o.Seeds, o.Taxpayers, o.Identities = n.Roots, n.Keyring.Receivers, s, recipients{s, n.Environment}, n.Identities
		o.Responses, o.Limit, o.LimitCaller = n.Inbox, n.API.Admit, n.API.AdmitCaller
		o.OnWrongToken, o.OnWrongSeed = n.API.RefuseToken, n.API.RefuseSeed
	}
	n.Receiver, err = receiver.New(o)
	return err
}

// APIOptions returns the options of the API of the node. A test may change them and build
// a second API on the parts of the node.
func (n *Node) APIOptions(metrics prometheus.Registerer) api.Options {
	o := api.Options{
		Store: n.Store, Pipeline: n.Pipeline, Keyring: n.Keyring, Environment: n.Environment, BaseURL: n.BaseURL, RateLimit: n.RateLimit,
		Capacity: n.Capacity, Clients: n.Clients, SecurityContacts: n.SecurityContacts, Now: n.Store.Now, Log: n.Log, Metrics: metrics, Tracer: n.Tracer,
		Endpoints: n.Endpoints, Feed: n.Feed, Sources: n.Sources, Inbox: n.Inbox,
	}
	if n.KeepRequests {
		o.RequestLog = n.requests
	}
	return o
}

// Handler serves the API, and the receiver and the console unless they have listeners of
// their own.
func (n *Node) Handler() http.Handler {
	h := n.API.Handler(n.Metrics)
	if n.ReceiverURL == "" {
		h = api.Mount(h, receiver.Serves, n.Receiver)
	}
	if n.Console != nil && !n.Config.Console.Apart {
		h = n.mountConsole(h)
	}
	return below(n.BaseURL, h)
}

// ReceiverHandler serves the receiver alone.
func (n *Node) ReceiverHandler() http.Handler {
	return api.Mount(http.NotFoundHandler(), receiver.Serves, n.Receiver)
}

// An Activity is background work of a node. Run repeats it until its context ends. Step does
// it once, for a caller that decides when it happens; the work of the console has no Step.
type Activity struct {
	Name string
	Run  func(context.Context)
	Step func(context.Context) error
}

// The activities that work on what is due in the database.
const (
	Jobs     = "jobs"
	Webhooks = "webhooks"
)

// Activities returns the background work of the node.
func (n *Node) Activities() []Activity {
	all := []Activity{
		{Jobs, n.Pipeline.Run, n.runJobs},
		{"keys", func(ctx context.Context) { n.Keyring.Run(ctx, n.Log) }, n.Keyring.Reload},
		{"checkpoints", func(ctx context.Context) { n.Keyring.RunCheckpoints(ctx, n.Log) }, func(ctx context.Context) error {
			_, err := n.Keyring.StoreCheckpoint(ctx)
			return err
		}},
	}
	if n.live() { // the sandbox emits no events
		all = append(all, Activity{Webhooks, n.Sender.Run, func(ctx context.Context) error {
			_, err := n.Sender.Step(ctx)
			return err
		}})
	}
	if n.Fence != nil {
		all = append(all, Activity{"heartbeat", n.Fence.Run, n.Fence.Beat})
	}
	if n.Watcher != nil {
		all = append(all, Activity{"watch", func(ctx context.Context) { n.Watcher.Watch(ctx, n.Pipeline.Signals()) }, func(ctx context.Context) error {
			n.Watcher.Step(ctx, n.Pipeline.Signals())
			return ctx.Err()
		}})
	}
	if n.Comparer != nil { // its questions must not delay the checks of the watcher
		all = append(all, Activity{"comparison", n.Comparer.Run, n.Comparer.Compare})
	}
	if n.KeepRequests {
		all = append(all, Activity{"requests", n.requests.Run, nil}, Activity{"index", n.Indexer.Run, nil})
	}
	if n.Console != nil {
		all = append(all, Activity{"exports", n.Exports.Run, nil})
	}
	return all
}

// runJobs does the stages of the jobs that are due, and writes the journal.
func (n *Node) runJobs(ctx context.Context) error {
	jobs, err := n.Pipeline.Claim(ctx, 32)
	for _, job := range jobs {
		n.Pipeline.RunJob(ctx, job)
	}
	n.Pipeline.Journal().Flush(ctx)
	return err
}

// Work does the background work of the node until ctx ends, and returns when all of it has
// ended.
func (n *Node) Work(ctx context.Context) {
	var all sync.WaitGroup
	for _, a := range n.Activities() {
		all.Go(func() { a.Run(ctx) })
	}
	all.Wait()
}
