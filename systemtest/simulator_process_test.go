package systemtest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// A simulatorProcess is `fiscalhub simulator` as operators run it.
type simulatorProcess struct {
	cmd       *exec.Cmd
	authority string // base address of the emulated hosts
	control   string // base address of the control API
	log       *harness.Output
	done      chan struct{} // closed once it has ended
}

// startSimulator starts a simulator without delays that begins with a fixture, with more
// flags. The test ends it if nothing else does.
func startSimulator(t *testing.T, fixture any, args ...string) *simulatorProcess {
	t.Helper()
	content, err := json.Marshal(fixture)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "fixture.json")
	writeFile(t, file, content)
	s := &simulatorProcess{log: &harness.Output{}, done: make(chan struct{})}
	s.cmd = exec.CommandContext(t.Context(), harness.Program(t), append([]string{"simulator", "--json", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0",
		"--latency", "0s", "--validation-delay", "0s", "--fixture", file}, args...)...)
	s.cmd.Env, s.cmd.Stderr = harness.Environment(), s.log
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said struct{ Authority, Control string }
	err = json.NewDecoder(stdout).Decode(&said)
	go func() {
		defer close(s.done)
		_, _ = io.Copy(io.Discard, stdout)
		_ = s.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.done
	})
	if err != nil {
		t.Fatalf("the simulator did not start: %v\n%s", err, s.log)
	}
	s.authority, s.control = said.Authority, said.Control
	return s
}

// stop ends the simulator, and with it the authority.
func (s *simulatorProcess) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		t.Fatalf("the simulator has not ended\n%s", s.log)
	}
}

// call makes a call to the control API and returns the answer.
func (s *simulatorProcess) call(t *testing.T, method, path string, body any) string {
	t.Helper()
	var content []byte
	if body != nil {
		var err error
		if content, err = json.Marshal(body); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.control+path, bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := harness.HTTP.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var got strings.Builder
	if _, err := io.Copy(&got, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s, %v", method, path, resp.StatusCode, got.String(), err)
	}
	return got.String()
}
