package fence_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/live"
	"github.com/fiscalhub/fiscalhub/internal/live/livetest"
	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/witness"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// from returns the same env on another database.
func (w *env) from(address string) *env {
	w.T.Helper()
	same := *w.Env
	other := &env{&same}
	other.Options.Store, other.Options.Fence = storetest.Open(w.T, address, w.Now), nil
	other.Start()
	return other
}

// backup copies the database while it runs, and returns the address of the copy.
func backup(t *testing.T, address string) string {
	t.Helper()
	if strings.HasPrefix(address, "sqlite:") {
		file := filepath.Join(t.TempDir(), "backup.db")
		if _, err := database.Backup(t.Context(), address, file, nil); err != nil {
			t.Fatal(err)
		}
		return "sqlite:" + file
	}
	tools, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil {
		t.Fatal(err)
	}
	path := append(tools, filepath.SplitList(os.Getenv("PATH"))...)
	tool := func(name string) string {
		for i := range path {
			if full := filepath.Join(path[i], name); exec.CommandContext(t.Context(), full, "--version").Run() == nil {
				return full
			}
		}
		needtest.Missing(t, "postgresql", "there is no "+name)
		return ""
	}
	file, copied := filepath.Join(t.TempDir(), "dump.sql"), storetest.Postgres(t).Empty(t)
	for _, cmd := range []*exec.Cmd{
		exec.CommandContext(t.Context(), tool("pg_dump"), "-f", file, address),
		exec.CommandContext(t.Context(), tool("psql"), "-q", "-v", "ON_ERROR_STOP=1", "-f", file, copied),
	} {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd.Path, err, out)
		}
	}
	return copied
}

// release asks the authority and returns what came of it, as text.
func (w *env) release() []string {
	w.T.Helper()
	released, err := w.Releaser().Release(w.T.Context(), w.Scope)
	w.Must(err)
	list := []string{}
	for _, r := range released {
		list = append(list, fmt.Sprintf("%s %d–%d: %d found, %d absent, %d unknown", r.Range.Type, r.From, r.To, r.Found, r.Absent, r.Unknown))
	}
	return list
}

var bothKinds = []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer}

// A database that is restored from an older copy issues nothing until the
// authority was asked, and never a number twice.
func TestFenceOfARestoredDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		for range 5 {
			w.Create(fiscal.FiscalCredit, 1000)
			w.Create(fiscal.Consumer, 1000)
		}
		w.Drive(time.Hour)
		waiting := w.Create(fiscal.FiscalCredit, 1000)
		copied := backup(t, address)
		for range 4 {
			w.Create(fiscal.FiscalCredit, 1000)
		}
		for range 5 {
			w.Create(fiscal.Consumer, 1000)
		}
		w.Drive(time.Hour)
		if got := w.Read(waiting); got.ENCF != "E310000000006" {
			t.Fatalf("before: %+v", got)
		}

		w = w.from(copied)
		w.Guard(path)
		w.Equal("fenced", []string{"31 at 6", "32 at 6"}, w.Fenced())
		for _, kind := range bothKinds {
			w.Refused(kind)
		}
		w.Drive(10 * time.Minute)
		if got := w.Read(waiting); got.ENCF != "" || got.Status != fiscal.Queued {
			t.Errorf("what waited was numbered: %+v", got)
		}
		w.Equal("after a while", []string{"31 at 6", "32 at 6"}, w.Fenced())

		want := []string{"31 6–10: 5 found, 0 absent, 0 unknown", "32 6–10: 5 found, 0 absent, 0 unknown"}
		w.Equal("released", want, w.release())
		w.Equal("still fenced", []string{}, w.Fenced())
		w.Equal("again", []string{}, w.release())
		credit, consumer := w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000)
		w.Drive(time.Hour)
		for inv, encf := range map[string]string{waiting.ID: "E310000000011", credit.ID: "E310000000012", consumer.ID: "E320000000011"} {
			if got := w.Read(store.Invoice{ID: inv}); got.ENCF != encf || got.Status != fiscal.Accepted {
				t.Errorf("%s: %s %s, want %s accepted", got.ExternalID, got.ENCF, got.Status, encf)
			}
		}
		w.Ledger()
		w.Clean()

		// A copy of today is behind nothing.
		w = w.from(backup(t, copied))
		w.Guard(path)
		w.Equal("a copy of today", []string{}, w.Fenced())
	})
}

// A copy has a document that was numbered and not sent yet, and the document was sent
// afterwards. After the restore the authority is asked before it is sent again.
func TestRestoredDocumentIsNotSentBlindly(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
		w.Guard(path)
		all := []store.Invoice{w.Create(fiscal.FiscalCredit, 1000), w.Create(fiscal.Consumer, 1000), w.Create(fiscal.Consumer, 300_000)}
		worker := w.otherNode()
		worker.Options.Point = func(point string) error {
			if point == "before witnessing" {
				return errors.New("the worker ends before it sends the document")
			}
			return nil
		}
		worker.Start()
		worker.Drive(0)
		copied := backup(t, address)
		for _, inv := range all {
			if w.Read(inv).ENCF == "" {
				t.Fatalf("%s has no number in the copy", inv.ExternalID)
			}
		}
		w.Drive(time.Hour)

		w = w.from(copied)
		w.Guard(path)
		w.Drive(time.Hour)
		for _, inv := range all {
			w.Want(inv, "queued outcome_unknown accepted")
		}
		if sent := w.Sim.Documents(simulator.Filter{}); len(sent) != len(all) {
			t.Errorf("the authority got %d documents, want %d", len(sent), len(all))
		}
		w.release()
		w.Clean()
	})
}

// Without a witness nobody knows which numbers were seen, and the authority knows only
// those that were sent. An operator has to state the last one.
func TestFenceWithoutAWitness(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"missing": os.Remove,
		"damaged": func(path string) error {
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text[len(text)/2] ^= 1
			return os.WriteFile(path, text, 0o600)
		},
		"cut": func(path string) error { return os.Truncate(path, 150) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := storetest.Address(t, "sqlite")
			w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
			w.Guard(path)
			w.Equal("on an empty database", []string{}, w.Fenced())
			for range 3 {
				w.Create(fiscal.FiscalCredit, 1000)
			}
			w.Drive(time.Hour)
			copied := backup(t, address)
			w.Rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: livetest.No()}) // 4 never arrives
			w.Create(fiscal.FiscalCredit, 1000)
			w.Create(fiscal.FiscalCredit, 1000)
			w.Drive(2 * time.Second)
			w.Must(lose(path))

			untouched := backup(t, copied)
			again := w.from(copied)
			again.Guard(path)
			again.Equal("fenced", []string{"31 at 4", "32 at 1"}, again.Fenced())
			restored := again.from(untouched) // once more, before anybody has asked
			restored.Guard(path)
			restored.Equal("twice", []string{"31 at 4", "32 at 1"}, restored.Fenced())
			if _, err := again.Releaser().Release(t.Context(), again.Scope); !errors.Is(err, fence.ErrNotStated) {
				t.Errorf("nobody stated the last number: %v", err)
			}
			stating := again.Releaser()
			stating.Stated = []fence.Stated{{Type: fiscal.FiscalCredit, Number: 5}, {Type: fiscal.Consumer}}
			released, err := stating.Release(t.Context(), again.Scope)
			if err != nil || len(released) != 2 || released[0].To != 5 || released[0].Found != 1 || released[0].Absent != 1 || released[1].To != 0 {
				t.Errorf("stated: %+v, %v", released, err)
			}
			again.Guard(path)
			again.Equal("at the next start", []string{}, again.Fenced())
			inv := again.Create(fiscal.FiscalCredit, 1000)
			again.Drive(time.Hour)
			if got := again.Read(inv); got.ENCF != "E310000000006" {
				t.Errorf("%+v", got)
			}
			again.Ledger()
			again.Clean()
		})
	}
}

// A witness that is damaged while the service runs fences the ranges.
func TestAWitnessThatIsDamagedMeanwhileFences(t *testing.T) {
	t.Parallel()
	w, path := newEnv(t, storetest.Address(t, "sqlite")), filepath.Join(t.TempDir(), "witness")
	w.Guard(path)
	w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(time.Hour)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	w.Must(err)
	_, err = file.WriteString("no record\n")
	w.Must(errors.Join(err, file.Close()))
	w.Refused(fiscal.FiscalCredit)
	w.Equal("fenced", []string{"31 at 2"}, w.Fenced())
	if _, err := w.Releaser().Release(t.Context(), w.Scope); err == nil {
		t.Error("a damaged witness released a range")
	}
}

// A number is in the file before the authority gets its document.
func TestWitnessIsWrittenBeforeSending(t *testing.T) {
	t.Parallel()
	w, path := newEnv(t, storetest.Address(t, "sqlite")), filepath.Join(t.TempDir(), "witness")
	w.Guard(path)
	seen := &watcher{Authority: w.Options.Authority, path: path}
	w.Options.Authority = seen
	w.Start()
	for range 3 {
		w.Create(fiscal.FiscalCredit, 1000)
		w.Create(fiscal.Consumer, 1000)
	}
	w.Drive(time.Hour)
	if seen.sent != 6 || len(seen.late) > 0 {
		t.Errorf("%d sent, not in the file: %v", seen.sent, seen.late)
	}

	// A witness that cannot be kept keeps the document from being sent, and no
	// attempt is left that might have arrived.
	w.Must(w.Options.Fence.Close())
	inv := w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(time.Minute)
	attempts, err := w.Store().Attempts(t.Context(), w.Scope, inv.DocumentID)
	w.Must(err)
	if got := w.Read(inv); len(attempts) > 0 || got.Status != fiscal.Queued || seen.sent != 6 {
		t.Errorf("%s with %d attempts", got.Status, len(attempts))
	}
}

// watcher looks into the file whenever something is sent.
type watcher struct {
	live.Authority
	path string
	sent int
	late []string
}

func (a *watcher) look(s fiscal.Shipment) {
	text, err := os.ReadFile(a.path)
	var number int
	if _, scan := fmt.Sscanf(s.ENCF[3:], "%d", &number); err != nil || scan != nil ||
		!strings.Contains(string(text), fmt.Sprintf("sent %s %s 1 %d ", s.RNC, s.ENCF[1:3], number)) {
		a.late = append(a.late, s.ENCF)
	}
	a.sent++
}

func (a *watcher) Reserve(ctx context.Context, id *xmlsig.Identity, rnc string, summary bool) (
	send func(context.Context, fiscal.Shipment) (fiscal.AuthorityAnswer, error), release func(), err error,
) {
	inner, release, err := a.Authority.Reserve(ctx, id, rnc, summary)
	return func(ctx context.Context, s fiscal.Shipment) (fiscal.AuthorityAnswer, error) {
		a.look(s)
		return inner(ctx, s)
	}, release, err
}

// A further node begins its own witness only while another node shows life. The row of
// a node that is gone, as in a restored copy, proves nothing.
func TestFenceOfASecondNode(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, dir := newEnv(t, address), t.TempDir()
	w.Guard(filepath.Join(dir, "a"))
	w.Create(fiscal.FiscalCredit, 1000)
	w.Drive(time.Hour)
	w.Must(w.Options.Fence.Beat(t.Context()))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				w.Clock.Advance(time.Second)
				if err := w.Options.Fence.Beat(t.Context()); err != nil {
					t.Errorf("heartbeat: %v", err)
				}
			}
		}
	}()
	other := w.from(address)
	other.Guard(filepath.Join(dir, "b"))
	other.Equal("beside one that lives", []string{}, other.Fenced())
	ranges, err := w.Store().NumberRangesOf(t.Context(), w.Scope, fiscal.FiscalCredit)
	w.Must(err)
	if mark, err := other.Options.Fence.Mark(livetest.IssuerRNC, ranges[0]); err != nil || mark != (witness.Mark{Seen: 1, Sent: 1}) {
		t.Errorf("%+v, %v", mark, err)
	}
	close(stop)
	<-done
	third := w.from(address) // the last heartbeat is seconds old
	third.Guard(filepath.Join(dir, "c"))
	third.Equal("alone", []string{"31 at 2", "32 at 1"}, third.Fenced())
}

// A new node with an empty disk begins its witness when no number was sent. But a copy from
// before the first number does not know the numbers that were sent later; that a failover
// was is all it knows.
func TestFenceOfANewNodeBeforeTheFirstNumber(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, dir := newEnv(t, address), t.TempDir()
	w.Guard(filepath.Join(dir, "a"))
	w.Must(w.Options.Fence.Beat(t.Context())) // and the node is gone
	second := w.from(address)
	second.Guard(filepath.Join(dir, "b"))
	second.Equal("on the same timeline", []string{}, second.Fenced())

	w.recordTimeline("7-00000001")
	third := w.from(address)
	third.Guard(filepath.Join(dir, "c"))
	third.Equal("after a failover", []string{"31 at 1", "32 at 1"}, third.Fenced())
}

// The database is recorded as complete only after its ranges are fenced. A new node that
// ends between the two leaves nothing behind on its disk, and the next new node fences them.
func TestRangesAreFencedBeforeTheTimelineIsRecorded(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, dir := newEnv(t, address), t.TempDir()
	w.recordTimeline("7-00000001")
	locked, err := storetest.OpenSQL(t, address).BeginTx(t.Context(), nil)
	w.Must(err)
	_, err = locked.ExecContext(t.Context(), `SELECT 1 FROM number_ranges FOR UPDATE`)
	w.Must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := fence.Open(ctx, fence.Options{Store: w.Store(), Env: w.Options.Env, Path: filepath.Join(dir, "a"), Now: w.Now, Log: w.Options.Log}); err == nil {
		t.Fatal("a node has started although it could not fence the ranges")
	}
	w.Must(locked.Rollback())
	w.Guard(filepath.Join(dir, "b"))
	w.Equal("fenced", []string{"31 at 1", "32 at 1"}, w.Fenced())
}

// A node that ended in its first start has a witness and does not know on which timeline it
// worked. The database says it.
func TestFenceOfAWitnessWithoutATimeline(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
	w.Guard(path)
	w.Must(os.Remove(path + ".timeline"))
	w.Guard(path)
	w.Equal("on the same timeline", []string{}, w.Fenced())
	w.Must(os.Remove(path + ".timeline"))
	w.recordTimeline("7-00000001")
	w.Guard(path)
	w.Equal("after a failover", []string{"31 at 1", "32 at 1"}, w.Fenced())
}

// recordTimeline lets the database say that it is complete on a timeline.
func (w *env) recordTimeline(timeline string) {
	w.T.Helper()
	w.Must(w.Store().Update(w.T.Context(), func(tx *store.Tx) error { return tx.RecordTimeline(w.T.Context(), w.Options.Env, timeline) }))
}

// Each heartbeat raises the witness to what other nodes have sent.
func TestWitnessFollowsOtherNodes(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	a, dir := newEnv(t, address), t.TempDir()
	b := a.from(address)
	a.Guard(filepath.Join(dir, "a"))
	b.Guard(filepath.Join(dir, "b"))
	for range 3 {
		a.Create(fiscal.FiscalCredit, 1000)
	}
	a.Drive(time.Hour)
	ranges, err := a.Store().NumberRangesOf(t.Context(), a.Scope, fiscal.FiscalCredit)
	a.Must(err)
	a.Clock.Advance(5 * time.Second)
	b.Must(b.Options.Fence.Beat(t.Context()))
	if mark, err := b.Options.Fence.Mark(livetest.IssuerRNC, ranges[0]); err != nil || mark != (witness.Mark{Seen: 3, Sent: 3}) {
		t.Errorf("the witness of the other node has %+v, %v; want number 3", mark, err)
	}
}

// Commits that waited for a standby excuse a later timeline of the same server, and
// nothing else: another server, or an earlier timeline, is an older copy.
func TestOnlyALaterTimelineIsAFailover(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		before func(system, timeline string) string
		want   []string
	}{
		"an earlier timeline is followed by this one":  {func(system, _ string) string { return system + "-00000000" }, []string{}},
		"a later timeline is not followed by this one": {func(system, _ string) string { return system + "-00000009" }, []string{"31 at 1", "32 at 1"}},
		"another server is not followed by this one":   {func(_, timeline string) string { return "7-" + timeline }, []string{"31 at 1", "32 at 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, path := newEnv(t, storetest.Address(t, "postgres")), filepath.Join(t.TempDir(), "witness")
			w.Guard(path)
			now, err := w.Store().Timeline(t.Context())
			w.Must(err)
			system, timeline, _ := strings.Cut(now, "-")
			w.Must(os.WriteFile(path+".timeline", []byte(tt.before(system, timeline)+"\nlossless\n"), 0o600))
			w.Guard(path)
			w.Equal("fenced", tt.want, w.Fenced())
		})
	}
}

// A range that was added after the backup is not there after the restore. Who
// adds it again does not get its numbers again.
func TestFenceOfARangeThatIsAddedAgain(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	w, path := newEnv(t, address), filepath.Join(t.TempDir(), "witness")
	w.Guard(path)
	copied := backup(t, address)
	add := func(w *env, last int64) {
		s := store.NumberRange{Scope: w.Scope, ID: store.NewID(), Type: fiscal.Consumer, First: 2001, Last: last, Next: 2001, CreatedAt: w.Now()}
		w.Must(w.Store().Update(t.Context(), func(tx *store.Tx) error { return tx.AddNumberRange(t.Context(), s) }))
	}
	database, err := w.Store().DatabaseID(t.Context())
	w.Must(err)
	file, err := witness.Open(path, string(w.Options.Env), database)
	w.Must(err)
	w.Must(file.RaiseSent(witness.Range{RNC: livetest.IssuerRNC, Type: string(fiscal.Consumer), First: 2001, Last: 3000}, 2007))
	w.Must(file.Close())
	w = w.from(copied)
	w.Guard(path)
	w.Equal("without the range", []string{}, w.Fenced())
	add(w, 2500)
	_, err = w.Plan.Ready(t.Context(), w.Scope, fiscal.Consumer) // the server runs
	w.Must(err)
	w.Equal("added again", []string{"32 at 2001"}, w.Fenced())
}

// A heartbeat reads the ranges, and documents are numbered and shown before it reads the
// witness. The range is not behind, and nothing of it is in doubt.
func TestNumbersThatAreTakenMeanwhileAreNotInDoubt(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address)
		w.Guard(filepath.Join(t.TempDir(), "witness"))
		w.Create(fiscal.FiscalCredit, 1000)
		w.Drive(time.Hour)
		before, err := w.Store().NumberRangesOf(t.Context(), w.Scope, fiscal.FiscalCredit)
		w.Must(err)
		w.Maintain(true)
		var sales []store.Invoice
		for range 12 {
			sales = append(sales, w.Create(fiscal.FiscalCredit, 1000))
		}
		w.Pass(1)
		attempts := func() (n int) {
			for _, inv := range sales {
				all, err := w.Store().Attempts(t.Context(), w.Scope, inv.DocumentID)
				w.Must(err)
				n += len(all)
			}
			return n
		}
		sent := attempts()
		_, err = w.Options.Fence.Inspect(t.Context(), livetest.IssuerRNC, before)
		w.Must(err)
		w.Equal("fenced", []string{}, w.Fenced())
		if n := attempts(); n != sent {
			t.Errorf("%d documents that wait are said to have been sent", n-sent)
		}
	})
}
