package systemtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
	"github.com/fiscalhub/fiscalhub/systemtest/power"
)

// cutsOfASeries is how often one service loses its power before all documents are
// compared with the authority.
const cutsOfASeries = 10

// powerEngines returns the engines to test. `make power` may select one.
func powerEngines() []string {
	if engine := os.Getenv("POWER_ENGINE"); engine != "" {
		return []string{engine}
	}
	return storetest.Engines()
}

// The machine of the service loses its power at random moments under load, and with it
// everything that was not synced. Nothing that was acknowledged may be lost, the witness
// must know every number that the authority has, and no number may be used twice.
// POWER_RUNS is the number of cuts for each engine.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	for _, engine := range powerEngines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			cuts, profile, documents := setting(t, "POWER_RUNS", 0), "flaky", 40
			if cuts == 0 {
				cuts, profile, documents = map[string]int{"sqlite": 2, "postgres": 1}[engine], "happy", 12
			}
			figures := newFigureTable("series", "cuts", clientColumns, "torn witness", ledgerColumns)
			for series := 0; cuts > series*cutsOfASeries; series++ {
				t.Run(strconv.Itoa(series+1), func(t *testing.T) {
					figures.row(series+1, powerSeries(t, engine, profile, min(cuts-series*cutsOfASeries, cutsOfASeries), documents))
				})
			}
			t.Logf("%d power cuts on %s\n%s", cuts, engine, figures)
		})
	}
}

// powerSeries cuts the power of one service several times, then lets it finish all
// documents and compares them with the authority. It returns the figures.
func powerSeries(t *testing.T, engine, profile string, cuts, documents int) []any {
	t.Helper()
	p := startPower(t, engine, profile, harness.Program(t))
	for i := range cuts {
		p.clients.reachMore(t, documents/2+rand.IntN(documents))
		p.cut(t, i, rand.Uint64())
		p.restart(t)
		if lost := p.lost(t); lost > 0 {
			t.Fatalf("%d acknowledged invoices are lost", lost)
		}
	}
	p.clients.reachMore(t, documents/2)
	l, _ := p.clients.finish(t)
	return slices.Concat([]any{cuts}, p.clients.figures(), []any{p.torn}, l.figures())
}

// The same test must fail for a service that does not wait for the disk. Package
// power has a short form of it.
func TestPowerLossOfAnUnsafeService(t *testing.T) {
	if setting(t, "POWER_RUNS", 0) == 0 {
		t.Skip("`make power` runs this test")
	}
	for _, engine := range powerEngines() {
		for _, unsafe := range map[string][]string{"sqlite": {"synchronous=NORMAL"}, "postgres": {"fsync=off", "synchronous_commit=off"}}[engine] {
			t.Run(engine+" with "+unsafe, func(t *testing.T) {
				service := harness.Program(t)
				if engine == "sqlite" {
					service = buildUnsafeSQLite(t)
				}
				p := startPower(t, engine, "happy", service)
				for cut := 1; cut <= 20; cut++ {
					p.makeUnsafe(t, unsafe)
					p.clients.reachMore(t, 20+rand.IntN(20))
					p.cut(t, cut, rand.Uint64())
					if err := p.startAgain(t); err != nil {
						t.Logf("found after %d cuts: the service does not start any more: %.300s", cut, err)
						return
					}
					if lost := p.lost(t); lost > 0 {
						t.Logf("found after %d cuts: %d acknowledged invoices are lost", cut, lost)
						return
					}
				}
				t.Error("20 power cuts lost nothing: the test would not find a service that does not sync")
			})
		}
	}
}

// A command that creates the data folder must also sync the name of the folder: without
// it a power cut removes the folder with the master key and the database.
func TestANewDataFolderSurvivesAPowerCut(t *testing.T) {
	t.Parallel()
	disk := power.Start(t)
	data := filepath.Join(disk.Dir, "new", "data")
	id := harness.Ask(t, "id", "taxpayer", "create", "--rnc", "199000013", "--legal-name", "Prueba, SRL", "--address", "Calle 1", "--data", data)
	disk.CutStrict(t)
	disk.Mount(t)
	if got := harness.Ask(t, "legal_name", "taxpayer", "show", id, "--data", data); got != "Prueba, SRL" {
		t.Errorf("after a power cut the taxpayer is %q", got)
	}
}

// A powerEnv is a service under load. Its data folder and its database are on a disk that
// loses its power; the authority and the clients are not.
type powerEnv struct {
	*env
	disk    *power.Disk
	pg      *storetest.Server // nil on SQLite
	server  *harness.Server
	clients *clients
	torn    int  // cuts that have interrupted a write of the witness
	unsafe  bool // makeUnsafe has changed the server
}

func startPower(t *testing.T, engine, profile, program string) *powerEnv {
	t.Helper()
	p := &powerEnv{disk: power.Start(t)}
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
	p.env = envOptions{program: program, address: address, profile: profile, data: filepath.Join(p.disk.Dir, "data")}.start(t)
	if p.pg != nil {
		// initdb and the copy of its files do not sync, and the files of a new database are
		// not all safe on this disk: docs/proof.md.
		p.disk.Sync(t)
	}
	p.server = p.serve(t)
	p.clients = startClients(t, p.env, p.server)
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
	_ = p.server.Cmd.Process.Kill() // it may have ended by itself, because the disk fails
	<-p.server.Done
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
	s, err := harness.Launch(harness.Command(t.Context(), p.program, append([]string{"serve", "--listen", "127.0.0.1:0"}, p.args...)...))
	if err != nil {
		return err
	}
	p.server = s.Until(t, nil)
	p.clients.pointAt(s)
	return nil
}

// restart starts everything again. The service must not have fenced its ranges: a write of
// the witness that was interrupted is no damage.
func (p *powerEnv) restart(t *testing.T) {
	t.Helper()
	if err := p.startAgain(t); err != nil {
		t.Fatal(err)
	}
	checkNoFence(t, p.server) // the ledger finds a fence that is logged later
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
		if inv, err := s.InvoiceByExternalID(t.Context(), p.scope(), "ext-"+strconv.Itoa(n)); err != nil || inv.ID != first.ID() {
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
	source, err := filepath.Abs("../internal/database/sqlite.go")
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
	if err := harness.Build("..", built, "-overlay="+filepath.Join(dir, "overlay.json")); err != nil {
		t.Fatal(err)
	}
	return built
}
