package database

import (
	"context"
	"database/sql"
	"fmt"
	"regexp"
	"strconv"
)

// Replication says how many standby servers follow the database server. A standby that
// is not synchronous can miss the last commits when it is promoted.
type Replication struct {
	Standbys    int
	Synchronous int  // standbys that every commit waits for
	Known       bool // false: the role may not read the state of the standbys
}

// Lossless reports whether each standby that is connected has every commit, so that none is
// lost whichever of them is promoted.
func (r Replication) Lossless() bool {
	return r.Known && r.Standbys > 0 && r.Synchronous == r.Standbys
}

// Replication reads the standbys that are connected now. To see their state, the role
// needs the rights of pg_read_all_stats; without them, Known is false. SQLite has no
// standbys.
func (db *DB) Replication(ctx context.Context) (Replication, error) {
	found, err := db.dialect.replication(ctx, db.read)
	return found, db.dialect.Wrap("database: read the replication", err)
}

// UnknownTimeline is the result of Timeline when the role may not read it.
const UnknownTimeline = "unknown"

// Timeline names the history of commits that the database continues. On PostgreSQL it
// consists of the system identifier and of the timeline, which is another one after a
// standby was promoted or after a recovery to an earlier point. It is empty on SQLite,
// which cannot tell a restored copy.
//
// The result is UnknownTimeline when the role may not read it. The error is
// ErrUnavailable when the server does not answer or is a standby.
func (db *DB) Timeline(ctx context.Context) (string, error) {
	name, err := db.dialect.timeline(ctx, db.read)
	return name, db.dialect.Wrap("database: read the timeline", err)
}

// postgresTimeline takes the timeline from the name of the current file of the
// write-ahead log, because pg_control_checkpoint returns the old one until the first
// checkpoint after a promotion.
func postgresTimeline(ctx context.Context, q Querier) (name string, err error) {
	// One statement, so that one server answers: another one may be a standby.
	err = q.QueryRowContext(ctx, `SELECT CASE WHEN pg_is_in_recovery() THEN '' ELSE `+timelineText+` END`).Scan(&name)
	standby := err == nil && name == ""
	switch postgresCode(err) {
	case "42501", "42883", "0A000", "55000": // some hosted servers refuse the functions, each in its way
		name = UnknownTimeline
		err = q.QueryRowContext(ctx, `SELECT pg_is_in_recovery()`).Scan(&standby)
	}
	if standby {
		err = fmt.Errorf("%w: the server is a standby", ErrUnavailable)
	}
	return name, err
}

// timelineText is the timeline of a PostgreSQL server that is no standby.
const timelineText = `(SELECT system_identifier::text || '-' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) FROM pg_control_system())`

// anyOf is synchronous_standby_names where a commit waits for any of some standbys.
var anyOf = regexp.MustCompile(`(?i)^\s*ANY\s+([0-9]+)`)

// postgresReplication counts physical standbys. A base backup and a logical subscriber
// are connected in the same way, but they cannot be promoted. The state is NULL for a
// role that may not read it. With synchronous_commit = local a commit waits for no
// standby. With ANY n (…) it waits for n of them, and the others may miss it.
func postgresReplication(ctx context.Context, q Querier) (Replication, error) {
	var found Replication
	var hidden, quorum int
	var commit, names sql.NullString
	err := q.QueryRowContext(ctx, `
		SELECT count(*), count(*) FILTER (WHERE r.sync_state = 'sync'), count(*) FILTER (WHERE r.sync_state = 'quorum'),
			count(*) FILTER (WHERE r.state IS NULL),
			current_setting('synchronous_commit'), current_setting('synchronous_standby_names', true)
		FROM pg_stat_replication r
		WHERE r.state IS DISTINCT FROM 'backup'
			AND NOT EXISTS (SELECT 1 FROM pg_replication_slots l WHERE l.active_pid = r.pid AND l.slot_type = 'logical')`).Scan(
		&found.Standbys, &found.Synchronous, &quorum, &hidden, &commit, &names)
	if postgresCode(err) == "42501" {
		return Replication{}, nil
	}
	if m := anyOf.FindStringSubmatch(names.String); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil && n >= quorum {
			found.Synchronous += quorum
		}
	}
	if commit.String == "local" || names.String == "" {
		found.Synchronous = 0
	}
	found.Known = hidden == 0
	return found, err
}
