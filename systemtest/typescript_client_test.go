package systemtest

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// Connections are cut at random moments while the TypeScript client creates invoices. Each
// creation must end with one invoice. CLIENT_INVOICES and CLIENT_SEED change the test.
func TestTypeScriptClientCreatesEachInvoiceOnce(t *testing.T) {
	t.Parallel()
	needClient(t)
	testCreations(t, 30, "node", typescriptFile("test/create.mjs"))
}

// Every part of the TypeScript client works with a live service.
func TestTypeScriptClientWithALiveService(t *testing.T) {
	t.Parallel()
	needClient(t)
	testTour(t, "node", typescriptFile("test/tour.mjs"))
}

// The rules of the TypeScript client, with answers that a test makes.
func TestTypeScriptClientRules(t *testing.T) {
	t.Parallel()
	needClient(t)
	runScript(t, nil, "node", "--test", typescriptFile("test/client.test.mjs"))
}

func typescriptFile(name string) string {
	return filepath.Join("..", "clients", "typescript", filepath.FromSlash(name))
}

// needClient skips the test when the machine has no Node, or the client is not built. It reads
// the files that Node reads, so that the go command repeats the test when they change.
func needClient(t *testing.T) {
	t.Helper()
	needtest.Program(t, "node")
	for _, pattern := range []string{"dist/*.js", "test/*.mjs"} {
		files, err := filepath.Glob(typescriptFile(pattern))
		if err != nil || len(files) == 0 {
			needtest.LeftOut(t, "typescript-client", "there is no "+pattern)
		}
		for _, file := range files {
			readFile(t, file)
		}
	}
}

// runScript runs a program with further variables of the environment, and returns its output.
// The test fails when the program does.
func runScript(t *testing.T, variables []string, program string, arguments ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := harness.Command(ctx, program, arguments...)
	cmd.Env = append(cmd.Env, variables...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", program, arguments, err, out, stderr.Bytes())
	}
	return out
}

// serviceVariables returns the variables by which a script finds a service at an address.
func serviceVariables(base, key, taxpayer string) []string {
	return []string{"FISCALHUB_URL=" + base, "FISCALHUB_KEY=" + key, "FISCALHUB_TAXPAYER=" + taxpayer}
}

// testCreations runs a script that creates COUNT invoices, behind a proxy that cuts its
// connections. The script prints what the service acknowledged.
func testCreations(t *testing.T, byDefault int, program string, arguments ...string) {
	t.Helper()
	count, seed := setting(t, "CLIENT_INVOICES", byDefault), setting(t, "CLIENT_SEED", 1)
	server := harness.Serve(t, "--data", t.TempDir(), "--rate-limit", "0", "--log-level", "error")
	proxy, cuts := newCutter(t, server.Base, uint64(seed))
	variables := append(serviceVariables(proxy, server.Key, server.Taxpayer), "COUNT="+strconv.Itoa(count))
	begun := time.Now()
	out := runScript(t, variables, program, arguments...)
	var got struct {
		Acknowledged map[string]string `json:"acknowledged"` // external id to invoice id
		Replayed     int64             `json:"replayed"`
	}
	decodeJSON(t, string(out), &got)
	t.Logf("%d creations, %d connections cut, %d answers lost and repeated, %.1f s", count, cuts.Load(), got.Replayed, time.Since(begun).Seconds())
	if cuts.Load() < int64(count)/10 {
		t.Error("the proxy has cut too little for this test to mean something")
	}
	checkCreations(t, server, count, got.Acknowledged)
}

// checkCreations checks that each acknowledged invoice is stored once, and no other.
func checkCreations(t *testing.T, server *harness.Server, count int, acknowledged map[string]string) {
	t.Helper()
	direct, err := client.New(server.Base, server.Key, server.Taxpayer)
	if err != nil {
		t.Fatal(err)
	}
	stored := 0
	for invoice, err := range direct.AllInvoices(t.Context(), client.ListOptions{Limit: 100}) {
		if err != nil {
			t.Fatal(err)
		}
		if stored++; acknowledged[invoice.ExternalID] != invoice.ID {
			t.Errorf("%s was acknowledged as %q and is stored as %s", invoice.ExternalID, acknowledged[invoice.ExternalID], invoice.ID)
		}
	}
	if stored != count || len(acknowledged) != count {
		t.Errorf("%d creations made %d invoices, and %d were acknowledged", count, stored, len(acknowledged))
	}
}

// testTour runs a script that uses every part of a client, with a live service and a
// simulated authority.
func testTour(t *testing.T, program string, arguments ...string) {
	t.Helper()
	e := newEnv(t, "sqlite:"+filepath.Join(t.TempDir(), "live.db"), "happy")
	key := e.operate(t, "credential", "create", "--taxpayer", e.client.Taxpayer, "--environment", "certification", "--scope", allScopes)["api_key"]
	node := e.serve(t)
	runScript(t, serviceVariables(node.Base, fmt.Sprint(key), e.client.Taxpayer), program, arguments...)
}
