package systemtest

import (
	"bufio"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// python returns the arguments that run a program of examples/python without writing compiled
// files next to it.
func python(name string, arguments ...string) []string {
	return append([]string{"-B", filepath.Join("..", "examples", "python", filepath.FromSlash(name))}, arguments...)
}

// Connections are cut at random moments while the Python client creates invoices. Each
// creation must end with one invoice. CLIENT_INVOICES and CLIENT_SEED change the test.
func TestPythonClientCreatesEachInvoiceOnce(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	testCreations(t, 30, "python3", python("tests/create.py")...)
}

// Every part of the Python client works with a live service.
func TestPythonClientWithALiveService(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	testTour(t, "python3", python("tests/tour.py")...)
}

// The rules of the Python client, with answers that a test makes.
func TestPythonClientRules(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	runScript(t, nil, "python3", python("tests/rules.py")...)
}

// A sale of the point of sale, as its command show prints it.
type posSale struct {
	Ticket     int    `json:"ticket"`
	ExternalID string `json:"external_id"`
	Total      string `json:"total"`
	InvoiceID  string `json:"invoice_id"`
	Status     string `json:"status"`
	Problem    string `json:"problem"`
}

func posSales(t *testing.T, variables []string, shop string) []posSale {
	t.Helper()
	var sales []posSale
	decodeJSON(t, string(runScript(t, variables, "python3", python("point_of_sale.py", shop, "show")...)), &sales)
	return sales
}

// The example point of sale is killed at random moments while its connections are cut. Each
// receipt that it printed is a sale, and each sale is one invoice. The nightly reconciliation
// then finds no difference, and finds those that the test makes. POS_KILLS changes the test.
func TestPointOfSaleSurvivesKills(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	kills, seed := setting(t, "POS_KILLS", 5), uint64(setting(t, "CLIENT_SEED", 1))
	random := rand.New(rand.NewPCG(seed, seed))
	server := harness.Serve(t, "--data", t.TempDir(), "--rate-limit", "0", "--log-level", "error")
	proxy, cuts := newCutter(t, server.Base, seed)
	shop := filepath.Join(t.TempDir(), "shop.db")
	throughProxy := serviceVariables(proxy, server.Key, server.Taxpayer)
	direct := serviceVariables(server.Base, server.Key, server.Taxpayer)

	receipts := map[string]int{}
	for range kills {
		cmd := exec.CommandContext(t.Context(), "python3", python("point_of_sale.py", shop, "demo", "1000000")...)
		cmd.Env = append(harness.Environment(), throughProxy...)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(stdout)
		for range 1 + random.IntN(4) {
			if lines.Scan() {
				receipts[lines.Text()]++
			}
		}
		time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
		_ = cmd.Process.Kill()
		for lines.Scan() { // what it printed before it was killed
			receipts[lines.Text()]++
		}
		_ = cmd.Wait() // it was killed
	}
	runScript(t, direct, "python3", python("point_of_sale.py", shop, "sync")...)

	sales := posSales(t, direct, shop)
	acknowledged := map[string]string{}
	for _, sale := range sales {
		acknowledged[sale.ExternalID] = sale.InvoiceID
		if sale.InvoiceID == "" || sale.Status != "accepted" {
			t.Errorf("a sale is not finished: %+v", sale)
		}
		if n := receipts["ticket "+strconv.Itoa(sale.Ticket)]; n > 1 {
			t.Errorf("ticket %d was printed %d times", sale.Ticket, n)
		}
	}
	if len(receipts) < kills || len(receipts) > len(sales) {
		t.Errorf("%d receipts were printed, and %d sales are stored", len(receipts), len(sales))
	}
	t.Logf("%d kills, %d connections cut, %d sales, %d receipts", kills, cuts.Load(), len(sales), len(receipts))
	checkCreations(t, server, len(sales), acknowledged)
	checkReconciliation(t, server, direct, shop)
}

// checkReconciliation runs the nightly reconciliation of the examples: without a difference,
// with a sale that was not sent, and with an invoice that the shop does not have.
func checkReconciliation(t *testing.T, server *harness.Server, variables []string, shop string) {
	t.Helper()
	reconcile := func(wantStatus int, options ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "python3", python("nightly_reconciliation.py", append([]string{shop}, options...)...)...)
		cmd.Env = append(harness.Environment(), variables...)
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != wantStatus {
			t.Fatalf("nightly_reconciliation.py %v: %v\n%s", options, err, out)
		}
		return string(out)
	}
	if out := reconcile(0); out != "no difference\n" {
		t.Errorf("the reconciliation prints %q", out)
	}
	offline := serviceVariables("http://127.0.0.1:1", server.Key, server.Taxpayer)
	runScript(t, offline, "python3", python("point_of_sale.py", shop, "sell", "Azúcar", "1", "50.00")...)
	sales := posSales(t, variables, shop)
	last := sales[len(sales)-1]
	if out := reconcile(1); out != "missing   "+last.ExternalID+"\n" || last.Status != "waiting" {
		t.Errorf("the reconciliation prints %q for %+v", out, last)
	}
	if out := reconcile(0, "--repair"); out != "no difference\n" {
		t.Errorf("the repair prints %q", out)
	}
	if _, err := server.Client(t).Create(t.Context(), server.Base, "other", "other-shop"); err != nil {
		t.Fatal(err)
	}
	if out := reconcile(1, "--repair"); out != "unknown   other-shop\n" {
		t.Errorf("the reconciliation prints %q", out)
	}
}

// The example receiver takes each event of a live service once, also when the service sends
// all of them again, and refuses what the service has not signed.
func TestWebhookReceiverTakesEachEventOnce(t *testing.T) {
	t.Parallel()
	needtest.Program(t, "python3")
	dir := t.TempDir()
	database, secrets := filepath.Join(dir, "events.db"), filepath.Join(dir, "secrets")
	writeFile(t, secrets, nil)
	started, err := harness.Start(harness.Command(t.Context(), "python3", python("webhook_receiver.py", database, "serve", "--secrets", secrets, "--port", "0")...), "http")
	address := strings.TrimSpace(started.Until(t, err).Greeting)

	e := newEnv(t, "sqlite:"+filepath.Join(t.TempDir(), "live.db"), "happy")
	endpoint, secret := e.createEndpoint(t, address)
	writeFile(t, secrets, []byte(secret+"\n"))
	node := e.serve(t)
	want := map[string]string{}
	for n := range 3 {
		if got, err := e.postInvoice(t.Context(), node.Base, 2*n+1); err != nil || got.Status != http.StatusAccepted {
			t.Fatalf("%d %s, %v", got.Status, got.Body, err)
		}
		want["ext-"+strconv.Itoa(2*n+1)] = "accepted"
	}
	type state struct {
		Events    int               `json:"events"`
		Documents map[string]string `json:"documents"`
	}
	show := func() (s state) {
		t.Helper()
		decodeJSON(t, string(runScript(t, nil, "python3", python("webhook_receiver.py", database, "show")...)), &s)
		return s
	}
	events := func() int { // of the feed
		return strings.Count(e.client.Read(t, node.Base+"/v1/taxpayers/"+e.client.Taxpayer+"/events?limit=100"), `"id":"evt_`)
	}
	complete := func() bool {
		if !e.isSettled(t, node.Base) {
			return false
		}
		s := show()
		return cmp.Equal(s.Documents, want) && s.Events == events()
	}
	harness.Eventually(t, 5*time.Minute, "every event has arrived", complete)

	first := show().Events
	e.operate(t, "webhook", "replay", endpoint, "--since", "2026-01-01T00:00:00Z")
	harness.Eventually(t, 5*time.Minute, "all events have arrived again", func() bool {
		var attempts []any
		harness.Run(t, e.program, &attempts, append([]string{"webhook", "deliveries", endpoint}, e.shared...)...)
		return len(attempts) >= 2*first
	})
	harness.Eventually(t, 5*time.Minute, "repeated events have no effect", complete)
	got, err := e.client.Send(t.Context(), http.MethodPost, address, `{"id":"evt_forged"}`,
		"webhook-id", "evt_forged", "webhook-timestamp", strconv.FormatInt(time.Now().Unix(), 10), "webhook-signature", "v1,AAAA")
	if err != nil || got.Status != http.StatusUnauthorized {
		t.Errorf("a forged event: %d, %v", got.Status, err)
	}
}
