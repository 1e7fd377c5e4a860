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

	"github.com/fiscalhub/fiscalhub/internal/combine"
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
	group combine.Group[sharedBatch]
}

type sharedBatch struct {
	statements []Statement
	check      func([]int64) error
}

type sharedCall = combine.Call[sharedBatch]

func newSharedBatches(run func(ctx context.Context, statements []Statement, check func([]int64) error) error) *sharedBatches {
	s := &sharedBatches{run: run}
	s.group = combine.Group[sharedBatch]{Run: s.runGroup, Max: maxShared, Leaders: sharedCommits, Patience: shareWait, Match: sameStatements}
	return s
}

func sameStatements(a, b sharedBatch) bool {
	return slices.EqualFunc(a.statements, b.statements, func(x, y Statement) bool { return x.Text == y.Text })
}

// errGroupFailed is the error of each batch of a group in which one has failed.
var errGroupFailed = errors.New("a batch of the group failed")

// batch runs statements in one transaction, perhaps together with statements of others.
// The caller can cancel it only before it begins.
func (s *sharedBatches) batch(ctx context.Context, statements []Statement, check func([]int64) error) error {
	err := s.group.Do(ctx, sharedBatch{statements, check})
	switch {
	case errors.Is(err, errGroupFailed):
		return s.run(ctx, statements, check)
	case errors.Is(err, combine.ErrNotEnded):
		return unknownCommit(err)
	}
	return err
}

// runGroup runs batches in one transaction.
func (s *sharedBatches) runGroup(ctx context.Context, calls []*sharedCall) {
	if len(calls) == 1 {
		calls[0].Err = s.run(ctx, calls[0].Value.statements, calls[0].Value.check)
		return
	}
	statements, counts := merge(calls)
	err := s.run(ctx, statements, func(rows []int64) error {
		if !slices.Equal(rows, counts) {
			return errGroupFailed
		}
		return nil
	})
	if failedAlone(err) {
		err = errGroupFailed
	} else {
		s.saved.Add(int64(len(calls)*len(calls[0].Value.statements) - len(statements)))
	}
	combine.SetAll(calls, err)
}

// merge returns statements that do what the statements of a group do, and how many rows each of them
// inserts if no batch fails. The rows of all batches for one table become a few statements,
// which cost less than one for each row.
func merge(group []*sharedCall) (statements []Statement, counts []int64) {
	for i := range group[0].Value.statements {
		for rest := group; len(rest) > 0; {
			n := 1
			for 2*n <= len(rest) && 2*n <= maxMerged {
				n *= 2
			}
			var args []any
			for _, b := range rest[:n] {
				args = append(args, b.Value.statements[i].Args...)
			}
			statements = append(statements, Statement{rowsText(group[0].Value.statements[i].Text, n), args})
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
