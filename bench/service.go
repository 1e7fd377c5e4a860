package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// service is a running fiscalhub process.
type service struct {
	cmd         *exec.Cmd
	address     string // host:port
	environment string
	taxpayer    string
	key         string
	database    string
}

// startService starts a sandbox on a new database, without a rate limit on a free port, with
// a taxpayer and an API key.
func (b *bench) startService(ctx context.Context, engine, name string, flags ...string) (*service, error) {
	address, err := b.database(engine, name)
	if err != nil {
		return nil, err
	}
	return b.startIn(ctx, "sandbox", address, flags...)
}

// startIn is startService in any environment, on any database.
func (b *bench) startIn(ctx context.Context, environment, database string, flags ...string) (*service, error) {
	s, err := b.startAlone(ctx, environment, database, flags...)
	if err != nil {
		return nil, err
	}
	if s.taxpayer, err = b.field(ctx, database, "id", "taxpayer", "create", "--rnc", "199000013", "--legal-name", "Banco de Pruebas, SRL",
		"--address", "Calle Uno 1"); err != nil {
		return nil, err
	}
	s.key, err = b.newKey(ctx, s)
	return s, err
}

// startAlone starts a service, without a taxpayer and an API key.
func (b *bench) startAlone(ctx context.Context, environment, database string, flags ...string) (*service, error) {
	s := &service{database: database, environment: environment}
	s.cmd = exec.CommandContext(ctx, b.binary, append([]string{"serve", "--data", b.data, "--database", database, "--environment", environment,
		"--listen", "127.0.0.1:0", "--rate-limit", "0", "--no-bootstrap"}, flags...)...)
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(b.dir, "service.log"))
	if err != nil {
		return nil, err
	}
	s.cmd.Stderr = log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "API  http://"); ok {
			s.address = strings.TrimSuffix(url, "/v1")
			break
		}
	}
	if s.address == "" {
		return nil, errors.New("the service did not start; its log is service.log")
	}
	go func() {
		for lines.Scan() { // the service would block on a full pipe
		}
	}()
	return s, nil
}

// newKey issues an API key for the service's taxpayer.
func (b *bench) newKey(ctx context.Context, s *service) (string, error) {
	return b.field(ctx, s.database, "api_key", "credential", "create", "--taxpayer", s.taxpayer, "--environment", s.environment,
		"--scope", "invoices.write,invoices.read,ecf.submit,ecf.read")
}

// field runs an operator's command and returns one field of its answer.
func (b *bench) field(ctx context.Context, database, field string, args ...string) (string, error) {
	args = append(args, "--json", "--data", b.data, "--database", database)
	out, err := exec.CommandContext(ctx, b.binary, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(args[:2], " "), err)
	}
	var answer map[string]any
	if err := json.Unmarshal(out, &answer); err != nil {
		return "", err
	}
	text, ok := answer[field].(string)
	if !ok {
		return "", fmt.Errorf("%s: no %s", strings.Join(args[:2], " "), field)
	}
	return text, nil
}

// stop stops the service as Ctrl-C does.
func (s *service) stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGINT); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- s.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(30 * time.Second):
		return errors.Join(errors.New("the service did not stop"), s.cmd.Process.Kill())
	}
}

// getJSON reads a resource of the taxpayer.
func (s *service) getJSON(ctx context.Context, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/v1/taxpayers/"+s.taxpayer+"/"+path, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+s.key)
	return answerJSON(request, into)
}

// answerJSON sends a request and decodes its answer, unless into is nil.
func answerJSON(request *http.Request, into any) error {
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("%s: answer %d", request.URL, answer.StatusCode)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// metric reads a metric of the service.
func (s *service) metric(ctx context.Context, name string) (float64, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, err
	}
	defer func() { _ = answer.Body.Close() }()
	lines := bufio.NewScanner(answer.Body)
	for lines.Scan() {
		if value, ok := strings.CutPrefix(lines.Text(), name+" "); ok {
			return strconv.ParseFloat(value, 64)
		}
	}
	return 0, fmt.Errorf("there is no metric %s", name)
}
