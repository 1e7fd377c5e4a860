package systemtest

import (
	"fmt"
	"hash/crc32"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// certification creates documents in every state in certification.
func (m *fixtureMaker) certification() {
	t := m.t
	m.sim = startSimulator(t, upgradeAuthority(readFile(t, m.file("roots.pem"))))
	writeFile(t, m.file("trust.pem"), []byte(string(readFile(t, m.file("roots.pem")))+m.sim.call(t, http.MethodGet, "/trust", nil)))
	m.issuer = m.ready("issuer", m.f.Credentials[0].TaxpayerID)
	fenced := m.ready("fenced", m.taxpayer(upgradeFenced, "Comercial Roble, SRL"))
	m.endedCredentials()
	m.hooks = newHookListener(t, m.f.Webhook.Listen)
	if m.hooks == nil {
		t.Fatal("another program listens at the address of the fixture's webhook")
	}
	stop := m.serve(m.live())
	m.endpoints()
	m.finals()
	m.response()
	m.create(fenced, sale{externalID: "fenced-31", kind: "31", buyer: upgradeBuyer}, "accepted")
	m.unnumbered(fenced)
	stop()
	m.fence()
	stop = m.serve(m.live())
	m.waiting()
	m.outage()
	m.note("certification")
	m.events()
	stop()
}

func (m *fixtureMaker) live() []string {
	return certificationArgs(m.shared, m.sim.authority, m.file("trust.pem"))
}

// ready makes a taxpayer that issues in certification, with a credential.
func (m *fixtureMaker) ready(name, taxpayer string) fixtureCredential {
	scope := []string{"--taxpayer", taxpayer, "--environment", "certification"}
	m.operate(append([]string{"certificate", "import", "--password-file", m.file("password"), m.file("signer.p12")}, scope...)...)
	m.operate(append([]string{"sequence", "add", "--type", "31", "--from", "1", "--to", "50000", "--expires", upgradeExpires}, scope...)...)
	m.operate(append([]string{"sequence", "add", "--type", "32", "--from", "1", "--to", "50000"}, scope...)...)
	c, _ := m.credential(name, "certification", taxpayer, upgradeScopes, http.StatusOK)
	return c
}

// endedCredentials creates keys that have ended, one with few rights, and one that
// replaces another.
func (m *fixtureMaker) endedCredentials() {
	of := m.issuer.TaxpayerID
	m.credential("expired", "certification", of, upgradeScopes, http.StatusUnauthorized, "--expires", time.Now().Add(2*time.Second).UTC().Format(time.RFC3339))
	_, revoked := m.credential("revoked", "certification", of, upgradeScopes, http.StatusUnauthorized)
	m.operate("credential", "revoke", revoked)
	m.credential("documents only", "certification", of, "ecf.read", http.StatusForbidden)
	_, old := m.credential("rotated", "certification", of, upgradeScopes, http.StatusUnauthorized)
	key, _ := m.operate("credential", "rotate", old, "--overlap", "0s")["api_key"].(string)
	m.f.Credentials = append(m.f.Credentials, fixtureCredential{Name: "successor", Environment: "certification", TaxpayerID: of, APIKey: key, Status: http.StatusOK})
}

// endpoints makes an endpoint through the API, and another that is disabled.
func (m *fixtureMaker) endpoints() {
	t := m.t
	creation := fixtureCreation{
		Credential: m.issuer.Name, Resource: "webhook-endpoints", IdempotencyKey: "key-endpoint",
		Request: `{"url":"` + m.hooks.url + `/events","events":["*"],"description":"ERP"}`,
	}
	got := m.issuer.do(t, m.base, http.MethodPost, creation.Resource, creation.Request, "Idempotency-Key", creation.IdempotencyKey)
	if got.Status != http.StatusCreated {
		t.Fatalf("endpoint: %d %s", got.Status, got.Body)
	}
	creation.Status, creation.Location, creation.Answer = got.Status, got.Header.Get("Location"), got.Body
	m.f.Creations = append(m.f.Creations, creation)
	var made struct{ Data struct{ ID, Secret string } }
	decodeJSON(t, got.Body, &made)
	m.f.Webhook.ID, m.f.Webhook.Secret = made.Data.ID, made.Data.Secret
	m.hooks.trust(made.Data.Secret)

	gone := newHookListener(t, "")
	gone.answer(http.StatusGone)
	m.operate("webhook", "create", "--taxpayer", m.issuer.TaxpayerID, "--environment", "certification", "--url", gone.url,
		"--event", "fiscal_document.rejected", "--webhook-allow-private")
}

// rule sets a fault of the simulator for the next count calls; 0 means all calls.
func (m *fixtureMaker) rule(match, action map[string]any, count int) {
	m.t.Helper()
	m.sim.call(m.t, http.MethodPost, "/rules", map[string]any{"match": match, "action": action, "count": count})
}

func service(name string) map[string]any { return map[string]any{"service": name} }

func verdict(code int, text string) map[string]any {
	return map[string]any{"fault": "F17", "verdict": map[string]any{"code": code, "used": true, "messages": []any{map[string]any{"code": 90101, "text": text}}}}
}

// finals creates documents with a final status.
func (m *fixtureMaker) finals() {
	m.create(m.issuer, sale{externalID: "accepted-31", kind: "31", buyer: upgradeBuyer}, "accepted")
	m.create(m.issuer, sale{externalID: "delivered", kind: "31", buyer: upgradeReceiver}, "delivered")
	m.create(m.issuer, sale{externalID: "accepted-32", kind: "32"}, "accepted")
	m.create(m.issuer, sale{externalID: "large-32", kind: "32", buyer: upgradeBuyer, large: true}, "accepted")
	m.rule(service("reception"), verdict(4, "La dirección del comprador no coincide."), 1)
	m.create(m.issuer, sale{externalID: "conditional-31", kind: "31", buyer: upgradeBuyer}, "accepted_conditional")
	m.rule(service("reception"), verdict(2, "El comprador no existe."), 1)
	m.create(m.issuer, sale{externalID: "rejected-31", kind: "31", buyer: upgradeBuyer}, "rejected")
	m.rule(service("rfce"), verdict(2, "El total no coincide."), 1)
	m.create(m.issuer, sale{externalID: "rejected-32", kind: "32"}, "rejected")
}

// response sends the buyer's commercial rejection of the delivered document, and the
// same response through a source.
func (m *fixtureMaker) response() {
	t := m.t
	read := m.issuer.document(t, m.base, "delivered")
	var pushed struct {
		XML    string `json:"xml"`
		Status int    `json:"status"`
	}
	decodeJSON(t, m.sim.call(t, http.MethodPost, "/peers/"+upgradeReceiver+"/send-acecf", map[string]any{
		"url": m.base, "auth_url": m.base, "encf": read.ENCF, "issuer": upgradeIssuer, "reject": true, "reason": "Precio distinto",
	}), &pushed)
	if pushed.Status != http.StatusOK {
		t.Fatalf("commercial response: %+v", pushed)
	}
	made := m.operate("source", "create", "--taxpayer", m.issuer.TaxpayerID, "--environment", "certification", "--base-url", m.base)
	m.f.Source = fixtureSource{MessageID: "msg_1", Message: commercialResponse(read.ENCF, pushed.XML)}
	m.f.Source.ID, _ = made["id"].(string)
	m.f.Source.Secret, _ = made["secret"].(string)
	if got := m.f.Source.send(t, m.base); got.Status != http.StatusAccepted {
		t.Fatalf("source: %d %s", got.Status, got.Body)
	}
}

// fence adds two numbers to the witness file, so that the range is fenced as after
// the restore of a backup.
func (m *fixtureMaker) fence() {
	t, path := m.t, filepath.Join(m.shared[1], "witness-certification")
	record := "sent " + upgradeFenced + " 31 1 "
	witness := string(readFile(t, path))
	if !strings.Contains(witness, record+"1 ") {
		t.Fatalf("the witness has no line %q:\n%s", record, witness)
	}
	record += strconv.Itoa(upgradeWitnessed)
	writeFile(t, path, []byte(witness+fmt.Sprintf("%s %08x\n", record, crc32.ChecksumIEEE([]byte(record)))))
}

// unnumbered creates a document without a number: the clock of the authority is
// wrong at first, and then its taxpayer has no address.
func (m *fixtureMaker) unnumbered(c fixtureCredential) {
	t := m.t
	m.sim.call(t, http.MethodPut, "/config", map[string]any{"clock_skew": "10m"})
	m.create(m.issuer, sale{externalID: "skew-32", kind: "32"}, "accepted")
	m.create(c, sale{externalID: "unnumbered", kind: "32"}, "queued")
	m.final["unnumbered"] = "accepted"
	m.stage(c, "unnumbered", "issue")
	m.operate("taxpayer", "update", c.TaxpayerID, "--address", "")
	m.sim.call(t, http.MethodPut, "/config", map[string]any{"clock_skew": "0s"})
}

// A waitingDocument is a line of `work list`.
type waitingDocument struct {
	ID         string `json:"id"`
	ExternalID string `json:"external_id"`
	Stage      string `json:"stage"`
	Attempt    int64  `json:"attempt"`
}

// stage waits until an attempt of a stage has failed for a document.
func (m *fixtureMaker) stage(c fixtureCredential, externalID, stage string) {
	m.t.Helper()
	harness.Eventually(m.t, time.Minute, externalID+" waits at "+stage, func() bool {
		var all []waitingDocument
		harness.Run(m.t, harness.Program(m.t), &all, append([]string{"work", "list", "--taxpayer", c.TaxpayerID, "--environment", "certification"}, m.shared...)...)
		return slices.ContainsFunc(all, func(w waitingDocument) bool {
			return w.ExternalID == externalID && w.Stage == stage && w.Attempt > 1
		})
	})
}

// waiting creates documents that were sent and have no verdict, and one that its
// buyer does not accept.
func (m *fixtureMaker) waiting() {
	m.rule(map[string]any{"peer": upgradeDeaf}, map[string]any{"fault": "peer", "variant": "500"}, 0)
	m.create(m.issuer, sale{externalID: "undelivered", kind: "31", buyer: upgradeDeaf}, "accepted")
	m.final["undelivered"] = "delivered"
	m.stage(m.issuer, "undelivered", "deliver")

	// The look-ups fail, so that the documents stay in doubt.
	for _, lookup := range []string{"trackids", "state", "rfce_lookup"} {
		m.rule(service(lookup), map[string]any{"fault": "F05"}, 0)
	}
	lost := map[string]any{"fault": "F02", "store": false}
	m.rule(service("reception"), lost, 2)
	m.rule(service("rfce"), lost, 1)
	resolved := m.create(m.issuer, sale{externalID: "resolved-31", kind: "31", buyer: upgradeBuyer}, "outcome_unknown")
	m.operate("work", "resolve", resolved.ID, "--as", "accepted", "--evidence", "Oficina virtual")
	for _, s := range []sale{{externalID: "unknown-31", kind: "31", buyer: upgradeBuyer}, {externalID: "unknown-32", kind: "32"}} {
		m.create(m.issuer, s, "outcome_unknown")
		m.final[s.externalID] = "accepted"
	}
	m.rule(service("reception"), map[string]any{"fault": "F11"}, 1)
	m.create(m.issuer, sale{externalID: "processing", kind: "31", buyer: upgradeBuyer}, "processing")
	m.hooks.answer(http.StatusServiceUnavailable)
	m.rule(service("result"), map[string]any{"fault": "F05"}, 0)
	m.create(m.issuer, sale{externalID: "submitted", kind: "31", buyer: upgradeReceiver}, "submitted")
	m.final["processing"], m.final["submitted"] = "accepted", "delivered"
	for name, stage := range map[string]string{"unknown-31": "reconcile", "unknown-32": "reconcile", "processing": "poll", "submitted": "poll"} {
		m.stage(m.issuer, name, stage)
	}
}

// outage stops the authority. New documents are signed and wait.
func (m *fixtureMaker) outage() {
	m.sim.Stop(m.t)
	m.create(m.issuer, sale{externalID: "queued-31", kind: "31", buyer: upgradeBuyer}, "queued")
	m.create(m.issuer, sale{externalID: "queued-32", kind: "32"}, "queued")
	m.final["queued-31"], m.final["queued-32"] = "accepted", "accepted"
	m.stage(m.issuer, "queued-31", "submit")
	m.stage(m.issuer, "queued-32", "submit")
	harness.Eventually(m.t, time.Minute, "a contingency begins", func() bool {
		return strings.Contains(m.issuer.get(m.t, m.base, "events?limit=100"), "taxpayer.contingency_started")
	})
}

// events records the feed, and which of its events are delivered to the endpoint and
// which wait.
func (m *fixtureMaker) events() {
	t, feed, hook := m.t, &m.f.Feed, &m.f.Webhook
	feed.Read = 5
	feed.Events, feed.Cursor = m.issuer.feed(t, m.base, "", "5")
	var attempts []struct {
		EventID string  `json:"event_id"`
		Error   *string `json:"error"`
	}
	harness.Run(t, harness.Program(t), &attempts, append([]string{"webhook", "deliveries", hook.ID}, m.shared...)...)
	for _, a := range attempts {
		switch {
		case a.Error == nil:
			hook.Delivered = append(hook.Delivered, a.EventID)
		case !slices.Contains(hook.Pending, a.EventID):
			hook.Pending = append(hook.Pending, a.EventID)
		}
	}
	if len(hook.Delivered) == 0 || len(hook.Pending) < 2 {
		t.Fatalf("%d events were delivered and %d wait", len(hook.Delivered), len(hook.Pending))
	}
}
