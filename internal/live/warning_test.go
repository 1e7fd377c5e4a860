package live

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
	w.t.Helper()
	w.must(w.watcher.Warn(w.t.Context(), w.signals()))
	var list []string
	for _, e := range w.feed() {
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
		certificates, err := w.store().CertificatesOf(t.Context(), w.scope)
		w.must(err)
		end := certificates[0].NotAfter
		for _, c := range []struct {
			days time.Duration
			want int
		}{{90, 0}, {60, 1}, {59, 1}, {10, 2}, {9, 2}, {3, 3}, {1, 4}} { // what was passed over is not made up for
			w.clock.Advance(end.Add(-c.days * 24 * time.Hour).Sub(w.now()))
			for range 2 {
				if got := strings.Count(w.warned(), event.CertificateExpiring); got != c.want {
					t.Errorf("%d days before: warned %d times, want %d", c.days, got, c.want)
				}
			}
		}
		w.must(w.store().Update(t.Context(), func(tx *store.Tx) error { // a successor ends it
			c := certificates[0]
			c.ID, c.DER, c.NotAfter, c.CreatedAt = store.NewID(), append([]byte{1}, c.DER...), end.AddDate(2, 0, 0), w.now()
			_, err := tx.AddCertificate(t.Context(), c)
			return err
		}))
		w.clock.Advance(12 * time.Hour)
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
		scope := w.scope
		add := func(first, last, next int64, expires string) {
			s := store.NumberRange{Scope: scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: first, Last: last, Next: next, CreatedAt: w.now()}
			if expires != "" {
				date, err := fiscal.ParseDate(expires)
				w.must(err)
				s.Expires = date
			}
			w.must(w.store().Update(t.Context(), func(tx *store.Tx) error { return tx.AddNumberRange(t.Context(), s) }))
		}
		// Another taxpayer of the same name space has its own ranges.
		scope.TaxpayerID = store.NewID()
		w.must(w.store().Update(t.Context(), func(tx *store.Tx) error {
			return tx.CreateTaxpayer(t.Context(), store.Taxpayer{ID: scope.TaxpayerID, RNC: "131000001", LegalName: "Otra", Phones: []string{}, CreatedAt: w.now(), UpdatedAt: w.now()})
		}))
		count := func() int {
			w.must(w.watcher.Warn(t.Context(), w.signals()))
			page, err := w.store().Feed(t.Context(), scope, 0, 100)
			w.must(err)
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
		w.clock.Advance(time.Date(2026, 12, 11, 12, 0, 0, 0, time.UTC).Sub(w.now())) // the second has expired
		if got := count(); got != 0 {
			t.Errorf("100 left again: warned %d times", got)
		}
		add(3001, 3001, 3001, "2026-12-31") // it is the last, and what lasts longest is the first
		w.clock.Advance(time.Date(2027, 12, 2, 12, 0, 0, 0, time.UTC).Sub(w.now()))
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
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{numbers: 110})
	for range 4 {
		w.create(fiscal.FiscalCredit, 1000)
	}
	w.drive(time.Hour)
	if got := w.warned(); got != "" { // 106 left, and 4 were used
		t.Errorf("warned of %s", got)
	}
	for range 7 {
		w.create(fiscal.FiscalCredit, 1000)
	}
	w.drive(time.Hour)
	if got := w.warned(); got != event.SequenceLow+" 31" { // 99 left
		t.Errorf("warned of %s", got)
	}
}

// A week's use counts over several ranges.
func TestWarningOfARangeThatWasJustBegun(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{numbers: 105})
	for range 105 {
		w.create(fiscal.FiscalCredit, 1000)
	}
	w.drive(time.Hour)
	expires, err := fiscal.ParseDate("2027-12-31")
	w.must(err)
	w.must(w.store().Update(t.Context(), func(tx *store.Tx) error {
		return tx.AddNumberRange(t.Context(), store.NumberRange{Scope: w.scope, ID: store.NewID(), Type: fiscal.FiscalCredit, First: 1001, Last: 1107, Next: 1001, Expires: expires, CreatedAt: w.now()})
	}))
	if got := w.warned(); got != "" { // 107 left, and 105 were used
		t.Errorf("warned of %s", got)
	}
	for range 2 {
		w.create(fiscal.FiscalCredit, 1000)
	}
	w.drive(time.Hour)
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
				ID: store.NewID(), Prefix: strings.Repeat(string(rune('a'+i)), 8), Environment: w.options.Env, TaxpayerID: w.scope.TaxpayerID,
				Digest: []byte{1}, PepperVersion: 1, CreatedAt: w.now(), ExpiresAt: w.now().Add(40 * 24 * time.Hour),
			}
			w.must(w.store().Update(t.Context(), func(tx *store.Tx) error { return tx.CreateCredential(t.Context(), c) }))
			if revoked {
				w.must(w.store().Update(t.Context(), func(tx *store.Tx) error { return tx.RevokeCredential(t.Context(), c.ID, w.now()) }))
			}
		}
		for _, c := range []struct {
			pass time.Duration
			want int
		}{{0, 0}, {11 * 24 * time.Hour, 1}, {24 * time.Hour, 1}, {22 * 24 * time.Hour, 2}, {5 * 24 * time.Hour, 3}, {2 * 24 * time.Hour, 3}} {
			w.clock.Advance(c.pass)
			if got := strings.Count(w.warned(), event.CredentialExpiring); got != c.want {
				t.Errorf("after %s: warned %d times, want %d", c.pass, got, c.want)
			}
		}
	})
}
