package api_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/audit"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// refusedLine is a log line about a refused credential.
type refusedLine struct {
	Message   string `json:"msg"`
	Reason    string `json:"reason"`
	Prefix    string `json:"credential"`
	Source    string `json:"source"`
	Network   string `json:"client"`
	RequestID string `json:"request_id"`
	Count     int    `json:"refused"`
}

// refusedLines returns the log lines about refused credentials.
func refusedLines(t *testing.T, log *logBuffer) (all []refusedLine) {
	t.Helper()
	for text := range strings.Lines(log.String()) {
		var line refusedLine
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		if strings.HasPrefix(line.Message, "The service refused ") {
			all = append(all, line)
		}
	}
	return all
}

// refusedTotal returns the counter of a reason.
func (e *env) refusedTotal(t *testing.T, reason string) float64 {
	t.Helper()
	families, err := e.registry.Gather()
	e.must(err)
	for _, family := range families {
		if family.GetName() != "fiscalhub_authentication_failures_total" {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == reason {
				return m.GetCounter().GetValue()
			}
		}
	}
	return 0
}

// Each refused key leaves its prefix, the reason and the address of the client in the
// log, and increases a counter. The key itself is never in the log.
func TestARefusedKeyLeavesATrace(t *testing.T) {
	eachEngineLogging(t, envOptions{}, func(t *testing.T, e *env, log *logBuffer) {
		issue := func(terms access.Terms) (string, store.Credential) {
			terms.TaxpayerID, terms.Scopes = e.taxpayer, apikey.AllScopes()
			if terms.Environment == "" {
				terms.Environment = fiscal.Sandbox
			}
			key, made, err := e.credentials().Issue(t.Context(), terms)
			e.must(err)
			return key.Reveal(), made
		}
		revoked, made := issue(access.Terms{})
		e.must(e.credentials().Revoke(t.Context(), made.ID))
		expired, _ := issue(access.Terms{ExpiresAt: e.clock.now()})
		elsewhere, _ := issue(access.Terms{Environment: fiscal.Production})
		altered, made := issue(access.Terms{})
		_, err := e.database(t).ExecContext(t.Context(), `UPDATE credentials SET rate_limit = 7 WHERE id = $1`, made.ID)
		e.must(err)
		for _, tt := range []struct{ reason, key string }{
			{"missing", "-"}, {"malformed", e.key[:40]}, {"unknown", unknownKey(t, fiscal.Sandbox)}, {"wrong_secret", forgeKey(t, e.key)},
			{"revoked", revoked}, {"expired", expired}, {"altered", altered}, {"wrong_environment", elsewhere},
		} {
			before := len(refusedLines(t, log))
			e.send(withID(request{path: "invoices", key: tt.key}))
			want := refusedLine{Message: "The service refused an API key.", Reason: tt.reason, Network: "127.0.0.1", RequestID: fixedID}
			if tt.reason != "missing" && tt.reason != "malformed" {
				want.Prefix = tt.key[3:15]
			}
			if lines := refusedLines(t, log); len(lines) != before+1 || lines[before] != want {
				t.Errorf("%s: the log has %+v, want %+v", tt.reason, lines[before:], want)
			}
			if got := e.refusedTotal(t, tt.reason); got != 1 {
				t.Errorf("%s: the counter is %v, want 1", tt.reason, got)
			}
			if tt.key != "-" {
				wantAbsent(t, "the log", log.String(), map[string]string{"secret of a " + tt.reason + " key": tt.key[16:]})
			}
		}
	})
}

// A flood of wrong keys writes a few lines a minute, and the next minute says how many
// were left out.
func TestAFloodOfWrongKeysWritesFewLines(t *testing.T) {
	eachEngineLogging(t, envOptions{}, func(t *testing.T, e *env, log *logBuffer) {
		const sent = 100
		for range sent {
			e.send(request{path: "invoices", key: unknownKey(t, fiscal.Sandbox)})
		}
		lines := refusedLines(t, log)
		if len(lines) == 0 || len(lines) > 20 {
			t.Errorf("%d refused keys wrote %d lines, want some and at most 20", sent, len(lines))
		}
		if got := e.refusedTotal(t, "unknown"); got != sent {
			t.Errorf("the counter is %v, want %d", got, sent)
		}
		e.clock.advance(time.Minute)
		e.send(request{path: "invoices", key: unknownKey(t, fiscal.Sandbox)})
		after := refusedLines(t, log)[len(lines):]
		if len(after) != 2 || after[0].Count != sent-len(lines) {
			t.Errorf("a minute later the log has %+v, want the number of refused keys without a line (%d), and the new one", after, sent-len(lines))
		}
	})
}

// Each refused message of a source leaves the source, the reason and the address of the
// client in the log, and increases a counter. A flood of them writes few lines.
func TestARefusedMessageOfASourceLeavesATrace(t *testing.T) {
	opt := liveOptions()
	opt.inbox = &stubInbox{}
	eachEngineLogging(t, opt, func(t *testing.T, e *env, log *logBuffer) {
		source, secret, err := e.Sources.Create(t.Context(), e.scope())
		e.must(err)
		body, now := inboundBody("E310000000001", "<x/>"), e.clock.now()
		wrong := func() request { return signedMessage(source.ID, "m", now, body, webhook.NewSecret()) }
		unsigned := wrong()
		unsigned.header.Del(webhook.HeaderSignature)
		for reason, q := range map[string]request{
			"missing": unsigned, "wrong_signature": wrong(), "wrong_time": signedMessage(source.ID, "m", now.Add(-time.Hour), body, secret),
		} {
			before := len(refusedLines(t, log))
			e.send(withID(q))
			want := refusedLine{Message: "The service refused a message of a source.", Reason: reason, Source: source.ID, Network: "127.0.0.1", RequestID: fixedID}
			if lines := refusedLines(t, log); len(lines) != before+1 || lines[before] != want {
				t.Errorf("%s: the log has %+v, want %+v", reason, lines[before:], want)
			}
			if got := e.refusedTotal(t, reason); got != 1 {
				t.Errorf("%s: the counter is %v, want 1", reason, got)
			}
		}
		if a := e.send(signedMessage(source.ID, "m", now, body, secret)); a.status != http.StatusAccepted || len(refusedLines(t, log)) != 3 {
			t.Errorf("a right signature: %s, and %d refusals in the log, want 3", a, len(refusedLines(t, log)))
		}
		for range 50 {
			e.send(wrong())
		}
		if lines := len(refusedLines(t, log)); lines > 20 {
			t.Errorf("a flood of wrong signatures wrote %d lines, want at most 20", lines)
		}
		if got := e.refusedTotal(t, "wrong_signature"); got != 51 {
			t.Errorf("the counter is %v, want 51", got)
		}
	})
}

// A refused token or signed seed at /fe leaves the reason and the address of the client in
// the log, and increases a counter.
func TestARefusedSenderLeavesATrace(t *testing.T) {
	eachEngineLogging(t, liveOptions(), func(t *testing.T, e *env, log *logBuffer) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/fe/recepcion/api/ecf", nil)
		r.RemoteAddr = "203.0.113.7:4000"
		e.api.RefuseToken(r)
		e.api.RefuseSeed(r)
		want := []refusedLine{
			{Message: "The service refused the token of a sender.", Reason: "wrong_token", Network: "203.0.113.7"},
			{Message: "The service refused the signed seed of a sender.", Reason: "wrong_seed", Network: "203.0.113.7"},
		}
		if lines := refusedLines(t, log); !slices.Equal(lines, want) {
			t.Errorf("the log has %+v, want %+v", lines, want)
		}
		if e.refusedTotal(t, "wrong_token") != 1 || e.refusedTotal(t, "wrong_seed") != 1 {
			t.Error("the counters are not 1")
		}
	})
}

// The use of a revoked key is in the audit log, and the taxpayer gets an event: once an
// hour, whatever the number of requests.
func TestTheUseOfARevokedKeyIsRecordedOnceAnHour(t *testing.T) {
	eachEngine(t, envOptions{environment: fiscal.Production}, func(t *testing.T, e *env) {
		key := e.newKey(e.taxpayer, fiscal.Production, apikey.AllScopes()...)
		id := e.storedCredential(key).ID
		e.must(e.credentials().Revoke(t.Context(), id))
		e.must(e.credentials().Revoke(t.Context(), e.storedCredential(e.newKey(e.taxpayer, fiscal.Production, apikey.ECFRead)).ID)) // it is not used
		scope := store.Scope{Environment: fiscal.Production, TaxpayerID: e.taxpayer}
		for hour := 1; hour <= 2; hour++ {
			for range 3 {
				if a := e.send(request{path: "invoices", key: key}); a.status != http.StatusUnauthorized {
					t.Fatal(a)
				}
				e.clock.advance(10 * time.Minute)
			}
			e.Pipeline.Journal().Flush(t.Context())
			var entries []audit.Entry
			// The journal may be writing an entry that Flush no longer sees.
			eventually(t, "the use of the hour is recorded", func() bool {
				var err error
				entries, err = e.store.AuditEntries(t.Context(), store.AuditFilter{Actor: "credential:" + id}, 0, 100)
				e.must(err)
				return len(entries) >= hour
			})
			if len(entries) != hour {
				t.Fatalf("after %d hours: %d entries: %+v", hour, len(entries), entries)
			}
			last := entries[hour-1]
			if last.Action != "credential.refuse" || last.Object != "credential:"+id || last.Caller.From != "127.0.0.1" ||
				last.Caller.RequestID == "" || !strings.Contains(last.After, `"reason":"revoked"`) {
				t.Errorf("the entry is %+v", last)
			}
			events, err := e.store.Feed(t.Context(), scope, 0, 100)
			e.must(err)
			const want = `"type":"credential.refused"`
			if len(events) != hour || !strings.Contains(string(events[hour-1].Body), want) ||
				!strings.Contains(string(events[hour-1].Body), `"data":{"object":"credential","id":"`+id+`","reason":"revoked"}`) {
				t.Errorf("after %d hours the feed has %v", hour, events)
			}
			if a := e.send(request{path: "events"}); a.status != http.StatusOK { // compares it with the OpenAPI document
				t.Error(a)
			}
			e.clock.advance(time.Hour)
		}
	})
}
