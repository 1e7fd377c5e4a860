package store_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// addSequence adds a range of the taxpayer in production.
func addSequence(t *testing.T, s *store.Store) store.NumberRange {
	t.Helper()
	scope := store.Scope{Environment: fiscal.Production, TaxpayerID: addScope(t, s).TaxpayerID}
	made := store.NumberRange{Scope: scope, ID: store.NewID(), Type: fiscal.Consumer, First: 1, Last: 100, Next: 1, CreatedAt: noon}
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.AddNumberRange(ctx, made) })
	return made
}

func TestFenceBehindAMark(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		made := addSequence(t, s)
		fence := func(mark int64) (done bool) {
			update(t, s, func(ctx context.Context, tx *store.Tx) (err error) {
				done, err = tx.FenceBehind(ctx, made, mark, noon)
				return err
			})
			return done
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.TakeNumbers(ctx, made, 5) })
		if fence(5) {
			t.Error("fenced by what it has issued itself")
		}
		if !fence(6) || fence(7) {
			t.Error("it is fenced once, by a number that it has not issued")
		}
		read, err := s.NumberRange(t.Context(), made.Scope, made.ID)
		if err != nil || !read.FencedAt.Equal(noon) || read.Next != 6 {
			t.Fatalf("%+v, %v", read, err)
		}
		take := func(from store.NumberRange) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.TakeNumbers(t.Context(), from, 1) })
		}
		if err := take(read); !errors.Is(err, store.ErrNumbersTaken) {
			t.Errorf("a number of a fenced range: %v", err)
		}
		release := func(of store.NumberRange, next int64) error {
			return s.Update(t.Context(), func(tx *store.Tx) error { return tx.ReleaseNumberRange(t.Context(), of, next) })
		}
		stale := read
		stale.FencedAt = noon.Add(-time.Hour)
		if err := release(stale, 9); !errors.Is(err, store.ErrNumbersTaken) {
			t.Errorf("the release of an earlier fence: %v", err)
		}
		if err := release(read, 9); err != nil {
			t.Fatal(err)
		}
		if err := release(read, 9); !errors.Is(err, store.ErrNumbersTaken) {
			t.Errorf("released twice: %v", err)
		}
		if read, err = s.NumberRange(t.Context(), made.Scope, made.ID); err != nil || !read.FencedAt.IsZero() || read.Next != 9 {
			t.Errorf("%+v, %v", read, err)
		}
		if err := take(read); err != nil {
			t.Error(err)
		}
		if _, err := s.NumberRange(t.Context(), addScope(t, s), made.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("somebody else's range: %v", err)
		}
	})
}

func TestBurnedNumbersStay(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		scope := addSequence(t, s).Scope
		b := func(encf string, found store.NumberPresence) store.AbandonedNumber {
			return store.AbandonedNumber{Scope: scope, RNC: "199000013", ENCF: encf, Presence: found, Detail: "«x»", At: noon}
		}
		want := []store.AbandonedNumber{b("E320000000006", store.NumberFound), b("E320000000007", store.NumberAbsent), b("E320000000010", store.NumberUnknown)}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.AbandonNumbers(ctx, want) })
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.AbandonNumbers(ctx, []store.AbandonedNumber{b("E320000000006", store.NumberAbsent)})
		})
		got, err := s.AbandonedNumbers(t.Context(), scope, "199000013", "E320000000006", "E320000000010")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, statement := range []string{`DELETE FROM burned`, `UPDATE burned SET found = 'absent'`} {
			if err := s.Update(t.Context(), func(tx *store.Tx) error { return tx.Exec(t.Context(), statement) }); err == nil {
				t.Errorf("%s is done", statement)
			}
		}
	})
}

func TestHighestSent(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		sequence := addSequence(t, s)
		sent := func() bool {
			t.Helper()
			any, err := s.HasSent(t.Context(), fiscal.Production)
			if err != nil {
				t.Fatal(err)
			}
			return any
		}
		highest := func(to string) string {
			t.Helper()
			encf, err := s.HighestSent(t.Context(), fiscal.Production, "199000013", "E320000000001", to)
			if err != nil {
				t.Fatal(err)
			}
			return encf
		}
		for _, row := range []struct{ encf, kind string }{{"E320000000001", "submit"}, {"E320000000002", "submit"}, {"E320000000003", "deliver"}, {"E320000000004", ""}} {
			if row.encf == "E320000000001" && (sent() || highest("E320000000100") != "") {
				t.Error("something was sent before anything was")
			}
			inv := addInvoice(t, s, sequence.Scope, row.encf)
			update(t, s, func(ctx context.Context, tx *store.Tx) error {
				err := tx.Issue(ctx, store.Issued{
					Scope: inv.Scope, RNC: "199000013", ENCF: row.encf, InvoiceID: inv.ID, DocumentID: inv.DocumentID, NumberRangeID: sequence.ID,
					SignedAt: noon, CreatedAt: noon, XMLDigest: []byte{1}, SentDigest: []byte{2}, XML: []byte{3},
				})
				if err != nil || row.kind == "" {
					return err
				}
				return tx.Do(ctx, new(store.Batch).OpenAttempt(store.Attempt{Scope: inv.Scope, DocumentID: inv.DocumentID, Number: 1, Kind: row.kind, Digest: []byte{2}, OpenedAt: noon}))
			})
		}
		if !sent() || highest("E320000000100") != "E320000000002" || highest("E320000000001") != "E320000000001" {
			t.Errorf("%t, %s, %s", sent(), highest("E320000000100"), highest("E320000000001"))
		}
		if other, err := s.HasSent(t.Context(), fiscal.Certification); err != nil || other {
			t.Errorf("elsewhere: %t, %v", other, err)
		}
	})
}

func TestNodesAreSeen(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		see := func(n store.Node) {
			update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.RecordHeartbeat(ctx, n) })
		}
		alive := func() bool {
			t.Helper()
			is, err := s.WitnessAlive(t.Context(), fiscal.Production, noon)
			if err != nil {
				t.Fatal(err)
			}
			return is
		}
		node := store.Node{ID: "a", Environment: fiscal.Production, HasWitness: true, SeenAt: noon.Add(-time.Second)}
		see(node)
		see(store.Node{ID: "b", Environment: fiscal.Production, SeenAt: noon})
		see(store.Node{ID: "c", Environment: fiscal.Certification, HasWitness: true, SeenAt: noon})
		if alive() {
			t.Error("too long ago, without a witness, or elsewhere")
		}
		node.SeenAt = noon
		see(node)
		if !alive() {
			t.Error("it is not seen")
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.DeleteNodes(ctx, "a", noon.Add(-time.Hour)) })
		if alive() || count(t, s, "nodes") != 2 {
			t.Error("it is not forgotten")
		}
	})
}

// A backup that is taken while others write is whole, and of one moment.
func TestBackupWhileOthersWrite(t *testing.T) {
	t.Parallel()
	address := storetest.Address(t, "sqlite")
	s := storetest.Open(t, address, time.Now)
	scope := addScope(t, s)
	stop, begun := make(chan struct{}), make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.Register(t.Context(), sampleRegistration(sampleInvoice(scope, name("X", i)))); err != nil {
				t.Error(err)
				return
			}
			if i == 20 {
				close(begun)
			}
		}
	})
	<-begun
	for i := range 3 {
		file := filepath.Join(t.TempDir(), name("copy", i)+".db")
		size, err := store.Backup(t.Context(), address, file)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil || info.Size() != size || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v, want %d bytes", info, err, size)
		}
		if _, err := store.Backup(t.Context(), address, file); !errors.Is(err, fs.ErrExist) {
			t.Errorf("over a file: %v", err)
		}
		copied := storetest.Open(t, "sqlite:"+file, time.Now)
		if n := count(t, copied, "invoices"); n < 20 || n != count(t, copied, "history") || n != count(t, copied, "idempotency") {
			t.Errorf("%d invoices, %d events, %d answers", n, count(t, copied, "history"), count(t, copied, "idempotency"))
		}
		if got := lines(t, copied, `PRAGMA integrity_check`); strings.Join(got, "") != "ok" {
			t.Errorf("integrity: %v", got)
		}
	}
	close(stop)
	writer.Wait()
}

func TestBackupOfNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "copy.db")
	if _, err := store.Backup(t.Context(), "sqlite:"+filepath.Join(dir, "none.db"), file); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no database: %v", err)
	}
	if _, err := store.Backup(t.Context(), "postgres://127.0.0.1:1/x", file); !errors.Is(err, store.ErrHasOwnTools) {
		t.Errorf("a server: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
