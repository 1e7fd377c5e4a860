package systemtest

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// An asynchronous standby is promoted after a contingency of which it has missed
// everything, and in which buyers got pages with numbers that were not sent. No other
// sale may get a number of these pages: neither with the witnesses of both nodes, nor, when a
// node is dead and its folder gone, with the last numbers that the operator states.
func TestFailoversInAContingency(t *testing.T) {
	runs, _ := failoverSettings(t)
	figures := newFigureTable("run", "address", "nodes", shopColumns)
	for run := range runs {
		dead, restarted := run%2 == 1, run%4 >= 2
		nodes := "run on"
		switch {
		case dead && restarted:
			nodes = "one dead, one started again"
		case dead:
			nodes = "one dead"
		case restarted:
			nodes = "started again"
		}
		t.Run(strconv.Itoa(run+1), func(t *testing.T) {
			begun := time.Now()
			c, s := failOverInAContingency(t, run%8 >= 4, dead, restarted)
			figures.row(run+1, c.addressKind(), nodes, s.figures(t, begun))
		})
		if t.Failed() {
			break
		}
	}
	t.Logf("%d failovers in a contingency\n%s", runs, figures)
}

// failOverInAContingency promotes a standby that misses a contingency, and returns the shop
// with everything that is in the hands of anybody. Node 1 may die for good, with its folder;
// the nodes that live on may be killed and started again.
func failOverInAContingency(t *testing.T, virtual, dead, restarted bool) (*cluster, *shop) {
	t.Helper()
	c, address := startServers(t, false, virtual)
	s := newShop(t, address)
	c.env = s.env
	c.startNodes(t, false)
	s.open(t, c.nodes[:]...)
	s.awaitSettled(t, 4+rand.IntN(8))
	c.standby.Disconnect(t, c.primary)
	s.awaitMore(t, rand.IntN(6))

	s.meetContingency(t)
	end := func(i int) {
		c.nodes[i].Kill()
	}
	if dead {
		end(1)
		if err := os.RemoveAll(c.nodeDir(1)); err != nil {
			t.Fatal(err)
		}
	}
	alive := c.nodes[:]
	if dead {
		alive = alive[:1]
	}
	s.reach(alive...)
	c.fail(t)
	if restarted {
		for i := range alive {
			end(i)
			alive[i] = harness.Serve(t, c.nodeArgs(i)...)
		}
		s.reach(alive...)
	}
	s.awaitFence(t)
	s.maintain(t, false)
	s.release(t, c.nodeArgs(0), dead)
	s.finish(t, 6)
	return c, s
}
