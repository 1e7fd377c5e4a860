package people

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// ErrDenied means that a sign-in failed: the account does not exist or is disabled, or the
// password or the code is wrong. Do not tell the client which of them.
var ErrDenied = errors.New("the email address, the password or the code is wrong")

// maxFailures is how many sign-ins may fail within failureTime, for an account and for an
// address.
const (
	maxFailures = 5
	failureTime = time.Minute
)

// LimitedError means that too many sign-ins of the account or of the address have failed.
type LimitedError struct {
	RetryAfter time.Duration
	// Counted says that the database has counted the failures. Otherwise this node has
	// refused the account or the address a moment before, and remembers it.
	Counted bool
	// Account says that the failures counted belong to the account. Otherwise they
	// belong to the address, which may have been sign-ins of other accounts.
	Account bool
}

func (e *LimitedError) Error() string {
	return fmt.Sprintf("too many sign-ins have failed: try again in %s", e.RetryAfter.Round(time.Second))
}

// Client is the browser that signs in.
type Client struct {
	Environment fiscal.Environment // of the server
	Address     string             // as the service counts clients
	Browser     string             // as the browser names itself
	RequestID   string
}

// Credentials are what a person enters to sign in.
type Credentials struct {
	Email    string
	Password string
	Code     string // of the second factor, or a recovery code; empty without one
}

// SignIn starts a session. It fails with ErrDenied, with a *LimitedError, and with ErrBusy.
// For every account, known or not, it computes exactly one hash, so that neither the answer
// nor its time reveals whether an account exists.
func (p *People) SignIn(ctx context.Context, in Credentials, client Client) (Token, error) {
	buckets := []string{accountBucket(in.Email), "address " + client.Address}
	slot, err := p.reserve(ctx, buckets)
	if err != nil {
		return Token{}, err
	}
	token, err := p.signIn(ctx, in, client, slot)
	if err != nil && !errors.Is(err, ErrDenied) {
		return Token{}, errors.Join(err, p.o.Store.Update(ctx, func(tx *store.Tx) error { return slot.release(ctx, tx) }))
	}
	return token, err
}

// signIn is SignIn within the limit of failures.
func (p *People) signIn(ctx context.Context, in Credentials, client Client, slot *slot) (Token, error) {
	u, err := p.account(ctx, in.Email, client.Environment)
	if err != nil {
		return Token{}, err
	}
	switch ok, err := p.o.Hasher.Matches(ctx, u.PasswordHash, in.Password); {
	case err != nil:
		return Token{}, err
	case !ok:
		return Token{}, ErrDenied
	}
	ctx = audit.WithCaller(ctx, CallerOf(u, client))
	var token Token
	err = p.o.Store.Update(ctx, func(tx *store.Tx) error {
		// This locks the person. The password may have been replaced, or the person disabled,
		// while the hash was computed.
		if err := tx.RecordSignIn(ctx, u.ID, p.o.Now()); err != nil {
			return err
		}
		now, err := tx.User(ctx, u.ID)
		if err != nil {
			return err
		}
		if now.PasswordHash != u.PasswordHash || !admits(now, client.Environment) {
			return ErrDenied
		}
		if err := p.checkSecondFactor(ctx, tx, now, in.Code); err != nil {
			return err
		}
		if err := slot.release(ctx, tx); err != nil {
			return err
		}
		token, err = p.startSession(ctx, tx, now, client)
		return err
	})
	return token, err
}

// reportEvery is the time between two audit entries about guesses at one account.
const reportEvery = time.Hour

// RecordLimited adds to the audit log that too many sign-ins of an account have failed, if
// there is such an account, and at most once an hour. Call it after the answer: its time
// would reveal whether the account exists.
func (p *People) RecordLimited(ctx context.Context, tx *store.Tx, email string, client Client) error {
	email, err := normalEmail(email)
	if err != nil {
		return nil //nolint:nilerr // no person has it
	}
	u, err := tx.UserByEmail(ctx, email)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx = audit.WithCaller(ctx, audit.Caller{From: client.Address, RequestID: client.RequestID})
	_, err = tx.AuditOnce(ctx, store.AuditEntry{
		Action: "user.sign_in_limited", Object: "user:" + u.ID, After: map[string]any{"address": client.Address},
	}, p.o.Now().Add(-reportEvery))
	return err
}

// account returns the person who may sign in with an email address. When there is none, it
// returns a person without a password.
func (p *People) account(ctx context.Context, email string, env fiscal.Environment) (store.User, error) {
	email, err := normalEmail(email)
	if err != nil {
		email = "" // no person has it; the database is asked all the same
	}
	u, err := p.o.Store.UserByEmail(ctx, email)
	if errors.Is(err, store.ErrNotFound) || err == nil && !admits(u, env) {
		return store.User{}, nil
	}
	return u, err
}

// admits reports whether a person may use the console of an environment.
func admits(u store.User, env fiscal.Environment) bool {
	return u.DisabledAt.IsZero() && (u.Environment == "" || u.Environment == env)
}

// CallerOf returns the caller of a person's changes, for the audit log.
func CallerOf(u store.User, client Client) audit.Caller {
	return audit.Caller{Actor: u.Name, From: client.Address + " (" + u.Email + ")", RequestID: client.RequestID}
}

// accountPrefix begins the buckets of accounts. They are before the buckets of addresses in the
// order of reserve.
const accountPrefix = "account "

// accountBucket returns the bucket of the failures of an account. It has a digest, because
// people enter passwords into the wrong field.
func accountBucket(email string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.TrimSpace(email))))
	return accountPrefix + hex.EncodeToString(sum[:])
}

// slot is a sign-in that counts as failed until it is released.
type slot struct {
	buckets []string
	at      time.Time
}

// reserve counts a failure in each bucket before the sign-in is checked, so that concurrent
// sign-ins cannot exceed the limit. It fails with a *LimitedError.
func (p *People) reserve(ctx context.Context, buckets []string) (*slot, error) {
	if err := p.refused.check(buckets, p.o.Now()); err != nil {
		return nil, err
	}
	s := &slot{buckets: slices.Sorted(slices.Values(buckets))} // one order, so that two sign-ins do not wait for each other
	err := p.o.Store.Update(ctx, func(tx *store.Tx) error {
		now := p.o.Now().Truncate(time.Microsecond)
		s.at = now
		recent := make([][]time.Time, len(s.buckets))
		for i, bucket := range s.buckets {
			all, err := tx.LockSignInFailures(ctx, bucket)
			if err != nil {
				return err
			}
			recent[i] = slices.DeleteFunc(all, func(at time.Time) bool { return !now.Before(at.Add(failureTime)) })
			if n := len(recent[i]); n >= maxFailures {
				limited := &LimitedError{
					RetryAfter: recent[i][n-maxFailures].Add(failureTime).Sub(now),
					Counted:    true, Account: strings.HasPrefix(bucket, accountPrefix),
				}
				p.refused.add(bucket, now, limited.RetryAfter)
				return limited
			}
		}
		for i, bucket := range s.buckets {
			if err := tx.SetSignInFailures(ctx, bucket, append(recent[i], now), now.Add(failureTime)); err != nil {
				return err
			}
		}
		return nil
	})
	return s, err
}

// release removes the failure that reserve has counted.
func (s *slot) release(ctx context.Context, tx *store.Tx) error {
	for _, bucket := range s.buckets {
		all, err := tx.LockSignInFailures(ctx, bucket)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(all, s.at.Equal); i >= 0 {
			all = slices.Delete(all, i, i+1)
		}
		if err := tx.SetSignInFailures(ctx, bucket, all, s.at.Add(failureTime)); err != nil {
			return err
		}
	}
	return nil
}

// checkPassword checks the password of a person who is signed in, within the limit of
// failures of the account. It fails with ErrDenied, with a *LimitedError, and with ErrBusy.
func (p *People) checkPassword(ctx context.Context, u store.User, password string) error {
	slot, err := p.reserve(ctx, []string{accountBucket(u.Email)})
	if err != nil {
		return err
	}
	ok, err := p.o.Hasher.Matches(ctx, u.PasswordHash, password)
	if err == nil && !ok {
		return ErrDenied
	}
	return errors.Join(err, p.o.Store.Update(ctx, func(tx *store.Tx) error { return slot.release(ctx, tx) }))
}

const (
	// refusedFor is how long a node remembers that a bucket has too many failures. It is
	// short, because a sign-in that is still being checked counts as failed, and may succeed.
	refusedFor  = time.Second
	refusedSize = 10_000
)

// refusedBuckets remembers the buckets of sign-ins that were just refused, so that a flood
// of sign-ins from one address does not reach the database.
type refusedBuckets struct {
	mu  sync.Mutex
	all map[string]refusal
}

// refusal says until when a bucket has too many failures, and until when this is remembered.
type refusal struct{ limited, known time.Time }

func newRefusedBuckets() *refusedBuckets { return &refusedBuckets{all: make(map[string]refusal)} }

func (r *refusedBuckets) add(bucket string, now time.Time, wait time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) >= refusedSize {
		clear(r.all)
	}
	r.all[bucket] = refusal{limited: now.Add(wait), known: now.Add(min(wait, refusedFor))}
}

// check returns a *LimitedError when one of the buckets was just refused.
func (r *refusedBuckets) check(buckets []string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, bucket := range buckets {
		if found, ok := r.all[bucket]; ok && now.Before(found.known) {
			return &LimitedError{RetryAfter: found.limited.Sub(now)}
		}
	}
	return nil
}
