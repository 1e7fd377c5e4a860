package main

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The request that an empty sandbox prints must work when it is pasted into a
// shell. The test first sends its parts with the HTTP client.
func TestPrintedRequestWorks(t *testing.T) {
	t.Parallel()
	server := serve(t, "--data", t.TempDir())
	_, command, found := strings.Cut(server.greeting, "Create an invoice:\n\n")
	if !found {
		t.Fatalf("the server printed no request:\n%s", server.greeting)
	}
	url, body := submatch(command, `curl -i (\S+)`), submatch(command, `(?s)-d '(.*)'`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range regexp.MustCompile(`-H '([^:]+): ([^']+)'`).FindAllStringSubmatch(command, -1) {
		r.Header.Set(header[1], header[2])
	}
	c := integrator{key: server.key, http: httpClient}
	got, err := c.do(r)
	if err != nil || got.status != http.StatusAccepted || got.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%d %s, %v", got.status, got.body, err)
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
	if !strings.HasPrefix(head, "HTTP/1.1 202 ") || !strings.Contains(head, "Idempotency-Replayed: true") || pasted != got.body {
		t.Errorf("the pasted request got\n%s\nwant the replay of\n%s", out, got.body)
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
				server := serve(t, append(flags, "--data", dir)...)
				eventually(t, 60*time.Second, "the server answers", func() bool { // it creates the taxpayer before it answers
					status, err := get(t.Context(), server.base+"/livez")
					return err == nil && status == http.StatusOK
				})
			}
			list := exec.CommandContext(t.Context(), program(t), "taxpayer", "list", "--json", "--data", dir)
			list.Env = environment()
			out, err := list.Output()
			if err != nil || strings.Count(string(out), `"rnc"`) != tt.want {
				t.Errorf("taxpayer list prints %q, %v; want %d taxpayers", out, err, tt.want)
			}
		})
	}
}
