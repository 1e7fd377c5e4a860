package store

import (
	"context"
	"errors"
)

// Registration holds the rows that the creation of an invoice stores.
type Registration struct {
	Reply   StoredReply
	Invoice Invoice
	Request []byte // canonical
	Entry   HistoryEntry
	Job     *Job // nil: the document needs no more work
	// Audit, if set, is added to the audit log in the same transaction. It is for an
	// invoice that a person issues by hand: the log is locked until the commit.
	Audit *AuditEntry
}

var errKeyExists = errors.New("the idempotency key exists")

// Register stores the creation of an invoice in one transaction. When the idempotency
// key exists, it stores nothing and returns the stored answer. The error is
// ErrExternalIDTaken when another invoice has the external id; then the key stays free.
// Unique indexes decide both cases, so that concurrent requests cannot both succeed.
// The error is ErrUnavailable when the key existed and its answer cannot be read.
func (s *Store) Register(ctx context.Context, r Registration) (known *StoredReply, err error) {
	invoice, err := s.d.createInvoice(r.Invoice, r.Request)
	if err != nil {
		return nil, err
	}
	// Concurrent requests wait for each other's rows in this order. It must be the
	// same for all, or they could deadlock.
	statements := []statement{rememberReply(r.Reply), invoice, addHistoryEntry(r.Entry)}
	if r.Job != nil {
		statements = append(statements, createJob(*r.Job))
	}
	check := func(rows []int64) error {
		switch {
		case rows[0] == 0:
			return errKeyExists
		case rows[1] == 0:
			return ErrExternalIDTaken
		}
		return nil
	}
	if r.Audit == nil {
		err = s.Insert(ctx, statements, check)
	} else {
		err = s.registerAudited(ctx, statements, check, *r.Audit)
	}
	if errors.Is(err, errKeyExists) {
		stored, err := s.StoredReply(ctx, r.Reply.Scope, r.Reply.Operation, r.Reply.Key)
		return &stored, Vanished("answer of an idempotency key", err)
	}
	return nil, s.d.wrap("register", err)
}

// registerAudited executes the statements of a registration and adds an entry to the
// audit log, in one transaction.
func (s *Store) registerAudited(ctx context.Context, statements []statement, check func(rows []int64) error, c AuditEntry) error {
	return s.Update(ctx, func(tx *Tx) error {
		rows := make([]int64, len(statements))
		for i, one := range statements {
			var err error
			if rows[i], err = one.Run(ctx, tx.q); err != nil {
				return err
			}
		}
		if err := check(rows); err != nil {
			return err
		}
		return tx.Audit(ctx, c)
	})
}
