package systemtest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// failoverSettings returns how many failovers a test runs, and how many documents the
// clients create in each phase. Without FAILOVER_RUNS the test is skipped: a failover
// takes half a minute, and package live tests the same rules in one process.
func failoverSettings(t *testing.T) (runs, documents int) {
	t.Helper()
	if runs = setting(t, "FAILOVER_RUNS", 0); runs == 0 {
		t.Skip("`make failover` runs this test")
	}
	harness.Program(t) // before the clients begin
	return runs, setting(t, "FAILOVER_DOCUMENTS", 150)
}

// The primary of a synchronous standby is killed under load, and the standby is
// promoted. Nothing that was acknowledged may be lost, and numbers go on without a gap.
func TestFailoverToASynchronousStandby(t *testing.T) {
	runs, documents := failoverSettings(t)
	figures := newFigureTable("run", "address", "acknowledged", "retried", "longest silence", "settled after", "lost", "untrue status", "numbers twice", "gaps", "violations")
	for run := range runs {
		t.Run(strconv.Itoa(run+1), func(t *testing.T) {
			c := startCluster(t, true, run%2 == 1)
			c.clients.reach(t, documents+rand.IntN(documents/2))
			c.fail(t)
			c.clients.reach(t, int(c.clients.count.Load())+documents)
			settled := c.settle(t)
			c.clients.checkReplays(t)
			l := c.clients.checkLedger(t)
			if l.lost > 0 || l.abandoned > 0 {
				t.Errorf("%d acknowledged invoices are lost, and %d numbers were abandoned", l.lost, l.abandoned)
			}
			for i, n := range c.nodes {
				if strings.Contains(n.Log.String(), "fenced") {
					t.Errorf("node %d fenced its ranges:\n%s", i, n.Log)
				}
			}
			figures.row(strconv.Itoa(run+1), c.addressKind(), strconv.Itoa(len(c.clients.acks)), strconv.Itoa(c.clients.retried), seconds(c.clients.silence), seconds(settled),
				strconv.Itoa(l.lost), strconv.Itoa(l.untrue), strconv.Itoa(l.twice), strconv.Itoa(l.gaps), strconv.Itoa(l.violations))
		})
	}
	t.Logf("%d failovers to a synchronous standby\n%s", runs, figures)
}

// The primary of an asynchronous standby is killed under load after the standby has
// missed commits, and the standby is promoted. The ranges must be fenced before any
// number is issued, and no number may be used twice after the release.
func TestFailoverToAnAsynchronousStandby(t *testing.T) {
	runs, documents := failoverSettings(t)
	figures := newFigureTable("run", "address", "acknowledged", "retried", "lost in the copy", "fenced after", "longest silence", "abandoned", "at the authority", "settled after", "untrue status", "numbers twice", "violations")
	for run := range runs {
		t.Run(strconv.Itoa(run+1), func(t *testing.T) {
			c := startCluster(t, false, run%2 == 1)
			c.clients.reach(t, documents)
			c.standby.Disconnect(t, c.primary)
			c.clients.reach(t, int(c.clients.count.Load())+documents/2+rand.IntN(documents/2))
			c.fail(t)
			fenced := c.checkFence(t)
			c.release(t)
			c.clients.reach(t, int(c.clients.count.Load())+documents)
			settled := c.settle(t)
			// The copy does not know when a verdict was last asked for.
			l := c.clients.checkLedger(t, simulator.FastPolling)
			if l.lost == 0 || l.found == 0 {
				t.Errorf("%d invoices are lost, and the authority has %d abandoned numbers: the standby missed nothing", l.lost, l.found)
			}
			figures.row(strconv.Itoa(run+1), c.addressKind(), strconv.Itoa(len(c.clients.acks)), strconv.Itoa(c.clients.retried), strconv.Itoa(l.lost), fmt.Sprintf("%d ms", fenced.Milliseconds()),
				seconds(c.clients.silence), strconv.Itoa(l.abandoned), strconv.Itoa(l.found), seconds(settled), strconv.Itoa(l.untrue), strconv.Itoa(l.twice), strconv.Itoa(l.violations))
		})
	}
	t.Logf("%d failovers to an asynchronous standby\n%s", runs, figures)
}

// addressKind says how the nodes find the database, for the table of figures.
func (c *cluster) addressKind() string {
	if c.virtual != nil {
		return "virtual"
	}
	return "two hosts"
}

// checkFence waits until every range is fenced, and checks that no number was taken
// from the older copy, that the logs of both nodes and the readiness of the taxpayer
// say what to do, and that clients are refused. It returns the time from the promotion
// to the fence.
func (c *cluster) checkFence(t *testing.T) time.Duration {
	t.Helper()
	begun := time.Now()
	s := storetest.Open(t, c.address, time.Now)
	before := c.ranges(t, s)
	open := func(r store.NumberRange) bool { return r.FencedAt.IsZero() }
	harness.Eventually(t, 30*time.Second, "every range is fenced", func() bool { return !slices.ContainsFunc(c.ranges(t, s), open) })
	took := time.Since(begun)
	for i, n := range c.nodes {
		harness.Eventually(t, 30*time.Second, "the log of node "+strconv.Itoa(i)+" says what to do", func() bool {
			return strings.Contains(n.Log.String(), "Every number range is fenced. Run `fiscalhub reconcile` for each taxpayer.")
		})
	}
	if shown := fmt.Sprint(c.operate(t, "taxpayer", "show", c.client.Taxpayer)); !strings.Contains(shown, "sequence.fenced") {
		t.Errorf("the readiness of the taxpayer does not name the fence: %s", shown)
	}
	harness.Eventually(t, 30*time.Second, "clients are refused", func() bool {
		c.clients.mu.Lock()
		defer c.clients.mu.Unlock()
		return c.clients.refused > 0
	})
	for i, r := range c.ranges(t, s) {
		if r.Next != before[i].Next {
			t.Errorf("the range of type %s went from %d to %d before the release", r.Type, before[i].Next, r.Next)
		}
	}
	return took
}

// release runs the command that operators run after such a failover, once with the data
// folder of each node.
func (c *cluster) release(t *testing.T) {
	t.Helper()
	for i := range c.nodes {
		args := c.nodeArgs(i)
		flags := slices.Concat(args[:slices.Index(args, "--rate-limit")], args[slices.Index(args, "--master-key"):])
		runJSON(t, new(any), append([]string{"reconcile", "--taxpayer", c.client.Taxpayer}, flags...)...)
	}
}
