package live

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

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/witness"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// guard restarts the service with a witness, as a server starts.
func (w *env) guard(path string) {
	w.t.Helper()
	f, err := fence.Open(w.t.Context(), fence.Options{Store: w.store(), Env: w.options.Env, Path: path, Now: w.now, Log: w.options.Log, Wait: 2 * time.Second})
	w.must(err)
	w.t.Cleanup(func() { _ = f.Close() })
	w.options.Fence = f
	w.start()
}

// from returns the same env on another database.
func (w *env) from(address string) *env {
	w.t.Helper()
	other := *w
	other.options.Store, other.options.Fence = storetest.Open(w.t, address, w.now), nil
	other.start()
	return &other
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

func (w *env) fenced() []string {
	w.t.Helper()
	all, err := w.store().NumberRanges(w.t.Context())
	w.must(err)
	list := []string{}
	for _, s := range all {
		if !s.FencedAt.IsZero() {
			list = append(list, fmt.Sprintf("%s at %d", s.Type, s.Next))
		}
	}
	return list
}

func (w *env) releaser() fence.Releaser {
	return fence.Releaser{Store: w.store(), Authority: w.options.Authority, Identities: w.options.Identities, Fence: w.options.Fence, Now: w.now}
}

// release asks the authority and returns what came of it, as text.
func (w *env) release() []string {
	w.t.Helper()
	released, err := w.releaser().Release(w.t.Context(), w.scope)
	w.must(err)
	list := []string{}
	for _, r := range released {
		list = append(list, fmt.Sprintf("%s %d–%d: %d found, %d absent, %d unknown", r.Range.Type, r.From, r.To, r.Found, r.Absent, r.Unknown))
	}
	return list
}

func (w *env) refused(kind fiscal.Type) {
	w.t.Helper()
	missing, err := w.plan.Ready(w.t.Context(), w.scope, kind)
	w.must(err)
	if diff := cmp.Diff([]string{"sequence.fenced"}, codes(missing)); diff != "" {
		w.t.Errorf("type %s (-want +got):\n%s", kind, diff)
	}
}

func (w *env) equal(what string, want, got []string) {
	w.t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// ledger asserts that every number below the next one has a document or was
// given up, and none both.
func (w *env) ledger() {
	w.t.Helper()
	all, err := w.store().NumberRanges(w.t.Context())
	w.must(err)
	for _, s := range all {
		low, high := fmt.Sprintf("E%s%010d", s.Type, s.First), fmt.Sprintf("E%s%010d", s.Type, s.Last)
		burned, err := w.store().AbandonedNumbers(w.t.Context(), w.scope, issuerRNC, low, high)
		w.must(err)
		seen := map[string]int{}
		for _, b := range burned {
			seen[b.ENCF]++
		}
		page, err := w.store().ListInvoices(w.t.Context(), w.scope, store.InvoiceFilter{Limit: 1000})
		w.must(err)
		for _, inv := range page {
			inv = w.read(inv) // a list shows less
			if inv.Type == s.Type && inv.ENCF != "" {
				seen[inv.ENCF]++
			}
		}
		for n := s.First; n < s.Next; n++ {
			if encf := fmt.Sprintf("E%s%010d", s.Type, n); seen[encf] != 1 {
				w.t.Errorf("%s stands in the ledger %d times", encf, seen[encf])
			}
		}
	}
}

var bothKinds = []fiscal.Type{fiscal.FiscalCredit, fiscal.Consumer}

// A database that is restored from an older copy issues nothing until the
// authority was asked, and never a number twice.
func TestFenceOfARestoredDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address, envOptions{}), filepath.Join(t.TempDir(), "witness")
		w.guard(path)
		for range 5 {
			w.create(fiscal.FiscalCredit, 1000)
			w.create(fiscal.Consumer, 1000)
		}
		w.drive(time.Hour)
		waiting := w.create(fiscal.FiscalCredit, 1000)
		copied := backup(t, address)
		for range 4 {
			w.create(fiscal.FiscalCredit, 1000)
		}
		for range 5 {
			w.create(fiscal.Consumer, 1000)
		}
		w.drive(time.Hour)
		if got := w.read(waiting); got.ENCF != "E310000000006" {
			t.Fatalf("before: %+v", got)
		}

		w = w.from(copied)
		w.guard(path)
		w.equal("fenced", []string{"31 at 6", "32 at 6"}, w.fenced())
		for _, kind := range bothKinds {
			w.refused(kind)
		}
		w.drive(10 * time.Minute)
		if got := w.read(waiting); got.ENCF != "" || got.Status != fiscal.Queued {
			t.Errorf("what waited was numbered: %+v", got)
		}
		w.equal("after a while", []string{"31 at 6", "32 at 6"}, w.fenced())

		want := []string{"31 6–10: 5 found, 0 absent, 0 unknown", "32 6–10: 5 found, 0 absent, 0 unknown"}
		w.equal("released", want, w.release())
		w.equal("still fenced", []string{}, w.fenced())
		w.equal("again", []string{}, w.release())
		credit, consumer := w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.Consumer, 1000)
		w.drive(time.Hour)
		for inv, encf := range map[string]string{waiting.ID: "E310000000011", credit.ID: "E310000000012", consumer.ID: "E320000000011"} {
			if got := w.read(store.Invoice{ID: inv}); got.ENCF != encf || got.Status != fiscal.Accepted {
				t.Errorf("%s: %s %s, want %s accepted", got.ExternalID, got.ENCF, got.Status, encf)
			}
		}
		w.ledger()
		w.clean()

		// A copy of today is behind nothing.
		w = w.from(backup(t, copied))
		w.guard(path)
		w.equal("a copy of today", []string{}, w.fenced())
	})
}

// A copy has a document that was numbered and not sent yet, and the document was sent
// afterwards. After the restore the authority is asked before it is sent again.
func TestRestoredDocumentIsNotSentBlindly(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w, path := newEnv(t, address, envOptions{}), filepath.Join(t.TempDir(), "witness")
		w.guard(path)
		all := []store.Invoice{w.create(fiscal.FiscalCredit, 1000), w.create(fiscal.Consumer, 1000), w.create(fiscal.Consumer, 300_000)}
		worker := w.otherNode()
		worker.options.Point = func(point string) error {
			if point == "before witnessing" {
				return errors.New("the worker ends before it sends the document")
			}
			return nil
		}
		worker.start()
		worker.drive(0)
		copied := backup(t, address)
		for _, inv := range all {
			if w.read(inv).ENCF == "" {
				t.Fatalf("%s has no number in the copy", inv.ExternalID)
			}
		}
		w.drive(time.Hour)

		w = w.from(copied)
		w.guard(path)
		w.drive(time.Hour)
		for _, inv := range all {
			w.want(inv, "queued outcome_unknown accepted")
		}
		if sent := w.sim.Documents(simulator.Filter{}); len(sent) != len(all) {
			t.Errorf("the authority got %d documents, want %d", len(sent), len(all))
		}
		w.release()
		w.clean()
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
			w, path := newEnv(t, address, envOptions{}), filepath.Join(t.TempDir(), "witness")
			w.guard(path)
			w.equal("on an empty database", []string{}, w.fenced())
			for range 3 {
				w.create(fiscal.FiscalCredit, 1000)
			}
			w.drive(time.Hour)
			copied := backup(t, address)
			w.rule(1, simulator.Reception, simulator.Action{Fault: "F02", Store: no()}) // 4 never arrives
			w.create(fiscal.FiscalCredit, 1000)
			w.create(fiscal.FiscalCredit, 1000)
			w.drive(2 * time.Second)
			w.must(lose(path))

			untouched := backup(t, copied)
			again := w.from(copied)
			again.guard(path)
			again.equal("fenced", []string{"31 at 4", "32 at 1"}, again.fenced())
			restored := again.from(untouched) // once more, before anybody has asked
			restored.guard(path)
			restored.equal("twice", []string{"31 at 4", "32 at 1"}, restored.fenced())
			if _, err := again.releaser().Release(t.Context(), again.scope); !errors.Is(err, fence.ErrNotStated) {
				t.Errorf("nobody stated the last number: %v", err)
			}
			stating := again.releaser()
			stating.Stated = []fence.Stated{{Type: fiscal.FiscalCredit, Number: 5}, {Type: fiscal.Consumer}}
			released, err := stating.Release(t.Context(), again.scope)
			if err != nil || len(released) != 2 || released[0].To != 5 || released[0].Found != 1 || released[0].Absent != 1 || released[1].To != 0 {
				t.Errorf("stated: %+v, %v", released, err)
			}
			again.guard(path)
			again.equal("at the next start", []string{}, again.fenced())
			inv := again.create(fiscal.FiscalCredit, 1000)
			again.drive(time.Hour)
			if got := again.read(inv); got.ENCF != "E310000000006" {
				t.Errorf("%+v", got)
			}
			again.ledger()
			again.clean()
		})
	}
}

// A witness that is damaged while the service runs fences the ranges.
func TestAWitnessThatIsDamagedMeanwhileFences(t *testing.T) {
	t.Parallel()
	w, path := newEnv(t, storetest.Address(t, "sqlite"), envOptions{}), filepath.Join(t.TempDir(), "witness")
	w.guard(path)
	w.create(fiscal.FiscalCredit, 1000)
	w.drive(time.Hour)
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	w.must(err)
	_, err = file.WriteString("no record\n")
	w.must(errors.Join(err, file.Close()))
	w.refused(fiscal.FiscalCredit)
	w.equal("fenced", []string{"31 at 2"}, w.fenced())
	if _, err := w.releaser().Release(t.Context(), w.scope); err == nil {
		t.Error("a damaged witness released a range")
	}
}

// A number is in the file before the authority gets its document.
func TestWitnessIsWrittenBeforeSending(t *testing.T) {
	t.Parallel()
	w, path := newEnv(t, storetest.Address(t, "sqlite"), envOptions{}), filepath.Join(t.TempDir(), "witness")
	w.guard(path)
	seen := &watcher{Authority: w.options.Authority, path: path}
	w.options.Authority = seen
	w.start()
	for range 3 {
		w.create(fiscal.FiscalCredit, 1000)
		w.create(fiscal.Consumer, 1000)
	}
	w.drive(time.Hour)
	if seen.sent != 6 || len(seen.late) > 0 {
		t.Errorf("%d sent, not in the file: %v", seen.sent, seen.late)
	}

	// A witness that cannot be kept keeps the document from being sent, and no
	// attempt is left that might have arrived.
	w.must(w.options.Fence.Close())
	inv := w.create(fiscal.FiscalCredit, 1000)
	w.drive(time.Minute)
	attempts, err := w.store().Attempts(t.Context(), w.scope, inv.DocumentID)
	w.must(err)
	if got := w.read(inv); len(attempts) > 0 || got.Status != fiscal.Queued || seen.sent != 6 {
		t.Errorf("%s with %d attempts", got.Status, len(attempts))
	}
}

// watcher looks into the file whenever something is sent.
type watcher struct {
	Authority
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
	send func(context.Context, fiscal.Shipment) (fiscal.Answer, error), release func(), err error,
) {
	inner, release, err := a.Authority.Reserve(ctx, id, rnc, summary)
	return func(ctx context.Context, s fiscal.Shipment) (fiscal.Answer, error) {
		a.look(s)
		return inner(ctx, s)
	}, release, err
}

// A further node begins its own witness only while another node shows life. The row of
// a node that is gone, as in a restored copy, proves nothing.
func TestFenceOfASecondNode(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, dir := newEnv(t, address, envOptions{}), t.TempDir()
	w.guard(filepath.Join(dir, "a"))
	w.create(fiscal.FiscalCredit, 1000)
	w.drive(time.Hour)
	w.must(w.options.Fence.Beat(t.Context()))
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				w.clock.Advance(time.Second)
				if err := w.options.Fence.Beat(t.Context()); err != nil {
					t.Errorf("heartbeat: %v", err)
				}
			}
		}
	}()
	other := w.from(address)
	other.guard(filepath.Join(dir, "b"))
	other.equal("beside one that lives", []string{}, other.fenced())
	ranges, err := w.store().NumberRangesOf(t.Context(), w.scope, fiscal.FiscalCredit)
	w.must(err)
	if mark, err := other.options.Fence.Mark(issuerRNC, ranges[0]); err != nil || mark != (witness.Mark{Seen: 1, Sent: 1}) {
		t.Errorf("%+v, %v", mark, err)
	}
	close(stop)
	<-done
	third := w.from(address) // the last heartbeat is seconds old
	third.guard(filepath.Join(dir, "c"))
	third.equal("alone", []string{"31 at 2", "32 at 1"}, third.fenced())
}

// A new node with an empty disk begins its witness when no number was sent. But a copy from
// before the first number does not know the numbers that were sent later; that a failover
// was is all it knows.
func TestFenceOfANewNodeBeforeTheFirstNumber(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, dir := newEnv(t, address, envOptions{}), t.TempDir()
	w.guard(filepath.Join(dir, "a"))
	w.must(w.options.Fence.Beat(t.Context())) // and the node is gone
	second := w.from(address)
	second.guard(filepath.Join(dir, "b"))
	second.equal("on the same timeline", []string{}, second.fenced())

	w.recordTimeline("7-00000001")
	third := w.from(address)
	third.guard(filepath.Join(dir, "c"))
	third.equal("after a failover", []string{"31 at 1", "32 at 1"}, third.fenced())
}

// The database is recorded as complete only after its ranges are fenced. A new node that
// ends between the two leaves nothing behind on its disk, and the next new node fences them.
func TestRangesAreFencedBeforeTheTimelineIsRecorded(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, dir := newEnv(t, address, envOptions{}), t.TempDir()
	w.recordTimeline("7-00000001")
	locked, err := storetest.OpenSQL(t, address).BeginTx(t.Context(), nil)
	w.must(err)
	_, err = locked.ExecContext(t.Context(), `SELECT 1 FROM number_ranges FOR UPDATE`)
	w.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := fence.Open(ctx, fence.Options{Store: w.store(), Env: w.options.Env, Path: filepath.Join(dir, "a"), Now: w.now, Log: w.options.Log}); err == nil {
		t.Fatal("a node has started although it could not fence the ranges")
	}
	w.must(locked.Rollback())
	w.guard(filepath.Join(dir, "b"))
	w.equal("fenced", []string{"31 at 1", "32 at 1"}, w.fenced())
}

// A node that ended in its first start has a witness and does not know on which timeline it
// worked. The database says it.
func TestFenceOfAWitnessWithoutATimeline(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	w, path := newEnv(t, address, envOptions{}), filepath.Join(t.TempDir(), "witness")
	w.guard(path)
	w.must(os.Remove(path + ".timeline"))
	w.guard(path)
	w.equal("on the same timeline", []string{}, w.fenced())
	w.must(os.Remove(path + ".timeline"))
	w.recordTimeline("7-00000001")
	w.guard(path)
	w.equal("after a failover", []string{"31 at 1", "32 at 1"}, w.fenced())
}

// recordTimeline lets the database say that it is complete on a timeline.
func (w *env) recordTimeline(timeline string) {
	w.t.Helper()
	w.must(w.store().Update(w.t.Context(), func(tx *store.Tx) error { return tx.RecordTimeline(w.t.Context(), w.options.Env, timeline) }))
}

// Each heartbeat raises the witness to what other nodes have sent.
func TestWitnessFollowsOtherNodes(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "postgres")
	a, dir := newEnv(t, address, envOptions{}), t.TempDir()
	b := a.from(address)
	a.guard(filepath.Join(dir, "a"))
	b.guard(filepath.Join(dir, "b"))
	for range 3 {
		a.create(fiscal.FiscalCredit, 1000)
	}
	a.drive(time.Hour)
	ranges, err := a.store().NumberRangesOf(t.Context(), a.scope, fiscal.FiscalCredit)
	a.must(err)
	a.clock.Advance(5 * time.Second)
	b.must(b.options.Fence.Beat(t.Context()))
	if mark, err := b.options.Fence.Mark(issuerRNC, ranges[0]); err != nil || mark != (witness.Mark{Seen: 3, Sent: 3}) {
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
			w, path := newEnv(t, storetest.Address(t, "postgres"), envOptions{}), filepath.Join(t.TempDir(), "witness")
			w.guard(path)
			now, err := w.store().Timeline(t.Context())
			w.must(err)
			system, timeline, _ := strings.Cut(now, "-")
			w.must(os.WriteFile(path+".timeline", []byte(tt.before(system, timeline)+"\nlossless\n"), 0o600))
			w.guard(path)
			w.equal("fenced", tt.want, w.fenced())
		})
	}
}

// A range that was added after the backup is not there after the restore. Who
// adds it again does not get its numbers again.
func TestFenceOfARangeThatIsAddedAgain(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	w, path := newEnv(t, address, envOptions{}), filepath.Join(t.TempDir(), "witness")
	w.guard(path)
	copied := backup(t, address)
	add := func(w *env, last int64) {
		s := store.NumberRange{Scope: w.scope, ID: store.NewID(), Type: fiscal.Consumer, First: 2001, Last: last, Next: 2001, CreatedAt: w.now()}
		w.must(w.store().Update(t.Context(), func(tx *store.Tx) error { return tx.AddNumberRange(t.Context(), s) }))
	}
	database, err := w.store().DatabaseID(t.Context())
	w.must(err)
	file, err := witness.Open(path, string(w.options.Env), database)
	w.must(err)
	w.must(file.RaiseSent(witness.Range{RNC: issuerRNC, Type: string(fiscal.Consumer), First: 2001, Last: 3000}, 2007))
	w.must(file.Close())
	w = w.from(copied)
	w.guard(path)
	w.equal("without the range", []string{}, w.fenced())
	add(w, 2500)
	_, err = w.plan.Ready(t.Context(), w.scope, fiscal.Consumer) // the server runs
	w.must(err)
	w.equal("added again", []string{"32 at 2001"}, w.fenced())
}

// A heartbeat reads the ranges, and documents are numbered and shown before it reads the
// witness. The range is not behind, and nothing of it is in doubt.
func TestNumbersThatAreTakenMeanwhileAreNotInDoubt(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		w := newEnv(t, address, envOptions{})
		w.guard(filepath.Join(t.TempDir(), "witness"))
		w.create(fiscal.FiscalCredit, 1000)
		w.drive(time.Hour)
		before, err := w.store().NumberRangesOf(t.Context(), w.scope, fiscal.FiscalCredit)
		w.must(err)
		w.maintain(true)
		var sales []store.Invoice
		for range 12 {
			sales = append(sales, w.create(fiscal.FiscalCredit, 1000))
		}
		w.pass(1)
		attempts := func() (n int) {
			for _, inv := range sales {
				all, err := w.store().Attempts(t.Context(), w.scope, inv.DocumentID)
				w.must(err)
				n += len(all)
			}
			return n
		}
		sent := attempts()
		_, err = w.options.Fence.Inspect(t.Context(), issuerRNC, before)
		w.must(err)
		w.equal("fenced", []string{}, w.fenced())
		if n := attempts(); n != sent {
			t.Errorf("%d documents that wait are said to have been sent", n-sent)
		}
	})
}
