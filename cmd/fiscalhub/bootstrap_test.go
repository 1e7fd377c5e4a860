package main

import (
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The request that an empty sandbox prints must work as it is pasted. Without
// curl its parts are sent by other means.
func TestThePrintedRequestWorks(t *testing.T) {
	t.Parallel()
	server := serve(t, "--data", t.TempDir())
	_, command, found := strings.Cut(server.greeting, "Create an invoice:\n\n")
	if !found {
		t.Fatalf("no request in\n%s", server.greeting)
	}
	url, body := submatch(command, `curl -i (\S+)`), submatch(command, `(?s)-d '(.*)'`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range regexp.MustCompile(`-H '([^:]+): ([^']+)'`).FindAllStringSubmatch(command, -1) {
		r.Header.Set(header[1], header[2])
	}
	c := integrator{key: server.key, http: http.DefaultClient}
	got, err := c.do(r)
	if err != nil || got.status != http.StatusAccepted || got.header.Get("Idempotency-Replayed") != "" {
		t.Errorf("%d %s, %v", got.status, got.body, err)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Logf("not pasted: %v", err)
		return
	}
	out, err := exec.CommandContext(t.Context(), "sh", "-c", command).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, command)
	}
	head, pasted, _ := strings.Cut(string(out), "\r\n\r\n")
	if !strings.HasPrefix(head, "HTTP/1.1 202 ") || !strings.Contains(head, "Idempotency-Replayed: true") || pasted != got.body {
		t.Errorf("pasted after the first it got\n%s\nand not the replay of\n%s", out, got.body)
	}
}

func TestADemonstrationIsMadeOnceAndOnlyWhenWanted(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		starts [][]string
		want   int // taxpayers in the end
	}{
		"two starts make one":             {[][]string{nil, {"--no-bootstrap=false"}}, 1},
		"it can be turned off":            {[][]string{{"--no-bootstrap"}}, 0},
		"other environments have no such": {[][]string{{"--no-bootstrap=false", "--environment", "production"}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, flags := range tt.starts {
				server := serve(t, append(flags, "--data", dir)...)
				eventually(t, 10*time.Second, "it serves", func() bool { // after whatever it makes
					status, err := get(t.Context(), server.base+"/livez")
					return err == nil && status == http.StatusOK
				})
			}
			list := exec.CommandContext(t.Context(), program(t), "taxpayer", "list", "--data", dir)
			list.Env = environment()
			out, err := list.Output()
			if err != nil || strings.Count(string(out), "\n") != tt.want {
				t.Errorf("it lists %q, %v; want %d taxpayers", out, err, tt.want)
			}
		})
	}
}
