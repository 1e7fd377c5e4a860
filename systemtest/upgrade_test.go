package systemtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// A service opens and migrates a database of the previous release. Clients must get
// the same answers, and waiting documents must reach their final status with the
// numbers that they have.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			fixture, shared := loadUpgradeFixture(t, engine)
			u := &upgrade{fixture: fixture, shared: shared}
			u.sandbox(t)
			u.certification(t, filepath.Join(upgradeDir(engine), "roots.pem"))
		})
	}
}

// An upgrade is a fixture and the service that runs on it.
type upgrade struct {
	fixture *upgradeFixture
	shared  []string // flags that name the data folder and the database
	base    string   // address of the service
}

// sandbox checks the sandbox after the upgrade, and stops it.
func (u *upgrade) sandbox(t *testing.T) {
	server := harness.Serve(t, sandboxArgs(u.shared)...)
	u.base = server.Base
	u.credentialsAnswer(t, "sandbox")
	u.creationsReplay(t, "sandbox")
	u.invoicesRead(t, "sandbox")
	u.documentsEnd(t, "sandbox")
	server.Stop(t)
}

// certification checks certification after the upgrade. The authority answers only
// after the stored state has been read.
func (u *upgrade) certification(t *testing.T, rootsFile string) {
	roots := readFile(t, rootsFile)
	sim := startSimulator(t, upgradeAuthority(roots))
	trust := filepath.Join(t.TempDir(), "trust.pem")
	writeFile(t, trust, []byte(string(roots)+sim.call(t, http.MethodGet, "/trust", nil)))
	authority := newGatedAuthority(t, sim.authority, u.fixture.Invoices)
	hooks := newHookListener(t, u.fixture.Webhook.Listen)
	if hooks != nil {
		hooks.trust(u.fixture.Webhook.Secret)
	}
	args := certificationArgs(u.shared, authority.url, trust)
	server := harness.Serve(t, args...)
	u.base = server.Base
	u.credentialsAnswer(t, "certification")
	u.creationsReplay(t, "certification")
	u.invoicesRead(t, "certification")
	u.artifactsRead(t)
	u.feedReads(t)
	u.rangesRead(t)
	u.sourceIsKnown(t)

	authority.open()
	u.addressReturns(t)
	u.documentsEnd(t, "certification")
	u.numbersGoOn(t)
	u.fenceOpens(t, args)
	u.authorityHasOneContent(t, sim)
	u.creationsReplay(t, "certification")
	u.feedReads(t)
	if hooks == nil {
		t.Log("SKIPPED: another program listens at the address of the fixture's webhook")
		return
	}
	u.webhookGoesOn(t, hooks)
}

// of returns a credential, and whether it belongs to an environment.
func (u *upgrade) of(t *testing.T, name, environment string) (fixtureCredential, bool) {
	c := u.fixture.credential(t, name)
	return c, c.Environment == environment
}

// credentialsAnswer checks that valid keys work, and that ended keys do not.
func (u *upgrade) credentialsAnswer(t *testing.T, environment string) {
	t.Helper()
	for _, c := range u.fixture.Credentials {
		if c.Environment != environment {
			continue
		}
		if got := c.do(t, u.base, http.MethodGet, "invoices?limit=1", ""); got.Status != c.Status {
			t.Errorf("credential %s: %d %s, want %d", c.Name, got.Status, got.Body, c.Status)
		}
	}
}

// creationsReplay checks that each idempotency key gets its stored answer, byte for
// byte.
func (u *upgrade) creationsReplay(t *testing.T, environment string) {
	t.Helper()
	for _, want := range u.fixture.Creations {
		c, ok := u.of(t, want.Credential, environment)
		if !ok {
			continue
		}
		header := []string{"Idempotency-Key", want.IdempotencyKey}
		if want.Scenario != "" {
			header = append(header, "Sandbox-Scenario", want.Scenario)
		}
		got := c.do(t, u.base, http.MethodPost, want.Resource, want.Request, header...)
		if got.Status != want.Status || got.Header.Get("Location") != want.Location || got.Header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("%s: %d at %q, replayed %q; want %d at %q", want.IdempotencyKey,
				got.Status, got.Header.Get("Location"), got.Header.Get("Idempotency-Replayed"), want.Status, want.Location)
		}
		if diff := cmp.Diff(want.Answer, got.Body); diff != "" {
			t.Errorf("%s (-stored +replayed):\n%s", want.IdempotencyKey, diff)
		}
	}
}

// invoicesRead checks that invoices and documents have the values of before. They
// may have new members.
func (u *upgrade) invoicesRead(t *testing.T, environment string) {
	t.Helper()
	for _, want := range u.fixture.Invoices {
		c, ok := u.of(t, want.Credential, environment)
		if !ok || want.ExternalID == "sandbox-walking" { // its status changed while the fixture was made
			continue
		}
		contains(t, want.ExternalID, want.Invoice, c.data(t, u.base, "invoices/"+want.ID))
		contains(t, want.ExternalID, want.Document, c.data(t, u.base, "fiscal-documents/"+want.DocumentID))
	}
}

// contains checks that an object has every member of an older one, with the same
// value.
func contains(t *testing.T, what string, older, newer json.RawMessage) {
	t.Helper()
	var want, got map[string]any
	decodeJSON(t, string(older), &want)
	decodeJSON(t, string(newer), &got)
	for name, value := range want {
		if name == "status_messages" {
			value = valuesIn(got[name], value)
		}
		if !reflect.DeepEqual(got[name], value) {
			t.Errorf("%s: %s is %v, was %v", what, name, got[name], value)
		}
	}
}

// valuesIn returns newer when it has every value of older, in the same order, and
// otherwise older. Explanations may be added to messages.
func valuesIn(newer, older any) any {
	list, _ := newer.([]any)
	wanted, _ := older.([]any)
	for _, value := range list {
		if len(wanted) > 0 && value == wanted[0] {
			wanted = wanted[1:]
		}
	}
	if len(wanted) > 0 {
		return older
	}
	return newer
}

// artifactsRead checks that signed documents and printed pages have not changed.
func (u *upgrade) artifactsRead(t *testing.T) {
	t.Helper()
	for _, inv := range u.fixture.Invoices {
		c := u.fixture.credential(t, inv.Credential)
		for name, want := range map[string]string{"xml": inv.XMLSHA256, "pdf": inv.PDFSHA256} {
			if want == "" {
				continue
			}
			if got := digest(c.get(t, u.base, "fiscal-documents/"+inv.DocumentID+"/"+name)); got != want {
				t.Errorf("%s: the %s has the digest %s, had %s", inv.ExternalID, name, got, want)
			}
		}
	}
}

// feedReads checks that the feed begins with the same events in the same order, and
// that a cursor of before the upgrade continues at the same event.
func (u *upgrade) feedReads(t *testing.T) {
	t.Helper()
	issuer, want := u.fixture.credential(t, "issuer"), u.fixture.Feed
	all, _ := issuer.feed(t, u.base, "", "100")
	if diff := cmp.Diff(want.Events, all[:min(len(all), len(want.Events))]); diff != "" {
		t.Errorf("the feed (-before +after):\n%s", diff)
	}
	rest, _ := issuer.feed(t, u.base, want.Cursor, "100")
	if diff := cmp.Diff(want.Events[want.Read:], rest[:min(len(rest), len(want.Events)-want.Read)]); diff != "" {
		t.Errorf("the feed after the cursor (-before +after):\n%s", diff)
	}
}

// rangesRead checks that ranges have the same next numbers, and that the service
// refuses creations on a fenced range.
func (u *upgrade) rangesRead(t *testing.T) {
	t.Helper()
	var got []fixtureRange
	harness.Run(t, harness.Program(t), &got, append([]string{"sequence", "list"}, u.shared...)...)
	if diff := cmp.Diff(u.fixture.Ranges, got); diff != "" {
		t.Errorf("ranges (-before +after):\n%s", diff)
	}
	refused := u.fixture.credential(t, "fenced").create(t, u.base, sale{externalID: "new-fenced", kind: "31", buyer: upgradeBuyer})
	if refused.Status != http.StatusConflict || !strings.Contains(refused.Body, "sequence.fenced") {
		t.Errorf("a creation on a fenced range: %d %s", refused.Status, refused.Body)
	}
}

// sourceIsKnown checks that the secret of a source is valid, and that a message of
// before the upgrade is a duplicate.
func (u *upgrade) sourceIsKnown(t *testing.T) {
	t.Helper()
	if got := u.fixture.Source.send(t, u.base); got.Status != http.StatusAccepted || !strings.Contains(got.Body, `"duplicate":true`) {
		t.Errorf("a message that was received before: %d %s", got.Status, got.Body)
	}
}

// addressReturns sets the address of the second taxpayer. Its document waits for
// the address.
func (u *upgrade) addressReturns(t *testing.T) {
	t.Helper()
	harness.Run(t, harness.Program(t), new(any), append([]string{"taxpayer", "update", u.fixture.credential(t, "fenced").TaxpayerID, "--address", "Calle 2"}, u.shared...)...)
}

// documentsEnd checks that each document reaches its final status, with the same
// number and track id.
func (u *upgrade) documentsEnd(t *testing.T, environment string) {
	t.Helper()
	for _, want := range u.fixture.Invoices {
		c, ok := u.of(t, want.Credential, environment)
		if !ok {
			continue
		}
		got := c.becomes(t, u.base, want.ExternalID, want.Final)
		if got.ID != want.DocumentID || want.ENCF != "" && got.ENCF != want.ENCF || want.TrackID != "" && got.TrackID != want.TrackID {
			t.Errorf("%s became %+v, was %s under %s with track id %s", want.ExternalID, got, want.DocumentID, want.ENCF, want.TrackID)
		}
	}
}

// next returns the next number of a taxpayer before the upgrade.
func (u *upgrade) next(t *testing.T, c fixtureCredential, kind string) int64 {
	t.Helper()
	return pick(t, u.fixture.Ranges, func(r fixtureRange) bool { return r.TaxpayerID == c.TaxpayerID && r.Type == kind }, kind).Next
}

// issues checks that a new invoice is accepted with a number.
func (u *upgrade) issues(t *testing.T, c fixtureCredential, s sale, number int64) {
	t.Helper()
	if got := c.create(t, u.base, s); got.Status != http.StatusAccepted {
		t.Fatalf("%s: %d %s", s.externalID, got.Status, got.Body)
	}
	got := c.becomes(t, u.base, s.externalID, "accepted")
	if want := fmt.Sprintf("E%s%010d", s.kind, number); got.ENCF != want {
		t.Errorf("%s has the number %s, want %s", s.externalID, got.ENCF, want)
	}
}

// numbersGoOn checks that new invoices get the next numbers.
func (u *upgrade) numbersGoOn(t *testing.T) {
	t.Helper()
	issuer := u.fixture.credential(t, "issuer")
	u.issues(t, issuer, sale{externalID: "new-31", kind: "31", buyer: upgradeBuyer}, u.next(t, issuer, "31"))
	u.issues(t, issuer, sale{externalID: "new-32", kind: "32"}, u.next(t, issuer, "32"))
}

// fenceOpens checks that reconcile releases the fenced range, and that its next
// number is the one after the last in the witness file.
func (u *upgrade) fenceOpens(t *testing.T, args []string) {
	t.Helper()
	fenced := u.fixture.credential(t, "fenced")
	flags := args[:slices.Index(args, "--rate-limit")]
	harness.Run(t, harness.Program(t), new(any), append([]string{"reconcile", "--taxpayer", fenced.TaxpayerID}, flags...)...)
	u.issues(t, fenced, sale{externalID: "new-fenced", kind: "31", buyer: upgradeBuyer}, upgradeWitnessed+1)
}

// authorityHasOneContent checks that the authority received exactly the expected
// documents, one content for each number. Documents that are final or have a track
// id must not be sent again.
func (u *upgrade) authorityHasOneContent(t *testing.T, sim *simulatorProcess) {
	t.Helper()
	want := map[string]bool{}
	for _, r := range u.fixture.Ranges {
		rnc := upgradeIssuer
		if r.TaxpayerID == u.fixture.credential(t, "fenced").TaxpayerID {
			rnc = upgradeFenced
		}
		number := r.Next
		if r.Fenced {
			number = upgradeWitnessed + 1
		}
		want[fmt.Sprintf("%s E%s%010d", rnc, r.Type, number)] = true // of a new invoice
	}
	for _, name := range []string{"unknown-31", "unknown-32", "queued-31", "queued-32"} {
		want[upgradeIssuer+" "+u.fixture.invoice(t, name).ENCF] = true
	}
	var sent []struct{ RNC, ENCF, SHA256 string }
	decodeJSON(t, sim.call(t, http.MethodGet, "/documents", nil), &sent)
	got, content := map[string]bool{}, map[string]string{}
	for _, d := range sent {
		number := d.RNC + " " + d.ENCF
		if first, again := content[number]; again && first != d.SHA256 {
			t.Errorf("%s has two contents", number)
		}
		got[number], content[number] = true, d.SHA256
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers at the authority (-want +got):\n%s", diff)
	}
}

// webhookGoesOn checks that waiting events are delivered with the same secret, and
// that delivered events are not sent again.
func (u *upgrade) webhookGoesOn(t *testing.T, hooks *hookListener) {
	t.Helper()
	received := func(id string) bool {
		return slices.ContainsFunc(hooks.arrivals(""), func(a arrival) bool { return a.ID == id })
	}
	harness.Eventually(t, time.Minute, "the waiting events are delivered", func() bool {
		return !slices.ContainsFunc(u.fixture.Webhook.Pending, func(id string) bool { return !received(id) })
	})
	for _, id := range u.fixture.Webhook.Delivered {
		if received(id) {
			t.Errorf("event %s was delivered before the upgrade and is sent again", id)
		}
	}
}
