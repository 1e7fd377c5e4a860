package people

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	// IdleTime is how long a session lasts without use.
	IdleTime = 12 * time.Hour
	// SessionTime is how long a session lasts at most.
	SessionTime = 7 * 24 * time.Hour

	touchEvery = time.Minute // how often the use of a session is recorded
	maxBrowser = 200         // bytes of the name of a browser that are kept
)

// startSession stores a new session of a person and returns its cookie.
func (p *People) startSession(ctx context.Context, tx *store.Tx, u store.User, client Client) (Token, error) {
	token, err := newToken()
	if err != nil {
		return Token{}, err
	}
	now := p.o.Now()
	return token, tx.CreateUserSession(ctx, store.UserSession{
		ID: store.NewID(), Digest: token.digest(), UserID: u.ID, Address: client.Address, Browser: cutBrowser(client.Browser),
		CreatedAt: now, LastUsedAt: now, ExpiresAt: now.Add(IdleTime),
	})
}

// cutBrowser returns the part of a browser's name that is kept.
func cutBrowser(name string) string {
	if len(name) > maxBrowser {
		name = name[:maxBrowser]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(name, "\x00", ""), "")
}

// Authenticate returns the person and the session of a cookie. It fails with ErrDenied when
// the session has ended, or the person may not use the console of the environment. It reads
// the database each time, so that a session ends on every node at once.
func (p *People) Authenticate(ctx context.Context, cookie Token, env fiscal.Environment) (store.User, store.UserSession, error) {
	session, err := p.o.Store.UserSessionByDigest(ctx, cookie.digest())
	if errors.Is(err, store.ErrNotFound) || err == nil && !p.o.Now().Before(session.ExpiresAt) {
		return store.User{}, store.UserSession{}, ErrDenied
	}
	if err != nil {
		return store.User{}, store.UserSession{}, err
	}
	u, err := p.o.Store.User(ctx, session.UserID)
	if errors.Is(err, store.ErrNotFound) || err == nil && !admits(u, env) {
		return store.User{}, store.UserSession{}, ErrDenied
	}
	return u, session, err
}

// RecordUse prolongs a session that a person has just used. It writes at most once a minute.
func (p *People) RecordUse(ctx context.Context, session store.UserSession) error {
	now := p.o.Now()
	if now.Sub(session.LastUsedAt) < touchEvery {
		return nil
	}
	ends := now.Add(IdleTime)
	if last := session.CreatedAt.Add(SessionTime); last.Before(ends) {
		ends = last
	}
	return p.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.TouchUserSession(ctx, session.ID, now, ends) })
}

// Sessions lists the sessions of a person, the newest first.
func (p *People) Sessions(ctx context.Context, userID string) ([]store.UserSession, error) {
	return p.o.Store.UserSessions(ctx, userID, p.o.Now())
}

// EndSession ends a session of a person, on every node at once. It fails with
// store.ErrNotFound when the person has no such session.
func (p *People) EndSession(ctx context.Context, userID, sessionID string) error {
	return p.o.Store.Update(ctx, func(tx *store.Tx) error { return tx.EndUserSession(ctx, userID, sessionID) })
}

// Invited returns the person whose link has a token. It fails with ErrLink.
func (p *People) Invited(ctx context.Context, link Token) (store.User, error) {
	id, err := p.o.Store.UserOfLink(ctx, link.digest(), p.o.Now())
	if errors.Is(err, store.ErrNotFound) {
		return store.User{}, ErrLink
	}
	if err != nil {
		return store.User{}, err
	}
	u, err := p.o.Store.User(ctx, id)
	if err == nil && !u.DisabledAt.IsZero() {
		return store.User{}, ErrLink
	}
	return u, err
}

// Welcome sets the password of the person whose link has a token, uses the link up, ends
// the person's other sessions and starts one. It fails with ErrLink, with the errors of
// CheckPassword, and with ErrBusy. When the person may not use the console of the client's
// environment, the password is set and the token is empty.
func (p *People) Welcome(ctx context.Context, link Token, password string, client Client) (Token, error) {
	u, err := p.Invited(ctx, link) // before the hash, which a stranger should not cause
	if err != nil {
		return Token{}, err
	}
	if err := CheckPassword(password); err != nil {
		return Token{}, err
	}
	hash, err := p.o.Hasher.Hash(ctx, password)
	if err != nil {
		return Token{}, err
	}
	ctx = audit.WithCaller(ctx, CallerOf(u, client))
	var token Token
	err = p.o.Store.Update(ctx, func(tx *store.Tx) error {
		if _, err := tx.UserOfLink(ctx, link.digest(), p.o.Now()); err != nil {
			return err
		}
		if err := tx.DropUserLink(ctx, link.digest()); err != nil {
			return err
		}
		if err := p.setPassword(ctx, tx, u.ID, hash, ""); err != nil || !admits(u, client.Environment) {
			return err
		}
		if err := tx.RecordSignIn(ctx, u.ID, p.o.Now()); err != nil {
			return err
		}
		var err error
		token, err = p.startSession(ctx, tx, u, client)
		return err
	})
	if errors.Is(err, store.ErrNotFound) {
		return Token{}, ErrLink
	}
	return token, err
}

// ChangePassword replaces the password of a person who knows the old one, and ends the
// person's other sessions. It fails with ErrDenied when the old password is wrong, with a
// *LimitedError after too many failures, with the errors of CheckPassword, and with ErrBusy.
func (p *People) ChangePassword(ctx context.Context, u store.User, session store.UserSession, old, password string) error {
	if err := CheckPassword(password); err != nil {
		return err
	}
	if err := p.checkPassword(ctx, u, old); err != nil {
		return err
	}
	hash, err := p.o.Hasher.Hash(ctx, password)
	if err != nil {
		return err
	}
	return p.o.Store.Update(ctx, func(tx *store.Tx) error { return p.setPassword(ctx, tx, u.ID, hash, session.ID) })
}

// setPassword stores the hash of a password and ends the sessions of the person, except
// the session with the id keep.
func (p *People) setPassword(ctx context.Context, tx *store.Tx, userID, hash, keep string) error {
	err := tx.UpdateUser(ctx, userID, "user.password", func(u *store.User) error {
		if !u.DisabledAt.IsZero() {
			return ErrDisabled
		}
		u.PasswordHash = hash
		return nil
	})
	if err != nil {
		return err
	}
	return tx.EndUserSessions(ctx, userID, keep)
}
