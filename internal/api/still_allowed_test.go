package api_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// takeAway returns how an operator takes a credential away, with the status of the answers
// that its requests then get.
func (e *env) takeAway() map[string]struct {
	do     func()
	status int
} {
	id := e.storedCredential(e.key).ID
	return map[string]struct {
		do     func()
		status int
	}{
		"suspended": {func() { e.suspend(store.CredentialSubject(id)) }, http.StatusForbidden},
		"revoked":   {func() { e.must(e.credentials().Revoke(e.t.Context(), id)) }, http.StatusUnauthorized},
	}
}

// A client that holds back the end of its body does not use its credential for longer than
// others: when the credential is taken away meanwhile, nothing is stored.
func TestASlowBodyDoesNotOutlastARevocation(t *testing.T) {
	for _, how := range []string{"suspended", "revoked"} {
		t.Run(how, func(t *testing.T) {
			eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
				body := invoiceBody("A")
				conn := e.dial(t)
				_, err := io.WriteString(conn, e.rawRequest(http.MethodPost, "/v1/taxpayers/"+e.taxpayer+"/invoices", e.key,
					"Idempotency-Key: k", "Content-Type: application/json", fmt.Sprint("Content-Length: ", len(body)), "Expect: 100-continue"))
				e.must(err)
				// The service asks for the body after it has checked the credential.
				if a, err := conn.answer(http.MethodPost); err != nil || a.status != http.StatusContinue {
					t.Fatalf("%s, %v", a, err)
				}
				away := e.takeAway()[how]
				away.do()
				e.clock.advance(5 * time.Second)
				if a := conn.exchange(t, http.MethodPost, string(body)); a.status != away.status {
					t.Errorf("the end of the body came after the credential was %s: %s", how, a)
				}
				if _, err := e.store.InvoiceByExternalID(t.Context(), e.scope(), "A"); err == nil {
					t.Error("the invoice is stored")
				}
			})
		})
	}
}

// A request that waits for an event or a verdict learns nothing that happened after its
// credential was taken away.
func TestAWaitDoesNotOutlastARevocation(t *testing.T) {
	for _, how := range []string{"suspended", "revoked"} {
		t.Run("events "+how, func(t *testing.T) {
			eachEngine(t, liveOptions(), func(t *testing.T, e *env) {
				waiting := e.sendAsync(request{path: "events?wait=30"})
				e.awaitWaits(t, 1)
				away := e.takeAway()[how]
				away.do()
				e.clock.advance(5 * time.Second)
				e.addEvent("taxpayer.contingency_started")
				if a := receive(t, "an event", waiting); a.status != away.status {
					t.Errorf("%s", a)
				}
			})
		})
		t.Run("verdict "+how, func(t *testing.T) {
			eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
				made := e.createPending()
				waiting := e.sendAsync(request{path: "invoices/" + made.ID, header: prefer("wait=20")})
				e.awaitWaits(t, 1)
				e.takeAway()[how].do()
				e.clock.advance(5 * time.Second)
				e.awaitVerdict(made.ID)
				var r resource
				a := receive(t, "the invoice", waiting)
				if a.data(t, &r); r.Status != "queued" || a.header.Get("Preference-Applied") != "" {
					t.Errorf("%s", a)
				}
			})
		})
	}
}

// A creation whose credential is taken away while it waits for the verdict is answered. The
// log and the log of requests name the credential and the taxpayer that made the invoice.
func TestACreationIsLoggedWithItsCredentialAfterARevocation(t *testing.T) {
	for _, how := range []string{"suspended", "revoked"} {
		t.Run(how, func(t *testing.T) {
			lines, all := &logBuffer{}, make(requests, 10)
			oneEngine(t, envOptions{log: lines, requests: all}, func(t *testing.T, e *env) {
				header := scenarioHeader("accepted")
				header.Set("Prefer", "wait=20")
				waiting := e.sendAsync(request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A"), header: header})
				e.awaitWaits(t, 1)
				found, err := e.store.InvoiceByExternalID(t.Context(), e.scope(), "A")
				e.must(err)
				prefix := e.storedCredential(e.key).Prefix
				e.takeAway()[how].do()
				e.clock.advance(5 * time.Second)
				e.awaitVerdict(found.ID)
				a := receive(t, "the invoice", waiting)
				if made := e.created(a); made.Status != "queued" || a.header.Get("Preference-Applied") != "" {
					t.Errorf("%s", a)
				}
				if q := <-all; q.Credential != prefix || q.TaxpayerID != e.taxpayer {
					t.Errorf("the log of requests has %+v, want the credential %s", q, prefix)
				}
				for line := range strings.Lines(lines.String()) {
					if strings.Contains(line, `"msg":"request"`) && !strings.Contains(line, `"credential":"`+prefix+`"`) {
						t.Errorf("the log has no credential %s: %s", prefix, line)
					}
				}
			})
		})
	}
}
