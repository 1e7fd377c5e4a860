package systemtest

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

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
			figures := newFigureTable("series", "cuts", "acknowledged", "retried", "torn witness", "lost", "untrue status", "numbers twice", "gaps", "violations")
			for series := 0; cuts > series*cutsOfASeries; series++ {
				t.Run(strconv.Itoa(series+1), func(t *testing.T) {
					figures.row(powerSeries(t, engine, profile, min(cuts-series*cutsOfASeries, cutsOfASeries), documents, strconv.Itoa(series+1))...)
				})
			}
			t.Logf("%d power cuts on %s\n%s", cuts, engine, figures)
		})
	}
}

// powerSeries cuts the power of one service several times, then lets it finish all
// documents and compares them with the authority. It returns the figures.
func powerSeries(t *testing.T, engine, profile string, cuts, documents int, name string) []string {
	t.Helper()
	p := startPower(t, engine, profile, harness.Program(t))
	for i := range cuts {
		p.clients.reach(t, int(p.clients.count.Load())+documents/2+rand.IntN(documents))
		p.cut(t, i, rand.Uint64())
		p.restart(t)
		if lost := p.lost(t); lost > 0 {
			t.Fatalf("%d acknowledged invoices are lost", lost)
		}
	}
	p.clients.reach(t, int(p.clients.count.Load())+documents/2)
	p.settle(t)
	p.clients.checkReplays(t)
	l := p.clients.checkLedger(t)
	if l.lost > 0 || l.abandoned > 0 {
		t.Errorf("%d acknowledged invoices are lost, and %d numbers were abandoned", l.lost, l.abandoned)
	}
	return []string{name, strconv.Itoa(cuts), strconv.Itoa(len(p.clients.acks)), strconv.Itoa(p.clients.retried), strconv.Itoa(p.torn),
		strconv.Itoa(l.lost), strconv.Itoa(l.untrue), strconv.Itoa(l.twice), strconv.Itoa(l.gaps), strconv.Itoa(l.violations)}
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
					p.clients.reach(t, int(p.clients.count.Load())+20+rand.IntN(20))
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
	id := command(t, "id", "taxpayer", "create", "--rnc", "199000013", "--legal-name", "Prueba, SRL", "--address", "Calle 1", "--data", data)
	disk.CutStrict(t)
	disk.Mount(t)
	if got := command(t, "legal_name", "taxpayer", "show", id, "--data", data); got != "Prueba, SRL" {
		t.Errorf("after a power cut the taxpayer is %q", got)
	}
}
