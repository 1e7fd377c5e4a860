package systemtest

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// memoryMix is how many requests of each kind come at the same time.
type memoryMix struct{ documents, numbers, members int }

// The mix is small unless MEMORY_MIX is full, as in make soak.
func newMemoryMix() memoryMix {
	if os.Getenv("MEMORY_MIX") == "full" {
		return memoryMix{documents: 48, numbers: 60, members: 240}
	}
	return memoryMix{documents: 6, numbers: 12, members: 12}
}

// peakMemory returns the most memory that a process has had, in bytes.
func peakMemory(t *testing.T, pid int) int64 {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		needtest.LeftOut(t, "proc", err)
	}
	kib, err := strconv.ParseInt(harness.Submatch(string(status), `VmHWM:\s*(\d+) kB`), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// largest repeats a part until a body has a size.
func largest(before, part, after string, size int) string {
	var b strings.Builder
	b.WriteString(before)
	for i := 0; b.Len()+len(part)+len(after)+8 < size; i++ {
		b.WriteString(strings.ReplaceAll(part, "#", strconv.Itoa(i)))
	}
	b.WriteString(after)
	return b.String()
}

// Bodies that need the most memory come at the same time, from strangers and from one
// credential. The process must stay below its limit and answer all of them.
func TestMemoryStaysBelowTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 256 << 20
	shared := []string{"--data", t.TempDir()}
	s := harness.Serve(t, append(shared, "--environment", "certification", "--memory-limit", "256MiB", "--rate-limit", "0", "--no-bootstrap",
		"--no-witness", "--log-level", "error")...)
	taxpayer := harness.Ask(t, "id", append([]string{"taxpayer", "create", "--rnc", "199000013", "--legal-name", "Prueba, SRL"}, shared...)...)
	key := harness.Ask(t, "api_key", append([]string{"credential", "create", "--taxpayer", taxpayer, "--environment", "certification",
		"--scope", "invoices.write,ecf.submit"}, shared...)...)
	idle := peakMemory(t, s.Cmd.Process.Pid)

	document := largest("<ECF><Encabezado><IdDoc><eNCF>E310000000001</eNCF></IdDoc><Emisor><RNCEmisor>131880681</RNCEmisor></Emisor><Comprador>"+
		"<RNCComprador>199000021</RNCComprador></Comprador></Encabezado><DetallesItems>",
		"<Item><NombreItem>"+strings.Repeat("&#241;", 40)+"</NombreItem></Item>", "</DetallesItems></ECF>", 8<<20)
	numbers := largest(`{"lines":[1`, ",1", "]}", 1<<20)
	members := largest(`{"a":1`, `,"member#":1`, "}", 1<<20)
	var clients sync.WaitGroup
	send := func(count int, key, path, body string, allowed ...int) {
		for i := range count {
			clients.Go(func() {
				c := &harness.Client{Key: key, HTTP: harness.HTTP}
				got, err := c.Send(t.Context(), http.MethodPost, s.Base+path, body, "Idempotency-Key", fmt.Sprint(path, i))
				if !slices.Contains(allowed, got.Status) {
					t.Errorf("%s: %d, %v", path, got.Status, err)
				}
			})
		}
	}
	mix := newMemoryMix()
	invoices := "/v1/taxpayers/" + taxpayer + "/invoices"
	send(mix.documents, "", "/fe/recepcion/api/ecf", document, http.StatusBadRequest, http.StatusServiceUnavailable)
	send(mix.numbers, key, invoices, numbers, http.StatusUnprocessableEntity, http.StatusTooManyRequests)
	send(mix.members, key, invoices, members, http.StatusUnprocessableEntity, http.StatusTooManyRequests)
	clients.Wait()
	peak := peakMemory(t, s.Cmd.Process.Pid)
	t.Logf("idle %d MiB, peak %d MiB, limit %d MiB", idle>>20, peak>>20, limit>>20)
	if peak > limit {
		t.Errorf("the process took %d MiB, and its limit is %d MiB", peak>>20, limit>>20)
	}
}
