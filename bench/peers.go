package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// The versions of the programs that users would pick instead.
const (
	dgiiECFVersion    = "1.8.0"
	pocketBaseVersion = "v0.39.9"
	riverVersion      = "v0.50.0"
)

var (
	//go:embed peer/sign.js
	signScript []byte
	//go:embed peer/pocketbase.go.txt
	pocketBaseProgram []byte
	//go:embed peer/river.go.txt
	riverProgram []byte
)

const (
	peerRounds = 4
	peerTime   = 2 * time.Second // of a round
)

// peers compares the service with what users would pick instead, in the same run. The
// programs are installed from their public registries into a temporary folder.
func (b *bench) peers(ctx context.Context) error {
	for _, peer := range []struct {
		name string
		run  func(context.Context) error
	}{{"dgii-ecf", b.peerSigning}, {"PocketBase", b.peerCreations}, {"River", b.peerJobs}} {
		b.say("compared with %s", peer.name)
		if err := peer.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", peer.name, err)
		}
	}
	return nil
}

// command runs a program in a folder, and returns its output with the error.
func command(ctx context.Context, folder, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// peerSigning signs the same documents with the npm package dgii-ecf.
func (b *bench) peerSigning(ctx context.Context) error {
	folder := filepath.Join(b.dir, "dgii-ecf")
	// The package depends on an empty package that has the name of a module of Node.
	manifest := `{"private":true,"dependencies":{"dgii-ecf":"` + dgiiECFVersion + `"},"overrides":{"fs":"file:./fs"}}`
	err := errors.Join(os.MkdirAll(filepath.Join(folder, "fs"), 0o700),
		os.WriteFile(filepath.Join(folder, "package.json"), []byte(manifest), 0o600),
		os.WriteFile(filepath.Join(folder, "fs", "package.json"), []byte(`{"name":"fs","version":"0.0.1"}`), 0o600),
		os.WriteFile(filepath.Join(folder, "sign.js"), signScript, 0o600))
	if err != nil {
		return err
	}
	if err := command(ctx, folder, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"); err != nil {
		return err
	}
	simulator, _, control, err := b.startSimulator(ctx, 0)
	if err != nil {
		return err
	}
	p12, password := filepath.Join(folder, "signer.p12"), filepath.Join(folder, "password")
	err = prepareSimulator(ctx, control, p12, password)
	_ = simulator.Process.Kill()
	_ = simulator.Wait() // it ends by the signal
	if err != nil {
		return err
	}
	identity, err := openIdentity(p12, password)
	if err != nil {
		return err
	}
	node := exec.CommandContext(ctx, "node", "sign.js", p12, password)
	node.Dir, node.Stderr = folder, b.progress
	in, err := node.StdinPipe()
	if err != nil {
		return err
	}
	out, err := node.StdoutPipe()
	if err != nil {
		return err
	}
	if err := node.Start(); err != nil {
		return err
	}
	err = b.signInTurns(folder, identity, in, bufio.NewScanner(out))
	return errors.Join(err, in.Close(), node.Wait())
}

func openIdentity(p12, password string) (*xmlsig.Identity, error) {
	raw, err := os.ReadFile(p12)
	if err != nil {
		return nil, err
	}
	secret, err := os.ReadFile(password)
	if err != nil {
		return nil, err
	}
	return xmlsig.OpenP12(raw, string(secret))
}

// signInTurns signs documents of several sizes in turns with the peer, on one core each.
func (b *bench) signInTurns(folder string, id *xmlsig.Identity, in io.Writer, answers *bufio.Scanner) error {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, size := range []struct {
		lines int
		goal  string
	}{{10, "≥ 4"}, {1000, "≥ 100"}} {
		newDraft, err := drafts(ecf.Synthetic(), mixedBody(size.lines))
		if err != nil {
			return err
		}
		draft, err := newDraft()
		if err != nil {
			return err
		}
		path := filepath.Join(folder, "document.xml")
		if err := os.WriteFile(path, draft.Unsigned(), 0o600); err != nil {
			return err
		}
		var ours, theirs, oursTook, theirsTook float64
		for round := range peerRounds + 1 {
			if _, err := fmt.Fprintf(in, "%s %d\n", path, peerTime.Milliseconds()); err != nil {
				return err
			}
			if !answers.Scan() {
				return errors.New("the peer has ended")
			}
			var signed, took float64
			if _, err := fmt.Sscan(answers.Text(), &signed, &took); err != nil {
				return err
			}
			own, start := 0.0, time.Now()
			for ; time.Since(start) < peerTime; own++ {
				if _, _, err := draft.Sign(id); err != nil {
					return err
				}
			}
			if round > 0 { // the first round warms up
				ours, oursTook = ours+own, oursTook+time.Since(start).Seconds()
				theirs, theirsTook = theirs+signed, theirsTook+took/1000
			}
		}
		b.row(fmt.Sprintf("documents of %d lines signed/s", size.lines), fmt.Sprintf("%.1f /s", ours/oursTook), fmt.Sprintf("%.1f /s", theirs/theirsTook), ours/oursTook/(theirs/theirsTook), size.goal,
			"npm dgii-ecf "+dgiiECFVersion+": signs a text that exists; builds, checks and stores nothing")
	}
	return nil
}

// buildPeer builds a program with a module of others, and returns its path.
func (b *bench) buildPeer(ctx context.Context, name string, program []byte, modules ...string) (string, error) {
	folder := filepath.Join(b.dir, name)
	if err := errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(filepath.Join(folder, "main.go"), program, 0o600)); err != nil {
		return "", err
	}
	for _, args := range [][]string{append([]string{"get"}, modules...), {"mod", "tidy"}, {"build", "-o", "peer", "."}} {
		if args[0] == "get" {
			if err := command(ctx, folder, "go", "mod", "init", "peer"); err != nil {
				return "", err
			}
		}
		if err := command(ctx, folder, "go", args...); err != nil {
			return "", err
		}
	}
	return filepath.Join(folder, "peer"), nil
}

// peerCreations creates records in PocketBase in turns with creations on SQLite.
func (b *bench) peerCreations(ctx context.Context) error {
	program, err := b.buildPeer(ctx, "pocketbase", pocketBaseProgram, "github.com/pocketbase/pocketbase@"+pocketBaseVersion)
	if err != nil {
		return err
	}
	free, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	peer := &service{address: free.Addr().String()}
	if err := free.Close(); err != nil {
		return err
	}
	peer.cmd = exec.CommandContext(ctx, program, "serve", "--http", peer.address, "--dir", filepath.Join(b.dir, "pocketbase-data"))
	peer.cmd.Stdout, peer.cmd.Stderr = io.Discard, io.Discard
	if err := peer.cmd.Start(); err != nil {
		return err
	}
	defer func() {
		_ = peer.cmd.Process.Signal(syscall.SIGTERM)
		_ = peer.cmd.Wait() // it ends by the signal
	}()
	if err := peer.answers(ctx); err != nil {
		return err
	}
	s, err := b.startService(ctx, "sqlite", "peers")
	if err != nil {
		return err
	}
	ours, theirs, err := b.createInTurns(ctx, s, peer)
	if err := errors.Join(err, s.stop()); err != nil {
		return err
	}
	b.row("creations/s, 64 clients, sqlite", rateText(ours), rateText(theirs), ours/theirs, "≥ 2",
		"PocketBase "+pocketBaseVersion+": records with two unique indexes; no commit waits for the disk, no check, no stored answer")
	return nil
}

// answers waits until a server accepts connections.
func (s *service) answers(ctx context.Context) error {
	for range 600 {
		if c, err := dial(ctx, s.address); err == nil {
			return c.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	return errors.New("the program does not answer")
}

func (b *bench) createInTurns(ctx context.Context, s, peer *service) (ours, theirs float64, err error) {
	invoices := s.newInvoices(s.key)
	const placeholder = "00000000-0000000000"
	body := fmt.Appendf(nil, `{"external_id":%q,"key":%q,"body":%s}`, placeholder, placeholder, invoiceBody(placeholder, typicalLines))
	sample := fmt.Appendf(nil, "POST /api/collections/invoices/records HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", peer.address, len(body), body)
	records := func(client, n int) []byte {
		return bytes.ReplaceAll(sample, []byte(placeholder), fmt.Appendf(nil, "%08d-%010d", client, n))
	}
	for round := range peerRounds + 1 {
		own, err := s.closed(ctx, peerTime, func(client, n int) []byte { return invoices(round*clients+client, n) })
		if err != nil {
			return 0, 0, err
		}
		other, err := peer.closed(ctx, peerTime, func(client, n int) []byte { return records(round*clients+client, n) })
		if err != nil {
			return 0, 0, err
		}
		if other.statuses[http.StatusOK] == 0 {
			return 0, 0, fmt.Errorf("answers by status: %v", other.statuses)
		}
		if round > 0 { // the first round warms up
			ours, theirs = ours+own.rate(http.StatusAccepted)/peerRounds, theirs+other.rate(http.StatusOK)/peerRounds
		}
	}
	return ours, theirs, nil
}

// peerJobs works off jobs in River, on the PostgreSQL server of the run, and then as many
// documents of ours.
func (b *bench) peerJobs(ctx context.Context) error {
	program, err := b.buildPeer(ctx, "river", riverProgram, "github.com/riverqueue/river@"+riverVersion, "github.com/riverqueue/river/riverdriver/riverpgxv5@"+riverVersion)
	if err != nil {
		return err
	}
	address, err := b.database("postgres", "river")
	if err != nil {
		return err
	}
	body := filepath.Join(b.dir, "river-body.json")
	if err := os.WriteFile(body, invoiceBody("river", typicalLines), 0o600); err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, program, address, fmt.Sprint(liveDocuments), body).Output()
	if err != nil {
		return err
	}
	var jobs, took float64
	if _, err := fmt.Sscan(string(out), &jobs, &took); err != nil {
		return err
	}
	ours, _, _, err := b.finished(ctx, "postgres", "peers_live")
	if err != nil {
		return err
	}
	theirs := jobs / took * 1000
	b.row("documents finished/s, postgres", rateText(ours), rateText(theirs), ours/theirs, "",
		"River "+riverVersion+": a job for each document, stored and finished; a job does nothing, while ours numbers, signs, sends and asks for the verdict")
	return nil
}
