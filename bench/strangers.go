package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	strangerTime   = 4 * time.Second // of a round
	strangerRounds = 5
	strangerRate   = 50  // creations per second of the tenant that is measured
	strangerMemory = 512 // MiB, the limit of the process
)

// strangers compares the time of one tenant's creations while others misuse the
// service with the quiet time of the same run.
func (b *bench) strangers(ctx context.Context) error {
	limits := []string{"--rate-limit", "1000000", "--memory-limit", fmt.Sprintf("%dMiB", strangerMemory)}
	for _, engine := range storetest.Engines() {
		s, err := b.startService(ctx, engine, "strangers", limits...)
		if err != nil {
			return err
		}
		other, err := b.newTenant(ctx, s)
		if err != nil {
			return errors.Join(err, s.stop())
		}
		err = b.underAttack(ctx, engine, s, other, "readers", "writers", "large", "keys")
		if err := errors.Join(err, s.stop()); err != nil {
			return err
		}
		live, err := b.startLive(ctx, engine, "strangers_live", 0, limits...)
		if err != nil {
			return err
		}
		// Without the authority the documents wait: only creations are measured.
		_ = live.simulator.Process.Kill() // stop waits for its end
		err = b.underAttack(ctx, engine, live.service, live.service, "documents")
		if err := errors.Join(err, live.stop()); err != nil {
			return err
		}
	}
	return nil
}

// underAttack measures the creations of a tenant during each attack of another one,
// and alone before each. It does so in several rounds and takes the median round: the
// disk of a shared machine sometimes stops for longer than a hundred creations take.
func (b *bench) underAttack(ctx context.Context, engine string, s, other *service, names ...string) error {
	next, run := s.newInvoices(s.key), 0
	measure := func() (time.Duration, error) {
		run++
		got, err := s.open(ctx, 16, strangerRate, strangerTime, func(n int) []byte { return next(run, n) })
		if err == nil && len(got.statuses) > 1 {
			err = fmt.Errorf("answers by status: %v", got.statuses)
		}
		return got.quantile(http.StatusAccepted, 0.99), err
	}
	if _, err := measure(); err != nil { // the first creations open connections and fill caches
		return err
	}
	for _, a := range attacks() {
		if !slices.Contains(names, a.name) {
			continue
		}
		b.say("%s on %s", a.title, engine)
		var alone, during []time.Duration
		for range strangerRounds {
			quiet, err := measure()
			if err != nil {
				return err
			}
			stop, err := startAttack(ctx, a.name, other)
			if err != nil {
				return err
			}
			time.Sleep(time.Second) // so that the attack is under way
			attacked, err := measure()
			if err := errors.Join(err, stop()); err != nil {
				return fmt.Errorf("%s: %w", a.title, err)
			}
			time.Sleep(time.Second) // so that its last requests are answered
			alone, during = append(alone, quiet), append(during, attacked)
		}
		peak, err := s.peakMemory()
		if err != nil {
			return err
		}
		slices.Sort(alone)
		slices.Sort(during)
		measured, quiet := during[strangerRounds/2], alone[strangerRounds/2]
		b.row(fmt.Sprintf("creation p99 at %d/s, %s, during %s", strangerRate, engine, a.title), milliseconds(measured), milliseconds(quiet),
			float64(measured)/float64(quiet), "< 2", "the same creations alone, in between")
		b.row("  peak memory of the process so far", fmt.Sprintf("%d MiB", peak), fmt.Sprintf("%d MiB", strangerMemory),
			float64(peak)/strangerMemory, "< 1", "--memory-limit")
	}
	return nil
}

// newTenant returns the service as another taxpayer uses it.
func (b *bench) newTenant(ctx context.Context, s *service) (*service, error) {
	other := *s
	var err error
	if other.taxpayer, err = b.field(ctx, s.database, "id", "taxpayer", "create", "--rnc", "199000021", "--legal-name", "Otra, SRL", "--address", "Calle 2"); err != nil {
		return nil, err
	}
	other.key, err = b.newKey(ctx, &other)
	return &other, err
}

// peakMemory returns the most memory that the process has had, in MiB.
func (s *service) peakMemory() (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	found := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	if found == nil {
		return 0, errors.New("this system does not show the memory of a process")
	}
	kib, err := strconv.ParseInt(string(found[1]), 10, 64)
	return kib >> 10, err
}
