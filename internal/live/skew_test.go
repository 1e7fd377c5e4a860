package live_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// skewed returns another node of the same database whose own clock is off. As in the
// service, everything takes its time from the store.
func (c *crashEnv) skewed(t *testing.T, by time.Duration, p *points) *env {
	t.Helper()
	s := storetest.OpenNode(t, c.address, func() time.Time { return c.clock.Now().Add(by) }, c.clock.Now)
	if got, known := s.ClockSkew(); !known || got != by {
		t.Fatalf("the node is off by %s, want %s", got, by)
	}
	options := c.client
	options.Now = s.Now
	client, err := dgii.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w := c.service(t, s, p)
	w.Client = client
	w.Options.Now, w.Options.Authority = s.Now, watched{client, p}
	w.Start()
	return w
}

// Three nodes share a database. The clock of one is ten minutes ahead, that of another
// ten minutes behind. Documents come to their end as with one node: each is sent once,
// no lease ends early, the numbers have no gap, and an outage is one contingency.
func TestNodesWithSkewedClocksAgree(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			newCrashEnv(t, engine, trials()[0]).skewedNodes(t)
		})
	}
}

func (c *crashEnv) skewedNodes(t *testing.T) {
	t.Helper()
	c.clock.Advance(time.Hour)
	stands, goOn := make(chan struct{}), make(chan struct{})
	slow := &points{}
	slow.stop = func(n int) {
		if slow.names[n-1] == "after Submit" && slow.sent() == 1 {
			close(stands)
			<-goOn
		}
	}
	nodes := []*env{c.skewed(t, 0, slow), c.skewed(t, 10*time.Minute, &points{}), c.skewed(t, -10*time.Minute, &points{})}
	var made []store.Invoice
	create := func(n int) {
		t.Helper()
		for range n {
			nodes[0].Made = c.made
			made = append(made, nodes[0].Create(fiscal.FiscalCredit, 1000))
			c.made++
		}
	}

	// The first node waits for the answer to a submission for longer than the others
	// would if they went by their own clocks.
	create(1)
	done := make(chan struct{})
	go func() {
		defer close(done)
		jobs, err := nodes[0].Claim(t.Context(), livetest.MaxClaim)
		nodes[0].Must(err)
		for _, job := range jobs {
			nodes[0].RunJob(t.Context(), job)
		}
	}()
	<-stands
	for range 5 {
		c.clock.Advance(5 * time.Second)
		for _, other := range nodes[1:] {
			if jobs, err := other.Claim(t.Context(), livetest.MaxClaim); err != nil || len(jobs) > 0 {
				t.Errorf("a node took over %d jobs of a living worker (%v)", len(jobs), err)
			}
		}
	}
	close(goOn)
	<-done

	create(3)
	c.together(nodes, 5*time.Minute)
	before := len(made)
	if err := c.sim.Configure(func(s *simulator.Config) { s.Maintenance = true }); err != nil {
		t.Fatal(err)
	}
	create(2)
	c.together(nodes, 30*time.Minute)
	if err := c.sim.Configure(func(s *simulator.Config) { s.Maintenance = false }); err != nil {
		t.Fatal(err)
	}
	c.together(nodes, 20*time.Minute)
	c.auditSkewed(t, nodes[0], made, before)
}

// together lets time pass. Each node claims and does what is due, and looks after the
// contingency.
func (c *crashEnv) together(nodes []*env, d time.Duration) {
	const step = 15 * time.Second
	for end := c.clock.Now().Add(d); c.clock.Now().Before(end); c.clock.Advance(step) {
		for i := range nodes {
			w := nodes[(i+int(c.clock.Now().Unix()/15))%len(nodes)] // each comes first by turns
			jobs, err := w.Claim(w.T.Context(), 2)
			w.Must(err)
			for _, job := range jobs {
				w.RunJob(w.T.Context(), job)
			}
			w.Must(w.Watcher.CheckOutage(w.T.Context(), w.Signals()))
		}
	}
}

// auditSkewed asserts what must hold of the documents. Those before the outage were sent
// once and at once.
func (c *crashEnv) auditSkewed(t *testing.T, w *env, made []store.Invoice, before int) {
	t.Helper()
	var numbers, want []string
	for i, inv := range made {
		got := w.Read(inv)
		numbers, want = append(numbers, got.ENCF), append(want, fmt.Sprintf("E31%010d", i+1))
		if i < before {
			w.Want(inv, "queued submitted accepted delivered")
			if attempts, err := w.Store().Attempts(t.Context(), c.scope, inv.DocumentID); err != nil || len(attempts) != 1 {
				t.Errorf("%s: attempts %+v, %v; want one", got.ENCF, attempts, err)
			}
		}
		if got.Status != fiscal.Delivered {
			t.Errorf("%s is %s: %s", got.ENCF, got.Status, w.Story(inv))
		}
		c.inv = inv
		c.auditHistory(t, w, got)
	}
	slices.Sort(numbers)
	w.Equal("numbers", want, numbers)
	for _, encf := range numbers {
		if n := w.Contents(encf); n != 1 {
			t.Errorf("the authority has %d documents under %s", n, encf)
		}
	}
	counts := w.kindsSince(0)
	if counts[event.ContingencyStarted] != 1 || counts[event.ContingencyEnded] != 1 {
		t.Errorf("the contingency began %d times and ended %d times", counts[event.ContingencyStarted], counts[event.ContingencyEnded])
	}
	w.Audit()
}
