package simulation

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	shipped "github.com/fiscalhub/fiscalhub/internal/node"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
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
	busy                  map[string]bool // activities under way

	ctx    context.Context
	cancel context.CancelFunc
	group  *sync.WaitGroup // activities of this life
	ended  chan struct{}   // closed when nothing of the last life runs any more

	store *store.Store
	*shipped.Node
	handler http.Handler
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
	n.working, n.busy, n.idleUntil, n.hooksIdleUntil, n.pausedUntil = 0, map[string]bool{}, time.Time{}, time.Time{}, time.Time{}
	w.mu.Unlock()
	n.store, n.Node = nil, nil
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

// start opens the node that the program ships, with the clock, the network, the disk and
// the faults of the simulation.
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
	keys := seal.NewKeys(filepath.Join(w.dir, "master.key"))
	ring, err := access.LoadKeyring(n.ctx, n.store, keys)
	if err != nil {
		return err
	}
	if n.emptyDisk {
		n.emptyDisk = false
		for _, file := range []string{n.witness(), n.witness() + ".timeline"} {
			_ = os.Remove(file) // it may not exist
		}
	}
	opened, err := shipped.Open(n.ctx, shipped.Config{
		Environment: fiscal.Production, Store: n.store, Keys: keys, Keyring: ring, BaseURL: publicURL, Log: log,
		Authority: dgii.Options{Hosts: hosts, Monotonic: monotonic, AllowOrigin: origin, Dial: n.dial},
		Roots:     w.tp.roots, Witness: n.witness(), CompareRate: 30, Identities: signing{w}, Poster: w.hook, Point: n.point, Random: n.jitter,
	})
	if err != nil {
		return err
	}
	n.Node, n.handler = opened, opened.Handler()
	return nil
}

// point is called at the commits of stages and of webhooks, and at each write of the witness.
func (n *node) point(name string) error {
	n.w.tracef(n.name, "%s%s", n.w.label(), name)
	if name == "before witnessing" {
		return n.w.reach(n, name)
	}
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	if n.dead {
		return errCrashed
	}
	return nil
}

// errNoAnswer says that a connection broke before the answer came.
var errNoAnswer = errors.New("no answer")

// call sends a request to the API or the receiver of the node. It fails when the node crashes
// before it has answered.
func (n *node) call(method, path string, header http.Header, body []byte) (answer *httptest.ResponseRecorder, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, 20*time.Second)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, method, publicURL+path, bytes.NewReader(body))
	r.Header = header
	answer = httptest.NewRecorder()
	defer func() {
		if aborted := recover(); aborted == http.ErrAbortHandler { //nolint:errorlint // a handler panics with this very value
			err = errNoAnswer
		} else if aborted != nil {
			panic(aborted)
		}
		n.w.mu.Lock()
		dead := n.dead
		n.w.mu.Unlock()
		switch {
		case dead:
			err = errNoAnswer
		case err == nil && answer.Code == http.StatusInternalServerError:
			n.w.problem("%s %s is answered with an error of the service: %s", method, path, answer.Body)
		}
	}()
	n.handler.ServeHTTP(answer, r)
	return answer, nil
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
		if n.Node != nil {
			_ = n.Close() // a crash closes no file
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
		jobs, err := n.Pipeline.Claim(n.ctx, limit)
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
							n.Pipeline.RunJob(n.ctx, job)
						}
					})
				})
				continue
			}
			w.labelled(name, func() { n.Pipeline.RunJob(n.ctx, job) })
		}
		all.Wait()
		n.Pipeline.Journal().Flush(n.ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dirty = true
		if n.group == life {
			n.working--
		}
	})
}

// begin starts an activity, unless it is under way. ended is called when it has ended, in the
// same life.
func (n *node) begin(name string, step func(context.Context) error, ended func(error)) {
	w := n.w
	w.mu.Lock()
	begins, life := n.ready && !n.dead && !n.busy[name], n.group
	if begins {
		n.busy[name] = true
	}
	w.mu.Unlock()
	if !begins {
		return
	}
	w.spawn(n.group, name, func() {
		err := step(n.ctx)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.dirty = true
		if n.group == life {
			n.busy[name] = false
			ended(err)
		}
	})
}

// send delivers webhooks that are due.
func (n *node) send() {
	attempts := 0
	step := func(ctx context.Context) (err error) {
		attempts, err = n.Sender.Step(ctx)
		return err
	}
	n.begin(shipped.Webhooks, step, func(err error) {
		if attempts == 0 || err != nil {
			n.hooksIdleUntil = n.w.now().Add(time.Second)
		}
	})
}

// keep does the work of a node that belongs to no document: its heartbeat, the checks of the
// watcher, the comparison with the authority.
func (n *node) keep() {
	if !n.up() {
		return
	}
	for _, a := range n.Activities() {
		if a.Name != shipped.Jobs && a.Name != shipped.Webhooks && a.Step != nil {
			n.begin(a.Name, a.Step, func(error) {}) // the node tries again the next time
		}
	}
}
