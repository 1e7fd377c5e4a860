package harness

import (
	"bufio"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Server is a running fiscalhub serve.
type Server struct {
	Cmd      *exec.Cmd
	Base     string // address of the service
	Taxpayer string // of the demonstration; empty without one
	Key      string
	Greeting string // standard output
	Log      *Output
	Done     chan struct{} // closed once it has ended
	Err      error         // of the process, when it has ended
}

// Launch starts a server and returns when it has printed its address. Without a flag
// about the bootstrap it waits for the demonstration too.
func Launch(cmd *exec.Cmd) (*Server, error) {
	last := "}'" // last line of the demonstration
	if slices.Contains(cmd.Args, "--no-bootstrap") || slices.Contains(cmd.Args, "--no-bootstrap=false") {
		last = "  Docs "
	}
	s, err := Start(cmd, last)
	if err != nil {
		return nil, err
	}
	s.Base = Submatch(s.Greeting, `API  (http\S+)/v1`)
	s.Taxpayer = Submatch(s.Greeting, `taxpayer  (\S+)`)
	s.Key = Submatch(s.Greeting, `api key   (\S+)`)
	return s, nil
}

// Start starts a program that runs on, and returns when it has printed a line that begins
// with last.
func Start(cmd *exec.Cmd, last string) (*Server, error) {
	s := &Server{Cmd: cmd, Log: &Output{}, Done: make(chan struct{})}
	cmd.Stderr = s.Log
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	greeting, printed := &Output{}, make(chan struct{})
	go func() {
		defer close(s.Done)
		complete := sync.OnceFunc(func() { close(printed) })
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			_, _ = fmt.Fprintln(greeting, lines.Text())
			if strings.HasPrefix(lines.Text(), last) {
				complete()
			}
		}
		s.Err = cmd.Wait()
	}()
	select {
	case <-printed:
		s.Greeting = greeting.String()
		return s, nil
	case <-s.Done:
		return nil, fmt.Errorf("%s ended: %w\n%s%s", cmd.Path, s.Err, greeting, s.Log)
	case <-time.After(time.Minute):
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("%s did not start:\n%s%s", cmd.Path, greeting, s.Log)
	}
}

// Serve starts a server on a free port. It is killed when the test ends.
func Serve(t *testing.T, args ...string) *Server {
	t.Helper()
	return ServeProgram(t, Program(t), args...)
}

// ServeProgram is Serve with another program than the one under test.
func ServeProgram(t *testing.T, program string, args ...string) *Server {
	t.Helper()
	s, err := Launch(Command(t.Context(), program, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...))
	return s.Until(t, err)
}

// Until returns a server that was launched, and kills it when the test ends. The test
// fails when it was not launched.
func (s *Server) Until(t *testing.T, err error) *Server {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

// Kill ends the process at once, and waits for its end. It may have ended before.
func (s *Server) Kill() {
	_ = s.Cmd.Process.Kill()
	<-s.Done
}

// Signal sends a signal to the process.
func (s *Server) Signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := s.Cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// Ended waits for the end of the process and returns its exit code, which is -1
// after a signal.
func (s *Server) Ended(t *testing.T) int {
	t.Helper()
	select {
	case <-s.Done:
		return s.Cmd.ProcessState.ExitCode()
	case <-time.After(time.Minute):
		t.Fatalf("the server has not ended within a minute\n%s", s.Log)
		return 0
	}
}

// Stop lets the server end cleanly.
func (s *Server) Stop(t *testing.T) {
	t.Helper()
	s.Signal(t, syscall.SIGINT)
	if code := s.Ended(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.Log)
	}
}
