package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/witness"
)

const (
	// nodeBeat is how often a node says that it is alive, and nodeAlive how long
	// that holds.
	nodeBeat  = 5 * time.Second
	nodeAlive = 30 * time.Second
	// nodeMemory is how long a node that ended without a word is remembered.
	nodeMemory = 24 * time.Hour
)

// FenceOptions are what a fence stands on.
type FenceOptions struct {
	Store *store.Store
	Env   fiscal.Environment
	Path  string // of the witness
	Now   func() time.Time
	Log   *slog.Logger
}

// Fence keeps numbers from being issued by a database that is older than what
// was sent from it: a restored copy would give them out a second time. It holds
// the witness, which remembers what was sent, against the database. A nil Fence
// sees nothing and keeps nobody from anything.
type Fence struct {
	FenceOptions
	witness *witness.File
	node    string
	ranges  sync.Map // by id of the sequence: what the witness calls it
}

// OpenFence opens the witness and fences every range of the environment that is
// behind it. The witness is made when nothing was ever sent, or when another
// node of the database has one and is alive. Where one is missing or cannot be
// read otherwise, every range is fenced, and the one that is begun knows that
// it does not know.
func OpenFence(ctx context.Context, o FenceOptions) (*Fence, error) {
	f := &Fence{FenceOptions: o, node: store.NewID()}
	var err error
	if f.witness, err = f.open(ctx); err != nil {
		return nil, err
	}
	if err := f.inspectAll(ctx); err != nil {
		return nil, errors.Join(err, f.witness.Close())
	}
	return f, nil
}

func (f *Fence) open(ctx context.Context) (*witness.File, error) {
	file, err := witness.Open(f.Path, string(f.Env))
	if err == nil {
		return file, nil
	}
	inDoubt := true
	switch {
	case errors.Is(err, witness.ErrDamaged):
		aside := f.Path + ".damaged-" + store.NewID()
		f.Log.Error("the witness of sent numbers is damaged; a new one is begun, and every range is fenced until fiscalhub reconcile has asked about it",
			"file", f.Path, "kept", aside, "error", err.Error())
		if err := os.Rename(f.Path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("pipeline: witness: %w", err)
		}
	case errors.Is(err, fs.ErrNotExist):
		sent, err := f.Store.HasSent(ctx, f.Env)
		if err != nil {
			return nil, err
		}
		alive := false
		if f.Store.Shared() {
			if alive, err = f.Store.WitnessAlive(ctx, f.Env, f.Now().Add(-nodeAlive)); err != nil {
				return nil, err
			}
		}
		if inDoubt = sent && !alive; inDoubt {
			f.Log.Error("the witness of sent numbers is missing; a new one is begun, and every range is fenced until fiscalhub reconcile has asked about it", "file", f.Path)
		}
	default:
		return nil, err
	}
	return witness.Create(f.Path, string(f.Env), inDoubt)
}

// inspectAll holds every range of the environment against the witness, and lets
// the witness know what the database has sent: it may be new, or have been left
// out for a while.
func (f *Fence) inspectAll(ctx context.Context) error {
	all, err := f.Store.Sequences(ctx)
	if err != nil {
		return err
	}
	taxpayers := make(map[string]string)
	for _, s := range all {
		if s.Environment != f.Env {
			continue
		}
		rnc, known := taxpayers[s.TaxpayerID]
		if !known {
			t, err := f.Store.Taxpayer(ctx, s.TaxpayerID)
			if err != nil {
				return err
			}
			rnc, taxpayers[s.TaxpayerID] = t.RNC, t.RNC
		}
		if err := f.remember(ctx, rnc, s); err != nil {
			return err
		}
		if _, err := f.Inspect(ctx, rnc, []store.Sequence{s}); err != nil {
			return err
		}
	}
	return nil
}

// remember raises the mark of a range to what the database has sent of it.
func (f *Fence) remember(ctx context.Context, rnc string, s store.Sequence) error {
	first, errFirst := ecf.NewENCF(s.Type, s.First)
	last, errLast := ecf.NewENCF(s.Type, s.Last)
	if err := errors.Join(errFirst, errLast); err != nil {
		return err
	}
	highest, err := f.Store.HighestSent(ctx, f.Env, rnc, first.String(), last.String())
	if err != nil || highest == "" {
		return err
	}
	sent, err := ecf.ParseENCF(highest)
	if err != nil {
		return err
	}
	return f.witness.Raise(rangeOf(rnc, s), sent.Number())
}

func rangeOf(rnc string, s store.Sequence) witness.Range {
	return witness.Range{RNC: rnc, Type: string(s.Type), First: s.First, Last: s.Last}
}

// Inspect holds ranges of an RNC against the witness. Those of which more was
// sent than the database knows are fenced from now on, and are returned so.
func (f *Fence) Inspect(ctx context.Context, rnc string, sequences []store.Sequence) ([]store.Sequence, error) {
	if f == nil {
		return sequences, nil
	}
	for i, s := range sequences {
		if !s.FencedAt.IsZero() {
			continue
		}
		mark, err := f.witness.Mark(rangeOf(rnc, s))
		behind, reason := mark.Number, "more numbers were sent than the database knows"
		switch {
		case err != nil:
			behind, reason = math.MaxInt64, err.Error()
		case mark.Unknown:
			behind, reason = math.MaxInt64, "nobody remembers which numbers were sent"
		case mark.Number < s.Next:
			continue
		}
		// The row decides: another process may have taken and sent numbers
		// between our reading of it and of the witness.
		at, fenced := f.Now().UTC().Truncate(time.Microsecond), false
		err = f.Store.Update(ctx, func(tx *store.Tx) error {
			var err error
			fenced, err = tx.FenceBehind(ctx, s, behind, at)
			return err
		})
		if err != nil {
			return nil, err
		}
		if fenced {
			f.Log.Error("a range of numbers is fenced: run fiscalhub reconcile", "reason", reason, "sequence_id", s.ID, "taxpayer_id", s.TaxpayerID,
				"type", s.Type, "next", s.Next, "sent", mark.Number)
		}
		if fenced || behind == math.MaxInt64 {
			sequences[i].FencedAt = at
		}
	}
	return sequences, nil
}

// sending makes it durable that a document's number is about to be sent.
func (f *Fence) sending(ctx context.Context, issued store.Issued) error {
	if f == nil {
		return nil
	}
	encf, err := ecf.ParseENCF(issued.ENCF)
	if err != nil {
		return err
	}
	known, ok := f.ranges.Load(issued.SequenceID)
	if !ok {
		s, err := f.Store.Sequence(ctx, issued.Scope, issued.SequenceID)
		if err != nil {
			return err
		}
		known, _ = f.ranges.LoadOrStore(s.ID, rangeOf(issued.RNC, s))
	}
	r, ok := known.(witness.Range)
	if !ok {
		return errors.New("pipeline: a range of another kind")
	}
	r.RNC = issued.RNC // that of its day
	return f.witness.Raise(r, encf.Number())
}

// Broken is closed when the disk has failed to keep the witness. The process
// must end.
func (f *Fence) Broken() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.witness.Broken()
}

// Run tells the other nodes of the database that one with a witness is alive,
// until ctx ends.
func (f *Fence) Run(ctx context.Context) {
	if f == nil || !f.Store.Shared() {
		return
	}
	last := context.WithoutCancel(ctx)
	beat := func(fn func(tx *store.Tx) error) {
		if err := f.Store.Update(last, fn); err != nil {
			f.Log.Warn("the node could not say that it is alive", "error", err.Error())
		}
	}
	tick := time.NewTicker(nodeBeat)
	defer tick.Stop()
	for ctx.Err() == nil {
		beat(func(tx *store.Tx) error {
			return tx.SeeNode(last, store.Node{ID: f.node, Environment: f.Env, HasWitness: true, SeenAt: f.Now()})
		})
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	beat(func(tx *store.Tx) error { return tx.ForgetNodes(last, f.node, f.Now().Add(-nodeMemory)) })
}

// Close lets the witness go.
func (f *Fence) Close() error {
	if f == nil {
		return nil
	}
	return f.witness.Close()
}
