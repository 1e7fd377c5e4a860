package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// folder is the folder of the program under test.
var folder string

// Tests are the tests of a package that start the program. Run creates the folder of the
// program, and removes it after the tests.
type Tests struct{ *testing.M }

// Run runs the tests.
func (t Tests) Run() int {
	var err error
	if folder, err = os.MkdirTemp("", "fiscalhub-bin-"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }() // an error leaves a temporary folder
	return t.M.Run()
}

// built returns the path of the program. It is built once and as for a release, so
// without the race detector: the tests kill the process. TEST_PROGRAM may name another
// one, as a test does that starts itself again.
var built = sync.OnceValues(func() (string, error) {
	root, err := filepath.Abs(Root())
	if err == nil {
		err = readSources(root)
	}
	if err != nil {
		return "", err
	}
	if program := os.Getenv("TEST_PROGRAM"); program != "" {
		return program, nil
	}
	program := filepath.Join(folder, "fiscalhub")
	return program, Build(root, program)
})

// readSources reads the folders of the sources. The go command repeats a test when a file
// or folder has changed that the test has read; it does not know that a test needs the
// program.
func readSources(root string) error {
	var all error
	for _, sources := range []string{"cmd", "internal", "openapi", "client"} {
		all = errors.Join(all, filepath.WalkDir(filepath.Join(root, sources), func(_ string, _ fs.DirEntry, err error) error { return err }))
	}
	_, err := os.Stat(filepath.Join(root, "go.sum"))
	return errors.Join(all, err)
}

// Root returns the folder of the project, seen from the folder of a test.
func Root() string {
	root := ".."
	for range 4 {
		if _, err := os.Stat(filepath.Join(root, "go.sum")); err == nil {
			break
		}
		root = filepath.Join(root, "..")
	}
	return root
}

// Build builds the program with the script of a project folder. The program does not name
// its revision, because a copy of the folder has none.
func Build(root, program string, flags ...string) error {
	cmd := exec.Command(filepath.Join(root, "scripts", "build"), program) //nolint:noctx // our own script
	cmd.Env = append(os.Environ(), strings.Join(append([]string{"GOFLAGS=-buildvcs=false"}, flags...), " "))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("scripts/build: %w\n%s", err, out)
	}
	return nil
}

// Program returns the path of the program under test.
func Program(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Environment returns the environment of this process without the variables that
// configure the program.
func Environment() []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "FISCALHUB_") {
			env = append(env, v)
		}
	}
	return env
}

// Command returns a command with that environment.
func Command(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = Environment()
	return cmd
}

// Run runs an operator's command and reads its answer.
func Run(t *testing.T, program string, into any, args ...string) {
	t.Helper()
	cmd := Command(t.Context(), program, append(args, "--json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", strings.Join(args[:2], " "), err, out, &stderr)
	}
}

// Ask runs an operator's command of the program under test, and returns one field of its
// answer.
func Ask(t *testing.T, field string, args ...string) string {
	t.Helper()
	var answer map[string]any
	Run(t, Program(t), &answer, args...)
	return fmt.Sprint(answer[field])
}
