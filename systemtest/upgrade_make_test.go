package systemtest

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"flag"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"software.sslmate.com/src/go-pkcs12"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

var makeUpgradeFixture = flag.Bool("make-upgrade-fixture", false, "write testdata/upgrade with the program of this tree")

// A fixtureMaker creates a database with documents in every state, and records the
// answers to clients.
type fixtureMaker struct {
	t       *testing.T
	shared  []string
	scratch string // signer.p12, password and roots.pem
	sim     *simulatorProcess
	base    string
	hooks   *hookListener
	final   map[string]string // status after the upgrade by external id, where it differs
	issuer  fixtureCredential
	f       upgradeFixture
}

// TestMakeUpgradeFixture writes the fixture of TestUpgrade with the program of
// this tree, or with the one that TEST_PROGRAM names. It does nothing without
// the flag: testdata/upgrade/README.md says when to use it.
func TestMakeUpgradeFixture(t *testing.T) {
	t.Parallel()
	if !*makeUpgradeFixture {
		t.Skip("the fixture is written with -make-upgrade-fixture")
	}
	for i, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			data, address := t.TempDir(), ""
			if engine == "sqlite" {
				address = "sqlite:" + filepath.Join(data, "fiscalhub.db")
			} else {
				address = storetest.Postgres(t).Empty(t)
			}
			m := &fixtureMaker{t: t, shared: []string{"--data", data, "--database", address}, scratch: t.TempDir(), final: map[string]string{}}
			m.f.Webhook.Listen = []string{"127.83.19.1:18931", "127.83.19.2:18932"}[i]
			m.certificate()
			m.sandbox()
			m.certification()
			m.write(engine, data, address)
		})
	}
}

// certificate makes the signer's certificate under a root of its own. Both are
// valid for as long as the ranges.
func (m *fixtureMaker) certificate() {
	t := m.t
	end, err := time.Parse(time.DateOnly, upgradeExpires)
	if err != nil {
		t.Fatal(err)
	}
	issue := func(template, parent *x509.Certificate, key, signer *rsa.PrivateKey) *x509.Certificate {
		template.NotBefore, template.NotAfter = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), end
		der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
		if err != nil {
			t.Fatal(err)
		}
		made, err := x509.ParseCertificate(der)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	rootKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{Country: []string{"DO"}, CommonName: "Autoridad de Prueba"},
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	root := issue(template, template, rootKey, rootKey)
	leaf := issue(&x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{Country: []string{"DO"}, CommonName: "Persona de Prueba", SerialNumber: "IDCDO-" + upgradeSigner},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageContentCommitment | x509.KeyUsageKeyEncipherment,
	}, root, key, rootKey)
	p12, err := pkcs12.Modern.Encode(key, leaf, []*x509.Certificate{root}, "prueba")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, m.file("signer.p12"), p12)
	writeFile(t, m.file("password"), []byte("prueba\n"))
	writeFile(t, m.file("roots.pem"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: root.Raw}))
}

func (m *fixtureMaker) file(name string) string { return filepath.Join(m.scratch, name) }

// operate runs an operator's command on the database.
func (m *fixtureMaker) operate(args ...string) map[string]any {
	m.t.Helper()
	var answer map[string]any
	harness.Run(m.t, harness.Program(m.t), &answer, append(args, m.shared...)...)
	return answer
}

func (m *fixtureMaker) taxpayer(rnc, name string) string {
	m.t.Helper()
	id, _ := m.operate("taxpayer", "create", "--rnc", rnc, "--legal-name", name, "--trade-name", "Palma", "--address", "Calle Los Framboyanes No. 12",
		"--phone", "809-555-0112", "--email", "ventas@palma.example", "--electronic-since", "2026-01-01")["id"].(string)
	return id
}

// credential creates an API key. Status is the answer to a list of invoices with it.
func (m *fixtureMaker) credential(name, environment, taxpayer, scopes string, status int, more ...string) (c fixtureCredential, id string) {
	m.t.Helper()
	made := m.operate(append([]string{"credential", "create", "--taxpayer", taxpayer, "--environment", environment, "--scope", scopes}, more...)...)
	id, _ = made["id"].(string)
	c = fixtureCredential{Name: name, Environment: environment, TaxpayerID: taxpayer, Status: status}
	c.APIKey, _ = made["api_key"].(string)
	m.f.Credentials = append(m.f.Credentials, c)
	return c, id
}

const upgradeScopes = "invoices.write,invoices.read,ecf.submit,ecf.read,webhooks.manage"

// serve starts a service on the database; stop ends it cleanly.
func (m *fixtureMaker) serve(args []string) (stop func()) {
	server := harness.Serve(m.t, args...)
	m.base = server.Base
	return func() {
		server.Stop(m.t)
	}
}

// create creates an invoice, records request and answer, and waits until the document
// has a status. It does not wait for an empty status.
func (m *fixtureMaker) create(c fixtureCredential, s sale, status string) documentRead {
	m.t.Helper()
	got := c.create(m.t, m.base, s)
	if got.Status != http.StatusAccepted {
		m.t.Fatalf("%s: %d %s", s.externalID, got.Status, got.Body)
	}
	m.f.Creations = append(m.f.Creations, fixtureCreation{
		Credential: c.Name, Resource: "invoices", IdempotencyKey: "key-" + s.externalID, Scenario: s.scenario, Request: s.request(),
		Status: got.Status, Location: got.Header.Get("Location"), Answer: got.Body,
	})
	m.f.Invoices = append(m.f.Invoices, fixtureInvoice{Credential: c.Name, ID: got.ID(), ExternalID: s.externalID})
	if status == "" {
		return c.document(m.t, m.base, s.externalID)
	}
	return c.becomes(m.t, m.base, s.externalID, status)
}

// note records the invoices of an environment before the service stops.
func (m *fixtureMaker) note(environment string) {
	m.t.Helper()
	var waiting []waitingDocument
	harness.Run(m.t, harness.Program(m.t), &waiting, append([]string{"work", "list", "--environment", environment}, m.shared...)...)
	stages := map[string]string{}
	for _, w := range waiting {
		stages[w.ID] = w.Stage
	}
	for i := range m.f.Invoices {
		inv := &m.f.Invoices[i]
		c := m.f.credential(m.t, inv.Credential)
		if c.Environment != environment {
			continue
		}
		read := c.document(m.t, m.base, inv.ExternalID)
		inv.DocumentID, inv.ENCF, inv.TrackID = read.ID, read.ENCF, read.TrackID
		inv.Status, inv.Final, inv.Stage = read.Status, read.Status, stages[read.ID]
		inv.Invoice, inv.Document = c.data(m.t, m.base, "invoices/"+inv.ID), c.data(m.t, m.base, "fiscal-documents/"+read.ID)
		if final := m.final[inv.ExternalID]; final != "" {
			inv.Final = final
		}
		if read.ENCF == "" || environment == "sandbox" {
			continue
		}
		if got := c.do(m.t, m.base, http.MethodGet, "fiscal-documents/"+read.ID+"/xml", ""); got.Status == http.StatusOK {
			inv.XMLSHA256 = digest(got.Body)
		}
		if slices.Contains([]string{"accepted-31", "accepted-32", "delivered"}, inv.ExternalID) {
			inv.PDFSHA256 = digest(c.get(m.t, m.base, "fiscal-documents/"+read.ID+"/pdf"))
		}
	}
}

// sandbox creates documents in the sandbox: one for each scenario, and one that is
// not final when the service stops.
func (m *fixtureMaker) sandbox() {
	taxpayer := m.taxpayer(upgradeIssuer, "Distribuidora Palma Clara, SRL")
	c, _ := m.credential("sandbox", "sandbox", taxpayer, upgradeScopes, http.StatusOK)
	stop := m.serve(sandboxArgs(m.shared))
	m.create(c, sale{externalID: "sandbox-plain", kind: "32"}, "accepted")
	for _, scenario := range []string{"submitted", "processing", "accepted", "accepted_conditional", "rejected", "outcome_unknown", "delivered", "validation_failed"} {
		m.create(c, sale{externalID: "sandbox-" + scenario, kind: "31", buyer: upgradeBuyer, scenario: scenario}, "")
	}
	for _, inv := range m.f.Invoices[1:] {
		c.becomes(m.t, m.base, inv.ExternalID, strings.TrimPrefix(inv.ExternalID, "sandbox-"))
	}
	m.create(c, sale{externalID: "sandbox-walking", kind: "31", buyer: upgradeBuyer, scenario: "delivered"}, "")
	m.final["sandbox-walking"] = "delivered"
	m.note("sandbox")
	stop()
}

// write stores the fixture.
func (m *fixtureMaker) write(engine, data, address string) {
	t, dir := m.t, upgradeDir(engine)
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	harness.Run(t, harness.Program(t), &m.f.Ranges, append([]string{"sequence", "list"}, m.shared...)...)
	for _, name := range []string{"master.key", "witness-certification"} {
		writeFile(t, filepath.Join(dir, name), readFile(t, filepath.Join(data, name)))
	}
	writeFile(t, filepath.Join(dir, "roots.pem"), readFile(t, m.file("roots.pem")))
	expected, err := json.MarshalIndent(m.f, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(dir, "expected.json"), append(expected, '\n'))
	if engine == "sqlite" {
		if _, err := os.Stat(filepath.Join(data, "fiscalhub.db-wal")); err == nil {
			t.Fatal("the database has a write-ahead log after a clean stop")
		}
		m.compress(filepath.Join(dir, "fiscalhub.db.gz"), readFile(t, filepath.Join(data, "fiscalhub.db")))
		return
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	dump, err := exec.CommandContext(t.Context(), "pg_dump", "--no-owner", "--no-privileges", "--inserts", "--rows-per-insert=50",
		"--host", u.Query().Get("host"), "--username", u.Query().Get("user"), strings.TrimPrefix(u.Path, "/")).Output()
	if err != nil {
		t.Fatalf("pg_dump: %v", err)
	}
	m.compress(filepath.Join(dir, "fiscalhub.sql.gz"), dump)
}

func (m *fixtureMaker) compress(path string, content []byte) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = z.Write(content)
	if err == nil {
		err = z.Close()
	}
	if err != nil {
		m.t.Fatal(err)
	}
	writeFile(m.t, path, out.Bytes())
	m.t.Logf("%s: %d bytes", path, out.Len())
}
