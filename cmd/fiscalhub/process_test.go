package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// programDir is the folder of the program under test. TestMain sets it.
var programDir string

// built returns the path of the program. It is built once and as for a release, so
// without the race detector: the tests kill the process.
var built = sync.OnceValues(func() (string, error) {
	if program := os.Getenv("TEST_PROGRAM"); program != "" {
		return program, nil // TestFullDisk… starts itself again with the program
	}
	program := filepath.Join(programDir, "fiscalhub")
	return program, buildProgram("../..", program)
})

// buildProgram builds the program with the script of a project folder. The program
// does not name its revision, because a copy of the folder has none.
func buildProgram(root, program string) error {
	cmd := exec.Command(filepath.Join(root, "scripts", "build"), program) //nolint:noctx // our own script
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/build: %w\n%s", err, out)
	}
	return nil
}

func program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// environment returns the environment of this process without the variables that
// configure the program.
func environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FISCALHUB_") {
			env = append(env, v)
		}
	}
	return env
}

// A serverProcess is a running fiscalhub serve.
type serverProcess struct {
	cmd      *exec.Cmd
	base     string // address of the service
	taxpayer string // of the demonstration; empty without one
	key      string
	greeting string // standard output
	log      *output
	done     chan struct{} // closed once it has ended
	err      error         // of the process, when it has ended
}

// output collects the output of a process. It can be read while the process runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

// launch starts a server and returns when it has printed its address. Without a flag
// about the bootstrap it waits for the demonstration too.
func launch(cmd *exec.Cmd) (*serverProcess, error) {
	s := &serverProcess{cmd: cmd, log: &output{}, done: make(chan struct{})}
	cmd.Stderr = s.log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	last := "}'" // last line of the demonstration
	if slices.Contains(cmd.Args, "--no-bootstrap") || slices.Contains(cmd.Args, "--no-bootstrap=false") {
		last = "  Docs "
	}
	greeting, printed := &output{}, make(chan struct{})
	go func() {
		defer close(s.done)
		complete := sync.OnceFunc(func() { close(printed) })
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			_, _ = fmt.Fprintln(greeting, lines.Text())
			if strings.HasPrefix(lines.Text(), last) {
				complete()
			}
		}
		s.err = cmd.Wait()
	}()
	select {
	case <-printed:
	case <-s.done:
		return nil, fmt.Errorf("the server ended: %w\n%s%s", s.err, greeting, s.log)
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("the server did not start:\n%s%s", greeting, s.log)
	}
	s.greeting = greeting.String()
	s.base = submatch(s.greeting, `API  (http\S+)/v1`)
	s.taxpayer = submatch(s.greeting, `taxpayer  (\S+)`)
	s.key = submatch(s.greeting, `api key   (\S+)`)
	return s, nil
}

func submatch(text, pattern string) string {
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	return m[1]
}

// serve starts a server on a free port. It is killed when the test ends.
func serve(t *testing.T, args ...string) *serverProcess {
	t.Helper()
	return serveProgram(t, program(t), args...)
}

// serveProgram is serve with another program than the one under test.
func serveProgram(t *testing.T, program string, args ...string) *serverProcess {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Env = environment()
	s, err := launch(cmd)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.done
	})
	return s
}

func (s *serverProcess) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// ended waits for the end of the process and returns its exit code, which is -1
// after a signal.
func (s *serverProcess) ended(t *testing.T) int {
	t.Helper()
	select {
	case <-s.done:
		return s.cmd.ProcessState.ExitCode()
	case <-time.After(time.Minute):
		t.Fatalf("the server has not ended within a minute\n%s", s.log)
		return 0
	}
}

// integrator is a client of the API with a credential.
type integrator struct {
	taxpayer, key string
	http          *http.Client
}

func newIntegrator(t *testing.T, s *serverProcess) *integrator {
	t.Helper()
	if s.taxpayer == "" || s.key == "" {
		t.Fatalf("the server printed no demonstration:\n%s", s.greeting)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	return &integrator{taxpayer: s.taxpayer, key: s.key, http: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
}

// answer is an HTTP answer.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) id() string {
	var made struct {
		Data struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	_ = json.Unmarshal([]byte(a.body), &made)
	return made.Data.ID
}

func requestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return "req_" + hex.EncodeToString(b[:])
}

// create posts an invoice. Headers come in pairs of name and value.
func (c *integrator) create(ctx context.Context, base, key, externalID string, header ...string) (answer, error) {
	body := strings.Replace(fmt.Sprintf(demonstrationRequest, "2026-11-14"), "DEMO-0001", externalID, 1)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/taxpayers/"+c.taxpayer+"/invoices", strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Idempotency-Key", key)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return c.do(r)
}

func (c *integrator) do(r *http.Request) (answer, error) {
	r.Header.Set("Authorization", "Bearer "+c.key)
	resp, err := c.http.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(body)}, err
}

// get reads an address and returns the status.
func get(ctx context.Context, url string) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	resp, err := httpClient.Do(r)
	if err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, errors.Join(err, resp.Body.Close())
}

// invoices reads the ids of all invoices, by external id.
func (c *integrator) invoices(t *testing.T, base string) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	for cursor := ""; ; {
		url := base + "/v1/taxpayers/" + c.taxpayer + "/invoices?limit=100"
		if cursor != "" {
			url += "&cursor=" + cursor
		}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := c.do(r)
		if err != nil || a.status != http.StatusOK {
			t.Fatalf("list: %d %s, %v", a.status, a.body, err)
		}
		var page struct {
			Data []struct {
				ID         string `json:"id"`
				ExternalID string `json:"external_id"`
			} `json:"data"`
			Meta struct {
				NextCursor *string `json:"next_cursor"`
			} `json:"meta"`
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		for _, inv := range page.Data {
			found[inv.ExternalID] = append(found[inv.ExternalID], inv.ID)
		}
		if page.Meta.NextCursor == nil {
			return found
		}
		cursor = *page.Meta.NextCursor
	}
}

// eventually waits until a condition holds, and fails the test after a limit.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", limit, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
