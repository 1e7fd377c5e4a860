package systemtest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// An upgradeFixture is the content of expected.json: the answers that clients of the
// previous release received. testdata/upgrade has one folder for each engine.
type upgradeFixture struct {
	Credentials []fixtureCredential `json:"credentials"`
	Creations   []fixtureCreation   `json:"creations"`
	Invoices    []fixtureInvoice    `json:"invoices"`
	Ranges      []fixtureRange      `json:"ranges"`
	Feed        fixtureFeed         `json:"feed"`
	Webhook     fixtureWebhook      `json:"webhook"`
	Source      fixtureSource       `json:"source"`
}

// A fixtureCredential is an API key, and the status that a list of invoices is
// answered with. Tests find it by Name.
type fixtureCredential struct {
	Name        string `json:"name"`
	Environment string `json:"environment"`
	TaxpayerID  string `json:"taxpayer_id"`
	APIKey      string `json:"api_key"`
	Status      int    `json:"status"`
}

// A fixtureCreation is a request with an idempotency key, and its stored answer.
type fixtureCreation struct {
	Credential     string `json:"credential"`
	Resource       string `json:"resource"`
	IdempotencyKey string `json:"idempotency_key"`
	Scenario       string `json:"scenario,omitempty"`
	Request        string `json:"request"`
	Status         int    `json:"status"`
	Location       string `json:"location"`
	Answer         string `json:"answer"`
}

// A fixtureInvoice is an invoice and its fiscal document before the upgrade. Invoice
// and Document are the members data of the answers, Stage is the stage of the job,
// and Final is the status that the document must reach after the upgrade.
type fixtureInvoice struct {
	Credential string          `json:"credential"`
	ID         string          `json:"id"`
	DocumentID string          `json:"document_id"`
	ExternalID string          `json:"external_id"`
	ENCF       string          `json:"encf,omitempty"`
	TrackID    string          `json:"track_id,omitempty"`
	Status     string          `json:"status"`
	Final      string          `json:"final"`
	Stage      string          `json:"stage,omitempty"`
	Invoice    json.RawMessage `json:"invoice"`
	Document   json.RawMessage `json:"document"`
	XMLSHA256  string          `json:"xml_sha256,omitempty"`
	PDFSHA256  string          `json:"pdf_sha256,omitempty"`
}

// A fixtureRange is a range of numbers as `range list` shows it.
type fixtureRange struct {
	ID         string `json:"id"`
	TaxpayerID string `json:"taxpayer_id"`
	Type       string `json:"type"`
	Next       int64  `json:"next"`
	Fenced     bool   `json:"fenced"`
}

// A fixtureFeed is the feed of the first taxpayer. Cursor is the cursor after the
// first Read events.
type fixtureFeed struct {
	Read   int      `json:"read"`
	Cursor string   `json:"cursor"`
	Events []string `json:"events"`
}

// A fixtureWebhook is an endpoint with deliveries that wait. Its server listens
// at an address of the loopback network that no other program uses.
type fixtureWebhook struct {
	ID        string   `json:"id"`
	Listen    string   `json:"listen"`
	Secret    string   `json:"secret"`
	Delivered []string `json:"delivered"`
	Pending   []string `json:"pending"`
}

// A fixtureSource is a source of inbound events, and a message that it sent.
type fixtureSource struct {
	ID        string `json:"id"`
	Secret    string `json:"secret"`
	MessageID string `json:"message_id"`
	Message   string `json:"message"`
}

func (f *upgradeFixture) credential(t *testing.T, name string) fixtureCredential {
	t.Helper()
	return pick(t, f.Credentials, func(c fixtureCredential) bool { return c.Name == name }, name)
}

func (f *upgradeFixture) invoice(t *testing.T, externalID string) fixtureInvoice {
	t.Helper()
	return pick(t, f.Invoices, func(inv fixtureInvoice) bool { return inv.ExternalID == externalID }, externalID)
}

// pick returns the first of all that is meant by name.
func pick[T any](t *testing.T, all []T, is func(T) bool, name string) T {
	t.Helper()
	i := slices.IndexFunc(all, is)
	if i < 0 {
		t.Fatalf("the fixture has no %T %q", *new(T), name)
	}
	return all[i]
}

// upgradeDir returns the folder of an engine's fixture.
func upgradeDir(engine string) string { return filepath.Join("testdata", "upgrade", engine) }

// loadUpgradeFixture copies the fixture of an engine into a new data folder and
// database. Shared are the flags that name both.
func loadUpgradeFixture(t *testing.T, engine string) (fixture *upgradeFixture, shared []string) {
	t.Helper()
	data := t.TempDir()
	for _, name := range []string{"master.key", "witness-certification"} {
		writeFile(t, filepath.Join(data, name), readFile(t, filepath.Join(upgradeDir(engine), name)))
	}
	fixture = &upgradeFixture{}
	if err := json.Unmarshal(readFile(t, filepath.Join(upgradeDir(engine), "expected.json")), fixture); err != nil {
		t.Fatal(err)
	}
	if engine == "sqlite" {
		path := filepath.Join(data, "fiscalhub.db")
		writeFile(t, path, gunzip(t, filepath.Join(upgradeDir(engine), "fiscalhub.db.gz")))
		return fixture, []string{"--data", data, "--database", "sqlite:" + path}
	}
	address := storetest.Postgres(t).Empty(t)
	loadDump(t, address, string(gunzip(t, filepath.Join(upgradeDir(engine), "fiscalhub.sql.gz"))))
	return fixture, []string{"--data", data, "--database", address}
}

// dumpSettings are the lines of a dump that other releases of PostgreSQL do not
// know: settings of the session, and commands of psql.
var dumpSettings = regexp.MustCompile(`(?m)^(\\|SET |SELECT pg_catalog\.set_config).*$`)

// loadDump runs the statements of a dump.
func loadDump(t *testing.T, address, dump string) {
	t.Helper()
	db := storetest.OpenSQL(t, address)
	if _, err := db.ExecContext(t.Context(), dumpSettings.ReplaceAllString(dump, "")); err != nil {
		t.Fatalf("load the dump: %v", err)
	}
}

// client returns a client with the credential.
func (c fixtureCredential) client() *harness.Client {
	return &harness.Client{Taxpayer: c.TaxpayerID, Key: c.APIKey, HTTP: harness.HTTP}
}

// do sends a request as the holder of a credential. Resource is relative to the
// taxpayer. Headers come in pairs.
func (c fixtureCredential) do(t *testing.T, base, method, resource, body string, header ...string) harness.Answer {
	t.Helper()
	got, err := c.client().Send(t.Context(), method, c.client().URL(base, resource), body, header...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// get reads a resource that must exist.
func (c fixtureCredential) get(t *testing.T, base, resource string) string {
	t.Helper()
	return c.client().Read(t, c.client().URL(base, resource))
}

// A documentRead is a fiscal document in the API, as far as the tests need it.
type documentRead struct {
	ID         string `json:"id"`
	InvoiceID  string `json:"invoice_id"`
	ExternalID string `json:"external_id"`
	Status     string `json:"status"`
	ENCF       string `json:"encf"`
	TrackID    string `json:"track_id"`
}

// document reads the fiscal document of an invoice.
func (c fixtureCredential) document(t *testing.T, base, externalID string) documentRead {
	t.Helper()
	var read []documentRead
	decodeJSON(t, string(c.data(t, base, "fiscal-documents?external_id="+externalID)), &read)
	if len(read) != 1 {
		t.Fatalf("%d documents have the external id %s", len(read), externalID)
	}
	return read[0]
}

// data reads the member data of an answer. It removes the address of the service,
// which changes with every start.
func (c fixtureCredential) data(t *testing.T, base, resource string) json.RawMessage {
	t.Helper()
	var envelope struct {
		Data json.RawMessage `json:"data"`
	}
	decodeJSON(t, strings.ReplaceAll(c.get(t, base, resource), base, ""), &envelope)
	return envelope.Data
}

// feed reads the ids of all events after a cursor, in pages of limit events, and the
// cursor after the first page.
func (c fixtureCredential) feed(t *testing.T, base, cursor, limit string) (ids []string, first string) {
	t.Helper()
	events, first := readFeed(t, func(resource string) string { return c.get(t, base, resource) }, cursor, limit)
	for _, e := range events {
		var event struct{ ID string }
		decodeJSON(t, string(e), &event)
		ids = append(ids, event.ID)
	}
	return ids, first
}

// readFeed reads all events after a cursor, in pages of limit events, and the cursor after
// the first page.
func readFeed(t *testing.T, read func(resource string) string, cursor, limit string) (events []json.RawMessage, first string) {
	t.Helper()
	for {
		resource := "events?limit=" + limit
		if cursor != "" {
			resource += "&cursor=" + cursor
		}
		var page struct {
			Data []json.RawMessage `json:"data"`
			Meta struct {
				NextCursor string `json:"next_cursor"`
				HasMore    bool   `json:"has_more"`
			} `json:"meta"`
		}
		decodeJSON(t, read(resource), &page)
		events = append(events, page.Data...)
		if cursor = page.Meta.NextCursor; first == "" {
			first = cursor
		}
		if !page.Meta.HasMore {
			return events, first
		}
	}
}

func decodeJSON(t *testing.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

func gunzip(t *testing.T, path string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(readFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return content
}
