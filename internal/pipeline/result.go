package pipeline

import (
	"cmp"
	"errors"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Result is what a stage returns. The runner turns it into rows.
type Result struct {
	// Findings are what the stage learnt about an issued document, and Attempt is the
	// attempt to send the document that has ended.
	Findings []Finding
	Attempt  *store.Attempt
	// Move is where the document goes. Nil means: where everything that is known puts it.
	// Then the findings are committed also when another worker has taken the job over
	// meanwhile, because an answer of the authority must not be lost.
	Move *Move
	// Stay, if set, is what the document does when everything that is known leaves it at
	// its stage.
	Stay *Move
	// Issued is the document that the stage has numbered. The stage has committed it and
	// has moved its job to Move.Next, which this worker still holds.
	Issued *store.Issued
}

// A Finding is an item of evidence with the answer that it was read from.
type Finding struct {
	evidence.Item
	Raw []byte
}

// Row returns the row of a finding about a document. It fails when the item cannot be
// encoded.
func (f Finding) Row(scope store.Scope, documentID string) (store.Evidence, error) {
	body, digest, err := f.Encode()
	return store.Evidence{
		Scope: scope, DocumentID: documentID, ID: store.NewID(), At: f.At, Kind: string(f.Kind),
		TrackID: f.TrackID, Verdict: f.Verdict, Body: string(body), Digest: digest, Raw: f.Raw,
	}, err
}

// Move is where a document and its job go.
type Move struct {
	Status      fiscal.Status // the same as before, or empty: no change
	Messages    []string
	TrackID     string // empty: as before
	Cause       cause.Cause
	Next        string            // the next stage; empty: the job is done
	After       time.Duration     // when the next stage is due
	Wait        *Wait             // if set, the job waits at its stage and counts its attempts, whatever Next is
	Number      store.NumberState // what becomes of the number; empty: as before
	Fence       bool              // the number range must not be used before an operator has looked
	ExtraEvents []ExtraEvent      // events in addition to the change of status
}

// WaitFor is what a document waits for.
type WaitFor int

// What a document waits for.
const (
	// WaitTime is only for the time to pass.
	WaitTime WaitFor = iota
	// WaitAuthority is for an answer of the tax authority, which is out of reach. The job
	// is suspended.
	WaitAuthority
	// WaitTurn is for documents with lower numbers, which wait for the authority's answer.
	// The document waits where they do, whatever After is.
	WaitTurn
	// WaitAside is for something of its own: documents with higher numbers do not wait for
	// this one. A document that is held does: it is tried again all the same, seldom.
	WaitAside
)

// Wait is why a document waits at its stage, and until when.
type Wait struct {
	For    WaitFor
	Reason cause.Cause   // empty: the cause of the move
	After  time.Duration // the least time before the next attempt
	Since  time.Time     // with WaitAuthority: since when it has been out of reach
	// Untried says that the attempt does not count, because nothing was tried.
	Untried bool
}

// WaitError says that a stage cannot be done now although nothing failed.
type WaitError struct{ Wait Wait }

func (e *WaitError) Error() string { return e.Wait.Reason.String() }

// Cause returns why the stage waits.
func (e *WaitError) Cause() cause.Cause { return e.Wait.Reason }

// waitAfter returns how long a job waits after an error, and whether something failed: a
// stage may ask for a wait, another node may have taken the numbers, or the pauses grow.
func (p *Pipeline) waitAfter(job store.Job, err error) (_ Wait, failed bool) {
	if asked, ok := errors.AsType[*WaitError](err); ok {
		return asked.Wait, false
	}
	if errors.Is(err, store.ErrNumbersTaken) {
		return Wait{Reason: cause.Of(err)}, false
	}
	pause := p.o.Pace.Of(min(retryBase<<min(job.Attempt, 16), retryMax), retryLeast)
	return Wait{For: WaitAside, Reason: cause.Of(err), After: pause}, true
}

// addWait adds the rows of a job that waits at its stage.
func addWait(rows *store.Batch, job store.Job, w Wait, now time.Time) {
	if w.Untried {
		job.Attempt--
	}
	due := now.Add(boundedPause(w.After, job.Stage))
	switch w.For {
	case WaitAuthority:
		rows.SuspendJob(job, w.Since, due, w.Reason)
	case WaitTurn:
		rows.QueueJob(job, w.Reason)
	case WaitAside:
		rows.SetAsideJob(job, due, w.Reason)
	case WaitTime:
		rows.RetryJob(job, due, w.Reason)
	}
}

// boundedPause returns how long a job waits at a stage that asks for a pause. No job waits
// for longer than the store expects: the store takes a later instant for that of a wrong
// clock.
func boundedPause(pause time.Duration, stage string) time.Duration {
	return min(pause, store.LongestPause(store.QueueOf(stage)))
}

// addMove adds the rows of a job that goes where a move says and that no worker keeps.
func addMove(rows *store.Batch, job store.Job, m Move, now time.Time) {
	switch {
	case m.Wait != nil:
		wait := *m.Wait
		wait.Reason = cmp.Or(wait.Reason, m.Cause)
		addWait(rows, job, wait, now)
	case m.Next == "":
		rows.FinishJob(job)
	default:
		rows.MoveJob(job, m.Next, now.Add(boundedPause(m.After, m.Next)))
	}
}
