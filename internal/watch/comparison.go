package watch

import (
	"context"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	// firstAfter is how long after its last change a document is compared for the
	// first time.
	firstAfter = day
	// againEvery is how often, at most, the walk over older documents begins again.
	againEvery = 30 * day
	// differentEvery is how often a document with an open difference is compared.
	differentEvery = day
	// testLife is how old a document may be outside of production: the authority
	// deletes the documents of its test environments after 60 days.
	testLife = 30 * day
)

// A walk is one of the orders in which documents are chosen.
type walk int

const (
	walkFirst     walk = iota // documents that were never compared
	walkAgain                 // older documents, one after the other
	walkDifferent             // documents with an open difference
)

// order returns which walk chooses the next document; the others follow when it has
// none. No walk can stop the others, however many documents it has.
func order(turn int64) []walk {
	switch turn % 4 {
	case 0:
		return []walk{walkAgain, walkFirst, walkDifferent}
	case 1:
		return []walk{walkDifferent, walkFirst, walkAgain}
	default:
		return []walk{walkFirst, walkDifferent, walkAgain}
	}
}

// A task is a document to be compared.
type task struct {
	documentID string
	document   *store.DocumentState // nil: it needs no comparison any more
	identity   *xmlsig.Identity     // nil: the taxpayer has none
	obstacle   error                // why it has none
	before     store.Comparison     // the state of the comparison
	after      store.Comparison     // the state once the document was compared
}

// choose returns the next document, or nil when none is due. Its cost does not depend
// on the number of documents.
func (c *Comparer) choose(ctx context.Context, state store.Comparison, now time.Time) (*task, error) {
	due := now.Add(-c.o.Pace.Scale(firstAfter))
	next, err := c.judgedAfter(ctx, state.First, due, now)
	if err != nil {
		return nil, err
	}
	c.metrics.setLag(next, due)
	for _, w := range order(state.Turn) {
		t := &task{before: state, after: state}
		t.after.Turn, t.after.Attempt = state.Turn+1, 0
		switch w {
		case walkFirst:
			t.documentID, t.after.First = next.DocumentID, next
		case walkAgain:
			err = c.chooseAgain(ctx, t, now)
		case walkDifferent:
			t.documentID, err = c.o.Store.DifferentDocument(ctx, c.o.Env, c.oldest(now), now)
			if errors.Is(err, store.ErrNotFound) {
				err = nil
			}
		}
		if err != nil || t.documentID != "" {
			return t, err
		}
	}
	return nil, nil
}

// chooseAgain chooses the next of the older documents. After the last one the walk
// begins again, but not more often than every againEvery.
func (c *Comparer) chooseAgain(ctx context.Context, t *task, now time.Time) error {
	s := &t.after
	next, err := c.judgedAfter(ctx, s.Again, s.AgainUntil, now)
	if err == nil && next.DocumentID == "" && (now.Sub(s.AgainSince) >= c.o.Pace.Scale(againEvery) || store.WrongClock(s.AgainSince, now)) {
		s.AgainSince, s.AgainUntil = now, s.First.At
		next, err = c.judgedAfter(ctx, store.Position{}, s.AgainUntil, now)
	}
	t.documentID, s.Again = next.DocumentID, next
	return err
}

// judgedAfter returns the next accepted or rejected document; the zero position when there
// is none.
func (c *Comparer) judgedAfter(ctx context.Context, after store.Position, until, now time.Time) (next store.Position, err error) {
	if oldest := c.oldest(now); after.At.Before(oldest) {
		after = store.Position{At: oldest}
	}
	for _, find := range []func(context.Context, fiscal.Environment, store.Position, time.Time) (store.Position, error){c.o.Store.AcceptedAfter, c.o.Store.RejectedAfter} {
		found, err := find(ctx, c.o.Env, after, until)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return store.Position{}, err
		case next.DocumentID == "" || found.Before(next):
			next = found
		}
	}
	return next, nil
}

// oldest returns the age up to which documents are compared; the zero time in
// production, where the authority keeps all of them.
func (c *Comparer) oldest(now time.Time) time.Time {
	if c.o.Env == fiscal.Production {
		return time.Time{}
	}
	return now.Add(-testLife)
}

// load reads the document of a task and the identity that asks about it.
func (c *Comparer) load(ctx context.Context, t *task, now time.Time) error {
	states, err := c.o.Store.DocumentStates(ctx, c.o.Env, []string{t.documentID})
	if err != nil {
		return err
	}
	found := states[t.documentID]
	if found == nil || found.Issued == nil || !accepted(found.Invoice.Status) && found.Invoice.Status != fiscal.Rejected {
		return nil
	}
	t.document = found
	if t.identity, err = c.o.Identities.Identity(ctx, found.Invoice.Scope, now); errors.Is(err, store.ErrUnavailable) {
		return err
	}
	t.obstacle = err
	return nil
}

func accepted(s fiscal.Status) bool {
	return s == fiscal.Accepted || s == fiscal.AcceptedConditional || s == fiscal.Delivered
}

// A result is what came of a task.
type result struct {
	outcome     outcome
	document    *store.DocumentState
	encf        string
	differences []store.Difference
	questions   int           // that the authority was asked
	pause       time.Duration // before the next question
	after       store.Comparison
}

// An outcome is a label of a metric.
type outcome string

const (
	outcomeEqual     outcome = "equal"
	outcomeDifferent outcome = "different"
	outcomeSkipped   outcome = "skipped"  // the document cannot be compared; the walks go on
	outcomeDeferred  outcome = "deferred" // the authority did not answer; the document is tried again
)

// ask asks the authority about a document and compares the answer with it.
func (c *Comparer) ask(ctx context.Context, t *task) result {
	r := result{document: t.document, after: t.after, outcome: outcomeSkipped}
	if t.document == nil {
		return r
	}
	r.encf = t.document.Issued.ENCF
	if t.identity == nil {
		c.warnSkipped(t, t.obstacle)
		return r
	}
	asking, cancel := context.WithTimeout(ctx, compareTime)
	defer cancel()
	q := &questions{Lookups: c.o.Lookups, id: t.identity}
	answer, err := q.about(asking, *t.document.Issued)
	r.questions = q.asked
	switch {
	case err == nil:
		r.outcome, r.after.ComparedAt = outcomeEqual, c.o.Now()
		if r.differences = compare(*t.document, answer); len(r.differences) > 0 {
			r.outcome = outcomeDifferent
		}
	case asking.Err() != nil || errors.Is(err, fiscal.ErrOutage):
		c.postpone(ctx, t, err, &r)
	default:
		c.warnSkipped(t, err)
	}
	return r
}

// postpone keeps the position, so that the same document comes next. A document whose
// questions have failed too often is skipped.
func (c *Comparer) postpone(ctx context.Context, t *task, cause error, r *result) {
	attempt := t.before.Attempt
	var asked interface{ Wait() time.Duration }
	switch {
	case ctx.Err() != nil: // the service stops
	case errors.As(cause, &asked):
		r.pause = min(asked.Wait(), longestWait/2)
	case attempt >= int64(len(failurePauses)):
		c.warnSkipped(t, cause)
		return
	default:
		r.pause = c.o.Pace.Of(failurePauses[attempt], time.Second)
		attempt++
	}
	r.outcome, r.after = outcomeDeferred, t.before
	r.after.Attempt = attempt
}

// warnSkipped says in the log that documents of a taxpayer cannot be compared, at most
// once an hour.
func (c *Comparer) warnSkipped(t *task, cause error) {
	taxpayer, now := t.document.Invoice.TaxpayerID, c.o.Now()
	if last, ok := c.warned[taxpayer]; ok && now.Sub(last) < time.Hour {
		return
	}
	if len(c.warned) >= maxWarned {
		clear(c.warned)
	}
	c.warned[taxpayer] = now
	c.o.Log.Warn("Documents of a taxpayer cannot be compared with the tax authority. They are skipped, and compared again in a later round.",
		"taxpayer_id", taxpayer, "document_id", t.documentID, "error", cause.Error())
}

// maxWarned is how many taxpayers Comparer.warned has at most.
const maxWarned = 1024
