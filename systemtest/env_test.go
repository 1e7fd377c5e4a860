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

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
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
	base    atomic.Pointer[string] // address of the last server
}

func newEnv(t *testing.T, address, profile string) *env {
	t.Helper()
	return envOptions{address: address, profile: profile}.start(t)
}

// envOptions are the settings of an env.
type envOptions struct {
	address, profile string
	program          string                          // empty for the one under test
	data             string                          // data folder; empty for one in the folder of the test
	password         string                          // of the certificate; empty for the default
	wrap             func(http.Handler) http.Handler // of the authority; may be nil
}

func (o envOptions) start(t *testing.T) *env {
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
		writeFile(t, filepath.Join(dir, name), content)
	}
	if o.program == "" {
		o.program = harness.Program(t)
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

// serve starts a server, through which createInvoice creates invoices from then on.
func (e *env) serve(t *testing.T) *harness.Server {
	t.Helper()
	s := harness.ServeProgram(t, e.program, e.args...)
	e.base.Store(&s.Base)
	return s
}

// createInvoice creates invoice number n and repeats the request until the service
// accepts it. Even numbers are of type 31, odd numbers of type 32.
func (e *env) createInvoice(t *testing.T, n int) {
	for t.Context().Err() == nil {
		switch got, err := e.postInvoice(t.Context(), *e.base.Load(), n); {
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

// settle waits until every document has its final status, and returns how long that took.
// It asks the nodes at these addresses, or the last server.
func (e *env) settle(t *testing.T, nodes ...string) time.Duration {
	t.Helper()
	if len(nodes) == 0 {
		nodes = []string{*e.base.Load()}
	}
	begun := time.Now()
	for _, node := range nodes {
		harness.Eventually(t, verdictLimit, "every document has its final status", func() bool { return e.isSettled(t, node) })
	}
	return time.Since(begun)
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

// operate runs an operator's command on the database and returns its answer.
func (e *env) operate(t *testing.T, args ...string) map[string]any {
	t.Helper()
	var answer map[string]any
	harness.Run(t, e.program, &answer, append(args, e.shared...)...)
	return answer
}

// backup copies the database of the running service, and returns a function that replaces
// the database with the copy.
func (e *env) backup(t *testing.T) (restore func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "backup")
	database, isFile := strings.CutPrefix(e.address, "sqlite:")
	if !isFile {
		server := storetest.Postgres(t)
		server.Dump(t, e.address, file)
		return func() { e.moveTo(server.Load(t, file)) }
	}
	e.operate(t, "backup", file)
	return func() {
		for _, end := range []string{"-wal", "-shm"} {
			_ = os.Remove(database + end) // files of the replaced database
		}
		writeFile(t, database, readFile(t, file))
	}
}

// moveTo changes the address of the database.
func (e *env) moveTo(address string) {
	e.address = address
	for _, args := range [][]string{e.shared, e.args} {
		args[slices.Index(args, "--database")+1] = address
	}
}

// reconcile runs the command that operators run after a restore or a failover, with the
// flags of a node. It returns the exit code and what the command says.
func (e *env) reconcile(t *testing.T, node []string, stated ...string) (code int, said string) {
	t.Helper()
	args := []string{"reconcile", "--taxpayer", e.client.Taxpayer}
	for i := 0; i+1 < len(node); i++ {
		switch node[i] {
		case "--data", "--database", "--environment", "--authority", "--authority-environment", "--trust", "--pace", "--witness", "--master-key":
			args = append(args, node[i], node[i+1])
		}
	}
	for _, encf := range stated {
		args = append(args, "--sent-up-to", encf)
	}
	cmd := harness.Command(t.Context(), e.program, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
