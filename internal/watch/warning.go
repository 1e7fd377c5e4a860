package watch

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	day = 24 * time.Hour

	// Numbers are low when fewer are left than fiscal.LowNumbers, or than were used in this
	// time.
	usedWithin = 7 * day
)

// How many days before its end a certificate, or a credential, causes a warning.
var (
	certificateDays = []int64{60, 30, 14, 7, 3, 1}
	credentialDays  = []int64{30, 7, 1}
)

// A warning is sent once for each mark that its subject reaches.
type warning struct {
	scope         store.Scope
	subject, mark string
	kind          string
	data          any
	message       string // for the log
	log           []any
}

// sendWarnings warns of what will soon keep taxpayers from issuing: in the log and
// as an event.
func (w *Watcher) sendWarnings(ctx context.Context, s pipeline.Signals) error {
	warnings, err := w.warnings(ctx)
	if err != nil {
		return err
	}
	for _, one := range warnings {
		fresh := false
		err := w.store.Update(ctx, func(tx *store.Tx) (err error) {
			if fresh, err = tx.MarkNotified(ctx, one.scope, one.subject, one.mark, w.now()); err != nil || !fresh {
				return err
			}
			return w.addEvent(ctx, tx, one.scope, one.kind, one.data)
		})
		if err != nil {
			return err
		}
		if fresh {
			w.log.Warn(one.message, append([]any{"taxpayer_id", one.scope.TaxpayerID}, one.log...)...)
			s.Notify(one.scope)
		}
	}
	return nil
}

func (w *Watcher) warnings(ctx context.Context) (all []warning, err error) {
	for _, find := range []func(context.Context) ([]warning, error){w.certificateWarnings, w.rangeWarnings, w.credentialWarnings} {
		found, err := find(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mark returns the smallest number of days that is not below the time left; ""
// when even the largest is below it.
func mark(days []int64, left time.Duration) string {
	found := ""
	for _, d := range days {
		if left <= time.Duration(d)*day {
			found = strconv.FormatInt(d, 10)
		}
	}
	return found
}

// certificateWarnings checks the certificate of each taxpayer that lasts longest. One
// that has a successor may expire.
func (w *Watcher) certificateWarnings(ctx context.Context) (all []warning, err error) {
	certificates, err := w.store.Certificates(ctx)
	if err != nil {
		return nil, err
	}
	last := map[store.Scope]store.Certificate{}
	for _, c := range certificates {
		if c.Environment == w.env && c.RevokedAt.IsZero() && c.NotAfter.After(last[c.Scope].NotAfter) {
			last[c.Scope] = c
		}
	}
	for scope, c := range last {
		if m := mark(certificateDays, c.NotAfter.Sub(w.now())); m != "" {
			all = append(all, warning{
				scope: scope, subject: "certificate " + c.ID, mark: m,
				kind: event.CertificateExpiring, data: event.NewCertificate(scope.TaxpayerID, c.ID, c.NotAfter),
				message: "A certificate expires soon. Import its successor with `fiscalhub certificate import`.",
				log:     []any{"certificate_id", c.ID, "not_after", c.NotAfter},
			})
		}
	}
	return all, nil
}

// rangeWarnings checks the numbers that each taxpayer has left of each type.
func (w *Watcher) rangeWarnings(ctx context.Context) (all []warning, err error) {
	stored, err := w.store.NumberRanges(ctx)
	if err != nil {
		return nil, err
	}
	of := map[rangeKey][]store.NumberRange{}
	for _, s := range stored {
		if s.Environment == w.env {
			key := rangeKey{s.Scope, s.Type}
			of[key] = append(of[key], s)
		}
	}
	for key, ranges := range of {
		taxpayer, err := w.store.Taxpayer(ctx, key.scope.TaxpayerID)
		if err != nil {
			return nil, err
		}
		found, err := w.rangeWarning(ctx, key, taxpayer.RNC, ranges)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (w *Watcher) rangeWarning(ctx context.Context, key rangeKey, rnc string, ranges []store.NumberRange) ([]warning, error) {
	today := fiscal.DateOf(w.now())
	var left int64
	var last store.NumberRange // the one with the highest numbers
	var expires fiscal.Date    // of what lasts longest; zero: never, or nothing is left
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
	}
	low := warning{
		scope: key.scope, subject: "sequence " + string(key.kind),
		kind: event.SequenceLow, data: event.NewNumberRange(key.scope.TaxpayerID, key.kind, left, expires),
		message: "Fiscal numbers are about to end. Ask the authority for more and add them with `fiscalhub range add`.",
		log:     []any{"ecf_type", key.kind, "remaining", left, "expires", expires.String()},
	}
	few, err := w.low(ctx, rnc, ranges, left)
	if err != nil {
		return nil, err
	}
	var all []warning
	if few {
		low.mark = "low " + last.ID
		all = append(all, low)
	}
	if soon := fiscal.DateOf(w.now().Add(fiscal.EndsSoon)); !expires.IsZero() && expires.Before(soon) {
		low.mark = "expiring " + last.ID
		all = append(all, low)
	}
	return all, nil
}

// low reports whether fewer numbers are left than were used in a week. That is so
// when the number that lies as far back as numbers are left was used within the
// week. It may lie in an earlier range than the one in use.
func (w *Watcher) low(ctx context.Context, rnc string, ranges []store.NumberRange, left int64) (bool, error) {
	if left < fiscal.LowNumbers {
		return true, nil
	}
	back := left
	for _, s := range slices.SortedFunc(slices.Values(ranges), func(a, b store.NumberRange) int { return cmp.Compare(b.First, a.First) }) {
		if used := s.Next - s.First; used < back {
			back -= used
			continue
		}
		encf, err := fiscal.NewENCF(s.Type, s.Next-back)
		if err != nil {
			return false, err
		}
		then, err := w.store.IssuedUnder(ctx, s.Environment, rnc, encf.String())
		if errors.Is(err, store.ErrNotFound) {
			return false, nil // the number was abandoned
		}
		return err == nil && w.now().Sub(then.CreatedAt) < usedWithin, err
	}
	return false, nil
}

func (w *Watcher) credentialWarnings(ctx context.Context) (all []warning, err error) {
	credentials, err := w.store.Credentials(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range credentials {
		left := c.ExpiresAt.Sub(w.now())
		if c.Environment != w.env || c.ExpiresAt.IsZero() || !c.RevokedAt.IsZero() || left <= 0 {
			continue
		}
		if m := mark(credentialDays, left); m != "" {
			scope := store.Scope{Environment: w.env, TaxpayerID: c.TaxpayerID}
			all = append(all, warning{
				scope: scope, subject: "credential " + c.ID, mark: m,
				kind: event.CredentialExpiring, data: event.NewCredential(c.ID, c.ExpiresAt),
				message: "A credential expires soon. Replace it with `fiscalhub credential rotate`.",
				log:     []any{"credential_id", c.ID, "expires_at", c.ExpiresAt},
			})
		}
	}
	return all, nil
}

// rangeKey names all ranges of a taxpayer and type.
type rangeKey struct {
	scope store.Scope
	kind  fiscal.Type
}
