package store

import (
	"context"
	"errors"
)

// A Batch is a list of writes that the engine commits together or not at all. It
// reads nothing in between, so PostgreSQL receives all of them in one round trip.
// The methods that add a write are in the file of the type that they write. They return no
// error: Commit and Do return the errors that occurred while the batch was made.
type Batch struct {
	writes []change
	err    error
}

// change is a statement and the error that Commit returns when the statement changes
// no row. A nil error allows that.
type change struct {
	statement
	idle error
}

func (b *Batch) add(s statement, idle error) *Batch {
	b.writes = append(b.writes, change{s, idle})
	return b
}

// Fail makes Commit and Do return err, unless it is nil.
func (b *Batch) Fail(err error) *Batch {
	b.err = errors.Join(b.err, err)
	return b
}

// Commit writes the batch in one transaction.
func (s *Store) Commit(ctx context.Context, b *Batch) error {
	if b.err != nil {
		return b.err
	}
	statements := make([]statement, len(b.writes))
	for i, w := range b.writes {
		statements[i] = w.statement
	}
	err := s.Batch(ctx, statements, func(rows []int64) error {
		for i, w := range b.writes {
			if rows[i] == 0 && w.idle != nil {
				return w.idle
			}
		}
		return nil
	})
	return s.d.wrap("commit", err)
}

// Do writes the batch as part of the transaction.
func (tx *Tx) Do(ctx context.Context, b *Batch) error {
	if b.err != nil {
		return b.err
	}
	for _, w := range b.writes {
		rows, err := w.Run(ctx, tx.q)
		if err == nil && rows == 0 {
			err = w.idle
		}
		if err != nil {
			return tx.d.wrap("write", err)
		}
	}
	return nil
}
