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
)

const (
	liveDocuments = 6000
	liveRate      = 50 // documents per second, for the time from 202 to accepted
	liveTime      = 10 * time.Second
	liveDelay     = 300 * time.Millisecond // of the simulator's validation, at that rate
)

// live measures documents through the whole pipeline: registered, numbered, signed,
// sent to a simulator in a process of its own, and accepted.
func (b *bench) live(ctx context.Context) error {
	return b.onEngines(ctx, b.throughput, b.toVerdict)
}

// throughput measures how many documents per second the service finishes when all are
// created at once. The baseline is the documents that one core signs.
func (b *bench) throughput(ctx context.Context, engine string) error {
	rate, before, after, err := b.finished(ctx, engine, "live")
	if err != nil {
		return err
	}
	baseline, err := signingRate()
	if err != nil {
		return err
	}
	b.row("documents finished/s, "+engine, rateText(rate), rateText(baseline), rate/baseline, "≥ 0.7", "documents of 10 lines signed/s on one core")
	b.used(before, after, liveDocuments, "document")
	return nil
}

// finished creates documents in a new database and waits for their verdicts. It returns
// how many per second are finished, and what the service had used before and after.
func (b *bench) finished(ctx context.Context, engine, name string) (rate float64, before, after usage, err error) {
	w, err := b.startLive(ctx, engine, name, 0)
	if err != nil {
		return 0, before, after, err
	}
	if before, err = w.usage(ctx); err == nil {
		rate, err = w.finish(ctx, liveDocuments)
	}
	if err == nil {
		after, err = w.usage(ctx)
	}
	return rate, before, after, errors.Join(err, w.stop())
}

// finish creates documents and waits for their verdicts. It returns how many per second are
// finished.
func (w *liveService) finish(ctx context.Context, documents int) (rate float64, err error) {
	start := time.Now()
	next := w.newInvoices(w.key)
	made := make(chan error, 8)
	for range 8 {
		w.clients++
		client := w.clients
		go func() { made <- w.createAll(ctx, client, documents/8, next) }()
	}
	for range 8 {
		err = errors.Join(err, <-made)
	}
	if err == nil {
		err = w.wait(ctx, 5*time.Minute)
	}
	return float64(documents) / time.Since(start).Seconds(), err
}

// toVerdict measures the time from the creation to the acceptance at a steady rate.
// The baseline is the delay of the authority.
func (b *bench) toVerdict(ctx context.Context, engine string) error {
	w, err := b.startLive(ctx, engine, "verdict", liveDelay)
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
	b.row(fmt.Sprintf("202 to accepted at %d/s, p50, %s", liveRate, engine), milliseconds(p50), milliseconds(liveDelay), float64(p50)/float64(liveDelay), "", "the simulator's delay; the service asks first after 1 s")
	b.fact("  p99", milliseconds(p99), "")
	return nil
}

// A liveService is a service in certification and the simulator that it sends to.
type liveService struct {
	*service
	simulator *exec.Cmd
	flags     []string         // of the service
	clients   int              // that have created invoices; each has external ids of its own
	sample    string           // the id of an invoice
	sizes     map[string]int64 // of the tables before the last start
	began     time.Duration    // how long the last start took
}

func (w *liveService) stop() error {
	err := w.service.stop()
	_ = w.simulator.Process.Signal(syscall.SIGTERM)
	_ = w.simulator.Wait() // it ends by the signal
	return err
}

// startLive starts a simulator and a service, with everything that the taxpayer needs
// to issue.
func (b *bench) startLive(ctx context.Context, engine, name string, delay time.Duration, flags ...string) (*liveService, error) {
	cmd, authority, control, err := b.startSimulator(ctx, delay)
	if err != nil {
		return nil, err
	}
	w := &liveService{simulator: cmd}
	p12, password := filepath.Join(b.dir, "signer.p12"), filepath.Join(b.dir, "signer.password")
	err = prepareSimulator(ctx, control, p12, password)
	if err != nil {
		return nil, err
	}
	address, err := b.database(engine, name)
	if err != nil {
		return nil, err
	}
	// The witness belongs to one database, so each run has its own data folder.
	b.data = filepath.Join(b.dir, "data-"+engine+"-"+name)
	// The comparison with the authority would report the documents that a benchmark copies.
	w.flags = append(flags, "--compare-rate", "0", "--authority", authority, "--authority-environment", "testecf")
	w.service, err = b.startIn(ctx, "certification", address, w.flags...)
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
		for lines.Scan() { // the simulator would block on a full pipe
		}
	}()
	return cmd, authority, control, nil
}

// prepareSimulator adds the taxpayer to the simulator and gets a certificate.
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
	return answerJSON(request, into)
}

// createAll creates a number of invoices, one after the other.
func (s *service) createAll(ctx context.Context, client, count int, next func(client, n int) []byte) error {
	c, err := dial(ctx, s.address)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	for n := range count {
		if err := c.expect(http.StatusAccepted, next(client, n)); err != nil {
			return err
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

// wait waits until every document has a final status.
func (w *liveService) wait(ctx context.Context, limit time.Duration) error {
	end := time.Now().Add(limit)
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
	return errors.New("some documents have no final status")
}

// times returns the time from the creation to the last change of each document.
func (w *liveService) times(ctx context.Context) ([]time.Duration, error) {
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
