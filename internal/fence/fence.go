// Package fence keeps a database that is older than what was issued from it from
// issuing numbers a second time. A number is used once anybody can see it: in an answer,
// on a page, in an event, or at the authority. A witness outside of the database remembers
// the highest such number of each range before it becomes visible. A range that is behind
// its witness is fenced: nothing is issued from it until the numbers in between are
// abandoned. No number that was visible is ever given to another document.
package fence

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"slices"
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
	o       Options
	witness *witness.File
	node    string
	limit   wake.LogLimit // of lines that each heartbeat would repeat
	ranges  sync.Map      // by range id: the range's name in the witness

	historyMu sync.Mutex
	history   history
	lastBeat  time.Time // only the goroutine of Run uses it
}

// Open opens the witness and fences every range of the environment that is behind
// it. It creates the witness when no number can have been used, or when another node of
// the database has one and shows life now. Otherwise a witness that is missing, damaged or
// of another database fences every range: the new witness records that it does not know
// which numbers were used.
func Open(ctx context.Context, o Options) (*Fence, error) {
	if o.Store == nil || o.Env == "" || o.Path == "" || o.Now == nil || o.Log == nil {
		return nil, errors.New("fence: Options are incomplete")
	}
	if o.Wait == 0 {
		o.Wait = nodeWait
	}
	f := &Fence{o: o, node: store.NewID()}
	var err error
	if f.history, err = f.readHistory(); err != nil {
		return nil, fmt.Errorf("fence: %w", err)
	}
	if f.witness, err = f.open(ctx); err != nil {
		return nil, err
	}
	f.lastBeat = f.o.Now()
	// The ranges come before the timeline: a database that is recorded as complete has
	// its ranges fenced.
	err = f.compareAll(ctx)
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
	database, err := f.o.Store.DatabaseID(ctx)
	if err != nil {
		return nil, err
	}
	file, err := witness.Open(f.o.Path, string(f.o.Env), database)
	if err == nil {
		return file, nil
	}
	inDoubt := true
	switch {
	case errors.Is(err, witness.ErrOtherDatabase):
		if inDoubt, err = f.mayHaveIssued(ctx); err != nil {
			return nil, err
		}
		f.o.Log.Error("The witness belongs to another database. Its numbers stay. If this database has issued numbers, every number range is fenced: run `fiscalhub reconcile` for each taxpayer.", "file", f.o.Path)
		return witness.Adopt(f.o.Path, string(f.o.Env), database, inDoubt)
	case errors.Is(err, witness.ErrDamaged):
		aside := f.o.Path + ".damaged-" + store.NewID()
		f.o.Log.Error("The witness of used numbers is damaged. Every number range is fenced. Run `fiscalhub reconcile` for each taxpayer.",
			"file", f.o.Path, "kept", aside, "error", err.Error())
		if err := os.Rename(f.o.Path, aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("fence: witness: %w", err)
		}
	case errors.Is(err, fs.ErrNotExist):
		if inDoubt, err = f.mayHaveIssued(ctx); err != nil {
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
			f.o.Log.Error("The witness of used numbers is missing. Every number range is fenced. Run `fiscalhub reconcile` for each taxpayer.", "file", f.o.Path)
		}
	default:
		return nil, err
	}
	return witness.Create(f.o.Path, string(f.o.Env), database, inDoubt)
}

// compareAll compares the witness with what the database has sent, and follows every range
// of the environment.
func (f *Fence) compareAll(ctx context.Context) error {
	err := f.eachRange(ctx, func(rnc string, s store.NumberRange) error { return f.compareSent(ctx, rnc, s) })
	if err != nil {
		return err
	}
	return f.followAll(ctx)
}

// followAll follows every range of the environment. A database that has lost numbers of one
// range may have lost some of every other one, and another node may have used numbers that
// this witness does not know. Then every range is fenced.
func (f *Fence) followAll(ctx context.Context) error {
	older := false
	err := f.eachRange(ctx, func(rnc string, s store.NumberRange) error {
		fenced, err := f.follow(ctx, rnc, s)
		older = older || fenced && s.FencedAt.IsZero()
		return err
	})
	if err != nil || !older {
		return err
	}
	nodes, err := f.o.Store.Nodes(ctx, f.o.Env)
	if err != nil || !slices.ContainsFunc(nodes, func(n store.Node) bool { return n.Witness != f.witness.ID() }) {
		return err
	}
	return f.fenceAll(ctx)
}

// follow inspects a range, and raises its mark to the numbers that any node has issued from
// it: they are visible, or will be in a moment. It reports whether the range is fenced.
func (f *Fence) follow(ctx context.Context, rnc string, s store.NumberRange) (fenced bool, err error) {
	inspected, err := f.Inspect(ctx, rnc, []store.NumberRange{s})
	if err != nil {
		return false, err
	}
	if fenced = !inspected[0].FencedAt.IsZero(); fenced || s.Next == s.First {
		return fenced, nil
	}
	return false, f.witness.RaiseSeen(rangeOf(rnc, s), s.Next-1)
}

// eachRange calls fn with every range of the environment and the RNC of its taxpayer.
func (f *Fence) eachRange(ctx context.Context, fn func(rnc string, s store.NumberRange) error) error {
	all, err := f.o.Store.NumberRanges(ctx)
	if err != nil {
		return err
	}
	rncs := make(map[string]string)
	for _, s := range all {
		if s.Environment != f.o.Env {
			continue
		}
		rnc, known := rncs[s.TaxpayerID]
		if !known {
			t, err := f.o.Store.Taxpayer(ctx, s.TaxpayerID)
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
	highest, err := f.o.Store.HighestSent(ctx, f.o.Env, rnc, first.String(), last.String())
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
	if err != nil || mark.Sent < s.First {
		return err
	}
	upTo, err := fiscal.NewENCF(s.Type, mark.Sent)
	if err != nil || upTo.String() == highest {
		return err
	}
	now := f.o.Now().UTC()
	return f.o.Store.OpenLostAttempts(ctx, s, store.Unsent{UpTo: upTo.String(), Idle: now}, now) // another node may be sending the others
}

// raise raises the marks of a range to a number that was sent.
func (f *Fence) raise(rnc string, s store.NumberRange, highest string) error {
	sent, err := fiscal.ParseENCF(highest)
	if err != nil {
		return err
	}
	return f.witness.RaiseSent(rangeOf(rnc, s), sent.Number())
}

func rangeOf(rnc string, s store.NumberRange) witness.Range {
	return witness.Range{RNC: rnc, Type: string(s.Type), First: s.First, Last: s.Last}
}

// Inspect compares ranges of an RNC with the witness. It fences those of which more
// numbers were used than the database knows, and returns the ranges as they are
// then.
func (f *Fence) Inspect(ctx context.Context, rnc string, ranges []store.NumberRange) ([]store.NumberRange, error) {
	if f == nil {
		return ranges, nil
	}
	inspected := make([]store.NumberRange, 0, len(ranges))
	for _, s := range ranges {
		s, err := f.inspect(ctx, rnc, s)
		if err != nil {
			return nil, err
		}
		inspected = append(inspected, s)
	}
	return inspected, nil
}

func (f *Fence) inspect(ctx context.Context, rnc string, s store.NumberRange) (store.NumberRange, error) {
	if !s.FencedAt.IsZero() {
		return f.report(ctx, rnc, s)
	}
	b := breach{behind: math.MaxInt64, seen: store.UnknownSeen}
	mark, err := f.Mark(rnc, s)
	switch {
	case errors.Is(err, witness.ErrDamaged):
		b.reason = err.Error()
	case err != nil:
		return s, err // it could not be read now; nothing is issued, and the caller tries again
	case mark.Unknown:
		b.reason = "the witness does not know which numbers were used"
	case mark.Seen < s.Next:
		return s, nil
	default:
		b.behind, b.seen, b.reason = mark.Seen, mark.Seen, "more numbers were used than the database knows"
		if b.unsent, err = f.unsent(s, mark); err != nil {
			return s, err
		}
	}
	if s.FencedAt, err = f.fence(ctx, s, b); !s.FencedAt.IsZero() {
		s.Seen = max(s.Seen, b.seen)
	}
	return s, err
}

// report reports what the witness knows of a range that is fenced already: another node has
// fenced it, and its witness may know less. It returns the range as it is then.
func (f *Fence) report(ctx context.Context, rnc string, s store.NumberRange) (store.NumberRange, error) {
	mark, err := f.Mark(rnc, s)
	if err != nil && !errors.Is(err, witness.ErrDamaged) {
		return s, err
	}
	seen := mark.Seen
	if err != nil || mark.Unknown {
		seen = store.UnknownSeen
	}
	if seen <= s.Seen || seen < s.Next {
		return s, nil
	}
	s.Seen, s.FencedAt = seen, f.o.Now().UTC().Truncate(time.Microsecond)
	return s, f.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.FenceAgain(ctx, s, seen, s.FencedAt) })
}

// A breach is why a range is fenced.
type breach struct {
	behind int64 // only a range whose next number is this one or lower is fenced
	seen   int64 // the highest number that was used, or store.UnknownSeen
	unsent *store.Unsent
	reason string
}

// unsent selects the documents of a range that may have been sent although the database
// does not know it. On SQLite the witness knows what was sent; on PostgreSQL another node
// may have sent more. It returns nil when there is none.
func (f *Fence) unsent(s store.NumberRange, mark witness.Mark) (*store.Unsent, error) {
	if f.o.Store.Shared() {
		return &store.Unsent{}, nil
	}
	if mark.Sent < s.First {
		return nil, nil
	}
	upTo, err := fiscal.NewENCF(s.Type, mark.Sent)
	return &store.Unsent{UpTo: upTo.String()}, err
}

// fence fences a range, if the row still says that it must be: another process may have
// issued numbers since it was read. It returns since when the range is fenced; zero: it is
// not. Documents that may have been sent get their attempts first, because nothing repeats
// this for a range that is fenced.
func (f *Fence) fence(ctx context.Context, s store.NumberRange, b breach) (time.Time, error) {
	at, fenced := f.o.Now().UTC().Truncate(time.Microsecond), false
	if b.behind != math.MaxInt64 {
		// A number is in the database before it is in the witness, so a row that is read now
		// is behind only if the database has lost numbers.
		if now, err := f.o.Store.NumberRange(ctx, s.Scope, s.ID); err != nil || now.Next > b.behind {
			return time.Time{}, err
		}
	}
	if b.seen == store.UnknownSeen {
		b.unsent = &store.Unsent{}
	}
	if b.unsent != nil {
		if err := f.o.Store.OpenLostAttempts(ctx, s, *b.unsent, at); err != nil {
			return time.Time{}, err
		}
	}
	err := f.o.Store.Update(ctx, func(tx *store.Tx) error {
		var err error
		if fenced, err = tx.FenceBehind(ctx, s, b.behind, at); err != nil {
			return err
		}
		return tx.ReportSeen(ctx, s, b.seen)
	})
	if err != nil {
		return time.Time{}, err
	}
	if fenced {
		f.o.Log.Error("A number range is fenced: nothing is issued from it. Run `fiscalhub reconcile`.", "reason", b.reason, "range_id", s.ID, "taxpayer_id", s.TaxpayerID,
			"type", s.Type, "next", s.Next)
	}
	if fenced || b.behind == math.MaxInt64 {
		return at, nil
	}
	return time.Time{}, nil
}

// Mark returns what the witness knows of a range.
func (f *Fence) Mark(rnc string, s store.NumberRange) (witness.Mark, error) {
	return f.witness.Mark(rangeOf(rnc, s))
}

// BeforeShow records durably that a document's number is about to become visible. If it
// fails, the number must stay hidden.
func (f *Fence) BeforeShow(ctx context.Context, issued store.Issued) error {
	if f == nil {
		return nil
	}
	return f.record(ctx, issued, f.witness.RaiseSeen)
}

// BeforeSend records durably that a document is about to be sent, and so its number to
// become visible. If it fails, the document must not be sent.
func (f *Fence) BeforeSend(ctx context.Context, issued store.Issued) error {
	if f == nil {
		return nil
	}
	return f.record(ctx, issued, f.witness.RaiseSent)
}

// record raises the mark of a document's range to its number.
func (f *Fence) record(ctx context.Context, issued store.Issued, raise func(witness.Range, int64) error) error {
	encf, err := fiscal.ParseENCF(issued.ENCF)
	if err != nil {
		return err
	}
	known, ok := f.ranges.Load(issued.NumberRangeID)
	if !ok {
		s, err := f.o.Store.NumberRange(ctx, issued.Scope, issued.NumberRangeID)
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
	return raise(r, encf.Number())
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
