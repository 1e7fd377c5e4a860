package systemtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// Two nodes of an earlier version are replaced by this one, one after the other, while
// clients create invoices. Every request must be settled by repeating it, and both
// versions must serve what the other one has created. UPGRADE_RUNS is how often; without
// it the test is skipped, because it builds the earlier version. UPGRADE_PREVIOUS names
// the commit of that version.
func TestRollingUpgrade(t *testing.T) {
	runs, documents := setting(t, "UPGRADE_RUNS", 0), setting(t, "UPGRADE_DOCUMENTS", 100)
	if runs == 0 {
		t.Skip("`make upgrade-proof` runs this test")
	}
	old := buildPrevious(t)
	harness.Program(t) // before the clients begin
	figures := newFigureTable("run", clientColumns, "migration", "not ready", "settled after", "events", ledgerColumns)
	for run := range runs {
		t.Run(strconv.Itoa(run+1), func(t *testing.T) {
			u := startRollingUpgrade(t, old, storetest.Postgres(t).Empty(t), 2)
			u.clients.reach(t, documents)
			migration := u.migrate(t)
			u.clients.reachMore(t, documents)
			before := u.readAll(t, 0)
			for i := range u.nodes {
				u.replace(t, i)
				u.clients.reachMore(t, documents)
			}
			l, settled := u.finish(t, before)
			figures.row(run+1, u.clients.figures(), migration, u.notReady.Load(), settled, len(u.hooks.arrivals("")), l.figures())
		})
		t.Run(strconv.Itoa(run+1)+" on SQLite", func(t *testing.T) {
			u := startRollingUpgrade(t, old, "sqlite:"+filepath.Join(t.TempDir(), "fiscalhub.db"), 1)
			u.clients.reach(t, documents)
			before := u.readAll(t, 0)
			u.replace(t, 0)
			u.clients.reachMore(t, documents)
			u.finish(t, before)
		})
	}
	t.Logf("%d rolling upgrades\n%s", runs, figures)
}

// buildPrevious builds the earlier version from the repository.
func buildPrevious(t *testing.T) string {
	t.Helper()
	commit := os.Getenv("UPGRADE_PREVIOUS")
	if commit == "" {
		t.Fatal("UPGRADE_PREVIOUS must name the commit of the earlier version")
	}
	dir := t.TempDir()
	built := filepath.Join(dir, "fiscalhub")
	script := `set -e; git -C .. archive "$1" | tar -x -C "$2"; cd "$2"; go build -trimpath -o "$3" ./cmd/fiscalhub`
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script, "sh", commit, dir, built+".previous").CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", commit, err, out)
	}
	return built + ".previous"
}

// A rollingUpgrade is nodes of an earlier version under load, and their replacement.
type rollingUpgrade struct {
	*env
	nodes    []*harness.Server
	clients  *clients
	hooks    *hookListener
	stopping atomic.Int64 // 1 + the index of the node that is being replaced
	notReady atomic.Int64 // probes that failed although no one stopped the node
}

func startRollingUpgrade(t *testing.T, old, address string, count int) *rollingUpgrade {
	t.Helper()
	u := &rollingUpgrade{env: envOptions{program: old, address: address, profile: "flaky"}.start(t)}
	u.hooks = u.listen(t)
	// The earlier version does not know this flag, and on SQLite the new one migrates.
	u.args = slices.DeleteFunc(u.args, func(arg string) bool { return arg == "--no-migrate" })
	u.args = append(u.args, "--drain-delay", "1s")
	for i := range count {
		u.nodes = append(u.nodes, harness.ServeProgram(t, old, u.nodeArgs(i)...))
	}
	u.clients = startClients(t, u.env, u.nodes[0], u.nodes[count-1])
	u.watchReadiness(t)
	return u
}

// watchReadiness probes /readyz of every node until the test ends, and counts the
// failures of nodes that are not being replaced.
func (u *rollingUpgrade) watchReadiness(t *testing.T) {
	var probing sync.WaitGroup
	for i := range u.nodes {
		probing.Go(func() {
			for t.Context().Err() == nil {
				node := u.clients.nodes[i].Load()
				status, err := harness.Status(t.Context(), *node+"/readyz")
				replaced := u.stopping.Load() == int64(i+1) || u.clients.nodes[i].Load() != node
				if t.Context().Err() == nil && !replaced && (err != nil || status != http.StatusOK) {
					u.notReady.Add(1)
					t.Errorf("/readyz of node %d: %d, %v", i, status, err)
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	t.Cleanup(probing.Wait)
}

// migrate migrates the database with the new version while the nodes of the earlier one
// run.
func (u *rollingUpgrade) migrate(t *testing.T) time.Duration {
	t.Helper()
	begun := time.Now()
	harness.Run(t, harness.Program(t), new(any), append([]string{"migrate"}, u.shared...)...)
	return time.Since(begun)
}

// replace stops a node as a supervisor does, and starts the new version in its place.
func (u *rollingUpgrade) replace(t *testing.T, i int) {
	t.Helper()
	u.stopping.Store(int64(i + 1))
	u.nodes[i].Signal(t, syscall.SIGTERM)
	if code := u.nodes[i].Ended(t); code != 0 {
		t.Errorf("node %d ended with exit code %d\n%s", i, code, u.nodes[i].Log)
	}
	u.nodes[i] = harness.Serve(t, u.nodeArgs(i)...)
	u.clients.pointAt(u.nodes...)
	u.stopping.Store(0)
}

// finish waits until every document has its final status and every event has arrived,
// and checks what the new version serves. before is what the earlier one has served. It
// returns how long the documents took.
func (u *rollingUpgrade) finish(t *testing.T, before map[string]string) (ledger, time.Duration) {
	t.Helper()
	l, took := u.clients.finish(t)
	s := storetest.Open(t, u.address, time.Now)
	invoices := u.storedInvoices(t, s, int(u.clients.made.Load()))
	u.hooks.awaitAll(s, invoices)
	for i := range u.nodes {
		after := u.readAll(t, i)
		for path, content := range before {
			if after[path] != content {
				t.Errorf("%s of the earlier version was\n%.300s\nand is\n%.300s", path, content, after[path])
			}
		}
		if got := len(u.client.Invoices(t, u.nodes[i].Base)); got != len(invoices) {
			t.Errorf("node %d lists %d invoices, want %d", i, got, len(invoices))
		}
	}
	return l, took
}

// readAll reads through a node what does not change any more: the signed XML and the
// document itself of every accepted document, some printed pages, and the events in the
// order of the feed.
func (u *rollingUpgrade) readAll(t *testing.T, i int) map[string]string {
	t.Helper()
	base := u.nodes[i].Base + "/v1/taxpayers/" + u.client.Taxpayer
	found := map[string]string{}
	u.clients.mu.Lock()
	acknowledged := slices.Sorted(maps.Keys(u.clients.acks))
	u.clients.mu.Unlock()
	for _, n := range acknowledged {
		var list struct{ Data []documentRead }
		decodeJSON(t, u.client.Read(t, base+"/fiscal-documents?external_id=ext-"+strconv.Itoa(n)), &list)
		if len(list.Data) != 1 {
			t.Fatalf("invoice %d has %d documents", n, len(list.Data))
		}
		document := "/fiscal-documents/" + list.Data[0].ID
		if list.Data[0].Status != "accepted" {
			continue
		}
		found[document] = withoutRequest(t, u.client.Read(t, base+document))
		found[document+"/xml"] = u.client.Read(t, base+document+"/xml")
		if n%10 == 0 { // rendering a page takes long
			found[document+"/pdf"] = digest(u.client.Read(t, base+document+"/pdf"))
		}
	}
	events, _ := readFeed(t, func(resource string) string { return u.client.Read(t, base+"/"+resource) }, "", "100")
	for position, event := range events {
		found[fmt.Sprintf("event %d", position)] = servicePort.ReplaceAllString(string(event), "")
	}
	return found
}

// withoutRequest returns the member data of an answer: the rest names the request.
func withoutRequest(t *testing.T, body string) string {
	t.Helper()
	var got struct {
		Data json.RawMessage `json:"data"`
	}
	decodeJSON(t, body, &got)
	return strings.TrimSpace(servicePort.ReplaceAllString(string(got.Data), ""))
}
