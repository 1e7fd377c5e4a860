package api_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// suspend suspends a credential, a taxpayer or an environment.
func (e *env) suspend(subject store.Subject) {
	e.t.Helper()
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error {
		return tx.Suspend(e.t.Context(), store.Suspension{Subject: subject, Reason: "a leak", At: e.clock.now()})
	}))
}

func (e *env) resume(subject store.Subject) {
	e.t.Helper()
	e.must(e.store.Update(e.t.Context(), func(tx *store.Tx) error { return tx.Resume(e.t.Context(), subject) }))
}

// A suspended credential, taxpayer or environment gets 403 within 5 seconds, on every
// node, and works again within 5 seconds after it was resumed. The sweep of all routes
// shows that every operation is refused.
func TestASuspensionTakesEffectOnEveryNodeWithinFiveSeconds(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := envOptions{clock: newClock(), masterKey: filepath.Join(t.TempDir(), "master.key")}
		e := newEnv(t, address, opt)
		node := newNode(t, address, opt)
		node.taxpayer, node.key = e.taxpayer, e.key
		other := e.newKey(e.newTaxpayer(), fiscal.Sandbox, apikey.AllScopes()...)
		id := e.storedCredential(e.key).ID
		for _, subject := range []store.Subject{
			store.CredentialSubject(id), store.TaxpayerSubject(e.taxpayer), store.EnvironmentSubject(fiscal.Sandbox),
		} {
			e.suspend(subject)
			e.clock.advance(5 * time.Second)
			for _, n := range []*env{e, node} {
				if a := n.send(request{path: "invoices"}); a.status != http.StatusForbidden || !strings.Contains(string(a.body), "suspended") {
					t.Errorf("%s suspended: %s", subject.Kind(), a)
				}
			}
			want := http.StatusForbidden // of another taxpayer
			if subject.Kind() == "environment" {
				if a := e.send(request{path: "invoices", key: other}); a.status != want || !strings.Contains(string(a.body), "suspended") {
					t.Errorf("%s suspended, another taxpayer: %s", subject.Kind(), a)
				}
			}
			e.resume(subject)
			e.clock.advance(5 * time.Second)
			for _, n := range []*env{e, node} {
				if a := n.send(request{path: "invoices"}); a.status != http.StatusOK {
					t.Errorf("%s resumed: %s", subject.Kind(), a)
				}
			}
		}
	})
}

// The use of a suspended key is recorded like that of a revoked one. A suspended taxpayer
// is expected to go on for a while, so its keys are only logged and counted.
func TestTheUseOfASuspendedKeyIsRecorded(t *testing.T) {
	eachEngineLogging(t, envOptions{}, func(t *testing.T, e *env, log *logBuffer) {
		id := e.storedCredential(e.key).ID
		used := func(subject store.Subject) (entries int) {
			t.Helper()
			e.suspend(subject)
			e.clock.advance(5 * time.Second)
			for range 3 {
				e.send(request{path: "invoices"})
			}
			e.resume(subject)
			e.Pipeline.Journal().Flush(t.Context())
			all, err := e.store.AuditEntries(t.Context(), store.AuditFilter{Actor: "credential:" + id}, 0, 10)
			e.must(err)
			return len(all)
		}
		if n := used(store.TaxpayerSubject(e.taxpayer)); n != 0 {
			t.Errorf("a suspended taxpayer: %d entries", n)
		}
		if n := used(store.CredentialSubject(id)); n != 1 {
			t.Errorf("a suspended credential: %d entries, want 1", n)
		}
		lines := refusedLines(t, log)
		if len(lines) != 6 || lines[0].Reason != "suspended" || lines[0].Prefix != e.key[3:15] || e.refusedTotal(t, "suspended") != 6 {
			t.Errorf("the log has %+v", lines)
		}
	})
}
