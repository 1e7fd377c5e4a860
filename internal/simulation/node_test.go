package simulation

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/watch"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	beforeCommit = "before commit"
	afterCommit  = "after commit"
)

// A node is a machine with a disk of its own. Its service starts, crashes and starts
// again.
type node struct {
	w     *world
	index int
	name  string

	// Guarded by w.mu.
	dead  bool // the service does not run
	ready bool // the service has started
	conns []net.Conn
	skew  time.Duration // how far its clock is ahead

	emptyDisk             bool // the next life finds an empty disk
	pausedUntil, cutUntil time.Time
	idleUntil             time.Time // a claim found nothing
	hooksIdleUntil        time.Time
	nextTry               time.Time // of jobs that wait for the authority
	working               int
	sending, keeping      bool
	lastKept              time.Time

	ctx    context.Context
	cancel context.CancelFunc
	group  *sync.WaitGroup // activities of this life
	ended  chan struct{}   // closed when nothing of the last life runs any more

	store    *store.Store
	fence    *fence.Fence
	client   *dgii.Client
	pipeline *pipeline.Pipeline
	watcher  *watch.Watcher
	sender   *notify.Sender
	feed     *notify.Feed
}

// up reports whether the service of the node runs.
func (n *node) up() bool {
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return n.ready && !n.dead
}

// clock is the clock of the node's machine.
func (n *node) clock() time.Time {
	now := n.w.now()
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	return now.Add(n.skew)
}

// signing is the certificate of the taxpayer.
type signing struct{ w *world }

// Identity returns it while it is valid.
func (s signing) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if s.w.uncertified {
		return nil, errors.New("the certificate has ended")
	}
	return s.w.tp.id, nil
}

// boot starts the service of a node, in another goroutine. The node must be down.
func (n *node) boot() {
	w := n.w
	if n.ended != nil {
		select {
		case <-n.ended:
		default:
			w.after(time.Second, n.boot) // the last life is still ending
			return
		}
	}
	n.ctx, n.cancel = context.WithCancel(context.WithValue(w.t.Context(), nodeKey{}, n))
	w.mu.Lock()
	n.group, n.ended = new(sync.WaitGroup), make(chan struct{})
	n.dead, n.ready, n.conns = false, false, nil
	n.working, n.sending, n.keeping, n.idleUntil, n.hooksIdleUntil, n.pausedUntil = 0, false, false, time.Time{}, time.Time{}, time.Time{}
	w.mu.Unlock()
	n.store, n.fence, n.client = nil, nil, nil
	w.tracef(n.name, "starts")
	w.spawn(n.group, "start", func() {
		if err := n.start(); err != nil {
			w.mu.Lock()
			dead := n.dead
			w.mu.Unlock()
			if !dead {
				w.tracef(n.name, "cannot start")
				w.at(w.now(), n.crash) // from the scheduler's own goroutine
			}
			return
		}
		w.mu.Lock()
		n.ready = !n.dead
		w.mu.Unlock()
	})
}

// start builds the service from its parts, as the program does.
func (n *node) start() (err error) {
	w, log := n.w, discard()
	began := time.Now()
	monotonic := func() time.Duration { return time.Since(began) }
	options := store.Options{Now: n.clock, Monotonic: monotonic, Log: log, NoMigrate: true, Point: func(name string) error { return w.reach(n, name) }, Timeline: w.timeline}
	if w.plan.skew {
		options.DatabaseNow = func(context.Context) (time.Time, error) { return w.now(), nil }
	}
	if n.store, err = store.Open(n.ctx, "sqlite:"+w.file(), options); err != nil {
		return err
	}
	hosts, err := dgii.SimulatorHosts(origin, "ecf")
	if err != nil {
		return err
	}
	now := n.store.Now
	n.client, err = dgii.New(dgii.Options{
		Hosts: hosts, Now: now, Monotonic: monotonic, Roots: w.tp.roots, Log: log, AllowOrigin: origin, Dial: n.dial,
	})
	if err != nil {
		return err
	}
	if n.emptyDisk {
		n.emptyDisk = false
		for _, file := range []string{n.witness(), n.witness() + ".timeline"} {
			_ = os.Remove(file) // it may not exist
		}
	}
	n.fence, err = fence.Open(n.ctx, fence.Options{Store: n.store, Env: fiscal.Production, Path: n.witness(), Now: now, Log: log})
	if err != nil {
		return err
	}
	point := func(name string) error {
		w.tracef(n.name, "%s%s", w.label(), name)
		if name == "before witnessing" {
			return w.reach(n, name)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if n.dead {
			return errCrashed
		}
		return nil
	}
	plan, err := live.New(live.Options{
		Store: n.store, Env: fiscal.Production, Authority: n.client, Identities: signing{w}, Now: now, Log: log, Fence: n.fence,
		Point: point, Random: n.jitter,
	})
	if err != nil {
		return err
	}
	n.watcher, err = watch.New(watch.Options{Store: n.store, Env: fiscal.Production, Authority: n.client, Now: now, Log: log})
	if err != nil {
		return err
	}
	n.pipeline, err = pipeline.New(pipeline.Options{Store: n.store, Plan: plan, Watcher: n.watcher, Env: fiscal.Production, Now: now, Log: log, Point: point})
	if err != nil {
		return err
	}
	n.feed = notify.NewFeed(n.store)
	n.sender, err = notify.NewSender(notify.SenderOptions{
		Store: n.store, Secrets: access.NewSecrets(n.store, seal.NewKeys(filepath.Join(w.dir, "master.key"))), Poster: w.hook,
		Env: fiscal.Production, Now: now, Log: log, Random: n.jitter,
		Point: func(string) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if n.dead {
				return errCrashed
			}
			return nil
		},
	})
	return err
}

// jitter draws for the goroutine that calls it: after a crash several of them draw at the
// same instant.
func (n *node) jitter(most int64) int64 {
	return n.w.source("jitter " + n.name + " " + n.w.label()).Int64N(most)
}

// label returns the label of the calling goroutine.
func (w *world) label() string {
	id := goroutine()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.labels[id] == "" {
		return ""
	}
	return w.labels[id] + ": "
}

// witness is the file of the node's witness.
func (n *node) witness() string { return filepath.Join(n.w.dir, n.name+".witness") }

// timeline names the history of commits of the database.
func (w *world) timeline() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return timelineOf(w.epoch)
}

func timelineOf(epoch int) string { return fmt.Sprintf("1-%08d", 1+epoch) }

// crash ends the service at once: nothing that it does afterwards has an effect.
func (n *node) crash() {
	w := n.w
	w.mu.Lock()
	if n.dead || n.group == nil {
		w.mu.Unlock()
		return
	}
	n.dead, n.ready = true, false
	conns := n.conns
	var left []*parked
	for _, p := range w.parked {
		if p.n == n {
			p.resume <- errCrashed
			continue
		}
		left = append(left, p)
	}
	w.parked = left
	w.mu.Unlock()
	n.cancel()
	for _, c := range conns {
		_ = c.Close() // the machine is gone
	}
	w.spawn(nil, "end", func() {
		n.group.Wait()
		if n.client != nil {
			n.client.Close()
		}
		if n.fence != nil {
			_ = n.fence.Close() // a crash closes no file
		}
		if n.store != nil {
			_ = n.store.Close() // nor a database
		}
		close(n.ended)
	})
	w.after(w.between(time.Second, 3*time.Minute), n.boot)
}

// work claims jobs and does their stages.
func (n *node) work() {
	w, limit := n.w, 1+n.w.draw(4)
	nextTry := w.now().Add(w.between(10*time.Second, 8*time.Minute))
	w.mu.Lock()
	n.working++
	n.nextTry = nextTry
	life := n.group
	w.mu.Unlock()
	w.spawn(n.group, "claim", func() {
		jobs, err := n.pipeline.Claim(n.ctx, limit)
		w.mu.Lock()
		if n.group == life {
			if err != nil || len(jobs) == 0 {
				n.idleUntil = w.now().Add(time.Second)
			}
		}
		w.dirty = true
		w.mu.Unlock()
		var all sync.WaitGroup
		for _, job := range jobs {
			name := w.nameOf(job.DocumentID)
			if limit%2 == 0 { // at the same time
				all.Go(func() {
					w.labelled(name, func() {
						if w.reach(n, "start") == nil {
							n.pipeline.RunJob(n.ctx, job)
						}
					})
				})
				continue
			}
			w.labelled(name, func() { n.pipeline.RunJob(n.ctx, job) })
		}
		all.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dirty = true
		if n.group == life {
			n.working--
		}
	})
}

// send delivers webhooks that are due.
func (n *node) send() {
	w := n.w
	w.mu.Lock()
	n.sending = true
	life := n.group
	w.mu.Unlock()
	w.spawn(n.group, "webhooks", func() {
		attempts, err := n.sender.Step(n.ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dirty = true
		if n.group != life {
			return
		}
		n.sending = false
		if attempts == 0 || err != nil {
			n.hooksIdleUntil = w.now().Add(time.Second)
		}
	})
}

// keep does the work of a node that belongs to no document: its heartbeat, and the state
// of the contingency.
func (n *node) keep() {
	w := n.w
	w.mu.Lock()
	begin, life := n.ready && !n.dead && !n.keeping, n.group
	n.keeping = n.keeping || begin
	w.mu.Unlock()
	if !begin {
		return
	}
	w.spawn(n.group, "heartbeat", func() {
		signals := pipeline.Signals{Wake: func() {}, Notify: func(store.Scope) {}}
		err := errors.Join(n.fence.Beat(n.ctx), n.watcher.CheckOutage(n.ctx, signals))
		if now := w.now(); now.Sub(n.lastKept) >= time.Hour {
			n.lastKept = now
			err = errors.Join(err, n.watcher.CheckOverdue(n.ctx, signals), n.watcher.Warn(n.ctx, signals))
		}
		if err != nil {
			w.tracef(n.name, "the heartbeat fails")
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dirty = true
		if n.group == life {
			n.keeping = false
		}
	})
}
