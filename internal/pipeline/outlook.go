package pipeline

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// What integrators are told about a taxpayer and its credentials.
const (
	NoticeCertificate        = "taxpayer.certificate_expiring"
	NoticeSequence           = "taxpayer.sequence_low"
	NoticeContingencyStarted = "taxpayer.contingency_started"
	NoticeContingencyEnded   = "taxpayer.contingency_ended"
	NoticeCredential         = "credential.expiring"
)

const (
	outlookEvery = time.Hour
	day          = 24 * time.Hour

	// A range is low with fewer numbers than these, or than were used in a week,
	// and soon useless with fewer days.
	lowNumbers   = 100
	usedWithin   = 7 * day
	sequenceSoon = 30 * day
)

// How many days before its end a certificate, and a credential, are told of.
var (
	certificateDays = []int64{60, 30, 14, 7, 3, 1}
	credentialDays  = []int64{30, 7, 1}
)

// A warning is told once for each mark that its subject comes to.
type warning struct {
	scope         store.Scope
	subject, mark string
	kind          string
	data          any
	log           []any
}

// outlook warns of what will keep taxpayers from issuing before it does.
func (l *Live) outlook(ctx context.Context, p *Pipeline) error {
	warnings, err := l.warnings(ctx, p.Env)
	for _, w := range warnings {
		told := false
		failed := l.Store.Update(ctx, func(tx *store.Tx) (err error) {
			if told, err = tx.MarkNotified(ctx, w.scope, w.subject, w.mark, l.Now()); err != nil || !told {
				return err
			}
			return l.addNotice(ctx, tx, w.scope, w.kind, w.data)
		})
		if failed != nil {
			return failed
		}
		if told {
			l.Log.Warn(w.kind, append([]any{"taxpayer_id", w.scope.TaxpayerID}, w.log...)...)
			p.tell(w.scope)
		}
	}
	return err
}

func (l *Live) warnings(ctx context.Context, env fiscal.Environment) (all []warning, err error) {
	for _, find := range []func(context.Context, fiscal.Environment) ([]warning, error){l.certificateWarnings, l.sequenceWarnings, l.credentialWarnings} {
		found, err := find(ctx, env)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mark is the last of some days before an end that have come; empty: none.
func mark(days []int64, left time.Duration) string {
	found := ""
	for _, d := range days {
		if left <= time.Duration(d)*day {
			found = strconv.FormatInt(d, 10)
		}
	}
	return found
}

type certificateData struct {
	Object        string `json:"object"`
	ID            string `json:"id"`
	CertificateID string `json:"certificate_id"`
	ExpiresAt     string `json:"expires_at"`
}

// certificateWarnings looks at the last certificate of each taxpayer: one that
// has a successor may end.
func (l *Live) certificateWarnings(ctx context.Context, env fiscal.Environment) (all []warning, err error) {
	certificates, err := l.Store.Certificates(ctx)
	if err != nil {
		return nil, err
	}
	last := map[store.Scope]store.Certificate{}
	for _, c := range certificates {
		if c.Environment == env && c.RevokedAt.IsZero() && c.NotAfter.After(last[c.Scope].NotAfter) {
			last[c.Scope] = c
		}
	}
	for scope, c := range last {
		if m := mark(certificateDays, c.NotAfter.Sub(l.Now())); m != "" {
			all = append(all, warning{scope, "certificate " + c.ID, m, NoticeCertificate,
				certificateData{"taxpayer", scope.TaxpayerID, c.ID, instant(c.NotAfter)}, []any{"certificate_id", c.ID, "not_after", c.NotAfter}})
		}
	}
	return all, nil
}

type sequenceData struct {
	Object    string      `json:"object"`
	ID        string      `json:"id"`
	Type      fiscal.Type `json:"ecf_type"`
	Remaining int64       `json:"remaining"`
	ExpiresAt string      `json:"expires_at,omitempty"`
}

// sequenceWarnings looks at what remains of each taxpayer's ranges of a type.
func (l *Live) sequenceWarnings(ctx context.Context, env fiscal.Environment) (all []warning, err error) {
	sequences, err := l.Store.Sequences(ctx)
	if err != nil {
		return nil, err
	}
	of := map[queueKey][]store.Sequence{}
	for _, s := range sequences {
		if s.Environment == env {
			key := queueKey{s.Scope, s.Type}
			of[key] = append(of[key], s)
		}
	}
	for key, ranges := range of {
		taxpayer, err := l.Store.Taxpayer(ctx, key.scope.TaxpayerID)
		if err != nil {
			return nil, err
		}
		found, err := l.sequenceWarning(ctx, key, taxpayer.RNC, ranges)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (l *Live) sequenceWarning(ctx context.Context, key queueKey, rnc string, ranges []store.Sequence) ([]warning, error) {
	today := fiscal.DateOf(l.Now())
	var left int64
	var current, last store.Sequence // the one in use, and the one with the highest numbers
	var expires fiscal.Date          // of what lasts longest; zero: never, or nothing is left
	for _, s := range ranges {
		if s.Last > last.Last {
			last = s
		}
		if s.Left() <= 0 || s.Expired(today) {
			continue
		}
		if left == 0 || s.Expires.IsZero() || (!expires.IsZero() && s.Expires.After(expires)) {
			expires = s.Expires
		}
		left += s.Left()
		if current.ID == "" || s.First < current.First {
			current = s
		}
	}
	data := sequenceData{Object: "taxpayer", ID: key.scope.TaxpayerID, Type: key.kind, Remaining: left}
	if !expires.IsZero() {
		data.ExpiresAt = instant(expires.End())
	}
	about := []any{"ecf_type", key.kind, "remaining", left, "expires", expires.String()}
	subject := "sequence " + string(key.kind)
	low, err := l.low(ctx, rnc, current, left)
	if err != nil {
		return nil, err
	}
	var all []warning
	if low {
		all = append(all, warning{key.scope, subject, "low " + last.ID, NoticeSequence, data, about})
	}
	if soon := fiscal.DateOf(l.Now().Add(sequenceSoon)); !expires.IsZero() && expires.Before(soon) {
		all = append(all, warning{key.scope, subject, "expiring " + last.ID, NoticeSequence, data, about})
	}
	return all, nil
}

// low tells whether fewer numbers are left than were used in a week. If so many
// were, the one that was used so many numbers ago was used within the week.
func (l *Live) low(ctx context.Context, rnc string, current store.Sequence, left int64) (bool, error) {
	if left < lowNumbers {
		return true, nil
	}
	if current.Next-left < current.First {
		return false, nil
	}
	encf, err := ecf.NewENCF(current.Type, current.Next-left)
	if err != nil {
		return false, err
	}
	then, err := l.Store.IssuedUnder(ctx, current.Environment, rnc, encf.String())
	if errors.Is(err, store.ErrNotFound) {
		return false, nil // a number that was given up
	}
	return err == nil && l.Now().Sub(then.CreatedAt) < usedWithin, err
}

type credentialData struct {
	Object    string `json:"object"`
	ID        string `json:"id"`
	ExpiresAt string `json:"expires_at"`
}

func (l *Live) credentialWarnings(ctx context.Context, env fiscal.Environment) (all []warning, err error) {
	credentials, err := l.Store.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range credentials {
		left := c.ExpiresAt.Sub(l.Now())
		if c.Environment != env || c.ExpiresAt.IsZero() || !c.RevokedAt.IsZero() || left <= 0 {
			continue
		}
		if m := mark(credentialDays, left); m != "" {
			scope := store.Scope{Environment: env, TaxpayerID: c.TaxpayerID}
			all = append(all, warning{scope, "credential " + c.ID, m, NoticeCredential,
				credentialData{"credential", c.ID, instant(c.ExpiresAt)}, []any{"credential_id", c.ID, "expires_at", c.ExpiresAt}})
		}
	}
	return all, nil
}

// scopes are the taxpayers that can issue in an environment.
func (l *Live) scopes(ctx context.Context, env fiscal.Environment) ([]store.Scope, error) {
	certificates, err := l.Store.Certificates(ctx)
	if err != nil {
		return nil, err
	}
	var all []store.Scope
	for _, c := range certificates {
		if c.Environment == env && !slices.Contains(all, c.Scope) {
			all = append(all, c.Scope)
		}
	}
	return all, nil
}

type contingencyData struct {
	Object    string `json:"object"`
	ID        string `json:"id"`
	StartedAt string `json:"started_at"`
	EndedAt   string `json:"ended_at,omitempty"`
	Deadline  string `json:"deadline,omitempty"` // for what was kept back
}

// tellContingency tells every taxpayer that a contingency began or ended.
func (l *Live) tellContingency(ctx context.Context, tx *store.Tx, scopes []store.Scope, kind string, data contingencyData) error {
	for _, scope := range scopes {
		data.Object, data.ID = "taxpayer", scope.TaxpayerID
		if err := l.addNotice(ctx, tx, scope, kind, data); err != nil {
			return err
		}
	}
	return nil
}

// addNotice tells a taxpayer something that is of no document.
func (l *Live) addNotice(ctx context.Context, tx *store.Tx, scope store.Scope, kind string, data any) error {
	n, err := NewNotice(scope, kind, l.Now(), data)
	if err != nil {
		return err
	}
	return tx.AddNotice(ctx, n)
}
