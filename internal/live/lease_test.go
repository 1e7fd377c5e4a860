package live

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/evidence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/wake"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// A worker stands still until its lease has run out and another one has
// taken over, and then goes on. Wherever it stood, the same bytes are at the
// authority, there is one history, and what the late one has learnt is kept.
func TestLeaseThatEndsAtEveryPoint(t *testing.T) {
	t.Parallel()
	for _, engine := range storetest.Engines() {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			for _, tr := range trials() {
				if !strings.HasSuffix(tr.name, "plain") || engine != "sqlite" && tr.name != "31 plain" {
					continue
				}
				t.Run(tr.name, func(t *testing.T) {
					t.Parallel()
					c := newCrashEnv(t, engine, tr)
					for n, name := range c.survive(t) {
						if strings.HasPrefix(name, "before ") {
							continue // where it stood from the end of the last thing
						}
						ok := t.Run(fmt.Sprintf("%02d %s, briefly", n+1, name), func(t *testing.T) { c.overtaken(t, n+1, false) }) &&
							t.Run(fmt.Sprintf("%02d %s, for long", n+1, name), func(t *testing.T) { c.overtaken(t, n+1, true) })
						if !ok {
							break // what is left over would be in the way of the next
						}
					}
				})
			}
		})
	}
}

// overtaken lets a worker stand still at a point while another one does the next
// thing, or all that remains to be done.
func (c *crashEnv) overtaken(t *testing.T, at int, long bool) {
	t.Helper()
	c.begin(t)
	slowly, quickly := &points{}, &points{}
	stands, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	expired := false
	slowly.stop = func(n int) {
		switch {
		case n == at:
			close(stands)
			<-goOn
			expired = long
		case slowly.names[n-1] == "before claim":
			expired = false
		}
	}
	// The time of a stage is the real clock's, which has stood still: it is over.
	slowly.bound = func(ctx context.Context) context.Context {
		if !expired {
			return ctx
		}
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		return ctx
	}
	slow := c.service(t, c.store, slowly)
	go func() {
		defer close(done)
		slow.drive(12 * time.Hour)
	}()
	select {
	case <-stands:
	case <-done:
		t.Fatalf("point %d was never reached: %q", at, slowly.names)
	}
	c.clock.Advance(wake.MaxLease + time.Second)
	other := c.service(t, c.store, quickly)
	if long {
		other.drive(12 * time.Hour)
		c.clock.Advance(75 * time.Second) // as long as a stage may take
	} else {
		jobs, err := other.Claim(t.Context(), maxClaim)
		other.must(err)
		for _, job := range jobs {
			other.RunJob(t.Context(), job)
		}
		c.clock.Advance(time.Second)
	}
	seen := c.grown(t, other, nil)
	close(goOn)
	<-done
	seen = c.grown(t, other, seen)
	other.drive(12 * time.Hour)
	c.grown(t, other, seen)
	c.audit(t, other, slowly.sent()+quickly.sent(), 1)

	if !strings.HasPrefix(slowly.names[at-1], "after Submit") {
		return
	}
	answered := slices.ContainsFunc(seen, func(e store.Evidence) bool {
		return evidence.Kind(e.Kind) == evidence.Track || evidence.Kind(e.Kind) == evidence.Verdict
	})
	if !answered || !slices.Contains(slowly.names, "after late submit") {
		t.Errorf("the answer that came late was lost: %+v", seen)
	}
}

// A document that is not what was signed, or not what was sent before, is not
// sent, whatever has happened to the database.
func TestAlteredDocumentIsNotSent(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(*testing.T, *crashEnv){
		"its bytes": func(t *testing.T, c *crashEnv) {
			db := storetest.OpenSQL(t, c.address)
			for _, statement := range []string{
				`DROP TRIGGER issued_bytes_stay`,
				`UPDATE issued_documents SET xml = cast(replace(cast(xml AS text), 'Cosa', 'Casa') AS blob)`,
			} {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
		},
		"an earlier attempt": func(t *testing.T, c *crashEnv) {
			other := sha256.Sum256([]byte("other bytes"))
			a := store.Attempt{Scope: c.scope, DocumentID: c.inv.DocumentID, Number: 1, Kind: stageSubmit, Digest: other[:], OpenedAt: c.clock.Now()}
			err := c.store.Update(t.Context(), func(tx *store.Tx) error {
				if err := tx.Do(t.Context(), new(store.Batch).OpenAttempt(a)); err != nil {
					return err
				}
				return tx.Do(t.Context(), new(store.Batch).CloseAttempt(*closed(a, store.NotReceived, c.clock.Now())))
			})
			if err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCrashEnv(t, "sqlite", trials()[0])
			c.begin(t)
			p, done := &points{}, make(chan struct{})
			p.stop = func(n int) {
				if p.names[n-1] == "after issuing" {
					runtime.Goexit()
				}
			}
			go func() {
				defer close(done)
				c.service(t, c.store, p).drive(time.Hour)
			}()
			<-done
			alter(t, c)
			c.clock.Advance(wake.MaxLease + time.Second)
			w := c.service(t, c.store, &points{})
			w.drive(time.Hour)
			w.want(c.inv, string(fiscal.Queued))
			if got := c.sim.Documents(simulator.Filter{}); len(got) != 0 {
				t.Errorf("the authority has %d documents", len(got))
			}
			if _, err := w.store().NextJob(t.Context(), w.options.Env, w.now()); err != nil {
				t.Errorf("it is forgotten: %v", err)
			}
			if !bytes.Contains(c.logged.Bytes(), []byte("level=ERROR msg=\"A signed document was altered")) {
				t.Errorf("no error was logged: %s", c.logged.Bytes())
			}
		})
	}
}

// A watchedAuthority calls asked before each question for a verdict.
type watchedAuthority struct {
	Authority
	asked func()
}

func (a watchedAuthority) Result(ctx context.Context, id *xmlsig.Identity, trackID string) (fiscal.Answer, error) {
	a.asked()
	return a.Authority.Result(ctx, id, trackID)
}

// The lease of a slow worker ends soon after it asks for a verdict. Then no other worker may
// ask within a second, even if the slow one crashes. A worker without a lease does not ask.
func TestNoSecondWorkerAsksWithinASecond(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.must(w.sim.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
		other, asked := w.otherNode(), 0
		w.options.Authority = watchedAuthority{w.client, func() {
			asked++
			w.clock.Advance(time.Second)
			if jobs, err := other.Claim(t.Context(), maxClaim); err != nil || len(jobs) > 0 {
				t.Errorf("another worker has %d jobs a second later (%v)", len(jobs), err)
			}
		}}
		w.start()
		w.create(fiscal.FiscalCredit, 1000)
		w.drive(0)
		claim := func(e *env) store.Job {
			t.Helper()
			jobs, err := e.Claim(t.Context(), maxClaim)
			if err != nil || len(jobs) != 1 {
				t.Fatalf("%d jobs, %v", len(jobs), err)
			}
			return jobs[0]
		}
		w.clock.Advance(time.Second)
		slow := claim(w)
		w.clock.Advance(wake.MaxLease - 500*time.Millisecond)
		w.RunJob(t.Context(), slow)
		w.clock.Advance(time.Minute)
		slow = claim(w)
		w.clock.Advance(wake.MaxLease)
		claim(other)
		w.RunJob(t.Context(), slow)
		if asked != 1 {
			t.Errorf("%d look-ups, want 1", asked)
		}
	})
}
