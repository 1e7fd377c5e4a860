package live

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// failover is a PostgreSQL server with a standby, and two nodes with a witness each.
type failover struct {
	primary, standby *storetest.Server
	a, b             *env
	dir              string
}

func newFailover(t *testing.T, synchronous bool) *failover {
	t.Helper()
	f := &failover{primary: storetest.PrivatePostgres(t), dir: t.TempDir()}
	address, err := f.primary.Create("failover")
	if err != nil {
		t.Fatal(err)
	}
	f.a = newEnv(t, address, envOptions{})
	f.standby = f.primary.Standby(t, "second")
	if synchronous {
		f.a.must(f.primary.Configure("synchronous_standby_names", "second"))
	}
	f.b = f.a.from(address)
	f.a.guard(filepath.Join(f.dir, "a"))
	f.b.guard(filepath.Join(f.dir, "b"))
	deadline := time.Now().Add(30 * time.Second)
	for {
		got, err := f.a.store().Replication(t.Context())
		f.a.must(err)
		if got.Standbys == 1 && (got.Synchronous == 1) == synchronous {
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
		n.must(n.options.Fence.Beat(n.t.Context()))
	}
}

// issue creates so many documents on a node and brings them to their verdict.
func (f *failover) issue(n *env, documents int) []store.Invoice {
	var all []store.Invoice
	for range documents {
		all = append(all, n.create(fiscal.FiscalCredit, 1000+n.made))
	}
	n.drive(time.Hour)
	return all
}

// fail ends the primary and promotes the standby. It returns the second node on the
// new primary, with its witness.
func (f *failover) fail(t *testing.T) *env {
	t.Helper()
	f.a.must(f.a.options.Fence.Close())
	f.a.must(f.b.options.Fence.Close())
	f.primary.Halt()
	f.a.must(f.standby.Promote())
	b := f.b.from(f.standby.URL("failover"))
	b.made = 1000
	b.guard(filepath.Join(f.dir, "b"))
	f.a.from(f.standby.URL("failover")).guard(filepath.Join(f.dir, "a"))
	return b
}

// contents returns how many different documents the authority has under a number.
func contents(w *env, encf string) int {
	seen := map[string]bool{}
	for _, d := range w.sim.Documents(simulator.Filter{}) {
		if d.ENCF == encf {
			seen[d.SHA256] = true
		}
	}
	return len(seen)
}

// With an asynchronous standby the last commits may be lost. One node sends numbers
// that the standby never gets. After the failover no node issues them again: every
// range is fenced until the authority was asked.
func TestFailoverToAnAsynchronousStandbyIsFenced(t *testing.T) {
	t.Parallel()
	f := newFailover(t, false)
	f.issue(f.a, 2)
	f.beat(f.a, f.b)
	f.a.must(f.standby.Configure("primary_conninfo", ""))
	time.Sleep(500 * time.Millisecond) // until the standby has ended its connection
	f.issue(f.a, 3)                    // numbers 3 to 5, which the standby does not get
	b := f.fail(t)
	b.refused(fiscal.FiscalCredit)
	if got := contents(b, "E310000000003"); got != 1 {
		t.Errorf("the authority has %d documents under number 3, want one", got)
	}
	b.release()
	after := f.issue(b, 2)
	for _, inv := range after {
		got := b.read(inv)
		if got.Status != fiscal.Accepted || got.ENCF <= "E310000000005" {
			t.Errorf("after the release %s is %s", got.ENCF, got.Status)
		}
		if n := contents(b, got.ENCF); n != 1 {
			t.Errorf("the authority has %d documents under %s", n, got.ENCF)
		}
	}
}

// With a synchronous standby nothing is lost, nothing is fenced, and numbers go on.
func TestFailoverToASynchronousStandbyLosesNothing(t *testing.T) {
	t.Parallel()
	f := newFailover(t, true)
	before := f.issue(f.a, 3)
	f.beat(f.a, f.b)
	b := f.fail(t)
	b.equal("after the failover", []string{}, b.fenced())
	for _, inv := range before {
		if got := b.read(inv); got.Status != fiscal.Accepted {
			t.Errorf("%s is %s after the failover", got.ENCF, got.Status)
		}
	}
	for i, inv := range f.issue(b, 2) {
		if got, want := b.read(inv).ENCF, []string{"E310000000004", "E310000000005"}[i]; got != want {
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
	f.a.must(f.b.options.Fence.Close())
	// The node finds the primary among both servers.
	n := f.b.from("postgres:///failover?user=postgres&target_session_attrs=read-write&host=" + f.primary.Dir + "," + f.standby.Dir)
	n.made = 1000
	n.guard(filepath.Join(f.dir, "b"))
	waiting := n.create(fiscal.FiscalCredit, 1000)
	jobs, err := n.Claim(t.Context(), 1)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("claimed %v, %v", jobs, err)
	}
	f.follow(t, jobs[0])
	f.a.must(f.standby.Configure("primary_conninfo", ""))
	time.Sleep(500 * time.Millisecond) // until the standby has ended its connection

	failed := false
	n.options.Point = func(name string) error {
		if name == "before issuing" && !failed {
			failed = true
			f.issue(f.a, 3) // numbers 3 to 5, which the standby does not get
			f.primary.Halt()
			n.must(f.standby.Promote())
			for range 20 { // each failure removes a connection to the old primary from the pool
				_, _ = n.store().Timeline(t.Context())
			}
		}
		return nil
	}
	n.start()
	n.RunJob(t.Context(), jobs[0])
	if got := n.read(waiting); !failed || got.ENCF != "" {
		t.Errorf("the document got the number %q after the failover", got.ENCF)
	}
	if got := contents(n, "E310000000003"); got != 1 {
		t.Errorf("the authority has %d documents under number 3, want one", got)
	}
	n.refused(fiscal.FiscalCredit)
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
