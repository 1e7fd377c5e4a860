package systemtest

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// An env is a simulated authority in this process, and a database with everything
// that a service in another process needs to issue documents to it.
type env struct {
	sim     *simulator.Simulator
	program string   // that the operator's commands run
	dir     string   // of the data folder and the certificates
	address string   // of the database
	shared  []string // flags that name the data folder and the database
	args    []string // flags of the service
	client  *harness.Client
}

func newEnv(t *testing.T, address, profile string) *env {
	t.Helper()
	return newEnvOf(t, harness.Program(t), address, profile)
}

// newEnvOf is newEnv for another program than the one under test.
func newEnvOf(t *testing.T, program, address, profile string) *env {
	t.Helper()
	return newEnvWith(t, envOptions{program: program, address: address, profile: profile})
}

// envOptions are the settings of an env.
type envOptions struct {
	program, address, profile string
	data                      string                          // data folder; empty for one in the folder of the test
	password                  string                          // of the certificate; empty for the default
	wrap                      func(http.Handler) http.Handler // of the authority; may be nil
}

func newEnvWith(t *testing.T, o envOptions) *env {
	t.Helper()
	sim, err := simulator.New(simulator.Options{Now: time.Now, Seed: 1, Config: simulator.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	if err := sim.AddTaxpayer(simulator.Baseline("199000013", "00112345678", "2027-12-31")); err != nil {
		t.Fatal(err)
	}
	if err := sim.SetProfile(o.profile); err != nil {
		t.Fatal(err)
	}
	handler := sim.Handler()
	if o.wrap != nil {
		handler = o.wrap(handler)
	}
	authority := httptest.NewServer(handler)
	t.Cleanup(authority.Close)
	dir := t.TempDir()
	made, err := sim.IssueCertificate(simulator.CertificateRequest{Holder: "00112345678", Password: o.password})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"signer.p12": made.P12, "password": []byte(made.Password), "roots.pem": sim.RootsPEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := &env{sim: sim, program: o.program, dir: dir, address: o.address}
	e.register(t, authority.URL, o.data, "20")
	return e
}

// register creates the taxpayer with its certificate, its ranges and its key. The files of
// the certificate are in the folder of the env.
func (e *env) register(t *testing.T, authority, data, pace string) {
	t.Helper()
	dir := e.dir
	e.shared = []string{"--data", cmp.Or(data, filepath.Join(dir, "data")), "--database", e.address}
	e.args = append(slices.Clone(e.shared),
		"--environment", "certification", "--authority", authority, "--authority-environment", "testecf", "--trust", filepath.Join(dir, "roots.pem"),
		"--pace", pace, "--rate-limit", "0", "--no-bootstrap", "--no-migrate", "--log-level", "error")
	do := func(field string, args ...string) string { return fmt.Sprint(e.operate(t, args...)[field]) }
	taxpayer := do("id", "taxpayer", "create", "--rnc", "199000013", "--legal-name", "Prueba, SRL", "--address", "Calle 1")
	scope := []string{"--taxpayer", taxpayer, "--environment", "certification"}
	do("id", append([]string{"certificate", "import", "--password-file", filepath.Join(dir, "password"), filepath.Join(dir, "signer.p12")}, scope...)...)
	do("id", append([]string{"sequence", "add", "--type", "31", "--from", "1", "--to", "100000", "--expires", "2027-12-31"}, scope...)...)
	do("id", append([]string{"sequence", "add", "--type", "32", "--from", "1", "--to", "100000"}, scope...)...)
	key := do("api_key", append([]string{"credential", "create", "--scope", "invoices.write,invoices.read,ecf.submit,ecf.read"}, scope...)...)
	e.client = harness.NewClient(t, taxpayer, key)
}

// nodeArgs returns the flags of a node: those of the env, with a data folder of its own.
func (e *env) nodeArgs(i int) []string {
	args := slices.Clone(e.args)
	args[slices.Index(args, "--data")+1] = e.nodeDir(i)
	return append(args, "--master-key", filepath.Join(e.dir, "data", "master.key"))
}

// nodeDir returns the data folder of a node.
func (e *env) nodeDir(i int) string { return filepath.Join(e.dir, fmt.Sprintf("node-%d", i)) }

// command runs an operator's command and returns one field of its answer.
func command(t *testing.T, field string, args ...string) string {
	t.Helper()
	return fmt.Sprint(commandAnswer(t, args...)[field])
}

// commandAnswer runs an operator's command and returns its answer.
func commandAnswer(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var answer map[string]any
	runJSON(t, &answer, args...)
	return answer
}

// createInvoice creates invoice number n and repeats the request until the service
// accepts it. Even numbers are of type 31, odd numbers of type 32.
func (e *env) createInvoice(ctx context.Context, t *testing.T, base *atomic.Pointer[string], n int) {
	for ctx.Err() == nil {
		switch got, err := e.postInvoice(ctx, *base.Load(), n); {
		case err == nil && got.Status == http.StatusAccepted:
			return
		case err == nil && got.Status != http.StatusServiceUnavailable:
			t.Errorf("invoice %d: %d %s", n, got.Status, got.Body)
			return
		}
		time.Sleep(5 * time.Millisecond) // the server is starting again
	}
}

// postInvoice posts invoice number n once. Headers come in pairs of name and value.
func (e *env) postInvoice(ctx context.Context, base string, n int, header ...string) (harness.Answer, error) {
	return e.postBody(ctx, base, n, invoiceBody(n), header...)
}

// invoiceBody returns the request for invoice number n.
func invoiceBody(n int) string {
	body := harness.Invoice("ext-" + strconv.Itoa(n))
	if n%2 == 0 {
		body = strings.Replace(body, `"32"`, `"31"`, 1)
		body = strings.Replace(body, `"legal_name"`, `"tax_id": "199000021", "legal_name"`, 1)
	}
	return body
}

// postBody posts the request for invoice number n once.
func (e *env) postBody(ctx context.Context, base string, n int, body string, header ...string) (harness.Answer, error) {
	return e.client.Post(ctx, base, "key-"+strconv.Itoa(n), body, header...)
}

// isSettled reports whether no document is being processed any more.
func (e *env) isSettled(t *testing.T, base string) bool {
	t.Helper()
	// A document may move from one status to another between two requests: the second
	// round sees it.
	statuses := []string{"queued", "outcome_unknown", "submitted", "processing"}
	for _, status := range append(statuses, statuses...) {
		if got, err := e.client.Get(t.Context(), base, "invoices?limit=1&status="+status); err != nil || got.Status != http.StatusOK || !strings.Contains(got.Body, `"data":[]`) {
			return false
		}
	}
	return true
}

// checkDocuments checks that every invoice was accepted, that the numbers have no
// gap, and that the authority has one content for each number and no violation of
// its rules.
func (e *env) checkDocuments(t *testing.T, count int) {
	t.Helper()
	for _, v := range e.sim.Violations() {
		if v.Kind != simulator.TokenAgain { // each process asks for a token of its own
			t.Errorf("violation: %v", v)
		}
	}
	contents := map[string]string{}
	for _, d := range e.sim.Documents(simulator.Filter{}) {
		if other, seen := contents[d.ENCF]; seen && other != d.SHA256 {
			t.Errorf("two contents under %s", d.ENCF)
		}
		contents[d.ENCF] = d.SHA256
	}
	s := e.openStore(t)
	defer func() { _ = s.Close() }()
	scope := store.Scope{Environment: fiscal.Certification, TaxpayerID: e.client.Taxpayer}
	taken := int64(0)
	for _, kind := range []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer} {
		sequences, err := s.NumberRangesOf(t.Context(), scope, kind)
		if err != nil || len(sequences) != 1 {
			t.Fatalf("%d sequences, %v", len(sequences), err)
		}
		taken += sequences[0].Next - sequences[0].First
	}
	if taken != int64(count) || len(contents) != count {
		t.Errorf("%d invoices took %d numbers, and the authority has %d", count, taken, len(contents))
	}
	for n := range count {
		inv, err := s.InvoiceByExternalID(t.Context(), scope, "ext-"+strconv.Itoa(n))
		if err != nil || inv.Status != fiscal.Accepted || contents[inv.ENCF] == "" {
			t.Errorf("invoice %d is %s under %s (%v)", n, inv.Status, inv.ENCF, err)
		}
	}
}

// operate runs an operator's command on the database and returns its answer.
func (e *env) operate(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var answer map[string]any
	runProgram(t, e.program, &answer, append(args, e.shared...)...)
	return answer
}

// read reads a resource of the API.
func (e *env) read(t *testing.T, url string) string {
	t.Helper()
	got, err := e.client.Send(t.Context(), http.MethodGet, url, "")
	if err != nil || got.Status != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", url, got.Status, got.Body, err)
	}
	return got.Body
}
