package systemtest

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// A simulatorProcess is `fiscalhub simulator` as operators run it.
type simulatorProcess struct {
	*harness.Server
	authority string // base address of the emulated hosts
	control   string // base address of the control API
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
	s, err := harness.Start(harness.Command(t.Context(), harness.Program(t), append([]string{"simulator", "--json", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0",
		"--latency", "0s", "--validation-delay", "0s", "--fixture", file}, args...)...), "}")
	s.Until(t, err)
	var said struct{ Authority, Control string }
	decodeJSON(t, s.Greeting, &said)
	return &simulatorProcess{s, said.Authority, said.Control}
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
	got, err := (&harness.Client{HTTP: harness.HTTP}).Send(t.Context(), method, s.control+path, string(content))
	if err != nil || got.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %s, %v", method, path, got.Status, got.Body, err)
	}
	return got.Body
}
