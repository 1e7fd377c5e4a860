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

// whole checks that a database opens, has all migrations, and stores an invoice.
func whole(t *testing.T, address string) {
	t.Helper()
	s, err := store.Open(t.Context(), address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob("migrations/" + s.Engine() + "/*.sql")
	if rows := count(t, s, "schema_migrations"); err != nil || rows != len(files) || rows == 0 {
		t.Errorf("%d migrations are recorded, %v; want %d", rows, err, len(files))
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
			cmd := storetest.Helper(t, address)
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
	rounds := sizeOf(t, "MIGRATION_KILLS", 4)
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
	cmd := storetest.Helper(t, address)
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

func TestANewerBreakingSchemaIsRefused(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		address = storetest.As(address, storetest.Migrator)
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

// Nodes of the earlier program continue while the first node of the newer program has
// migrated the database, and they can be restarted.
func TestANewerCompatibleSchemaIsAccepted(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		address = storetest.As(address, storetest.Migrator)
		s := storetest.Open(t, address, time.Now)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			return tx.Exec(ctx, `INSERT INTO schema_migrations (version, applied_at) VALUES ($1, $2)`, 9999, 1)
		})
		if err := s.Ready(t.Context()); err != nil {
			t.Errorf("Ready: %v", err)
		}
		if err := storetest.Open(t, address, time.Now).Ready(t.Context()); err != nil {
			t.Errorf("after a restart: %v", err)
		}
		if version, err := s.SchemaVersion(t.Context()); err != nil || version != 9999 {
			t.Errorf("the schema version is %d, %v; want 9999", version, err)
		}
	})
}

// firstRelease is the schema version that programs of the first release know.
const firstRelease = 7

// Programs of the first release are ready only while the greatest version in
// schema_versions is their own. A cluster must run through an upgrade, so this holds on
// PostgreSQL. On SQLite one process uses the database, and a migration that renames tables
// ends the time of earlier programs.
func TestProgramsOfTheFirstReleaseStayReady(t *testing.T) {
	t.Parallel()
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var version int64
		if err := s.QueryRow(t.Context(), `SELECT coalesce(max(version), 0) FROM schema_versions`).Scan(&version); err != nil {
			t.Fatal(err)
		}
		want := map[string]int64{"postgres": firstRelease, "sqlite": 30}[s.Engine()]
		if newest, err := s.SchemaVersion(t.Context()); err != nil || version != want || newest < version {
			t.Errorf("an earlier program sees version %d of %d, %v; want %d", version, newest, err, want)
		}
	})
}

func TestADatabaseThatMissesAMigrationIsNotReady(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		address = storetest.As(address, storetest.Migrator)
		s := storetest.Open(t, address, time.Now)
		update(t, s, func(ctx context.Context, tx *store.Tx) error {
			if err := tx.Exec(ctx, `DROP TABLE database_identity`); err != nil {
				return err
			}
			return tx.Exec(ctx, `DELETE FROM schema_migrations WHERE version = $1`, 9)
		})
		if err := s.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "0009_database_identity") {
			t.Errorf("got %v, want an error that names the migration", err)
		}
		if err := storetest.Open(t, address, time.Now).Ready(t.Context()); err != nil {
			t.Errorf("after the migration: %v", err)
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

// An interrupted migration keeps the steps that are complete, and the next one goes on
// with the others.
func TestAnInterruptedMigrationContinues(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, empty func() string) {
		address := empty()
		open := func(ctx context.Context, onMigration func(done, missing int)) error {
			s, err := store.Open(ctx, address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler), OnMigration: onMigration})
			if err != nil {
				return err
			}
			return s.Close()
		}
		ctx, cancel := context.WithCancel(t.Context())
		all := 0
		err := open(ctx, func(done, missing int) {
			if all = missing; done == 3 {
				cancel()
			}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("interrupted: %v", err)
		}
		var reports [][2]int
		if err := open(t.Context(), func(done, missing int) { reports = append(reports, [2]int{done, missing}) }); err != nil {
			t.Fatal(err)
		}
		want := all - 3
		if len(reports) != want+1 || reports[0] != [2]int{0, want} || reports[want] != [2]int{want, want} {
			t.Errorf("the second run reported %v, want 0 to %d of %d", reports, want, want)
		}
		whole(t, address)
	})
}
