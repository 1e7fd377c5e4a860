package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/powertest"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// A powerEnv is a service under load. Its data folder and its database are on a disk that
// loses its power; the authority and the clients are not.
type powerEnv struct {
	*env
	disk    *powertest.Disk
	pg      *storetest.Server // nil on SQLite
	server  *serverProcess
	clients *clients
	torn    int  // cuts that have interrupted a write of the witness
	unsafe  bool // makeUnsafe has changed the server
}

func startPower(t *testing.T, engine, profile, program string) *powerEnv {
	t.Helper()
	p := &powerEnv{disk: powertest.Start(t)}
	address := "sqlite:" + filepath.Join(p.disk.Dir, "data", "fiscalhub.db")
	if engine == "postgres" {
		folder := filepath.Join(p.disk.Dir, "postgres")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		// Frequent checkpoints, so that cuts meet them too.
		p.pg = storetest.PrivatePostgresOn(t, folder, "checkpoint_timeout=30s", "max_wal_size=64MB", "shared_buffers=32MB")
		var err error
		if address, err = p.pg.Create("fiscalhub"); err != nil {
			t.Fatal(err)
		}
	}
	p.env = newEnvWith(t, envOptions{program: program, address: address, profile: profile, data: filepath.Join(p.disk.Dir, "data")})
	if p.pg != nil {
		// initdb and the copy of its files do not sync, and the files of a new database are
		// not all safe on this disk: docs/proof.md.
		p.disk.Sync(t)
	}
	p.server = serveProgram(t, program, p.args...)
	p.clients = startClients(t, p.env, p.server, p.server)
	return p
}

// cut turns the power off. Of three cuts, one happens when the witness is about to be
// synced, one at a random moment, and one when any file is about to be synced. Then it ends
// all processes, turns the power on, and checks the witness.
func (p *powerEnv) cut(t *testing.T, count int, seed uint64) {
	t.Helper()
	switch count % 3 {
	case 0:
		p.disk.CutAtSync(t, seed, "witness-")
	case 1:
		time.Sleep(rand.N(20 * time.Millisecond))
		p.disk.Cut(t, seed)
	default:
		p.disk.CutAtSync(t, seed, "")
	}
	_ = p.server.cmd.Process.Kill() // it may have ended by itself, because the disk fails
	<-p.server.done
	if p.pg != nil {
		p.pg.Halt()
	}
	p.disk.Mount(t)
	p.checkWitness(t, seed)
}

// startAgain starts the database and the service.
func (p *powerEnv) startAgain(t *testing.T) error {
	t.Helper()
	if p.pg != nil {
		// After the start of a machine, its number can be that of another process.
		data := filepath.Join(p.disk.Dir, "postgres", "data")
		_ = os.Remove(filepath.Join(data, "postmaster.pid"))
		if p.unsafe { // the service refuses to start with the setting of makeUnsafe
			if err := os.WriteFile(filepath.Join(data, "postgresql.auto.conf"), nil, 0o600); err != nil {
				return err
			}
		}
		if err := p.pg.Start(); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(t.Context(), p.program, append([]string{"serve", "--listen", "127.0.0.1:0"}, p.args...)...)
	cmd.Env = environment()
	s, err := launch(cmd)
	if err != nil {
		return err
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-s.done
	})
	p.server = s
	for i := range p.clients.nodes {
		p.clients.nodes[i].Store(&s.base)
	}
	return nil
}

// restart starts everything again. The service must not have fenced its ranges: a write of
// the witness that was interrupted is no damage.
func (p *powerEnv) restart(t *testing.T) {
	t.Helper()
	if err := p.startAgain(t); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(p.server.log.String(), "fenced") { // the ledger finds a fence that is logged later
		t.Errorf("the ranges are fenced:\n%s", p.server.log)
	}
}

// lost counts the acknowledged invoices that the database does not have. The clients send
// nothing meanwhile: a series would have ten times as many invoices, and say no more.
func (p *powerEnv) lost(t *testing.T) (count int) {
	t.Helper()
	p.clients.gate.Lock()
	defer p.clients.gate.Unlock()
	s := p.openStore(t)
	defer func() { _ = s.Close() }() // before the next cut
	for n, first := range p.clients.acks {
		if inv, err := s.InvoiceByExternalID(t.Context(), p.scope(), "ext-"+strconv.Itoa(n)); err != nil || inv.ID != first.id() {
			count++
		}
	}
	return count
}

// checkWitness checks that the witness knows every number that the authority has. Its
// records are read without the code of the service.
func (p *powerEnv) checkWitness(t *testing.T, seed uint64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(p.disk.Dir, "data", "witness-certification"))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	torn := false
	highest := map[string]int{} // by type
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		at := max(strings.LastIndexByte(line, ' '), 0)
		if len(words) < 2 || fmt.Sprintf(" %08x\n", crc32.ChecksumIEEE([]byte(line[:at]))) != line[at:] {
			torn = true
			break
		}
		if len(words) == 6 {
			number, err := strconv.Atoi(words[4])
			if err != nil {
				t.Fatal(err)
			}
			highest[words[2]] = max(highest[words[2]], number)
		}
	}
	if torn {
		p.torn++
	}
	for _, d := range p.sim.Documents(simulator.Filter{}) {
		if number, err := strconv.Atoi(d.ENCF[3:]); err != nil || number > highest[d.ENCF[1:3]] {
			t.Errorf("seed %d: the authority has %s, and the highest number in the witness is %d (%v)", seed, d.ENCF, highest[d.ENCF[1:3]], err)
		}
	}
}

// settle stops the clients and waits until every document has its final status.
func (p *powerEnv) settle(t *testing.T) {
	t.Helper()
	p.clients.stopAll()
	eventually(t, verdictLimit, "every document has its final status", func() bool { return p.isSettled(t, p.server.base) })
}

// makeUnsafe gives the running PostgreSQL server a setting that the service refuses when it
// starts.
func (p *powerEnv) makeUnsafe(t *testing.T, setting string) {
	t.Helper()
	if p.pg == nil {
		return // the program itself is unsafe
	}
	name, value, _ := strings.Cut(setting, "=")
	if err := p.pg.Configure(name, value); err != nil {
		t.Fatal(err)
	}
	p.unsafe = true
	p.disk.Sync(t) // the setting itself is not what the cut shall lose
}

// buildUnsafeSQLite builds the program with PRAGMA synchronous=NORMAL.
func buildUnsafeSQLite(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs("../../internal/database/sqlite.go")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(source)
	changed := strings.Replace(string(text), `{"synchronous", "FULL", "2"}`, `{"synchronous", "NORMAL", "1"}`, 1)
	if err != nil || changed == string(text) {
		t.Fatalf("%s has no setting to change, %v", source, err)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{source: filepath.Join(dir, "sqlite.go")}})
	err = errors.Join(err, os.WriteFile(filepath.Join(dir, "sqlite.go"), []byte(changed), 0o600), os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	built := filepath.Join(dir, "fiscalhub")
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "../../scripts/build", built)
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false -overlay="+filepath.Join(dir, "overlay.json"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scripts/build: %v\n%s", err, out)
	}
	return built
}
