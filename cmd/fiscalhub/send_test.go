package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestKilledSendMakesEachInvoiceOnce(t *testing.T) {
	t.Parallel()
	const count, kills = 300, 3
	dir := t.TempDir()
	server := serve(t, "--data", filepath.Join(dir, "data"), "--rate-limit", "0", "--log-level", "error")
	c := newIntegrator(t, server)
	file, journal, results := filepath.Join(dir, "invoices.ndjson"), filepath.Join(dir, "journal"), filepath.Join(dir, "results.ndjson")
	var text bytes.Buffer
	for i := range count {
		one := strings.Replace(fmt.Sprintf(demonstrationRequest, "2026-11-14"), "DEMO-0001", fmt.Sprintf("SENT-%04d", i), 1)
		if err := json.Compact(&text, []byte(one)); err != nil {
			t.Fatal(err)
		}
		text.WriteByte('\n')
	}
	writeFile(t, file, text.Bytes())
	send := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), program(t), "send", file, "--base-url", server.base, "--taxpayer", c.taxpayer,
			"--journal", journal, "--results", results, "--parallel", "4")
		cmd.Env = append(environment(), "FISCALHUB_KEY="+c.key)
		return cmd
	}
	sent := func() int {
		content, _ := os.ReadFile(journal) // it does not exist at first
		return bytes.Count(content, []byte("\n"))
	}
	for killed := 1; killed <= kills; killed++ {
		cmd := send()
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "send sends invoices", func() bool { return sent() > killed*count/(kills+2) })
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	}
	if out, err := send().CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	all := c.invoices(t, server.base)
	for id, made := range all {
		if len(made) != 1 {
			t.Errorf("%s has %d invoices", id, len(made))
		}
	}
	content, err := os.ReadFile(results)
	if len(all) != count || err != nil || bytes.Count(content, []byte(`"status":"accepted"`)) != count {
		t.Errorf("%d invoices, %v, results:\n%.300s", len(all), err, content)
	}
}
