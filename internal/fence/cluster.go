package fence

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/witness"
)

const (
	// nodeBeat is how often a node reports that it is alive.
	nodeBeat = 5 * time.Second
	// nodeWait is how long a node without a witness waits for the heartbeat of
	// another one, and nodePoll how often it looks.
	nodeWait = 3 * nodeBeat
	nodePoll = 100 * time.Millisecond
	// nodeMemory is how long the row of a node that crashed is kept.
	nodeMemory = 24 * time.Hour
	// sentOverlap is how far a heartbeat looks back beyond the last one for numbers
	// that other nodes have sent: a transaction may commit long after it began.
	sentOverlap = time.Minute
)

// history is what a node knows of the database's history of commits. It is kept in a
// file in the folder of the witness.
type history struct {
	timeline string
	lossless bool // a failover loses no commit: each commit waits for all standbys
}

// leadsTo reports whether a database with another timeline has all the commits of h. A
// promotion creates a later timeline of the same server. Another server, or an earlier
// timeline, is an older copy.
func (h history) leadsTo(timeline string) bool {
	system, before, _ := strings.Cut(h.timeline, "-")
	same, after, _ := strings.Cut(timeline, "-")
	return h.lossless && system == same && after > before
}

func (f *Fence) historyPath() string { return f.o.Path + ".timeline" }

// readHistory reads the file; there is none before the first heartbeat.
func (f *Fence) readHistory() (history, error) {
	text, err := os.ReadFile(f.historyPath())
	if errors.Is(err, fs.ErrNotExist) {
		return history{}, nil
	}
	timeline, rest, _ := strings.Cut(string(text), "\n")
	return history{timeline, strings.HasPrefix(rest, "lossless")}, err
}

func (f *Fence) writeHistory(h history) error {
	state := "lossy"
	if h.lossless {
		state = "lossless"
	}
	if err := atomicfile.Replace(f.historyPath(), h.timeline+"\n"+state+"\n"); err != nil {
		return err
	}
	f.history = h
	return nil
}

// CheckHistory detects a failover to a copy of the database that may be older than
// what was issued. Then it fences every range and reports what this witness knows of it,
// because another node may have used numbers that this witness does not know. Documents
// that wait to be sent are not sent before the authority was asked about them. Call it
// before a document is sent, and before a range is read whose numbers are taken, and take
// them only on the timeline that it returns: a failover after the check has another one.
// The timeline is empty when it cannot be known.
func (f *Fence) CheckHistory(ctx context.Context) (timeline string, err error) {
	if f == nil || !f.o.Store.Shared() {
		return "", nil
	}
	if timeline, err = f.timeline(ctx); err != nil || timeline == "" {
		return "", err
	}
	f.historyMu.Lock()
	defer f.historyMu.Unlock()
	if timeline == f.history.timeline {
		return timeline, nil
	}
	// Another goroutine may have detected the failover since the timeline was read.
	if timeline, err = f.timeline(ctx); err != nil || timeline == "" || timeline == f.history.timeline {
		return timeline, err
	}
	// Another process with the same witness, such as `fiscalhub reconcile`, may have
	// detected the failover before. Then the ranges are fenced, or were released.
	stored, err := f.readHistory()
	if err != nil {
		return "", err
	}
	if stored.timeline == timeline {
		f.history = stored
		return timeline, nil
	}
	before := f.history
	if before.timeline == "" { // this is the first start, or the first one did not end
		if before.timeline, err = f.o.Store.RecordedTimeline(ctx, f.o.Env); err != nil {
			return "", err
		}
	}
	switch {
	case before.timeline == "" || before.timeline == timeline:
	case before.leadsTo(timeline):
		f.o.Log.Warn("The database continues another history of commits. Its commits waited for all standbys, so nothing is lost.", "before", before.timeline, "now", timeline)
	default:
		f.o.Log.Error("The database continues another history of commits, and its last commits may be lost. Every number range is fenced. Run `fiscalhub reconcile` for each taxpayer.",
			"before", before.timeline, "now", timeline)
		if err := f.fenceAll(ctx); err != nil {
			return "", err
		}
	}
	if err := f.recordTimeline(ctx, timeline); err != nil {
		return "", err
	}
	return timeline, f.writeHistory(history{timeline, false})
}

// recordTimeline records in the database the timeline on which this node works. The ranges
// of which an earlier timeline may have lost numbers are fenced then.
func (f *Fence) recordTimeline(ctx context.Context, timeline string) error {
	if timeline == "" {
		return nil
	}
	recorded, err := f.o.Store.RecordedTimeline(ctx, f.o.Env)
	if err != nil || recorded == timeline {
		return err
	}
	return f.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.RecordTimeline(ctx, f.o.Env, timeline) })
}

// mayHaveIssued reports whether numbers of the environment may have been issued: the
// database knows of one, or it continues another timeline than the recorded one. Then it
// may be a copy that has lost all numbers.
func (f *Fence) mayHaveIssued(ctx context.Context) (bool, error) {
	issued, err := f.o.Store.HasIssued(ctx, f.o.Env)
	if err != nil || issued || !f.o.Store.Shared() {
		return issued, err
	}
	recorded, err := f.o.Store.RecordedTimeline(ctx, f.o.Env)
	if err != nil || recorded == "" {
		return false, err
	}
	timeline, err := f.timeline(ctx)
	return timeline != "" && timeline != recorded, err
}

// timeline reads the timeline of the database; empty: it cannot be known.
func (f *Fence) timeline(ctx context.Context) (string, error) {
	name, err := f.o.Store.Timeline(ctx)
	if err != nil || name == store.UnknownTimeline {
		return "", err
	}
	return name, nil
}

// fenceAll fences every range, also one that is fenced already, and reports what the
// witness knows of it. Every document that waits to be sent may have been sent.
func (f *Fence) fenceAll(ctx context.Context) error {
	return f.eachRange(ctx, func(rnc string, s store.NumberRange) error {
		mark, err := f.Mark(rnc, s)
		if err != nil && !errors.Is(err, witness.ErrDamaged) {
			return err
		}
		b := breach{behind: math.MaxInt64, seen: mark.Seen, unsent: &store.Unsent{}, reason: "the last commits of the database may be lost"}
		if err != nil || mark.Unknown {
			b.seen = store.UnknownSeen
		}
		_, err = f.fence(ctx, s, b)
		return err
	})
}

// unreported waits until every node of the database has reported what its witness knows on
// the present timeline. It returns the nodes that did not in time: what they have shown and
// sent last is unknown. It also waits for a heartbeat of a node that is not in the database:
// it may have started after the copy was made. A heartbeat from before the fence proves
// nothing: the database may be a restored copy. fencedAt is zero when it is none.
func (f *Fence) unreported(ctx context.Context, fencedAt time.Time) (missing []store.Node, err error) {
	if f == nil || !f.o.Store.Shared() {
		return nil, nil
	}
	timeline, err := f.CheckHistory(ctx)
	if err != nil {
		return nil, err
	}
	hasReported := func(n store.Node) bool { return n.Timeline == timeline && !n.SeenAt.Before(fencedAt) }
	for waited := time.Duration(0); ; waited += nodePoll {
		nodes, err := f.o.Store.Nodes(ctx, f.o.Env)
		if err != nil {
			return nil, err
		}
		reported := map[string]bool{f.witness.ID(): true}
		for _, n := range nodes {
			if hasReported(n) {
				reported[n.Witness] = true
			}
		}
		missing = slices.DeleteFunc(nodes, func(n store.Node) bool { return hasReported(n) || n.Witness != "" && reported[n.Witness] })
		if len(missing) == 0 && waited >= f.o.Wait/2 || waited >= f.o.Wait {
			return missing, nil
		}
		wake.Sleep(ctx, nodePoll)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
	}
}

// recordReplication remembers whether a failover would lose commits. After a failover, the
// standbys of the new primary say nothing about the commits of the old one.
func (f *Fence) recordReplication(ctx context.Context) error {
	replication, err := f.o.Store.Replication(ctx)
	if err != nil {
		return err
	}
	timeline, err := f.timeline(ctx)
	if err != nil {
		return err
	}
	lossless := replication.Lossless()
	f.historyMu.Lock()
	defer f.historyMu.Unlock()
	if timeline == "" || timeline != f.history.timeline || lossless == f.history.lossless {
		return nil
	}
	return f.writeHistory(history{f.history.timeline, lossless})
}

// otherNodeAlive reports whether another node with a witness shows life now: its
// heartbeat must be newer than every one that the database had before. A row of the
// database alone proves nothing, because the database may be a restored copy.
func (f *Fence) otherNodeAlive(ctx context.Context) (bool, error) {
	if !f.o.Store.Shared() {
		return false, nil
	}
	before, err := f.o.Store.LatestHeartbeat(ctx, f.o.Env)
	if err != nil || before.IsZero() {
		return false, err
	}
	f.o.Log.Info("This node has no witness yet. It waits for the heartbeat of another node.")
	for range f.o.Wait / nodePoll {
		wake.Sleep(ctx, nodePoll)
		if err := ctx.Err(); err != nil {
			return false, err
		}
		latest, err := f.o.Store.LatestHeartbeat(ctx, f.o.Env)
		if err != nil || latest.After(before) {
			return err == nil, err
		}
	}
	return false, nil
}

// Run keeps the fence of the cluster until ctx ends: it reports that this node is
// alive, raises the witness to what other nodes have issued and sent, and fences ranges of
// a database that is behind the witness.
func (f *Fence) Run(ctx context.Context) {
	if f == nil || !f.o.Store.Shared() {
		return
	}
	working := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		if err := f.Beat(working); err == nil {
			f.limit.End("heartbeat")
		} else if f.limit.Allow("heartbeat", f.o.Now()) {
			f.o.Log.Warn("Cannot complete the heartbeat of this node. It is repeated within seconds.", "error", err.Error())
		}
		wake.Sleep(ctx, f.o.Pace.Of(nodeBeat, nodePoll))
	}
	err := f.o.Store.Update(working, func(tx *store.Tx) error { return tx.DeleteNodes(working, f.node, f.o.Now().Add(-nodeMemory)) })
	if err != nil {
		f.o.Log.Warn("Cannot delete the row of this node. It is deleted after a day.", "error", err.Error())
	}
}

// Beat is one heartbeat.
func (f *Fence) Beat(ctx context.Context) error {
	timeline, err := f.CheckHistory(ctx)
	if err != nil {
		return err
	}
	started := f.o.Now()
	// The heartbeat comes after the report of what the witness knows, see unreported.
	if err := f.followAll(ctx); err != nil {
		return err
	}
	beat := store.Node{ID: f.node, Environment: f.o.Env, HasWitness: true, SeenAt: started, Witness: f.witness.ID(), Timeline: timeline}
	err = f.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.RecordHeartbeat(ctx, beat) })
	if err != nil {
		return err
	}
	sent, err := f.o.Store.SentSince(ctx, f.o.Env, f.lastBeat.Add(-sentOverlap))
	if err != nil {
		return err
	}
	for _, one := range sent {
		if err := f.raise(one.RNC, one.Range, one.Highest); err != nil {
			return err
		}
	}
	f.lastBeat = started
	return f.recordReplication(ctx)
}
