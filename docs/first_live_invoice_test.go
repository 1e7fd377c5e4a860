package docs

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shell runs the commands of a page in a folder of its own.
type shell struct {
	t    *testing.T
	dir  string
	path string // of the program
}

// command prepares a command of the page, with more variables of the environment.
func (w shell) command(ctx context.Context, text string, variables ...string) *exec.Cmd {
	if strings.HasPrefix(text, "fiscalhub ") || strings.HasPrefix(text, "curl ") {
		text = "exec " + text // so that a signal reaches the command itself
	}
	c := exec.CommandContext(ctx, "bash", "-euc", text)
	c.Dir = w.dir
	c.Env = append(os.Environ(), append(variables, "PATH="+w.path+string(filepath.ListSeparator)+os.Getenv("PATH"))...)
	return c
}

// run runs a command and returns its standard output.
func (w shell) run(text string, variables ...string) string {
	w.t.Helper()
	c := w.command(w.t.Context(), text, variables...)
	var problem strings.Builder
	c.Stderr = &problem
	out, err := c.Output()
	if err != nil {
		w.t.Fatalf("%s: %v\n%s%s", text, err, out, problem.String())
	}
	return string(out)
}

// start starts a command that goes on, and returns what the group of a pattern matches in
// what it prints.
func (w shell) start(text, pattern string, variables ...string) string {
	w.t.Helper()
	return regexp.MustCompile("(?m)" + pattern).FindStringSubmatch(w.startLines(text, pattern, variables...))[1]
}

// startLines starts a command that goes on, and returns what it prints, up to the line
// that a pattern matches.
func (w shell) startLines(text, pattern string, variables ...string) string {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	c := w.command(ctx, text, variables...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	reader, writer := io.Pipe()
	c.Stdout, c.Stderr = writer, writer
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		cancel()
		_ = c.Wait() // the signal ends it
	})
	found := make(chan string, 1)
	go func() {
		var printed strings.Builder
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			printed.WriteString(lines.Text() + "\n")
			if regexp.MustCompile(pattern).MatchString(lines.Text()) {
				select {
				case found <- printed.String():
				default:
				}
			}
		}
	}()
	select {
	case printed := <-found:
		return printed
	case <-time.After(time.Minute):
		w.t.Fatalf("%s does not print %s", text, pattern)
		return ""
	}
}

// TestFirstLiveInvoice runs the commands of the page as they stand there. Only the
// addresses are others, so that the test does not meet a service on this machine.
func TestFirstLiveInvoice(t *testing.T) {
	t.Parallel()
	var commands []string
	for _, b := range codeBlocks(t, "first-live-invoice.md") {
		if b.language == "sh" {
			commands = append(commands, b.code)
		}
	}
	if len(commands) != 6 {
		t.Fatalf("the page has %d blocks of commands, and the test runs 6", len(commands))
	}
	w := newShell(t)
	if !strings.HasPrefix(commands[0], "make build\n") {
		t.Errorf("the first block is %s", commands[0])
	}
	authority := w.start(commands[1], `--authority (http://127.0.0.1:\d+)$`, "FISCALHUB_LISTEN=127.0.0.1:0", "FISCALHUB_CONTROL=127.0.0.1:0")
	result := w.run(commands[2], "FISCALHUB_AUTHORITY="+authority)
	if !regexp.MustCompile(`(?m)^invoice +E320000000001 +accepted$`).MatchString(result) {
		t.Fatalf("onboard printed\n%s", result)
	}
	w.run(commands[3])
	service := w.start(strings.ReplaceAll(commands[4], "http://127.0.0.1:9090", authority), `API +(http://127.0.0.1:\d+)/v1$`, "FISCALHUB_LISTEN=127.0.0.1:0")
	create := result[strings.Index(result, "curl "):]
	if answer := w.run("curl -sS" + strings.ReplaceAll(strings.TrimPrefix(create, "curl"), "http://127.0.0.1:8080", service)); !strings.Contains(answer, " 202 ") {
		t.Fatalf("the request was answered with\n%s", answer)
	}
	taxpayer := regexp.MustCompile(`(?m)^taxpayer +(\S+)$`).FindStringSubmatch(result)[1]
	history := ""
	for end := time.Now().Add(time.Minute); !strings.Contains(history, "accepted"); {
		if time.Now().After(end) {
			t.Fatalf("the history is\n%s", history)
		}
		history = w.run(strings.ReplaceAll(commands[5], "TAXPAYER_ID", taxpayer))
	}
}
