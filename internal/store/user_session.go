package store

import (
	"context"
	"time"
)

// UserSession is a signed-in browser of a person. The store has only a digest of its
// cookie. A session ends when its row is deleted or expires.
type UserSession struct {
	ID         string
	Digest     []byte
	UserID     string
	Address    string // of the client that signed in
	Browser    string // as the browser names itself
	CreatedAt  time.Time
	LastUsedAt time.Time
	ExpiresAt  time.Time
}

const userSessionColumns = `id, digest, user_id, address, browser, created_at, last_used_at, expires_at`

// CreateUserSession stores a new session, and records it in the audit log.
func (tx *Tx) CreateUserSession(ctx context.Context, s UserSession) error {
	err := tx.exec(ctx, "create user session", `
		INSERT INTO user_sessions (`+userSessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		s.ID, s.Digest, s.UserID, s.Address, s.Browser, micros(s.CreatedAt), micros(s.LastUsedAt), micros(s.ExpiresAt))
	if err != nil {
		return err
	}
	return tx.Audit(ctx, AuditEntry{
		Action: "user.sign_in", Object: "user:" + s.UserID, After: map[string]any{"session": s.ID, "address": s.Address},
	})
}

// TouchUserSession records the use of a session and when it expires now.
func (tx *Tx) TouchUserSession(ctx context.Context, id string, at, expires time.Time) error {
	return tx.exec(ctx, "touch user session", `
		UPDATE user_sessions SET last_used_at = $2, expires_at = $3 WHERE id = $1 AND last_used_at < $2`, id, micros(at), micros(expires))
}

// EndUserSession ends a session of a person. The error is ErrNotFound when the person has
// no such session.
func (tx *Tx) EndUserSession(ctx context.Context, userID, id string) error {
	err := tx.writeOne(ctx, "end user session", ErrNotFound, do(`
		DELETE FROM user_sessions WHERE user_id = $1 AND id = $2`, userID, id))
	if err != nil {
		return err
	}
	return tx.Audit(ctx, AuditEntry{Action: "user.sign_out", Object: "user:" + userID, Before: map[string]any{"session": id}})
}

// EndUserSessions ends the sessions of a person, except the session with the id keep.
func (tx *Tx) EndUserSessions(ctx context.Context, userID, keep string) error {
	return tx.exec(ctx, "end user sessions", `DELETE FROM user_sessions WHERE user_id = $1 AND id <> $2`, userID, keep)
}

// UserSessionByDigest reads the session with the digest of a cookie, also when it has
// expired.
func (r reader) UserSessionByDigest(ctx context.Context, digest []byte) (UserSession, error) {
	return one(r.rows(ctx, "read user session", `SELECT `+userSessionColumns+` FROM user_sessions WHERE digest = $1`, digest), (*UserSession).columns)
}

// UserSessions lists the sessions of a person that have not expired at now, the newest
// first.
func (r reader) UserSessions(ctx context.Context, userID string, now time.Time) ([]UserSession, error) {
	return collect(r.rows(ctx, "list user sessions", `
		SELECT `+userSessionColumns+` FROM user_sessions WHERE user_id = $1 AND expires_at > $2 ORDER BY id DESC LIMIT 100`, userID, micros(now)), (*UserSession).columns)
}

func (s *UserSession) columns() []any {
	return []any{&s.ID, &s.Digest, &s.UserID, &s.Address, &s.Browser, instant(&s.CreatedAt), instant(&s.LastUsedAt), instant(&s.ExpiresAt)}
}

// SetUserLink stores the digest of the link with which a person sets a password. It
// replaces the person's earlier link.
func (tx *Tx) SetUserLink(ctx context.Context, userID string, digest []byte, expires time.Time) error {
	return tx.exec(ctx, "set user link", `
		INSERT INTO user_links (user_id, digest, expires_at) VALUES ($1, $2, $3)
		ON CONFLICT (user_id) DO UPDATE SET digest = excluded.digest, expires_at = excluded.expires_at`,
		userID, digest, micros(expires))
}

// UserOfLink returns the id of the person whose link has the digest. The error is
// ErrNotFound when there is no such link or it has expired at now.
func (r reader) UserOfLink(ctx context.Context, digest []byte, now time.Time) (string, error) {
	return one(r.rows(ctx, "read user link", `
		SELECT user_id FROM user_links WHERE digest = $1 AND expires_at > $2`, digest, micros(now)), only[string])
}

// DropUserLink deletes a link. The error is ErrNotFound when there is none, so that a link
// is used once.
func (tx *Tx) DropUserLink(ctx context.Context, digest []byte) error {
	return tx.writeOne(ctx, "drop user link", ErrNotFound, do(`
		DELETE FROM user_links WHERE digest = $1`, digest))
}

// DropUserLinks deletes the link of a person, if there is one.
func (tx *Tx) DropUserLinks(ctx context.Context, userID string) error {
	return tx.exec(ctx, "drop user links", `DELETE FROM user_links WHERE user_id = $1`, userID)
}

// SetRecoveryCodes replaces the recovery codes of a person by codes with these digests.
func (tx *Tx) SetRecoveryCodes(ctx context.Context, userID string, digests [][]byte) error {
	if err := tx.exec(ctx, "remove recovery codes", `DELETE FROM recovery_codes WHERE user_id = $1`, userID); err != nil {
		return err
	}
	for _, digest := range digests {
		if err := tx.exec(ctx, "add recovery code", `INSERT INTO recovery_codes (user_id, digest) VALUES ($1, $2)`, userID, digest); err != nil {
			return err
		}
	}
	return nil
}

// UseRecoveryCode deletes a recovery code of a person. It reports false when the person has
// no such code.
func (tx *Tx) UseRecoveryCode(ctx context.Context, userID string, digest []byte) (bool, error) {
	return tx.write(ctx, "use recovery code", do(`
		DELETE FROM recovery_codes WHERE user_id = $1 AND digest = $2`, userID, digest))
}

// CountRecoveryCodes returns how many recovery codes a person has left.
func (r reader) CountRecoveryCodes(ctx context.Context, userID string) (int, error) {
	return one(r.rows(ctx, "count recovery codes", `SELECT count(*) FROM recovery_codes WHERE user_id = $1`, userID), only[int])
}
