// Package fence keeps a database that is older than what was sent from it from
// issuing numbers a second time. A witness outside of the database remembers the
// highest number sent of each range. A range that is behind its witness is fenced:
// nothing is issued from it until the authority was asked about the numbers in
// between.
package fence

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

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/witness"
)

// Options configure a fence.
type Options struct {
	Store *store.Store
	Env   fiscal.Environment
	Path  string // of the witness
	// Wait is how long a node without a witness waits for the heartbeat of another
	// node; the default is 15 seconds.
	Wait time.Duration
	Now  func() time.Time
	Log  *slog.Logger
	// Pace divides the time between two heartbeats. It does not divide Wait: another
	// node may have another pace.
	Pace wake.Pace
}

// A Fence compares number ranges with the witness. A nil Fence fences nothing; it
// stands for a service that runs without a witness.
type Fence struct {
	store   *store.Store
	env     fiscal.Environment
	path    string
	now     func() time.Time
	log     *slog.Logger
	witness *witness.File
	node    string
	wait    time.Duration
	pace    wake.Pace
	limit   wake.LogLimit // of lines that each heartbeat would repeat
	ranges  sync.Map      // by range id: the range's name in the witness

	historyMu sync.Mutex
	history   history
	lastBeat  time.Time // only the goroutine of Run uses it
}

// Open opens the witness and fences every range of the environment that is behind
// it. It creates the witness when no number can have been sent, or when another node of
// the database has one and shows life now. Otherwise a missing or damaged witness fences
// every range: the new witness records that it does not know what was sent.
func Open(ctx context.Context, o Options) (*Fence, error) {
	if o.Store == nil || o.Env == "" || o.Path == "" || o.Now == nil || o.Log == nil {
		return nil, errors.New("fence: Options are incomplete")
	}
	if o.Wait == 0 {
		o.Wait = nodeWait
	}
	f := &Fence{wait: o.Wait, pace: o.Pace, store: o.Store, env: o.Env, path: o.Path, now: o.Now, log: o.Log, node: store.NewID()}
	var err error
	if f.history, err = f.readHistory(); err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	if f.witness, err = f.open(ctx); err != nil {
		return nil, err
	}
	f.lastBeat = f.now()
	// The ranges come before the timeline: a database that is recorded as complete has
	// its ranges fenced.
	err = f.inspectAll(ctx)
	var timeline string
	if err == nil {
		timeline, err = f.CheckHistory(ctx)
	}
	if err == nil {
		err = f.recordTimeline(ctx, timeline)
	}
	if err != nil {
		return nil, errors.Join(err, f.witness.Close())
	}
	return f, nil
}

func (f *Fence) open(ctx context.Context) (*witness.File, error) {
	file, err := witness.Open(f.path, string(f.env))
	if err == nil {
		return file, nil
	}
	inDoubt := true
	switch {
	case errors.Is(err, witness.ErrDamaged):
		aside := f.path + ".damaged-" + store.NewID()
		f.log.Error("The witness of sent numbers is damaged. Every number range is fenced. Run `fiscalhub reconcile` for each taxpayer.",
			"file", f.path, "kept", aside, "error", err.Error())
		if err := os.Rename(f.path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("fence: witness: %w", err)
		}
	case errors.Is(err, fs.ErrNotExist):
		if inDoubt, err = f.mayHaveSent(ctx); err != nil {
			return nil, err
		}
		if inDoubt {
			alive, err := f.otherNodeAlive(ctx)
			if err != nil {
				return nil, err
			}
			inDoubt = !alive
		}
		if inDoubt {
			f.log.Error("The witness of sent numbers is missing. Every number range is fenced. Run `fiscalhub reconcile` for each taxpayer.", "file", f.path)
		}
	default:
		return nil, err
	}
	return witness.Create(f.path, string(f.env), inDoubt)
}

// inspectAll compares the witness with what the database has sent, and inspects every
// range of the environment.
func (f *Fence) inspectAll(ctx context.Context) error {
	return f.eachRange(ctx, func(rnc string, s store.NumberRange) error {
		if err := f.compareSent(ctx, rnc, s); err != nil {
			return err
		}
		_, err := f.Inspect(ctx, rnc, []store.NumberRange{s})
		return err
	})
}

// inspectRanges inspects every range of the environment.
func (f *Fence) inspectRanges(ctx context.Context) error {
	return f.eachRange(ctx, func(rnc string, s store.NumberRange) error {
		_, err := f.Inspect(ctx, rnc, []store.NumberRange{s})
		return err
	})
}

// eachRange calls fn with every range of the environment and the RNC of its taxpayer.
func (f *Fence) eachRange(ctx context.Context, fn func(rnc string, s store.NumberRange) error) error {
	all, err := f.store.NumberRanges(ctx)
	if err != nil {
		return err
	}
	rncs := make(map[string]string)
	for _, s := range all {
		if s.Environment != f.env {
			continue
		}
		rnc, known := rncs[s.TaxpayerID]
		if !known {
			t, err := f.store.Taxpayer(ctx, s.TaxpayerID)
			if err != nil {
				return err
			}
			rnc, rncs[s.TaxpayerID] = t.RNC, t.RNC
		}
		if err := fn(rnc, s); err != nil {
			return err
		}
	}
	return nil
}

// compareSent compares the mark of a range with the highest number that the database has
// sent of it. It raises the mark, because the witness may be new or may have been absent
// for a while. When the mark is higher, the database has lost an attempt, or the process
// ended before it recorded one: documents up to the mark are not sent before the
// authority was asked about them.
func (f *Fence) compareSent(ctx context.Context, rnc string, s store.NumberRange) error {
	first, errFirst := fiscal.NewENCF(s.Type, s.First)
	last, errLast := fiscal.NewENCF(s.Type, s.Last)
	if err := errors.Join(errFirst, errLast); err != nil {
		return err
	}
	highest, err := f.store.HighestSent(ctx, f.env, rnc, first.String(), last.String())
	if err != nil {
		return err
	}
	if highest != "" {
		if err := f.raise(rnc, s, highest); err != nil {
			return err
		}
	}
	mark, err := f.Mark(rnc, s)
	if errors.Is(err, witness.ErrDamaged) {
		return nil // Inspect fences the range
	}
	if err != nil || mark.Number < s.First {
		return err
	}
	upTo, err := fiscal.NewENCF(s.Type, mark.Number)
	if err != nil || upTo.String() == highest {
		return err
	}
	now := f.now().UTC()
	return f.store.Update(ctx, func(tx *store.Tx) error {
		return tx.OpenLostAttempts(ctx, s, store.Unsent{UpTo: upTo.String(), Idle: now}, now) // another node may be sending the others
	})
}

// raise raises the mark of a range to a number that was sent.
func (f *Fence) raise(rnc string, s store.NumberRange, highest string) error {
	sent, err := fiscal.ParseENCF(highest)
	if err != nil {
		return err
	}
	return f.witness.Raise(rangeOf(rnc, s), sent.Number())
}

func rangeOf(rnc string, s store.NumberRange) witness.Range {
	return witness.Range{RNC: rnc, Type: string(s.Type), First: s.First, Last: s.Last}
}

// Inspect compares ranges of an RNC with the witness. It fences those of which more
// numbers were sent than the database knows, and returns the ranges as they are
// then.
func (f *Fence) Inspect(ctx context.Context, rnc string, sequences []store.NumberRange) ([]store.NumberRange, error) {
	if f == nil {
		return sequences, nil
	}
	for i, s := range sequences {
		if !s.FencedAt.IsZero() {
			continue
		}
		mark, err := f.Mark(rnc, s)
		behind, reason := mark.Number, "more numbers were sent than the database knows"
		switch {
		case errors.Is(err, witness.ErrDamaged):
			behind, reason = math.MaxInt64, err.Error()
		case err != nil:
			return nil, err // it could not be read now; nothing is issued, and the caller tries again
		case mark.Unknown:
			behind, reason = math.MaxInt64, "the witness does not know which numbers were sent"
		case mark.Number < s.Next:
			continue
		}
		// The row decides: another process may have taken and sent numbers between
		// our reads of the row and of the witness.
		at, fenced := f.now().UTC().Truncate(time.Microsecond), false
		err = f.store.Update(ctx, func(tx *store.Tx) error {
			var err error
			if fenced, err = tx.FenceBehind(ctx, s, behind, at); err != nil || !fenced {
				return err
			}
			return tx.OpenLostAttempts(ctx, s, store.Unsent{}, at)
		})
		if err != nil {
			return nil, err
		}
		if fenced {
			f.log.Error("A number range is fenced: nothing is issued from it. Run `fiscalhub reconcile`.", "reason", reason, "range_id", s.ID, "taxpayer_id", s.TaxpayerID,
				"type", s.Type, "next", s.Next, "sent", mark.Number)
		}
		if fenced || behind == math.MaxInt64 {
			sequences[i].FencedAt = at
		}
	}
	return sequences, nil
}

// Mark returns what the witness knows of a range.
func (f *Fence) Mark(rnc string, s store.NumberRange) (witness.Mark, error) {
	return f.witness.Mark(rangeOf(rnc, s))
}

// BeforeSend records durably that a document's number is about to be sent. If it
// fails, the document must not be sent.
func (f *Fence) BeforeSend(ctx context.Context, issued store.Issued) error {
	if f == nil {
		return nil
	}
	encf, err := fiscal.ParseENCF(issued.ENCF)
	if err != nil {
		return err
	}
	known, ok := f.ranges.Load(issued.NumberRangeID)
	if !ok {
		s, err := f.store.NumberRange(ctx, issued.Scope, issued.NumberRangeID)
		if err != nil {
			return err
		}
		known, _ = f.ranges.LoadOrStore(s.ID, rangeOf(issued.RNC, s))
	}
	r, ok := known.(witness.Range)
	if !ok {
		return errors.New("fence: unexpected type in the cache of ranges")
	}
	r.RNC = issued.RNC // the RNC at the time of signing
	return f.witness.Raise(r, encf.Number())
}

// Broken returns a channel that is closed when the witness could not be written. The
// process must end then.
func (f *Fence) Broken() <-chan struct{} {
	if f == nil {
		return nil
	}
	return f.witness.Broken()
}

// Close closes the witness.
func (f *Fence) Close() error {
	if f == nil {
		return nil
	}
	return f.witness.Close()
}
