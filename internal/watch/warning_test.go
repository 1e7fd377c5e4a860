package watch_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// warned lists what the taxpayer was warned of, and looks ahead before.
func (w *env) warned() string {
	w.T.Helper()
	w.Must(w.Watcher.Warn(w.T.Context(), w.Signals()))
	var list []string
	for _, e := range w.Feed() {
		switch {
		case e.Data.Object == "fiscal_document":
		case e.Data.ECFType != "":
			list = append(list, e.Type+" "+e.Data.ECFType)
		default:
			list = append(list, e.Type)
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Taxpayers are warned of the end of a certificate at each of its marks, once.
func TestWarningsOfACertificate(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		certificates, err := w.Store().CertificatesOf(t.Context(), w.Scope)
		w.Must(err)
		end := certificates[0].NotAfter
		for _, c := range []struct {
			days time.Duration
			want int
		}{{90, 0}, {60, 1}, {59, 1}, {10, 2}, {9, 2}, {3, 3}, {1, 4}} { // what was passed over is not made up for
			w.Clock.Advance(end.Add(-c.days * 24 * time.Hour).Sub(w.Now()))
			for range 2 {
				if got := strings.Count(w.warned(), event.CertificateExpiring); got != c.want {
					t.Errorf("%d days before: warned %d times, want %d", c.days, got, c.want)
				}
			}
		}
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { // a successor ends it
			c := certificates[0]
			c.ID, c.DER, c.NotAfter, c.CreatedAt = store.NewID(), append([]byte{1}, c.DER...), end.AddDate(2, 0, 0), w.Now()
			_, err := tx.AddCertificate(t.Context(), c)
			return err
		}))
		w.Clock.Advance(12 * time.Hour)
		if got := strings.Count(w.warned(), event.CertificateExpiring); got != 4 {
			t.Errorf("warned %d times with a successor", got)
		}
	})
}

// A range is low with few numbers left, or fewer than a week needs, or when it
// expires soon. A new range causes new warnings.
func TestWarningsOfARange(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		scope := w.Scope
		add := func(first, last, next int64, expires string) {
			s := store.NumberRange{Scope: scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: first, Last: last, Next: next, CreatedAt: w.Now()}
			if expires != "" {
				date, err := fiscal.ParseDate(expires)
				w.Must(err)
				s.Expires = date
			}
			w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.AddNumberRange(t.Context(), s) }))
		}
		// Another taxpayer of the same name space has its own ranges.
		scope.TaxpayerID = store.NewID()
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error {
			return tx.CreateTaxpayer(t.Context(), store.Taxpayer{ID: scope.TaxpayerID, RNC: "131000001", LegalName: "Otra", Phones: []string{}, CreatedAt: w.Now(), UpdatedAt: w.Now()})
		}))
		count := func() int {
			w.Must(w.Watcher.Warn(t.Context(), w.Signals()))
			page, err := w.Store().Feed(t.Context(), scope, 0, 100)
			w.Must(err)
			return len(page)
		}
		add(1, 1000, 901, "2027-12-31")
		if got := count(); got != 0 {
			t.Errorf("100 left: warned %d times", got)
		}
		add(2001, 2050, 2001, "2026-12-10") // 150 left; the first lasts longer
		if got := count(); got != 0 {
			t.Errorf("150 left: warned %d times", got)
		}
		w.Clock.Advance(time.Date(2026, 12, 11, 12, 0, 0, 0, time.UTC).Sub(w.Now())) // the second has expired
		if got := count(); got != 0 {
			t.Errorf("100 left again: warned %d times", got)
		}
		add(3001, 3001, 3001, "2026-12-31") // it is the last, and what lasts longest is the first
		w.Clock.Advance(time.Date(2027, 12, 2, 12, 0, 0, 0, time.UTC).Sub(w.Now()))
		if got := count(); got != 1 {
			t.Errorf("30 days before its end: warned %d times, want once", got)
		}
		add(4001, 9000, 4001, "2028-12-31")
		if got := count(); got != 1 {
			t.Errorf("with a new range: warned %d times", got)
		}
		if got := count(); got != 1 {
			t.Errorf("warned %d times", got)
		}
	})
}

// With many numbers left a range is low when a week needs more.
func TestWarningOfARangeInUse(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{Numbers: 110})
	for range 4 {
		w.Create(fiscal.FiscalCredit, 1000)
	}
	w.Drive(time.Hour)
	if got := w.warned(); got != "" { // 106 left, and 4 were used
		t.Errorf("warned of %s", got)
	}
	for range 7 {
		w.Create(fiscal.FiscalCredit, 1000)
	}
	w.Drive(time.Hour)
	if got := w.warned(); got != event.SequenceLow+" 31" { // 99 left
		t.Errorf("warned of %s", got)
	}
}

// A week's use counts over several ranges.
func TestWarningOfARangeThatWasJustBegun(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{Numbers: 105})
	for range 105 {
		w.Create(fiscal.FiscalCredit, 1000)
	}
	w.Drive(time.Hour)
	expires, err := fiscal.ParseDate("2027-12-31")
	w.Must(err)
	w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error {
		return tx.AddNumberRange(t.Context(), store.NumberRange{Scope: w.Scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 1001, Last: 1107, Next: 1001, Expires: expires, CreatedAt: w.Now()})
	}))
	if got := w.warned(); got != "" { // 107 left, and 105 were used
		t.Errorf("warned of %s", got)
	}
	for range 2 {
		w.Create(fiscal.FiscalCredit, 1000)
	}
	w.Drive(time.Hour)
	if got := w.warned(); got != event.SequenceLow+" 31" { // 105 left, and 107 were used
		t.Errorf("warned of %s", got)
	}
}

// A credential that expires causes a warning, a revoked one does not.
func TestWarningsOfACredential(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		for i, revoked := range []bool{false, true} {
			c := store.Credential{
				ID: store.NewID(), Prefix: strings.Repeat(string(rune('a'+i)), 8), Environment: w.Options.Env, TaxpayerID: w.Scope.TaxpayerID,
				Digest: []byte{1}, PepperVersion: 1, CreatedAt: w.Now(), ExpiresAt: w.Now().Add(40 * 24 * time.Hour),
			}
			w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), c) }))
			if revoked {
				w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.RevokeCredential(t.Context(), c.ID, w.Now()) }))
			}
		}
		for _, c := range []struct {
			pass time.Duration
			want int
		}{{0, 0}, {11 * 24 * time.Hour, 1}, {24 * time.Hour, 1}, {22 * 24 * time.Hour, 2}, {5 * 24 * time.Hour, 3}, {2 * 24 * time.Hour, 3}} {
			w.Clock.Advance(c.pass)
			if got := strings.Count(w.warned(), event.CredentialExpiring); got != c.want {
				t.Errorf("after %s: warned %d times, want %d", c.pass, got, c.want)
			}
		}
	})
}
