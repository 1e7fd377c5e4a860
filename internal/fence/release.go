package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/witness"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	// maxAbsentRun ends a search beyond the numbers that are known to be used: after so
	// many numbers in a row that the authority does not have, no later one is expected. It
	// is more than two batches of numbering.
	maxAbsentRun = 50
	// saveEvery is after how many questions the answers are saved, so that an
	// interrupted search continues where it stopped.
	saveEvery = 100
)

// ErrNotStated says that nobody knows the highest number that was used, so that an operator
// has to state it. The reason comes before it.
var ErrNotStated = lang.Errorf("state the highest number of this range that anybody may have seen (printed, answered or sent) with --sent-up-to, or the number before its first one if there is none",
	"indique con --sent-up-to la secuencia más alta de este rango que alguien pudo ver (impresa, respondida o enviada), o la anterior a la primera si no hay ninguna")

// errLostMark, errNoLookUp and errMissingNodes are the reasons.
var (
	errLostMark = lang.Errorf("the witness was lost, and the authority knows only the numbers that were sent: %s",
		"se perdió el testigo, y la DGII solo conoce las secuencias enviadas: %s", ErrNotStated)
	errNoLookUp = lang.Errorf("the witness does not explain the fence, and the authority offers no look-up by number here: %s",
		"el testigo no explica el bloqueo, y la DGII no ofrece aquí una consulta por secuencia: %s", ErrNotStated)
)

func errMissingNodes(missing []store.Node) error {
	last := slices.MaxFunc(missing, func(a, b store.Node) int { return a.SeenAt.Compare(b.SeenAt) }).SeenAt.UTC().Format(time.RFC3339)
	return lang.Errorf("the last commits of the database may be lost, and %d nodes (the last one seen at %s) have not reported what their witnesses know; start them, or %s",
		"pueden faltar las últimas transacciones de la base de datos, y %d nodos (el último visto en %s) no han informado lo que saben sus testigos; inícielos, o %s", len(missing), last, ErrNotStated)
}

// Authority is what a release asks the tax authority. The errors are those of
// package fiscal: ErrUnavailable, and ErrAbsent where a service does not exist.
type Authority interface {
	TrackIDs(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) ([]fiscal.AuthorityAnswer, error)
	State(ctx context.Context, id *xmlsig.Identity, q fiscal.Query) (fiscal.AuthorityAnswer, error)
}

// Identities provide the certificate and key that speak for a taxpayer.
type Identities interface {
	Identity(ctx context.Context, scope store.Scope, at time.Time) (*xmlsig.Identity, error)
}

// Releaser releases fenced ranges: it abandons every number that anybody may have seen and
// that the database does not know, and asks the authority about each of them. How far
// numbers were seen, the witnesses or an operator must know: the authority does not have the
// numbers that were printed in a contingency and not sent.
type Releaser struct {
	Store      *store.Store
	Authority  Authority
	Identities Identities
	Fence      *Fence // nil: there is no witness
	Now        func() time.Time
	// Progress, if set, is called with the count of numbers of a range that were answered,
	// and with how many there will be as far as is known.
	Progress func(s store.NumberRange, answered, total int64)
	// Stated are the highest numbers that anybody may have seen, as an operator knows them.
	Stated []Stated
}

// Released is a range that was released, and its numbers From to To that were
// abandoned. To is below From when there were none.
type Released struct {
	Range                  store.NumberRange
	From, To               int64
	Found, Absent, Unknown int64
}

// Release releases every fenced range of a taxpayer. It stops at the first range
// about which the authority does not answer. A range about which the authority
// cannot be asked stays fenced. Release returns the released ranges also when it
// fails.
func (r Releaser) Release(ctx context.Context, scope store.Scope) ([]Released, error) {
	taxpayer, err := r.Store.Taxpayer(ctx, scope.TaxpayerID)
	if err != nil {
		return nil, err
	}
	if err := r.checkStated(ctx, scope); err != nil {
		return nil, err
	}
	released := []Released{}
	var failure error
	var id *xmlsig.Identity
	var missing []store.Node
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		ranges, err := r.Store.NumberRangesOf(ctx, scope, kind)
		if err == nil {
			ranges, err = r.Fence.Inspect(ctx, taxpayer.RNC, ranges) // this range may not have been inspected yet
		}
		if err != nil {
			return released, err
		}
		for _, s := range ranges {
			if s.FencedAt.IsZero() {
				continue
			}
			if id == nil { // the first one
				if id, err = r.Identities.Identity(ctx, scope, r.Now()); err != nil {
					return released, err
				}
				behind, err := r.behindSince(ctx, scope, taxpayer.RNC)
				if err != nil {
					return released, err
				}
				if missing, err = r.Fence.unreported(ctx, behind); err != nil {
					return released, err
				}
			}
			if s, err = r.Store.NumberRange(ctx, scope, s.ID); err != nil { // with the reports of the nodes
				return released, err
			}
			if s.FencedAt.IsZero() {
				continue // another process has released it
			}
			search := search{Releaser: r, rnc: taxpayer.RNC, id: id, numbers: s, missing: missing, to: s.Next - 1}
			err = search.run(ctx)
			if errors.Is(err, store.ErrNumbersTaken) {
				if now, errRead := r.Store.NumberRange(ctx, scope, s.ID); errRead == nil && now.FencedAt.IsZero() {
					continue // another process has released it meanwhile
				}
			}
			if err != nil {
				failure = errors.Join(failure, lang.Errorf("range %d–%d of type %s stays fenced, with %d numbers answered from %d on: %s",
					"el rango %d–%d del tipo %s sigue bloqueado, con %d secuencias respondidas a partir de %d: %s",
					s.First, s.Last, s.Type, len(search.answers), s.Next, err))
				if !errors.Is(err, ErrNotStated) {
					return released, failure
				}
				continue
			}
			released = append(released, search.result())
		}
	}
	return released, failure
}

// behindSince returns when the last range was fenced of which a witness knows more than the
// database; zero when there is none. The database may be a restored copy then.
func (r Releaser) behindSince(ctx context.Context, scope store.Scope, rnc string) (last time.Time, err error) {
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		ranges, err := r.Store.NumberRangesOf(ctx, scope, kind)
		if err == nil {
			ranges, err = r.Fence.Inspect(ctx, rnc, ranges)
		}
		if err != nil {
			return last, err
		}
		for _, s := range ranges {
			if !s.FencedAt.IsZero() && s.Seen >= s.Next && s.FencedAt.After(last) {
				last = s.FencedAt
			}
		}
	}
	return last, nil
}

// A search asks about the numbers of one range.
type search struct {
	Releaser
	rnc     string
	id      *xmlsig.Identity
	numbers store.NumberRange
	missing []store.Node            // nodes that have not reported
	answers []store.AbandonedNumber // from the range's next number on, in order
	saved   int                     // how many of them are stored
	to      int64                   // the last number to be abandoned
}

func (s *search) run(ctx context.Context) error {
	seen, stated, err := s.seen()
	if err != nil {
		return err
	}
	earlier, err := s.savedAnswers(ctx)
	if err != nil {
		return err
	}
	// Numbers that do not explain the fence are not the reason for it: the authority has
	// shown the document of another issuer, which may have used later numbers too. On
	// PostgreSQL a node may have sent more that has no witness. And an operator may be wrong.
	explained := stated || seen >= s.numbers.Next
	beyond := !explained || stated || s.Store.Shared()
	quiet := 0
	for n := s.numbers.Next; n <= s.numbers.Last; n++ {
		if n > seen && (!beyond || quiet == maxAbsentRun) {
			break
		}
		answer, known := earlier[n]
		if !known {
			if answer, err = s.ask(ctx, n); err != nil {
				// An interrupted search must not lose the answers that it has.
				return errors.Join(err, s.saveAnswers(context.WithoutCancel(ctx)))
			}
		}
		if n > seen {
			switch answer.Presence {
			case store.NumberUnknown:
				if !explained {
					return errNoLookUp
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
		if n <= seen || answer.Presence == store.NumberFound {
			s.to = n
		}
		if len(s.answers)%saveEvery == 0 {
			if err := s.saveAnswers(ctx); err != nil {
				return err
			}
		}
		if s.Progress != nil {
			last := seen
			if beyond {
				last = max(n, seen) + int64(maxAbsentRun-quiet)
			}
			s.Progress(s.numbers, int64(len(s.answers)), max(min(last, s.numbers.Last), n)-s.numbers.Next+1)
		}
	}
	return s.release(ctx)
}

// seen returns the highest number of the range that anybody may have seen, as the
// witnesses or an operator know it. It returns ErrNotStated when nobody knows it.
func (s *search) seen() (highest int64, stated bool, err error) {
	highest, stated = statedOf(s.Stated, s.numbers)
	mark := witness.Mark{Unknown: true}
	if s.Fence != nil {
		if mark, err = s.Fence.Mark(s.rnc, s.numbers); err != nil {
			return 0, false, err
		}
	}
	highest = max(highest, mark.Seen)
	if s.numbers.Seen != store.UnknownSeen {
		highest = max(highest, s.numbers.Seen)
	}
	switch {
	case stated:
	case mark.Unknown || s.numbers.Seen == store.UnknownSeen:
		return 0, false, errLostMark
	case len(s.missing) > 0:
		return 0, false, errMissingNodes(s.missing)
	}
	return highest, stated, nil
}

// savedAnswers reads the answers of a search that was interrupted.
func (s *search) savedAnswers(ctx context.Context) (map[int64]store.AbandonedNumber, error) {
	from, err := fiscal.NewENCF(s.numbers.Type, min(s.numbers.Next, s.numbers.Last))
	if err != nil {
		return nil, err
	}
	to, err := fiscal.NewENCF(s.numbers.Type, s.numbers.Last)
	if err != nil {
		return nil, err
	}
	stored, err := s.Store.AbandonedNumbers(ctx, s.numbers.Scope, s.rnc, from.String(), to.String())
	if err != nil {
		return nil, err
	}
	known := make(map[int64]store.AbandonedNumber, len(stored))
	for _, b := range stored {
		encf, err := fiscal.ParseENCF(b.ENCF)
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
func (s *search) ask(ctx context.Context, n int64) (store.AbandonedNumber, error) {
	encf, err := fiscal.NewENCF(s.numbers.Type, n)
	if err != nil {
		return store.AbandonedNumber{}, err
	}
	b := store.AbandonedNumber{Scope: s.numbers.Scope, RNC: s.rnc, ENCF: encf.String(), Presence: store.NumberAbsent, At: s.Now()}
	query := fiscal.Query{RNC: s.rnc, ENCF: b.ENCF}
	tracks, err := s.Authority.TrackIDs(ctx, s.id, query)
	switch {
	case err == nil && len(tracks) > 0:
		b.Presence, b.Detail = store.NumberFound, "track id "+tracks[0].TrackID
		return b, nil
	case err == nil && s.numbers.Type == fiscal.FiscalCredit:
		return b, nil
	}
	state, errState := s.Authority.State(ctx, s.id, query)
	switch {
	case errState == nil && state.Verdict != fiscal.VerdictNotFound:
		b.Presence, b.Detail = store.NumberFound, fmt.Sprintf("state %d", state.Verdict)
		if state.SecurityCode != "" {
			b.Detail += ", security code " + state.SecurityCode
		}
	case errState == nil:
	case errors.Is(fiscal.LookupError(err, errState), fiscal.ErrAbsent):
		b.Presence, b.Detail = store.NumberUnknown, "no look-up by number exists in this environment"
	default:
		return b, fiscal.LookupError(err, errState)
	}
	return b, nil
}

// saveAnswers stores the answers about numbers that will certainly be abandoned.
func (s *search) saveAnswers(ctx context.Context) error {
	rest := s.unsaved()
	if len(rest) == 0 {
		return nil
	}
	err := s.Store.Update(ctx, func(tx *store.Tx) error { return tx.AbandonNumbers(ctx, rest) })
	if err == nil {
		s.saved += len(rest)
	}
	return err
}

func (s *search) unsaved() []store.AbandonedNumber { return s.answers[s.saved : s.to-s.numbers.Next+1] }

// release ends the search: it abandons the numbers and lets the range continue after
// them.
func (s *search) release(ctx context.Context) error {
	if s.Fence != nil {
		// A node with the same witness must find that the database knows the number too.
		if s.to >= s.numbers.Next && s.to > s.numbers.Seen {
			if err := s.Store.Update(ctx, func(tx *store.Tx) error { return tx.ReportSeen(ctx, s.numbers, s.to) }); err != nil {
				return err
			}
			s.numbers.Seen = s.to
		}
		// Before the database, so that a node that sees the range released finds that
		// the witness agrees.
		if err := s.Fence.witness.Settle(rangeOf(s.rnc, s.numbers), s.to); err != nil {
			return err
		}
	}
	rest := s.unsaved()
	return s.Store.Update(ctx, func(tx *store.Tx) error {
		if err := tx.AbandonNumbers(ctx, rest); err != nil {
			return err
		}
		return tx.ReleaseNumberRange(ctx, s.numbers, s.to+1)
	})
}

func (s *search) result() Released {
	r := Released{Range: s.numbers, From: s.numbers.Next, To: s.to}
	for _, b := range s.answers[:s.to-s.numbers.Next+1] {
		switch b.Presence {
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
