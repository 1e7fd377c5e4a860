package fence_test

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// failover is a PostgreSQL server with a standby, and two nodes with a witness each. The
// nodes know both servers and use the one that accepts writes.
type failover struct {
	primary, standby *storetest.Server
	a, b             *env
	dir              string
}

func newFailover(t *testing.T, synchronous bool) *failover {
	t.Helper()
	if synchronous {
		return newFailoverOf(t, "second", 1, "second")
	}
	return newFailoverOf(t, "", 0, "second")
}

// newFailoverOf has several standbys, of which the nodes use the last. names is
// synchronous_standby_names, and synchronous how many standbys every commit waits for.
func newFailoverOf(t *testing.T, names string, synchronous int, standbys ...string) *failover {
	t.Helper()
	f := &failover{primary: storetest.PrivatePostgres(t), dir: t.TempDir()}
	if _, err := f.primary.Create("failover"); err != nil {
		t.Fatal(err)
	}
	for _, name := range standbys {
		f.standby = f.primary.Standby(t, name)
	}
	address := f.primary.URLWith(f.standby, "failover")
	f.a = newEnv(t, address)
	if names != "" {
		f.a.Must(f.primary.Configure("synchronous_standby_names", names))
	}
	f.b = f.a.from(address)
	f.a.Guard(filepath.Join(f.dir, "a"))
	f.b.Guard(filepath.Join(f.dir, "b"))
	deadline := time.Now().Add(30 * time.Second)
	for {
		got, err := f.a.Store().Replication(t.Context())
		f.a.Must(err)
		if got.Standbys == len(standbys) && got.Synchronous == synchronous {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("replication: %+v", got)
		}
		time.Sleep(50 * time.Millisecond)
	}
	f.beat(f.a, f.b)
	return f
}

func (f *failover) beat(nodes ...*env) {
	for _, n := range nodes {
		n.Must(n.Options.Fence.Beat(n.T.Context()))
	}
}

// issue creates so many documents on a node and brings them to their verdict.
func (f *failover) issue(n *env, documents int) []store.Invoice {
	var all []store.Invoice
	for range documents {
		all = append(all, n.Create(fiscal.FiscalCredit, 1000+n.Made))
	}
	n.Drive(time.Hour)
	return all
}

// fail ends the primary and promotes the standby. It returns the second node on the
// new primary, with its witness.
func (f *failover) fail(t *testing.T) *env {
	t.Helper()
	f.a.Must(f.a.Options.Fence.Close())
	f.a.Must(f.b.Options.Fence.Close())
	f.primary.Halt()
	f.a.Must(f.standby.Promote())
	b := f.b.from(f.standby.URL("failover"))
	b.Made = 1000
	b.Guard(filepath.Join(f.dir, "b"))
	f.a.from(f.standby.URL("failover")).Guard(filepath.Join(f.dir, "a"))
	return b
}

// A pausedJob is the job of a document that a worker has claimed, and that pauses at a
// point.
type pausedJob struct {
	worker        *env
	job           store.Job
	point         string
	reached, done chan struct{}
	resume        chan struct{}
}

// claim creates a document on a node and claims its job, which will pause at a point.
func (f *failover) claim(n *env, kind fiscal.Type, point string) *pausedJob {
	n.T.Helper()
	p := &pausedJob{worker: n.otherNode(), point: point, reached: make(chan struct{}), resume: make(chan struct{}), done: make(chan struct{})}
	p.worker.Options.Point, p.worker.Engine.Point = p.pause, p.pause
	p.worker.Start()
	n.Create(kind, 1000)
	jobs, err := p.worker.Claim(n.T.Context(), livetest.MaxClaim)
	n.Must(err)
	if len(jobs) != 1 {
		n.T.Fatalf("%d jobs, want the one of the new document", len(jobs))
	}
	p.job = jobs[0]
	return p
}

func (p *pausedJob) pause(point string) error {
	if point == p.point {
		close(p.reached)
		<-p.resume
	}
	return nil
}

// run does the stages of the job until its point.
func (p *pausedJob) run() {
	p.worker.T.Helper()
	go func() {
		defer close(p.done)
		p.worker.RunJob(p.worker.T.Context(), p.job)
	}()
	select {
	case <-p.reached:
	case <-p.done:
		p.worker.T.Fatalf("the document has not reached the point %q", p.point)
	}
}

// finish does the rest.
func (p *pausedJob) finish() {
	close(p.resume)
	<-p.done
}

// promote ends the primary and promotes the standby under the running nodes. It returns
// when they have no connection to the old primary left.
func (f *failover) promote() {
	f.a.T.Helper()
	f.primary.Halt()
	f.a.Must(f.standby.Promote())
	for _, n := range []*env{f.a, f.b} {
		for good, deadline := 0, time.Now().Add(30*time.Second); good < 32; {
			if _, err := n.Store().Timeline(n.T.Context()); err != nil {
				good = 0
			} else {
				good++
			}
			if time.Now().After(deadline) {
				n.T.Fatal("the store does not find the new primary")
			}
		}
	}
}

// numbered creates a document that has its number and was not sent yet.
func (f *failover) numbered(n *env) store.Invoice {
	n.T.Helper()
	worker := n.otherNode()
	worker.Options.Point = func(point string) error {
		if point == "before witnessing" {
			return errors.New("the worker ends before it sends the document")
		}
		return nil
	}
	worker.Start()
	inv := n.Create(fiscal.FiscalCredit, 1000)
	worker.Drive(0)
	if n.Read(inv).ENCF == "" {
		n.T.Fatal("the document has no number")
	}
	return inv
}

// A worker that began a stage before the failover must not continue on a copy that does
// not know what it did: the document would have a status without a number. A document
// that the copy has not sent yet is not sent blindly.
func TestFailoverInTheMiddleOfAStage(t *testing.T) {
	t.Parallel()
	f := newFailover(t, false)
	f.issue(f.a, 2)
	f.beat(f.a, f.b)
	unsent := f.numbered(f.a)
	jobs := []*pausedJob{f.claim(f.a, fiscal.Consumer, "after issuing"), f.claim(f.a, fiscal.FiscalCredit, "before the end of submit")}
	f.standby.Disconnect(t, f.primary)
	sent := len(f.a.Sim.Documents(simulator.Filter{}))
	for _, j := range jobs {
		j.run()
	}
	f.a.Drive(5 * time.Second) // sends the document; the leases of the paused jobs last longer
	f.promote()
	for _, j := range jobs {
		j.finish()
	}
	f.b.Drive(time.Hour) // without a heartbeat since the failover
	if got := f.b.Read(unsent); got.Status != fiscal.Accepted {
		t.Errorf("the document that the copy had not sent is %s", got.Status)
	}
	if got := len(f.a.Sim.Documents(simulator.Filter{})); got != sent+2 {
		t.Errorf("the authority has %d new documents, want the two that were sent before the failover", got-sent)
	}
	for _, v := range f.a.Sim.Violations() {
		t.Errorf("violation: %v", v)
	}
	page, err := f.a.Store().ListInvoices(t.Context(), f.a.Scope, store.InvoiceFilter{Limit: 100})
	f.a.Must(err)
	for _, inv := range page {
		if inv = f.a.Read(inv); inv.Status != fiscal.Queued && inv.ENCF == "" {
			t.Errorf("%s is %s without a number", inv.ExternalID, inv.Status)
		}
	}
}

// With an asynchronous standby the last commits may be lost. One node sends numbers
// that the standby never gets. After the failover no node issues them again: every
// range is fenced until an operator has run the release with the witness of each node.
func TestFailoverToAnAsynchronousStandbyIsFenced(t *testing.T) {
	t.Parallel()
	f := newFailover(t, false)
	f.issue(f.a, 2)
	f.beat(f.a, f.b)
	f.standby.Disconnect(t, f.primary)
	f.issue(f.a, 3) // numbers 3 to 5, which the standby does not get
	f.promote()
	f.beat(f.a)
	f.a.Refused(fiscal.FiscalCredit)
	if got := f.a.Contents("E310000000003"); got != 1 {
		t.Errorf("the authority has %d documents under number 3, want one", got)
	}
	operator := f.a.otherNode()
	operator.Guard(filepath.Join(f.dir, "a"))
	if released, err := operator.Releaser().Release(t.Context(), f.a.Scope); !errors.Is(err, fence.ErrNotStated) || len(released) > 0 {
		t.Errorf("node b has not reported since the failover: %+v, %v", released, err)
	}
	f.beat(f.b)
	operator.Equal("released", []string{"31 3–5: 3 found, 0 absent, 0 unknown", "32 1–0: 0 found, 0 absent, 0 unknown"}, operator.release())
	f.beat(f.a, f.b)
	f.a.Equal("fenced after the release", []string{}, f.a.Fenced())
	f.b.Made = 1000
	for _, inv := range f.issue(f.b, 2) {
		got := f.b.Read(inv)
		if got.Status != fiscal.Accepted || got.ENCF <= "E310000000005" {
			t.Errorf("after the release %s is %s", got.ENCF, got.Status)
		}
		if n := f.b.Contents(got.ENCF); n != 1 {
			t.Errorf("the authority has %d documents under %s", n, got.ENCF)
		}
	}
}

// Commits wait for one of two standbys, and the other one is promoted.
func TestFailoverToTheStandbyThatCommitsDoNotWaitForIsFenced(t *testing.T) {
	t.Parallel()
	for names, synchronous := range map[string]int{"second": 1, "ANY 1 (second, third)": 0} {
		t.Run(names, func(t *testing.T) {
			t.Parallel()
			f := newFailoverOf(t, names, synchronous, "second", "third")
			f.issue(f.a, 2)
			f.beat(f.a, f.b)
			f.standby.Disconnect(t, f.primary)
			f.issue(f.a, 3) // numbers 3 to 5, which the third server and node b do not get
			f.a.Must(errors.Join(f.a.Options.Fence.Close(), f.b.Options.Fence.Close()))
			f.primary.Halt() // and node a with it
			f.a.Must(f.standby.Promote())
			b := f.b.from(f.standby.URL("failover"))
			b.Guard(filepath.Join(f.dir, "b"))
			b.Refused(fiscal.FiscalCredit)
			if got := b.Contents("E310000000003"); got != 1 {
				t.Errorf("the authority has %d documents under number 3, want one", got)
			}
		})
	}
}

// The standby has the database from before its first number, and the nodes that have sent
// numbers start later. A new node with an empty disk does not issue them again.
func TestFailoverToACopyFromBeforeTheFirstNumber(t *testing.T) {
	t.Parallel()
	f := newFailover(t, false)
	f.standby.Disconnect(t, f.primary)
	f.issue(f.a, 3)
	f.promote()
	added := f.a.otherNode()
	added.Guard(filepath.Join(f.dir, "new"))
	added.Equal("fenced", []string{"31 at 1", "32 at 1"}, added.Fenced())
	added.Refused(fiscal.FiscalCredit)
}

// With a synchronous standby nothing is lost, nothing is fenced, and numbers go on.
func TestFailoverToASynchronousStandbyLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFailover(t, true)
	before := f.issue(f.a, 3)
	f.beat(f.a, f.b)
	b := f.fail(t)
	b.Equal("after the failover", []string{}, b.Fenced())
	for _, inv := range before {
		if got := b.Read(inv); got.Status != fiscal.Accepted {
			t.Errorf("%s is %s after the failover", got.ENCF, got.Status)
		}
	}
	for i, inv := range f.issue(b, 2) {
		if got, want := b.Read(inv).ENCF, []string{"E310000000004", "E310000000005"}[i]; got != want {
			t.Errorf("the next document has %s, want %s", got, want)
		}
	}
}

// The database fails over between the check of its timeline and the commit of a number.
// Meanwhile another node has sent that number, and the new primary does not know it.
// The commit is refused, and every range is fenced.
func TestFailoverBetweenTheCheckAndTheCommitOfANumber(t *testing.T) {
	t.Parallel()
	f := newFailover(t, false)
	f.issue(f.a, 2)
	f.beat(f.a, f.b)
	f.a.Must(f.b.Options.Fence.Close())
	// The node finds the primary among both servers.
	n := f.b.from("postgres:///failover?user=postgres&target_session_attrs=read-write&host=" + f.primary.Dir + "," + f.standby.Dir)
	n.Made = 1000
	n.Guard(filepath.Join(f.dir, "b"))
	waiting := n.Create(fiscal.FiscalCredit, 1000)
	jobs, err := n.Claim(t.Context(), 1)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("claimed %v, %v", jobs, err)
	}
	f.follow(t, jobs[0])
	f.a.Must(f.standby.Configure("primary_conninfo", ""))
	time.Sleep(500 * time.Millisecond) // until the standby has ended its connection

	failed := false
	n.Options.Point = func(name string) error {
		if name == "before issuing" && !failed {
			failed = true
			f.issue(f.a, 3) // numbers 3 to 5, which the standby does not get
			f.primary.Halt()
			n.Must(f.standby.Promote())
			for range 20 { // each failure removes a connection to the old primary from the pool
				_, _ = n.Store().Timeline(t.Context())
			}
		}
		return nil
	}
	n.Start()
	n.RunJob(t.Context(), jobs[0])
	if got := n.Read(waiting); !failed || got.ENCF != "" {
		t.Errorf("the document got the number %q after the failover", got.ENCF)
	}
	if got := n.Contents("E310000000003"); got != 1 {
		t.Errorf("the authority has %d documents under number 3, want one", got)
	}
	n.Refused(fiscal.FiscalCredit)
}

// follow waits until the standby has the lease of a job.
func (f *failover) follow(t *testing.T, job store.Job) {
	t.Helper()
	standby := storetest.OpenSQL(t, f.standby.URL("failover"))
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		var lease string
		err := standby.QueryRowContext(t.Context(), `SELECT lease FROM jobs WHERE document_id = $1`, job.DocumentID).Scan(&lease)
		if err == nil && lease == job.Lease {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the standby has the lease %q, %v", lease, err)
		}
	}
}
