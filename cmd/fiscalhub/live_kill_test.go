package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A liveTown is an authority in this process and all that a service in another
// needs to issue to it.
type liveTown struct {
	sim     *simulator.Simulator
	address string   // of the database
	shared  []string // flags of the service and of commands
	args    []string // of the service
	client  *integrator
}

func newLiveTown(t *testing.T, address, profile string) *liveTown {
	t.Helper()
	sim, err := simulator.New(simulator.Options{Now: time.Now, Seed: 1, Config: simulator.Quick()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	if err := sim.AddTaxpayer(simulator.Baseline("199000013", "00112345678", "2027-12-31")); err != nil {
		t.Fatal(err)
	}
	if err := sim.SetProfile(profile); err != nil {
		t.Fatal(err)
	}
	authority := httptest.NewServer(sim.Handler())
	t.Cleanup(authority.Close)
	dir := t.TempDir()
	made, err := sim.IssueCertificate(simulator.CertificateRequest{Holder: "00112345678"})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"signer.p12": made.P12, "password": []byte(made.Password), "roots.pem": sim.RootsPEM()} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	shared := []string{"--data", filepath.Join(dir, "data"), "--database", address}
	w := &liveTown{sim: sim, address: address, shared: shared, args: append(slices.Clone(shared),
		"--environment", "certification", "--authority", authority.URL, "--authority-environment", "testecf", "--trust", filepath.Join(dir, "roots.pem"),
		"--pace", "20", "--rate-limit", "0", "--no-bootstrap", "--log-level", "error")}
	do := func(field string, args ...string) string { return command(t, field, append(args, shared...)...) }
	taxpayer := do("id", "taxpayer", "create", "--rnc", "199000013", "--legal-name", "Prueba, SRL", "--address", "Calle 1")
	scope := []string{"--taxpayer", taxpayer, "--environment", "certification"}
	do("id", append([]string{"certificate", "import", "--password-file", filepath.Join(dir, "password"), filepath.Join(dir, "signer.p12")}, scope...)...)
	do("id", append([]string{"sequence", "add", "--type", "31", "--from", "1", "--to", "100000", "--expires", "2027-12-31"}, scope...)...)
	do("id", append([]string{"sequence", "add", "--type", "32", "--from", "1", "--to", "100000"}, scope...)...)
	key := do("api_key", append([]string{"credential", "create", "--scope", "invoices.write,invoices.read,ecf.submit,ecf.read"}, scope...)...)
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	w.client = &integrator{taxpayer: taxpayer, key: key, http: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
	return w
}

// command runs an operator's command and returns a field of its answer.
func command(t *testing.T, field string, args ...string) string {
	t.Helper()
	return fmt.Sprint(commandAnswer(t, args...)[field])
}

// commandAnswer runs an operator's command and returns its answer.
func commandAnswer(t *testing.T, args ...string) map[string]any {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program(t), append(args, "--json")...)
	cmd.Env = environment()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(args[:2], " "), err, &stderr)
	}
	var answer map[string]any
	if err := json.Unmarshal(out, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// sell creates an invoice, of each type in turn, and repeats it until it is
// acknowledged.
func (w *liveTown) sell(ctx context.Context, t *testing.T, base *atomic.Pointer[string], n int) {
	body := fmt.Sprintf(demonstrationRequest, "2026-11-14")
	body = strings.Replace(body, "DEMO-0001", "ext-"+strconv.Itoa(n), 1)
	if n%2 == 0 {
		body = strings.Replace(body, `"32"`, `"31"`, 1)
		body = strings.Replace(body, `"legal_name"`, `"tax_id": "199000021", "legal_name"`, 1)
	}
	for ctx.Err() == nil {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, *base.Load()+"/v1/taxpayers/"+w.client.taxpayer+"/invoices", strings.NewReader(body))
		if err != nil {
			t.Error(err)
			return
		}
		r.Header.Set("Idempotency-Key", "key-"+strconv.Itoa(n))
		r.Header.Set("Content-Type", "application/json")
		switch got, err := w.client.do(r); {
		case err == nil && got.status == http.StatusAccepted:
			return
		case err == nil && got.status != http.StatusServiceUnavailable:
			t.Errorf("invoice %d: %d %s", n, got.status, got.body)
			return
		}
		time.Sleep(5 * time.Millisecond) // the server is on its way back
	}
}

// settled tells whether no document is under way any more.
func (w *liveTown) settled(t *testing.T, base string) bool {
	t.Helper()
	for _, status := range []string{"queued", "submitted", "processing", "outcome_unknown"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+"/v1/taxpayers/"+w.client.taxpayer+"/invoices?limit=1&status="+status, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := w.client.do(r); err != nil || got.status != http.StatusOK || !strings.Contains(got.body, `"data":[]`) {
			return false
		}
	}
	return true
}

// audit asserts that every invoice ended accepted, under numbers without a gap,
// each with one content at the authority, which has nothing to complain about.
func (w *liveTown) audit(t *testing.T, count int) {
	t.Helper()
	for _, v := range w.sim.Violations() {
		if v.Kind != simulator.TokenAgain { // each process asks for its own
			t.Errorf("violation: %v", v)
		}
	}
	contents := map[string]string{}
	for _, d := range w.sim.Documents(simulator.Filter{}) {
		if other, seen := contents[d.ENCF]; seen && other != d.SHA256 {
			t.Errorf("two contents under %s", d.ENCF)
		}
		contents[d.ENCF] = d.SHA256
	}
	s, err := store.Open(t.Context(), w.address, store.Options{Now: time.Now, Log: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	scope := store.Scope{Environment: fiscal.Certification, TaxpayerID: w.client.taxpayer}
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

// Documents in flight survive kills at random moments against an authority that
// loses answers: each ends with one number and one content. LIVE_KILLS and
// LIVE_DOCUMENTS make it longer.
func TestS9P78LiveKillNine(t *testing.T) {
	t.Parallel()
	kills, documents := setting(t, "LIVE_KILLS", 2), setting(t, "LIVE_DOCUMENTS", 40)
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newLiveTown(t, address, "flaky")
		server := serve(t, w.args...)
		var base atomic.Pointer[string]
		base.Store(&server.base)
		sold := make(chan struct{})
		go func() {
			defer close(sold)
			for n := range documents {
				w.sell(t.Context(), t, &base, n)
			}
		}()
		for range kills {
			time.Sleep(200*time.Millisecond + rand.N(800*time.Millisecond))
			server.signal(t, syscall.SIGKILL)
			server.ended(t, 10*time.Second)
			server = serve(t, w.args...)
			base.Store(&server.base)
		}
		<-sold
		eventually(t, 3*time.Minute, "every document comes to its end", func() bool { return w.settled(t, server.base) })
		w.audit(t, documents)
	})
}

func setting(t *testing.T, name string, unlessTold int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return unlessTold
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Of two nodes on one PostgreSQL one is killed; the other finishes its work.
func TestP78LiveTwoNodes(t *testing.T) {
	t.Parallel()
	documents := setting(t, "LIVE_DOCUMENTS", 40)
	w := newLiveTown(t, storetest.Address(t, "postgres"), "flaky")
	first, second := serve(t, w.args...), serve(t, w.args...)
	var base atomic.Pointer[string]
	base.Store(&second.base)
	for n := range documents {
		if n == documents/2 {
			first.signal(t, syscall.SIGKILL)
		}
		w.sell(t.Context(), t, &base, n)
	}
	first.ended(t, 10*time.Second)
	eventually(t, 3*time.Minute, "every document comes to its end", func() bool { return w.settled(t, second.base) })
	w.audit(t, documents)
}
