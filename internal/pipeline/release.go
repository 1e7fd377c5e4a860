package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/witness"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	// quietRun is after how many numbers in a row that the authority does not
	// hold nothing is expected beyond, where no mark says where to end. More
	// than two batches of numbers would have to be lost on their way.
	quietRun = 50
	// burnBatch is how many numbers are asked about before the answers are kept,
	// so that a repetition does not begin anew.
	burnBatch = 100
)

// ErrNobodyToAsk says that it is not known which numbers were sent, and that the
// authority has no service in the environment that would tell.
var ErrNobodyToAsk = errors.New("nobody remembers which numbers were sent, and the authority cannot be asked here")

// Releaser gives fenced ranges back: it asks the authority about every number
// that may have been used by documents that the database does not have, and
// gives all of them up.
type Releaser struct {
	Store      *store.Store
	Authority  Authority
	Identities Identities
	Fence      *Fence // nil: there is no witness
	Now        func() time.Time
	// Progress is told how many numbers of a range have been answered.
	Progress func(s store.Sequence, asked int64)
	// Stated are the highest numbers that were sent of ranges, by an operator who
	// knows.
	Stated []ecf.ENCF
}

// Released is a range that was given back, and the numbers From to To of it that
// were given up; To is below From when there were none.
type Released struct {
	Sequence               store.Sequence
	From, To               int64
	Found, Absent, Unknown int64
}

// Release gives back every fenced range of a taxpayer. One about which the
// authority does not answer stays fenced and ends it; one about which it cannot
// be asked stays fenced. Those that were given back are returned with the error.
func (r Releaser) Release(ctx context.Context, scope store.Scope) ([]Released, error) {
	taxpayer, err := r.Store.Taxpayer(ctx, scope.TaxpayerID)
	if err != nil {
		return nil, err
	}
	released := []Released{}
	var failure error
	var id *xmlsig.Identity
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		sequences, err := r.Store.SequencesOf(ctx, scope, kind)
		if err == nil {
			sequences, err = r.Fence.Inspect(ctx, taxpayer.RNC, sequences) // nobody may have looked before
		}
		if err != nil {
			return released, err
		}
		for _, s := range sequences {
			if s.FencedAt.IsZero() {
				continue
			}
			if id == nil {
				if id, err = r.Identities.Identity(ctx, scope, r.Now()); err != nil {
					return released, err
				}
			}
			search := search{Releaser: r, rnc: taxpayer.RNC, id: id, sequence: s, to: s.Next - 1}
			if err := search.run(ctx); err != nil {
				failure = errors.Join(failure, fmt.Errorf("range %d–%d of type %s stays fenced, with %d numbers answered from %d on: %w",
					s.First, s.Last, s.Type, len(search.answers), s.Next, err))
				if !errors.Is(err, ErrNobodyToAsk) {
					return released, failure
				}
				continue
			}
			released = append(released, search.result())
		}
	}
	return released, failure
}

// A search is what is being learnt about one range.
type search struct {
	Releaser
	rnc      string
	id       *xmlsig.Identity
	sequence store.Sequence
	answers  []store.Burned // of the numbers from the next one on, in order
	kept     int            // how many of them are stored
	to       int64          // the last number to be given up
}

func (s *search) run(ctx context.Context) error {
	mark, err := s.mark()
	if err != nil {
		return err
	}
	earlier, err := s.earlier(ctx)
	if err != nil {
		return err
	}
	// A mark that explains the fence says where to end; yet another node may
	// have sent more than ours remembers.
	beyond := mark.Unknown || mark.Number < s.sequence.Next || s.Store.Shared()
	quiet := 0
	for n := s.sequence.Next; n <= s.sequence.Last; n++ {
		if n > mark.Number && (!beyond || quiet == quietRun) {
			break
		}
		answer, known := earlier[n]
		if !known {
			if answer, err = s.ask(ctx, n); err != nil {
				return errors.Join(err, s.keep(ctx))
			}
		}
		if n > mark.Number {
			switch answer.Found {
			case store.NumberUnknown:
				if mark.Unknown {
					return ErrNobodyToAsk
				}
				beyond = false
				continue
			case store.NumberAbsent:
				quiet++
			case store.NumberFound:
				quiet = 0
			}
		}
		s.answers = append(s.answers, answer)
		if n <= mark.Number || answer.Found == store.NumberFound {
			s.to = n
		}
		if len(s.answers)%burnBatch == 0 {
			if err := s.keep(ctx); err != nil {
				return err
			}
		}
		if s.Progress != nil {
			s.Progress(s.sequence, int64(len(s.answers)))
		}
	}
	return s.release(ctx)
}

// mark is what is known of what was sent of the range.
func (s *search) mark() (witness.Mark, error) {
	mark := witness.Mark{Unknown: true}
	if s.Fence != nil {
		var err error
		if mark, err = s.Fence.witness.Mark(rangeOf(s.rnc, s.sequence)); err != nil {
			return mark, err
		}
	}
	for _, n := range s.Stated {
		if n.Type() == s.sequence.Type && n.Number() >= s.sequence.First && n.Number() <= s.sequence.Last {
			mark = witness.Mark{Number: max(mark.Number, n.Number())}
		}
	}
	return mark, nil
}

// earlier reads what a search that was broken off has learnt.
func (s *search) earlier(ctx context.Context) (map[int64]store.Burned, error) {
	from, err := ecf.NewENCF(s.sequence.Type, min(s.sequence.Next, s.sequence.Last))
	if err != nil {
		return nil, err
	}
	to, err := ecf.NewENCF(s.sequence.Type, s.sequence.Last)
	if err != nil {
		return nil, err
	}
	stored, err := s.Store.BurnedNumbers(ctx, s.sequence.Scope, s.rnc, from.String(), to.String())
	if err != nil {
		return nil, err
	}
	known := make(map[int64]store.Burned, len(stored))
	for _, b := range stored {
		encf, err := ecf.ParseENCF(b.ENCF)
		if err != nil {
			return nil, err
		}
		known[encf.Number()] = b
	}
	return known, nil
}

// ask asks the authority whether it holds a document under a number. The codes
// of the documents are lost with them, so a small consumer invoice can be asked
// for by the state of its number alone. The error is fiscal.ErrUnavailable.
func (s *search) ask(ctx context.Context, n int64) (store.Burned, error) {
	encf, err := ecf.NewENCF(s.sequence.Type, n)
	if err != nil {
		return store.Burned{}, err
	}
	b := store.Burned{Scope: s.sequence.Scope, RNC: s.rnc, ENCF: encf.String(), Found: store.NumberAbsent, At: s.Now()}
	query := fiscal.Query{RNC: s.rnc, ENCF: b.ENCF}
	tracks, err := s.Authority.TrackIDs(ctx, s.id, query)
	switch {
	case err == nil && len(tracks) > 0:
		b.Found, b.Detail = store.NumberFound, "track id "+tracks[0].TrackID
		return b, nil
	case err == nil && s.sequence.Type == fiscal.FiscalCredit:
		return b, nil
	}
	state, errState := s.Authority.State(ctx, s.id, query)
	switch {
	case errState == nil && state.Verdict != fiscal.VerdictNotFound:
		b.Found, b.Detail = store.NumberFound, fmt.Sprintf("state %d", state.Verdict)
		if state.SecurityCode != "" {
			b.Detail += ", security code " + state.SecurityCode
		}
	case errState == nil:
	case errors.Is(worst(err, errState), fiscal.ErrAbsent):
		b.Found, b.Detail = store.NumberUnknown, "no look-up by number exists in this environment"
	default:
		return b, worst(err, errState)
	}
	return b, nil
}

// keep stores the answers about numbers that are certainly given up.
func (s *search) keep(ctx context.Context) error {
	rest := s.rest()
	if len(rest) == 0 {
		return nil
	}
	err := s.Store.Update(ctx, func(tx *store.Tx) error { return tx.Burn(ctx, rest) })
	if err == nil {
		s.kept += len(rest)
	}
	return err
}

func (s *search) rest() []store.Burned { return s.answers[s.kept : s.to-s.sequence.Next+1] }

// release ends the search: the numbers are given up, and the range goes on
// behind them.
func (s *search) release(ctx context.Context) error {
	if s.Fence != nil {
		// Before the database, so that whoever sees the range released finds that
		// the witness agrees.
		if err := s.Fence.witness.Settle(rangeOf(s.rnc, s.sequence), s.to); err != nil {
			return err
		}
	}
	rest := s.rest()
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.Burn(ctx, rest); err != nil {
			return err
		}
		return tx.ReleaseSequence(ctx, s.sequence, s.to+1)
	})
}

func (s *search) result() Released {
	r := Released{Sequence: s.sequence, From: s.sequence.Next, To: s.to}
	for _, b := range s.answers[:s.to-s.sequence.Next+1] {
		switch b.Found {
		case store.NumberFound:
			r.Found++
		case store.NumberAbsent:
			r.Absent++
		case store.NumberUnknown:
			r.Unknown++
		}
	}
	return r
}
