package database

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

// checkpointLimits say when pages of the write-ahead log are copied into the database. A
// page has 4 KiB.
type checkpointLimits struct {
	copyAfter  int // pages of the log that are not copied yet
	resetAfter int // pages of the whole log
	every      time.Duration
}

func defaultCheckpointLimits() checkpointLimits {
	return checkpointLimits{copyAfter: 4000, resetAfter: 16_000, every: 50 * time.Millisecond}
}

// A sqliteCheckpointer copies committed pages from the write-ahead log into the database,
// on a connection of its own. SQLite itself would do so within a commit, while all other
// transactions wait. Commits are durable in the log before and after; a checkpoint only
// moves them.
//
// New pages keep the log from starting again at its beginning. When the log has grown,
// the writer therefore copies the last pages between two transactions, which are few.
// Neither ever waits for a reader.
type sqliteCheckpointer struct {
	db     *sql.DB
	conn   *sql.Conn
	writer *sqliteWriter
	limits checkpointLimits
	stop   context.CancelFunc
	done   sync.WaitGroup
}

// startCheckpoints starts the checkpoints of a database that a writer writes.
func startCheckpoints(ctx context.Context, db *sql.DB, writer *sqliteWriter, limits checkpointLimits) (*sqliteCheckpointer, error) {
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	c := &sqliteCheckpointer{db: db, conn: conn, writer: writer, limits: limits, stop: stop}
	c.done.Go(func() { c.run(life) })
	return c, nil
}

// close waits for the end of a checkpoint that is under way.
func (c *sqliteCheckpointer) close() error {
	c.stop()
	c.done.Wait()
	err := c.conn.Close()
	if closed := c.db.Close(); err == nil {
		err = closed
	}
	return err
}

func (c *sqliteCheckpointer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.writer.committed:
		}
		c.check(ctx)
		select {
		case <-ctx.Done():
			return
		case <-time.After(c.limits.every):
		}
	}
}

// check copies pages when there are enough of them, and asks the writer for the rest when
// the log is long. A failed checkpoint leaves the pages in the log; a failure of the
// storage stops the writer, because a second attempt could report a success that is none.
func (c *sqliteCheckpointer) check(ctx context.Context) {
	pages, copied, err := checkpoint(ctx, c.conn, "NOOP")
	if err == nil && pages-copied >= c.limits.copyAfter {
		pages, _, err = checkpoint(ctx, c.conn, "PASSIVE")
	}
	if err != nil {
		c.writer.recordFailure(err)
		return
	}
	if pages >= c.limits.resetAfter {
		c.writer.reset.Store(true)
	}
}

// checkpoint runs a checkpoint and returns how many pages the log has, and how many of
// them the database has. NOOP copies nothing. PASSIVE copies what it can without waiting
// for readers and writers.
func checkpoint(ctx context.Context, q Querier, mode string) (pages, copied int, err error) {
	var busy int
	err = q.QueryRowContext(ctx, `PRAGMA wal_checkpoint(`+mode+`)`).Scan(&busy, &pages, &copied)
	if err != nil {
		return 0, 0, fmt.Errorf("checkpoint: %w", err)
	}
	return pages, copied, nil
}
