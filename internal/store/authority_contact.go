package store

import (
	"context"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// AuthorityContact is what the nodes of an environment know together about reaching
// the tax authority.
type AuthorityContact struct {
	AnsweredAt   time.Time // when any node last got an answer; zero: never
	FailingSince time.Time // since when calls fail and no node got an answer; zero: they do not
}

// AuthorityContact reads the contact of an environment. It is the zero value before
// the first report.
func (r reader) AuthorityContact(ctx context.Context, env fiscal.Environment) (AuthorityContact, error) {
	c, err := one(r.rows(ctx, "read the contact with the authority", `
		SELECT answered_at, failing_since FROM authority_contact WHERE environment = $1`, env), func(c *AuthorityContact) []any {
		return []any{instant(&c.AnsweredAt), instant(&c.FailingSince)}
	})
	if c.AnsweredAt.Equal(fromMicros(0)) { // the row has no answer
		c.AnsweredAt = time.Time{}
	}
	return c, ifFound(err)
}

// ReportAnswer records that a node got an answer of the authority. An answer after the
// failures began ends them. The column waking then says to programs of the first release
// to make the jobs due that waited; this program neither reads nor resets it.
func (tx *Tx) ReportAnswer(ctx context.Context, env fiscal.Environment, at time.Time) error {
	return tx.exec(ctx, "report an answer of the authority", `
		INSERT INTO authority_contact (environment, answered_at, failing_since, waking) VALUES ($1, $2, NULL, 0)
		ON CONFLICT (environment) DO UPDATE SET
			waking = CASE WHEN authority_contact.failing_since <= excluded.answered_at THEN 1 ELSE authority_contact.waking END,
			failing_since = CASE WHEN authority_contact.failing_since <= excluded.answered_at THEN NULL ELSE authority_contact.failing_since END,
			answered_at = CASE WHEN authority_contact.answered_at < excluded.answered_at THEN excluded.answered_at ELSE authority_contact.answered_at END`,
		env, micros(at))
}

// ReportFailure records that a node has had no answer since the given moment. The
// failures of the environment begin then, or with the last answer of another node if
// that was later. It changes nothing while failures are recorded.
func (tx *Tx) ReportFailure(ctx context.Context, env fiscal.Environment, since time.Time) error {
	_, err := tx.write(ctx, "report a failure of the authority", reportFailure(env, since))
	return err
}

// CorrectContact replaces instants that a clock stored which was ahead by now: otherwise no
// answer would end the failures, and no failure would count, before they have passed.
func (tx *Tx) CorrectContact(ctx context.Context, env fiscal.Environment, now time.Time) error {
	return tx.exec(ctx, "correct the contact with the authority", `
		UPDATE authority_contact SET
			answered_at = CASE WHEN answered_at > $3 THEN cast($2 AS bigint) ELSE answered_at END,
			failing_since = CASE WHEN failing_since > $3 THEN cast($2 AS bigint) ELSE failing_since END
		WHERE environment = $1`, string(env), micros(now), farAhead(now, 0))
}

func reportFailure(env fiscal.Environment, since time.Time) statement {
	// Without NOT EXISTS, PostgreSQL would lock the row for every job that is suspended.
	return do(`
		INSERT INTO authority_contact (environment, answered_at, failing_since, waking)
		SELECT cast($1 AS text), 0, cast($2 AS bigint), 0
		WHERE NOT EXISTS (SELECT 1 FROM authority_contact WHERE environment = $1 AND failing_since IS NOT NULL)
		ON CONFLICT (environment) DO UPDATE SET
			failing_since = CASE WHEN authority_contact.answered_at > excluded.failing_since THEN authority_contact.answered_at ELSE excluded.failing_since END
		WHERE authority_contact.failing_since IS NULL`, string(env), micros(since))
}
