package fence

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
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

func (f *Fence) historyPath() string { return f.path + ".timeline" }

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
// what was sent. Then it fences every range, because another node may have sent
// numbers that this witness does not know, and documents that wait to be sent are not
// sent before the authority was asked about them. Call it before a document is sent, and
// before a range is read whose numbers
// are taken, and take them only on the timeline that it returns: a failover after the
// check has another one. The timeline is empty when it cannot be known.
func (f *Fence) CheckHistory(ctx context.Context) (timeline string, err error) {
	if f == nil || !f.store.Shared() {
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
	// detected the failover before. Then the doubt is in the witness, or was released.
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
		if before.timeline, err = f.store.RecordedTimeline(ctx, f.env); err != nil {
			return "", err
		}
	}
	switch {
	case before.timeline == "" || before.timeline == timeline:
	case before.leadsTo(timeline):
		f.log.Warn("The database continues another history of commits. Its commits waited for all standbys, so nothing is lost.", "before", before.timeline, "now", timeline)
	default:
		f.log.Error("The database continues another history of commits, and its last commits may be lost. Every number range is fenced. Run `fiscalhub reconcile` for each taxpayer.",
			"before", before.timeline, "now", timeline)
		if err := f.doubt(ctx); err != nil {
			return "", err
		}
	}
	if err := f.recordTimeline(ctx, timeline); err != nil {
		return "", err
	}
	return timeline, f.writeHistory(history{timeline, false})
}

// recordTimeline records in the database the timeline on which this node works. What an
// earlier timeline may have lost is in its witness.
func (f *Fence) recordTimeline(ctx context.Context, timeline string) error {
	if timeline == "" {
		return nil
	}
	recorded, err := f.store.RecordedTimeline(ctx, f.env)
	if err != nil || recorded == timeline {
		return err
	}
	return f.store.Update(ctx, func(tx *store.Tx) error { return tx.RecordTimeline(ctx, f.env, timeline) })
}

// mayHaveSent reports whether numbers of the environment may have been sent: the database
// knows of one, or it continues another timeline than the recorded one. Then it may be a
// copy that has lost all numbers.
func (f *Fence) mayHaveSent(ctx context.Context) (bool, error) {
	sent, err := f.store.HasSent(ctx, f.env)
	if err != nil || sent || !f.store.Shared() {
		return sent, err
	}
	recorded, err := f.store.RecordedTimeline(ctx, f.env)
	if err != nil || recorded == "" {
		return false, err
	}
	timeline, err := f.timeline(ctx)
	return timeline != "" && timeline != recorded, err
}

// timeline reads the timeline of the database; empty: it cannot be known.
func (f *Fence) timeline(ctx context.Context) (string, error) {
	name, err := f.store.Timeline(ctx)
	if err != nil || name == store.UnknownTimeline {
		return "", err
	}
	return name, nil
}

// doubt fences every range, and every document that waits to be sent may have been sent.
func (f *Fence) doubt(ctx context.Context) error {
	if err := f.witness.Doubt(); err != nil {
		return err
	}
	return f.eachRange(ctx, func(rnc string, s store.NumberRange) error {
		err := f.store.Update(ctx, func(tx *store.Tx) error {
			return tx.OpenLostAttempts(ctx, s, store.Unsent{}, f.now()) // also in a range that is fenced already
		})
		if err == nil {
			_, err = f.Inspect(ctx, rnc, []store.NumberRange{s})
		}
		return err
	})
}

// recordReplication remembers whether a failover would lose commits. After a failover, the
// standbys of the new primary say nothing about the commits of the old one.
func (f *Fence) recordReplication(ctx context.Context) error {
	replication, err := f.store.Replication(ctx)
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
	if !f.store.Shared() {
		return false, nil
	}
	before, err := f.store.LatestHeartbeat(ctx, f.env)
	if err != nil || before.IsZero() {
		return false, err
	}
	f.log.Info("This node has no witness yet. It waits for the heartbeat of another node.")
	for range f.wait / nodePoll {
		wake.Sleep(ctx, nodePoll)
		if err := ctx.Err(); err != nil {
			return false, err
		}
		latest, err := f.store.LatestHeartbeat(ctx, f.env)
		if err != nil || latest.After(before) {
			return err == nil, err
		}
	}
	return false, nil
}

// Run keeps the fence of the cluster until ctx ends: it reports that this node is
// alive, raises the witness to what other nodes have sent, and fences ranges of a
// database that is behind the witness.
func (f *Fence) Run(ctx context.Context) {
	if f == nil || !f.store.Shared() {
		return
	}
	working := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		if err := f.Beat(working); err == nil {
			f.limit.End("heartbeat")
		} else if f.limit.Allow("heartbeat", f.now()) {
			f.log.Warn("Cannot complete the heartbeat of this node. It is repeated within seconds.", "error", err.Error())
		}
		wake.Sleep(ctx, f.pace.Of(nodeBeat, nodePoll))
	}
	err := f.store.Update(working, func(tx *store.Tx) error { return tx.DeleteNodes(working, f.node, f.now().Add(-nodeMemory)) })
	if err != nil {
		f.log.Warn("Cannot delete the row of this node. It is deleted after a day.", "error", err.Error())
	}
}

// Beat is one heartbeat.
func (f *Fence) Beat(ctx context.Context) error {
	if _, err := f.CheckHistory(ctx); err != nil {
		return err
	}
	started := f.now()
	err := f.store.Update(ctx, func(tx *store.Tx) error {
		return tx.RecordHeartbeat(ctx, store.Node{ID: f.node, Environment: f.env, HasWitness: true, SeenAt: started})
	})
	if err != nil {
		return err
	}
	sent, err := f.store.SentSince(ctx, f.env, f.lastBeat.Add(-sentOverlap))
	if err != nil {
		return err
	}
	for _, one := range sent {
		if err := f.raise(one.RNC, one.Range, one.Highest); err != nil {
			return err
		}
	}
	if err := f.inspectRanges(ctx); err != nil {
		return err
	}
	f.lastBeat = started
	return f.recordReplication(ctx)
}
