package store_test

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// eachEmpty runs fn on each engine. empty returns the address of a new database without
// tables.
func eachEmpty(t *testing.T, fn func(t *testing.T, empty func() string)) {
	t.Helper()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		fn(t, func() string { return "sqlite:" + filepath.Join(t.TempDir(), "fiscalhub.db") })
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		server := storetest.Postgres(t)
		fn(t, func() string { return server.Empty(t) })
	})
}

// whole checks that a database opens, has one row for each migration, and stores an
// invoice.
func whole(t *testing.T, address string) {
	t.Helper()
	s, err := store.Open(t.Context(), address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	version, err := s.SchemaVersion(t.Context())
	if rows := count(t, s, "schema_versions"); err != nil || int64(rows) != version || version == 0 {
		t.Errorf("schema version %d in %d rows, %v", version, rows, err)
	}
	addInvoice(t, s, addScope(t, s), store.NewID())
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestConcurrentOpensOfAnEmptyDatabaseMigrateOnce(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, empty func() string) {
		address := empty()
		together(12, func(int) {
			s, err := store.Open(context.WithoutCancel(t.Context()), address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := s.SchemaVersion(t.Context()); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		whole(t, address)
	})
}

func TestConcurrentProcessesMigrateAnEmptyDatabaseOnce(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, empty func() string) {
		address := empty()
		var all sync.WaitGroup
		for range 6 {
			cmd := helper(t, address)
			all.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%v\n%s", err, out)
				}
			})
		}
		all.Wait()
		whole(t, address)
	})
}

func TestADatabaseOpensAfterAKillDuringMigration(t *testing.T) {
	t.Parallel()
	const rounds = 12
	eachEmpty(t, func(t *testing.T, empty func() string) {
		early := 0
		for range rounds {
			address := empty()
			if !killWhileOpening(t, address) {
				early++
			}
			whole(t, address)
		}
		t.Logf("%d of %d processes were killed before they finished", early, rounds)
	})
}

// killWhileOpening kills a process at a random moment while it opens a database, and
// reports whether the process had finished.
func killWhileOpening(t *testing.T, address string) (done bool) {
	t.Helper()
	cmd := helper(t, address)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		t.Fatalf("the helper did not begin: %v", lines.Err())
	}
	time.Sleep(rand.N(60 * time.Millisecond)) // the test needs a random moment
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() {
		done = done || lines.Text() == "opened"
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return done
}

func TestANewerSchemaIsRefused(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		s := storetest.Open(t, address, time.Now)
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("a new store: %v", err)
		}
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, `INSERT INTO schema_versions (version, applied_at) VALUES ($1, $2)`, 9999, 1)
		})
		if err := s.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "9999") {
			t.Errorf("Ready for a newer schema: %v, want an error with the version", err)
		}
		newer, err := store.Open(t.Context(), address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Fatal("Open returned no error", newer.Close())
		}
		for _, want := range []string{"9999", "newer"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("the message %q does not contain %s", err, want)
			}
		}
	})
}

func TestOpeningAgainMigratesNothing(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		applied := func(s *store.Store) (at int64) {
			if err := s.QueryRow(t.Context(), `SELECT sum(applied_at) FROM schema_versions`).Scan(&at); err != nil {
				t.Fatal(err)
			}
			return at
		}
		first := applied(storetest.Open(t, address, time.Now))
		again := applied(storetest.Open(t, address, func() time.Time { return noon.AddDate(10, 0, 0) }))
		if first != again {
			t.Errorf("applied at %d and at %d", first, again)
		}
	})
}
