package live

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/watch"
)

// A flow is work that belongs to no stage of a document. A test ends or fails it at every
// commit and at every call of the authority, and begins it again.
type flow struct {
	// begin prepares one round. The points of what it does are not counted.
	begin func(e *flowEnv, w *flowService) round
}

// A round does a flow once. Its step is repeated, by another service after a crash,
// until it reports that the work is done.
type round struct {
	step  func(w *flowService) (done bool, err error)
	check func(w *flowService)
}

// flowEnv is a crashEnv with a second store, which counts the points of flows.
type flowEnv struct {
	*crashEnv
	counted *store.Store
	points  *points // of the service that runs now; nil while nothing is counted
}

func newFlowEnv(t *testing.T, engine string) *flowEnv {
	t.Helper()
	e := &flowEnv{crashEnv: newCrashEnv(t, engine, trials()[0])}
	e.counted = storetest.OpenPoints(t, e.address, e.clock.Now, func(name string) error {
		if e.points == nil {
			return nil
		}
		return e.points.reach(name)
	})
	// Buyers' messages come as messages: nothing is delivered.
	if err := e.sim.UpdateTaxpayer(buyerRNC, func(b *simulator.Taxpayer) error { b.Receiver = nil; return nil }); err != nil {
		t.Fatal(err)
	}
	return e
}

// flowService is a service whose watcher, inbox and releaser write through the store that
// counts points. Its documents go their way uncounted.
type flowService struct {
	*env
	watcher  *watch.Watcher
	inbox    *inbox.Inbox
	releaser fence.Releaser
}

func (e *flowEnv) start(t *testing.T) *flowService {
	t.Helper()
	p := e.points
	if p == nil {
		p = &points{}
	}
	w := &flowService{env: e.service(t, e.store, &points{})}
	w.made = e.made
	authority := watched{w.client, p}
	engine := w.engine
	engine.Store = e.counted
	counted, err := pipeline.New(engine)
	w.must(err)
	w.inbox, err = inbox.New(inbox.Options{Store: e.counted, Env: w.options.Env, Now: w.now, Log: e.log, Settler: w.plan, Roots: w.roots, Publish: counted.Publish})
	w.must(err)
	w.watcher, err = watch.New(watch.Options{
		Store: e.counted, Env: w.options.Env, Authority: authority, Now: w.now, Log: e.log, ApplyParked: w.inbox.ApplyParked,
	})
	w.must(err)
	w.releaser = fence.Releaser{Store: e.counted, Authority: authority, Identities: w.options.Identities, Fence: w.options.Fence, Now: w.now}
	return w
}

// do runs one round. With at > 0 the service ends at that point, or the point fails. It
// returns the points of the first service.
func (e *flowEnv) do(t *testing.T, f flow, at int, fails bool) []string {
	t.Helper()
	e.points = nil
	e.sim.ClearRules()
	e.clock.Advance(time.Hour) // so that each service may get a token of its own
	first := e.start(t)
	r := f.begin(e, first)
	e.made = first.made
	p, killed := &points{}, false
	switch {
	case at > 0 && fails:
		p.fail = func(n int) error {
			if n == at {
				return errInjected
			}
			return nil
		}
	case at > 0:
		p.stop = func(n int) {
			if n >= at {
				killed = true
				runtime.Goexit()
			}
		}
	}
	e.points = p
	w := e.start(t)
	for tries := 0; ; tries++ {
		if tries == 300 {
			t.Fatalf("the flow does not come to an end: %q", p.names)
		}
		var err error
		done, ended := false, make(chan struct{})
		killed = false
		go func() {
			defer close(ended)
			done, err = r.step(w)
		}()
		<-ended
		switch {
		case killed:
			e.points = &points{}
			e.clock.Advance(wake.MaxLease + time.Second)
			made := w.made
			w = e.start(t)
			w.made = made
			continue
		case err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, fiscal.ErrUnavailable):
			t.Fatal(err)
		}
		if done && err == nil {
			break
		}
	}
	e.points, e.made = nil, w.made
	if len(p.names) < at {
		t.Fatalf("point %d was never reached: %q", at, p.names)
	}
	r.check(w)
	return p.names
}

// everyPoint does a flow without a fault, and then ends it at every point and lets every
// point fail. Without FISCALHUB_CRASHES, which make soak sets, only some points are
// tried, on PostgreSQL fewer than on SQLite.
func (f flow) everyPoint(t *testing.T) {
	t.Helper()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			e := newFlowEnv(t, engine)
			whole := e.do(t, f, 0, false)
			if len(whole) < 2 {
				t.Fatalf("the flow has the points %q", whole)
			}
			step := 1
			if os.Getenv("FISCALHUB_CRASHES") == "" {
				step = len(whole)/map[string]int{"sqlite": 4, "postgres": 2}[engine] | 1 // by turns before and after an effect
			}
			for n := 1; n <= len(whole); n += step {
				for _, fails := range []bool{false, true} {
					if !fails && n > 1 && strings.HasPrefix(whole[n-1], "before ") {
						continue // it is the crash after the effect before
					}
					name := map[bool]string{false: "ends", true: "fails"}[fails]
					if !t.Run(fmt.Sprintf("%02d %s %s", n, whole[n-1], name), func(t *testing.T) { e.do(t, f, n, fails) }) {
						return // what is left over would be in the way of the next
					}
				}
			}
			t.Logf("%d points", len(whole))
		})
	}
}
