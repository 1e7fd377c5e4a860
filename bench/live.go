package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/client"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	liveDocuments = 2000
	liveRate      = 50 // documents a second, for the time from 202 to accepted
	liveTime      = 10 * time.Second
	liveDelay     = 300 * time.Millisecond // of the simulator's validation, then
)

// live measures documents through the whole plan: registered, numbered, signed,
// submitted to a simulator in a process of its own, and judged.
func (b *bench) live(ctx context.Context) error {
	for _, engine := range storetest.Engines() {
		b.say("live on %s", engine)
		if err := b.throughput(ctx, engine); err != nil {
			return err
		}
		if err := b.toVerdict(ctx, engine); err != nil {
			return err
		}
	}
	return nil
}

// throughput is how many documents are finished a second when all are there at
// once, beside how many one core signs.
func (b *bench) throughput(ctx context.Context, engine string) error {
	w, err := b.startTown(ctx, engine, "live", 0)
	if err != nil {
		return err
	}
	start := time.Now()
	next := w.newInvoices(w.key)
	made := make(chan error, 8)
	for client := range 8 {
		go func() { made <- w.createAll(ctx, client, liveDocuments/8, next) }()
	}
	for range 8 {
		err = errors.Join(err, <-made)
	}
	if err == nil {
		err = w.wait(ctx, 5*time.Minute)
	}
	took := time.Since(start)
	if err := errors.Join(err, w.stop()); err != nil {
		return err
	}
	floor, err := signingRate()
	if err != nil {
		return err
	}
	rate := liveDocuments / took.Seconds()
	b.row("documents finished/s, "+engine, fmt.Sprintf("%.0f", rate), fmt.Sprintf("%.0f", floor), rate/floor, "≥ 0.4", "documents of 10 lines signed/s on one core")
	return nil
}

// toVerdict is the time from the creation to the acceptance at a steady rate,
// beside the authority's own delay.
func (b *bench) toVerdict(ctx context.Context, engine string) error {
	w, err := b.startTown(ctx, engine, "verdict", liveDelay)
	if err != nil {
		return err
	}
	next := w.newInvoices(w.key)
	_, err = w.open(ctx, 8, liveRate, liveTime, func(n int) []byte { return next(0, n) })
	if err == nil {
		err = w.wait(ctx, time.Minute)
	}
	var took []time.Duration
	if err == nil {
		took, err = w.times(ctx)
	}
	if err := errors.Join(err, w.stop()); err != nil {
		return err
	}
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	b.row(fmt.Sprintf("202 to accepted at %d/s, p50, %s", liveRate, engine), milliseconds(p50), milliseconds(liveDelay), float64(p50)/float64(liveDelay), "", "the simulator's own delay; the first question comes after 1 s")
	b.fact("  p99", milliseconds(p99), "")
	return nil
}

// A benchTown is a live service and the simulator that it speaks to.
type benchTown struct {
	*service
	simulator *exec.Cmd
}

func (w *benchTown) stop() error {
	err := w.service.stop()
	_ = w.simulator.Process.Signal(syscall.SIGTERM)
	_ = w.simulator.Wait() // it has nothing to say
	return err
}

// startTown starts a simulator and a service with all that it needs to issue.
func (b *bench) startTown(ctx context.Context, engine, name string, delay time.Duration, flags ...string) (*benchTown, error) {
	cmd, authority, control, err := b.startSimulator(ctx, delay)
	if err != nil {
		return nil, err
	}
	w := &benchTown{simulator: cmd}
	p12, password := filepath.Join(b.dir, "signer.p12"), filepath.Join(b.dir, "signer.password")
	err = prepareSimulator(ctx, control, p12, password)
	if err != nil {
		return nil, err
	}
	address, err := b.database(engine, name)
	if err != nil {
		return nil, err
	}
	// A database of its own has a witness of its own.
	b.data = filepath.Join(b.dir, "data-"+engine+"-"+name)
	w.service, err = b.startIn(ctx, "certification", address, append(flags, "--authority", authority, "--authority-environment", "testecf")...)
	if err != nil {
		return nil, err
	}
	for _, args := range [][]string{
		{"certificate", "import", "--taxpayer", w.taxpayer, "--environment", "certification", "--password-file", password, p12},
		{"sequence", "add", "--taxpayer", w.taxpayer, "--environment", "certification", "--type", "31", "--from", "1", "--to", "1000000", "--expires", "2027-12-31"},
	} {
		if _, err := b.field(ctx, address, "id", args...); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (b *bench) startSimulator(ctx context.Context, delay time.Duration) (cmd *exec.Cmd, authority, control string, err error) {
	cmd = exec.CommandContext(ctx, b.binary, "simulator", "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--lean",
		"--latency", "0s", "--validation-delay", delay.String())
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, "", "", err
	}
	if err := cmd.Start(); err != nil {
		return nil, "", "", err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && control == "" {
		if _, after, ok := strings.Cut(lines.Text(), "--authority "); ok {
			authority = after
		}
		if _, after, ok := strings.Cut(lines.Text(), "control API: "); ok {
			control = after
			break
		}
	}
	if authority == "" || control == "" {
		return nil, "", "", errors.New("the simulator did not start")
	}
	go func() {
		for lines.Scan() { // keeps the pipe empty
		}
	}()
	return cmd, authority, control, nil
}

// prepareSimulator makes the taxpayer known and gets a certificate.
func prepareSimulator(ctx context.Context, control, p12, password string) error {
	err := postJSON(ctx, control+"/taxpayers", map[string]any{
		"rnc": "199000013", "name": "Banco de Pruebas, SRL", "delegates": []any{map[string]any{"id": "00112345678", "roles": []string{"signer"}}},
		"ranges": []any{map[string]any{"type": "31", "from": 1, "to": 10_000_000, "expires": "2027-12-31"}},
	}, nil)
	if err != nil {
		return err
	}
	var made struct {
		P12      []byte `json:"p12"`
		Password string `json:"password"`
	}
	if err := postJSON(ctx, control+"/certificates", map[string]any{"holder": "00112345678"}, &made); err != nil {
		return err
	}
	return errors.Join(os.WriteFile(p12, made.P12, 0o600), os.WriteFile(password, []byte(made.Password), 0o600))
}

func postJSON(ctx context.Context, address string, body, into any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(raw))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: answer %d", address, answer.StatusCode)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

// createAll creates a number of invoices, one after the other.
func (s *service) createAll(ctx context.Context, client, count int, next func(client, n int) []byte) error {
	c, err := dial(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for n := range count {
		status, err := c.exchange(next(client, n))
		if err != nil {
			return err
		}
		if status != http.StatusAccepted {
			return fmt.Errorf("creation: answer %d", status)
		}
	}
	return nil
}

// invoicePage is a page of the list of invoices.
type invoicePage struct {
	Data []client.Invoice `json:"data"`
	Meta struct {
		NextCursor *string `json:"next_cursor"`
	} `json:"meta"`
}

// wait waits until no document is under way any more.
func (w *benchTown) wait(ctx context.Context, most time.Duration) error {
	end := time.Now().Add(most)
	for time.Now().Before(end) {
		left := 0
		for _, status := range []string{"queued", "submitted", "processing", "outcome_unknown"} {
			var page invoicePage
			if err := w.getJSON(ctx, "invoices?limit=1&status="+status, &page); err != nil {
				return err
			}
			left += len(page.Data)
		}
		if left == 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("documents are still under way")
}

// times are how long each document took from its creation to its last change.
func (w *benchTown) times(ctx context.Context) ([]time.Duration, error) {
	var all []time.Duration
	for cursor := ""; ; {
		path := "invoices?limit=100&status=accepted"
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		var page invoicePage
		if err := w.getJSON(ctx, path, &page); err != nil {
			return nil, err
		}
		for _, inv := range page.Data {
			all = append(all, inv.UpdatedAt.Sub(inv.CreatedAt))
		}
		if page.Meta.NextCursor == nil {
			break
		}
		cursor = *page.Meta.NextCursor
	}
	if len(all) == 0 {
		return nil, errors.New("no document was accepted")
	}
	return all, nil
}
