package store

import (
	"context"
	"errors"
)

// A Batch is a list of writes that are committed together or not at all, with
// nothing to read in between: an engine at the other end of a network gets all
// of them in one exchange. The first error of making one is told by the commit.
type Batch struct {
	writes []change
	err    error
}

// change is a statement and what it means that it changes nothing; nil: that
// there was nothing to change.
type change struct {
	statement
	idle error
}

func (b *Batch) add(s statement, idle error) *Batch {
	b.writes = append(b.writes, change{s, idle})
	return b
}

// Fail makes the commit end in an error, unless it is nil.
func (b *Batch) Fail(err error) *Batch {
	b.err = errors.Join(b.err, err)
	return b
}

// Append puts the writes of another batch behind those of this one.
func (b *Batch) Append(other *Batch) *Batch {
	b.writes, b.err = append(b.writes, other.writes...), errors.Join(b.err, other.err)
	return b
}

// Commit commits the writes in a transaction of their own.
func (s *Store) Commit(ctx context.Context, b *Batch) error {
	if b.err != nil {
		return b.err
	}
	statements := make([]statement, len(b.writes))
	for i, w := range b.writes {
		statements[i] = w.statement
	}
	err := s.batch(ctx, statements, func(rows []int64) error {
		for i, w := range b.writes {
			if rows[i] == 0 && w.idle != nil {
				return w.idle
			}
		}
		return nil
	})
	return s.d.wrap("commit", err)
}

// Do makes the writes part of the transaction.
func (tx *Tx) Do(ctx context.Context, b *Batch) error {
	if b.err != nil {
		return b.err
	}
	for _, w := range b.writes {
		rows, err := w.run(ctx, tx.q)
		if err == nil && rows == 0 {
			err = w.idle
		}
		if err != nil {
			return tx.d.wrap("write", err)
		}
	}
	return nil
}
