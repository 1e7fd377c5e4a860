package live

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/dgii"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// logged collects log lines.
type logged struct {
	mu    sync.Mutex
	lines bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lines.Write(b)
}

// alarms returns the lines of warnings and errors.
func (l *logged) alarms() (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.lines.String()) {
		if strings.Contains(line, "level=WARN") || strings.Contains(line, "level=ERROR") {
			found = append(found, line)
		}
	}
	return found
}

// restart starts the service again with a pace and a log.
func (w *env) restart(pace wake.Pace) *logged {
	w.t.Helper()
	lines := &logged{}
	log := slog.New(slog.NewTextHandler(lines, nil))
	w.dgii.Pace, w.dgii.Log = pace, log
	client, err := dgii.New(w.dgii)
	w.must(err)
	w.client = client
	w.t.Cleanup(client.Close)
	w.options.Authority, w.options.Log = client, log
	w.options.Pace, w.engine.Pace = pace, pace
	w.start()
	return lines
}

// expired are identities without a valid certificate.
type expired struct{}

func (expired) Identity(context.Context, store.Scope, time.Time) (*xmlsig.Identity, error) {
	return nil, access.ErrCertificateExpired
}

// While documents wait for one thing, the log has one line about it, however many wait and
// however often they try.
func TestOneCauseIsOneLine(t *testing.T) {
	t.Parallel()
	const documents = 5
	for name, prepare := range map[string]func(*env){
		"the authority's clock": func(w *env) {
			w.must(w.sim.Configure(func(c *simulator.Config) { c.ClockSkew = simulator.Duration(5 * time.Minute) }))
		},
		"the certificate": func(w *env) { w.options.Identities = expired{} },
		"the delegation": func(w *env) {
			w.must(w.sim.UpdateTaxpayer(issuerRNC, func(t *simulator.Taxpayer) error { t.Delegates = nil; return nil }))
		},
		"a stage that fails": func(w *env) {
			w.options.Point = func(name string) error {
				if name == "before issuing" {
					return errors.New("the disk is full")
				}
				return nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
			for range documents {
				w.create(fiscal.FiscalCredit, 1000)
			}
			prepare(w)
			lines := w.restart(60)
			w.drive(5 * time.Minute)
			if got := lines.alarms(); len(got) > 2 {
				t.Errorf("%d warnings and errors for one cause:\n%s", len(got), strings.Join(got[:3], ""))
			}
		})
	}
}

// A node whose clock is wrong says so once, and once more when it happens again.
func TestAWrongClockOfANodeIsOneLine(t *testing.T) {
	t.Parallel()
	c := newCrashEnv(t, "sqlite", trials()[0])
	w := c.skewed(t, 10*time.Minute, &points{})
	w.dgii, w.dgii.Now = c.client, w.store().Now
	lines := w.restart(60)
	for range 3 {
		w.create(fiscal.FiscalCredit, 1000)
	}
	w.drive(5 * time.Minute)
	if got := lines.alarms(); len(got) != 1 || !strings.Contains(got[0], "The clock of this node") {
		t.Errorf("%d lines: %.600s", len(got), strings.Join(got, ""))
	}
	if got := strings.Count(lines.lines.String(), "\n"); got > 10 {
		t.Errorf("%d lines for 3 documents that wait", got)
	}
}

// The pace reaches the waits for the authority's clock: when it is right again, documents
// continue within seconds.
func TestThePaceReachesTheWaitsForTheClock(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{receiver: true})
	w.must(w.sim.Configure(func(c *simulator.Config) { c.ClockSkew = simulator.Duration(5 * time.Minute) }))
	w.restart(60)
	inv := w.create(fiscal.FiscalCredit, 1000)
	w.drive(10 * time.Second)
	w.want(inv, "queued")
	w.must(w.sim.Configure(func(c *simulator.Config) { c.ClockSkew = 0 }))
	w.drive(6 * time.Second)
	w.want(inv, "queued submitted accepted delivered")
}

// The pace reaches the pause after a stage that failed.
func TestThePaceReachesAStageThatFails(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	w.options.Point = func(name string) error {
		if name == "before issuing" {
			return errors.New("the disk is full")
		}
		return nil
	}
	w.restart(100)
	inv := w.create(fiscal.FiscalCredit, 1000)
	jobs, err := w.Claim(t.Context(), maxClaim)
	w.must(err)
	for _, job := range jobs {
		w.RunJob(t.Context(), job)
	}
	job, err := w.store().JobOf(t.Context(), w.scope, inv.DocumentID)
	w.must(err)
	if wait := job.RunAt.Sub(w.now()); wait <= 0 || wait > time.Second {
		t.Errorf("the next try is in %s", wait)
	}
}
