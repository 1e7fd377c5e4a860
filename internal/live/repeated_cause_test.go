package live_test

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
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
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
	w.T.Helper()
	lines := &logged{}
	log := slog.New(slog.NewTextHandler(lines, nil))
	w.DGII.Pace, w.DGII.Log = pace, log
	client, err := dgii.New(w.DGII)
	w.Must(err)
	w.Client = client
	w.T.Cleanup(client.Close)
	w.Options.Authority, w.Options.Log = client, log
	w.Options.Pace, w.Engine.Pace = pace, pace
	w.Start()
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
			w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ClockSkew = simulator.Duration(5 * time.Minute) }))
		},
		"the certificate": func(w *env) { w.Options.Identities = expired{} },
		"the delegation": func(w *env) {
			w.Must(w.Sim.UpdateTaxpayer(livetest.IssuerRNC, func(t *simulator.Taxpayer) error { t.Delegates = nil; return nil }))
		},
		"a stage that fails": func(w *env) {
			w.Options.Point = func(name string) error {
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
				w.Create(fiscal.FiscalCredit, 1000)
			}
			prepare(w)
			lines := w.restart(60)
			w.Drive(5 * time.Minute)
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
	w.DGII, w.DGII.Now = c.client, w.Store().Now
	lines := w.restart(60)
	for range 3 {
		w.Create(fiscal.FiscalCredit, 1000)
	}
	w.Drive(5 * time.Minute)
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
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{Receiver: true})
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ClockSkew = simulator.Duration(5 * time.Minute) }))
	w.restart(60)
	inv := w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(10 * time.Second)
	w.Want(inv, "queued")
	w.Must(w.Sim.Configure(func(c *simulator.Config) { c.ClockSkew = 0 }))
	w.Drive(6 * time.Second)
	w.Want(inv, "queued submitted accepted delivered")
}

// The pace reaches the pause after a stage that failed.
func TestThePaceReachesAStageThatFails(t *testing.T) {
	t.Parallel()
	w := newEnv(t, storetest.Address(t, "sqlite"), envOptions{})
	w.Options.Point = func(name string) error {
		if name == "before issuing" {
			return errors.New("the disk is full")
		}
		return nil
	}
	w.restart(100)
	inv := w.Create(fiscal.FiscalCredit, 1000)
	jobs, err := w.Claim(t.Context(), livetest.MaxClaim)
	w.Must(err)
	for _, job := range jobs {
		w.RunJob(t.Context(), job)
	}
	job, err := w.Store().JobOf(t.Context(), w.Scope, inv.DocumentID)
	w.Must(err)
	if wait := job.RunAt.Sub(w.Now()); wait <= 0 || wait > time.Second {
		t.Errorf("the next try is in %s", wait)
	}
}
