package database

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// sharedCommits is how many transactions of registrations run before further ones wait
	// for each other.
	sharedCommits = 2
	// shareWait is how long a registration waits at most. After that it starts a further
	// transaction, for itself and for those that wait: the ones that run may wait for a lock.
	shareWait = 20 * time.Millisecond
	// maxShared limits how many registrations share a commit, and maxMerged how many rows a
	// statement of theirs inserts. The service prepares a statement for each power of two.
	maxShared = 64
	maxMerged = 16
)

// sharedBatches runs batches of statements that insert one row each. While some are being
// committed, the next ones gather; then they share a transaction, which costs the server far
// less than a transaction for each. No batch waits when fewer than sharedCommits transactions
// run.
//
// Each batch is committed as if it were alone. When one of a group fails, the group is
// rolled back and each of its batches runs in a transaction of its own.
type sharedBatches struct {
	run func(ctx context.Context, statements []Statement, check func([]int64) error) error

	// saved is how many statements of batches were not run, because others did their work.
	saved atomic.Int64

	mu      sync.Mutex
	waiting []*sharedBatch
	running int
}

type sharedBatch struct {
	statements []Statement
	check      func([]int64) error
	turn       chan turn // gets one value after the batch has left the list of those that wait
}

// A turn says how a batch that has waited goes on.
type turn struct {
	how int
	err error // of turnEnded
}

const (
	turnEnded = iota // another one has run it
	turnLead         // it starts a transaction for itself and for those that wait
	turnAlone        // it starts a transaction for itself
)

var errGroupFailed = errors.New("a batch of the group failed")

// batch runs statements in one transaction, perhaps together with those of other callers.
// The caller can cancel it only before it begins.
func (s *sharedBatches) batch(ctx context.Context, statements []Statement, check func([]int64) error) error {
	b := &sharedBatch{statements, check, make(chan turn, 1)}
	s.mu.Lock()
	if s.running < sharedCommits {
		s.running++
		s.mu.Unlock()
		return s.lead(ctx, b)
	}
	s.waiting = append(s.waiting, b)
	s.mu.Unlock()
	limit := time.NewTimer(shareWait)
	defer limit.Stop()
	select {
	case t := <-b.turn:
		return s.take(ctx, b, t)
	case <-limit.C:
	case <-ctx.Done():
	}
	s.mu.Lock()
	i := slices.Index(s.waiting, b)
	if i < 0 {
		s.mu.Unlock()
		return s.take(ctx, b, <-b.turn)
	}
	s.waiting = slices.Delete(s.waiting, i, i+1)
	if err := ctx.Err(); err != nil {
		s.mu.Unlock()
		return err
	}
	s.running++
	s.mu.Unlock()
	return s.lead(ctx, b)
}

// take lets a batch that has waited go on.
func (s *sharedBatches) take(ctx context.Context, b *sharedBatch, t turn) error {
	switch t.how {
	case turnLead:
		return s.lead(ctx, b)
	case turnAlone:
		return s.run(ctx, b.statements, b.check)
	}
	return t.err
}

// lead runs a batch together with those that wait.
func (s *sharedBatches) lead(ctx context.Context, b *sharedBatch) error {
	var others []*sharedBatch
	s.mu.Lock()
	s.waiting = slices.DeleteFunc(s.waiting, func(other *sharedBatch) bool {
		take := len(others) < maxShared-1 && slices.EqualFunc(b.statements, other.statements, func(x, y Statement) bool { return x.Text == y.Text })
		if take {
			others = append(others, other)
		}
		return take
	})
	s.mu.Unlock()
	if len(others) == 0 {
		defer s.pass()
		return s.run(ctx, b.statements, b.check)
	}
	return s.take(ctx, b, s.runGroup(context.WithoutCancel(ctx), b, others))
}

// runGroup runs a batch and others in one transaction. All of them have the same result: it
// sends it to the others and returns it for the first.
func (s *sharedBatches) runGroup(ctx context.Context, b *sharedBatch, others []*sharedBatch) (result turn) {
	result = turn{turnEnded, unknownCommit(errors.New("the transaction did not end"))} // after a panic
	defer func() {
		for _, other := range others {
			other.turn <- result
		}
		s.pass()
	}()
	group := append([]*sharedBatch{b}, others...)
	statements, counts := merge(group)
	err := s.run(ctx, statements, func(rows []int64) error {
		for i, count := range counts {
			if rows[i] != count {
				return errGroupFailed
			}
		}
		return nil
	})
	if failedAlone(err) {
		return turn{how: turnAlone}
	}
	s.saved.Add(int64(len(group)*len(b.statements) - len(statements)))
	return turn{turnEnded, err}
}

// pass lets the batch that has waited longest start the next transaction.
func (s *sharedBatches) pass() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 || s.running > sharedCommits {
		s.running--
		return
	}
	next := s.waiting[0]
	s.waiting = slices.Delete(s.waiting, 0, 1)
	next.turn <- turn{how: turnLead}
}

// merge returns statements that do what those of a group do, and how many rows each of them
// inserts if no batch fails. The rows of all batches for one table become a few statements,
// which cost less than one for each row.
func merge(group []*sharedBatch) (statements []Statement, counts []int64) {
	for i := range group[0].statements {
		for rest := group; len(rest) > 0; {
			n := 1
			for 2*n <= len(rest) && 2*n <= maxMerged {
				n *= 2
			}
			var args []any
			for _, b := range rest[:n] {
				args = append(args, b.statements[i].Args...)
			}
			statements = append(statements, Statement{rowsText(group[0].statements[i].Text, n), args})
			counts, rest = append(counts, int64(n)), rest[n:]
		}
	}
	return statements, counts
}

// failedAlone reports whether the transaction of a group was rolled back because of one of
// its batches, so that the others may succeed. A server that accepts no connection would
// refuse each of them too.
func failedAlone(err error) bool {
	var connect *pgconn.ConnectError
	switch {
	case errors.Is(err, errGroupFailed):
		return true
	case errors.Is(err, ErrOutcomeUnknown) || postgresBroken(err) || errors.As(err, &connect):
		return false
	}
	return postgresCode(err) != ""
}

// rowsTexts has the texts that rowsText has made.
var rowsTexts sync.Map

type rowsKey struct {
	text string
	rows int
}

// parameter is a parameter of a statement.
var parameter = regexp.MustCompile(`\$[0-9]+`)

// rowsText returns the text of an INSERT of one row for several rows. Their arguments follow
// each other.
func rowsText(text string, rows int) string {
	if rows == 1 {
		return text
	}
	key := rowsKey{text, rows}
	if known, ok := rowsTexts.Load(key); ok {
		return known.(string)
	}
	head, values, _ := strings.Cut(text, "VALUES (")
	row, tail, _ := strings.Cut(values, ")")
	columns := len(parameter.FindAllString(row, -1))
	list := make([]string, rows)
	for i := range list {
		list[i] = parameter.ReplaceAllStringFunc(row, func(name string) string {
			n, _ := strconv.Atoi(name[1:]) // only digits
			return "$" + strconv.Itoa(i*columns+n)
		})
	}
	made := head + "VALUES (" + strings.Join(list, "), (") + ")" + tail
	rowsTexts.Store(key, made)
	return made
}
