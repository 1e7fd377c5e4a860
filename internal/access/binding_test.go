package access

import (
	"bytes"
	"errors"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// execute changes the database as a person with write access does.
func (e *env) execute(statement string, args ...any) {
	e.t.Helper()
	if _, err := storetest.OpenSQL(e.t, e.address).ExecContext(e.t.Context(), statement, args...); err != nil {
		e.t.Fatalf("%s: %v", statement, err)
	}
}

// Write access to the database does not move a credential to another taxpayer or
// environment, and gives it no scope, no time and no requests.
func TestWriteAccessToTheDatabaseChangesNoCredential(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		other := store.Taxpayer{ID: store.NewID(), RNC: "199000021", LegalName: "Otra, SRL", Phones: []string{}, CreatedAt: e.now(), UpdatedAt: e.now()}
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error { return tx.CreateTaxpayer(t.Context(), other) }))
		terms := e.terms()
		terms.Scopes = []apikey.Scope{apikey.InvoicesRead}
		terms.AllowedNetworks, terms.ClientCertificates = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}, []string{strings.Repeat("0", 64)}
		for name, statement := range map[string]string{
			"taxpayer":    `UPDATE credentials SET taxpayer_id = '` + other.ID + `' WHERE id = $1`,
			"environment": `UPDATE credentials SET environment = 'production' WHERE id = $1`,
			"scopes":      `UPDATE credentials SET scopes = scopes || ' ecf.submit invoices.write' WHERE id = $1`,
			"rate limit":  `UPDATE credentials SET rate_limit = 1000000 WHERE id = $1`,
			"network":     `UPDATE credentials SET allowed_networks = '' WHERE id = $1`,
			"client":      `UPDATE credentials SET client_certificates = '' WHERE id = $1`,
		} {
			key, made := e.issue(terms)
			e.wantValid(name+" before", key)
			e.execute(statement, made.ID)
			e.advance(5 * time.Second)
			e.wantDenied("with another "+name, key)
			if _, _, err := e.Rotate(t.Context(), made.ID, 0); !errors.Is(err, ErrAltered) {
				t.Errorf("with another %s, the credential is rotated: %v, want ErrAltered", name, err)
			}
		}
		// The binding of one credential is not valid for another one, and without a binding
		// a credential is not valid at all, also after a restart.
		strong, rich := e.issue(e.terms())
		weak, poor := e.issue(terms)
		e.execute(`UPDATE credentials SET scopes = (SELECT scopes FROM credentials WHERE id = $1), binding = (SELECT binding FROM credentials WHERE id = $1) WHERE id = $2`, rich.ID, poor.ID)
		e.advance(5 * time.Second)
		e.wantDenied("with the binding of another credential", weak)
		e.execute(`UPDATE credentials SET binding = NULL WHERE id = $1`, poor.ID)
		e.reload()
		e.wantDenied("without a binding", weak)
		e.wantValid("the other credential", strong)
	})
}

// A credential ends when its binding says, whatever the columns say.
func TestWriteAccessToTheDatabaseProlongsNoCredential(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		terms := e.terms()
		terms.ExpiresAt = e.now().Add(time.Hour)
		expiring, one := e.issue(terms)
		rotated, two := e.issue(e.terms())
		_, _, err := e.Rotate(t.Context(), two.ID, time.Hour)
		e.must(err)
		revoked, three := e.issue(e.terms())
		e.must(e.Revoke(t.Context(), three.ID))
		for _, id := range []string{one.ID, two.ID, three.ID} {
			e.execute(`UPDATE credentials SET expires_at = NULL, revoked_at = NULL WHERE id = $1`, id)
		}
		e.advance(time.Hour - time.Microsecond)
		e.wantValid("before its end", expiring)
		e.wantValid("within the overlap", rotated)
		e.wantDenied("revoked", revoked)
		e.advance(time.Microsecond)
		e.wantDenied("after its end", expiring)
		e.wantDenied("after the overlap", rotated)
	})
}

// An earlier program shortens the life of a credential without a new binding.
func TestAnEarlierProgramCanEndACredential(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		key, made := e.issue(e.terms())
		e.execute(`UPDATE credentials SET expires_at = $2 WHERE id = $1`, made.ID, e.now().Add(time.Hour).UnixMicro())
		e.advance(5 * time.Second)
		e.wantValid("within the overlap", key)
		e.advance(time.Hour)
		e.wantDenied("after the overlap", key)
	})
}

// newEarlierEnv returns an environment on a database that a program without bindings has
// created.
func newEarlierEnv(t *testing.T, address string) *env {
	t.Helper()
	master := newMaster(t)
	m, err := master.InUse()
	if err != nil {
		t.Fatal(err)
	}
	pepper, err := sealKey(m, kindPepper, 1, bytes.Repeat([]byte{7}, keySize))
	if err != nil {
		t.Fatal(err)
	}
	if err := storetest.Open(t, address, time.Now).AddSecret(t.Context(), pepper); err != nil {
		t.Fatal(err)
	}
	e := newEnvWith(t, address, master)
	e.execute(`DELETE FROM secrets WHERE kind = 'bound'`)
	return e
}

// issueEarlier stores a credential as an earlier program does.
func (e *env) issueEarlier() (apikey.Key, store.Credential) {
	e.t.Helper()
	key, made := e.issue(e.terms())
	e.execute(`UPDATE credentials SET binding = NULL WHERE id = $1`, made.ID)
	return key, made
}

// The first program of this version binds the credentials that exist, and later those
// that nodes of an earlier version create during the upgrade. After the upgrade, write
// access to the database cannot use this to change a credential.
func TestCredentialsOfEarlierProgramsAreBoundDuringTheUpgrade(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		e := newEarlierEnv(t, address)
		old, before := e.issueEarlier()
		e.reload()
		e.wantValid("of before the upgrade", old)
		e.advance(upgradeTime - time.Second)
		during, _ := e.issueEarlier()
		e.reload()
		e.wantValid("of a node of the earlier version", during)
		entries, err := e.store.AuditEntries(t.Context(), store.AuditFilter{Object: "credential:" + before.ID}, 0, 10)
		e.must(err)
		if len(entries) != 2 || entries[1].Action != "credential.bind" || entries[1].Caller.Actor != audit.System {
			t.Errorf("the audit log has %+v, want credential.create and credential.bind", entries)
		}
		e.advance(time.Second)
		late, _ := e.issueEarlier()
		e.execute(`UPDATE credentials SET scopes = 'ecf.submit', binding = NULL WHERE id = $1`, before.ID)
		e.reload()
		e.wantDenied("changed after the upgrade", old)
		e.wantDenied("of an earlier program after the upgrade", late)
		e.wantValid("bound before", during)
	})
}

// Peppers of this version need no mark: their credentials are never bound afterwards.
func TestCredentialsOfANewDatabaseAreNeverBoundAfterwards(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e *env) {
		key, _ := e.issueEarlier()
		e.execute(`DELETE FROM secrets WHERE kind = 'bound'`)
		e.reload()
		e.wantDenied("without a binding", key)
	})
}
