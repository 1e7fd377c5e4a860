package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Subject is what can be suspended: a credential, a taxpayer or an environment. Its text is
// credential:ID, taxpayer:ID or environment:NAME.
type Subject string

// CredentialSubject returns the subject of a credential.
func CredentialSubject(id string) Subject { return Subject("credential:" + id) }

// TaxpayerSubject returns the subject of a taxpayer.
func TaxpayerSubject(id string) Subject { return Subject("taxpayer:" + id) }

// EnvironmentSubject returns the subject of an environment.
func EnvironmentSubject(env fiscal.Environment) Subject { return Subject("environment:" + env) }

// Kind returns credential, taxpayer or environment; the empty string for no subject.
func (s Subject) Kind() string {
	kind, _, _ := strings.Cut(string(s), ":")
	return kind
}

// Suspension is a credential, a taxpayer or an environment whose requests are refused until
// an operator resumes it.
type Suspension struct {
	Subject Subject
	Reason  string
	At      time.Time
}

// Suspend suspends a subject. It does not change one that is suspended. The error is
// ErrNotFound when there is no such credential or taxpayer.
func (tx *Tx) Suspend(ctx context.Context, s Suspension) error {
	scope, err := tx.scopeOf(ctx, s.Subject)
	if err != nil {
		return err
	}
	changed, err := tx.write(ctx, "suspend", do(`
		INSERT INTO suspensions (subject, reason, suspended_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
		string(s.Subject), s.Reason, micros(s.At)))
	if err != nil || !changed {
		return err
	}
	return tx.Audit(ctx, AuditEntry{scope, s.Subject.Kind() + ".suspend", string(s.Subject), nil, map[string]any{"suspended_at": auditTime(s.At)}})
}

// Resume ends a suspension. It does nothing when there is none. The error is ErrNotFound
// when there is no such credential or taxpayer.
func (tx *Tx) Resume(ctx context.Context, subject Subject) error {
	scope, err := tx.scopeOf(ctx, subject)
	if err != nil {
		return err
	}
	changed, err := tx.write(ctx, "resume", do(`DELETE FROM suspensions WHERE subject = $1`, string(subject)))
	if err != nil || !changed {
		return err
	}
	return tx.Audit(ctx, AuditEntry{scope, subject.Kind() + ".resume", string(subject), nil, map[string]any{"suspended_at": nil}})
}

// scopeOf returns the scope of a subject for the audit log. The error is ErrNotFound when
// the subject does not exist.
func (r reader) scopeOf(ctx context.Context, subject Subject) (Scope, error) {
	kind, id, _ := strings.Cut(string(subject), ":")
	switch kind {
	case "credential":
		c, err := r.Credential(ctx, id)
		return c.Scope(), err
	case "taxpayer":
		_, err := r.Taxpayer(ctx, id)
		return Scope{TaxpayerID: id}, err
	case "environment":
		env, err := fiscal.ParseEnvironment(id)
		return Scope{Environment: env}, err
	}
	return Scope{}, fmt.Errorf("store: %q cannot be suspended", subject)
}

// Suspensions lists what is suspended.
func (r reader) Suspensions(ctx context.Context) ([]Suspension, error) {
	return collect(r.rows(ctx, "list suspensions", `SELECT subject, reason, suspended_at FROM suspensions ORDER BY subject`), func(s *Suspension) []any { return []any{&s.Subject, &s.Reason, instant(&s.At)} })
}
