package store

import (
	"context"
	"errors"
)

// Registration is all that a creation leaves behind.
type Registration struct {
	Answer  Answer
	Invoice Invoice
	Request []byte // canonical
	Entry   HistoryEntry
	Job     *Job // nil: nothing remains to be done
}

var errKeyKnown = errors.New("idempotency key known")

// Register stores a creation in one transaction, whose unique indexes are the
// judge: of a key that is known already the stored answer is returned and
// nothing is written; ErrExternalIDTaken says that the external id belongs to
// another invoice, and then the key stays free.
func (s *Store) Register(ctx context.Context, r Registration) (known *Answer, err error) {
	invoice, err := createInvoice(r.Invoice, r.Request)
	if err != nil {
		return nil, err
	}
	// The order of the first two is the order in which concurrent equals wait
	// for each other, and so must be the same for all.
	statements := []statement{rememberAnswer(r.Answer), invoice, addHistoryEntry(r.Entry)}
	if r.Job != nil {
		statements = append(statements, createJob(*r.Job))
	}
	err = s.batch(ctx, statements, func(rows []int64) error {
		switch {
		case rows[0] == 0:
			return errKeyKnown
		case rows[1] == 0:
			return ErrExternalIDTaken
		}
		return nil
	})
	if errors.Is(err, errKeyKnown) {
		there, err := s.Answer(ctx, r.Answer.Scope, r.Answer.Operation, r.Answer.Key)
		return &there, err
	}
	return nil, s.d.wrap("register", err)
}
