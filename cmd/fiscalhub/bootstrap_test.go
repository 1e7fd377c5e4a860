package main

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// The request that an empty sandbox prints must work when it is pasted into a
// shell. The test first sends its parts with the HTTP client.
func TestPrintedRequestWorks(t *testing.T) {
	t.Parallel()
	server := harness.Serve(t, "--data", t.TempDir())
	_, command, found := strings.Cut(server.Greeting, "Create an invoice:\n\n")
	if !found {
		t.Fatalf("the server printed no request:\n%s", server.Greeting)
	}
	url, body := harness.Submatch(command, `curl -i (\S+)`), harness.Submatch(command, `(?s)-d '(.*)'`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	must(t, err)
	for _, header := range regexp.MustCompile(`-H '([^:]+): ([^']+)'`).FindAllStringSubmatch(command, -1) {
		r.Header.Set(header[1], header[2])
	}
	c := harness.Client{Key: server.Key, HTTP: harness.HTTP}
	got, err := c.Do(r)
	if err != nil || got.Status != http.StatusAccepted || got.Header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%d %s, %v", got.Status, got.Body, err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Logf("the request was not pasted: %v", err)
		return
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, command)
	}
	head, pasted, _ := strings.Cut(string(out), "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 202 ") || !strings.Contains(head, "Idempotency-Replayed: true") || pasted != got.Body {
		t.Errorf("the pasted request got\n%s\nwant the replay of\n%s", out, got.Body)
	}
}

func TestBootstrapCreatesOneTaxpayerInAnEmptySandbox(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		starts [][]string
		want   int // taxpayers after the last start
	}{
		"two starts create one":       {[][]string{nil, {"--no-bootstrap=false"}}, 1},
		"--no-bootstrap creates none": {[][]string{{"--no-bootstrap"}}, 0},
		"production has none":         {[][]string{{"--no-bootstrap=false", "--environment", "production"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, flags := range tt.starts {
				server := harness.Serve(t, append(flags, "--data", dir)...)
				harness.Eventually(t, 60*time.Second, "the server answers", func() bool { // it creates the taxpayer before it answers
					status, err := harness.Status(t.Context(), server.Base+"/livez")
					return err == nil && status == http.StatusOK
				})
			}
			list := harness.Command(t.Context(), harness.Program(t), "taxpayer", "list", "--json", "--data", dir)
			out, err := list.Output()
			if err != nil || strings.Count(string(out), `"rnc"`) != tt.want {
				t.Errorf("taxpayer list prints %q, %v; want %d taxpayers", out, err, tt.want)
			}
		})
	}
}
