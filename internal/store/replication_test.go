package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func timeline(t *testing.T, s *store.Store) string {
	t.Helper()
	name, err := s.Timeline(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTimelineNamesADatabase(t *testing.T) {
	t.Parallel()
	eachEmpty(t, func(t *testing.T, empty func() string) {
		address := empty()
		s := storetest.Open(t, address, time.Now)
		name := timeline(t, s)
		if len(name) < 10 || name == store.UnknownTimeline {
			t.Errorf("the timeline is %q", name)
		}
		if again := timeline(t, storetest.Open(t, address, time.Now)); again != name {
			t.Errorf("opened again: %q, want %q", again, name)
		}
		if other := timeline(t, storetest.Open(t, empty(), time.Now)); s.Engine() == "sqlite" && other == name {
			t.Errorf("two databases have the timeline %q", name)
		}
	})
}

// A failover is visible: the promoted standby has the same system and another timeline.
// The standbys are counted, with and without the right to see their state.
func TestAPromotedStandbyHasANewTimeline(t *testing.T) {
	t.Parallel()
	server := storetest.PrivatePostgres(t)
	address, err := server.Create("failover")
	if err != nil {
		t.Fatal(err)
	}
	s := storetest.Open(t, address, time.Now)
	before := timeline(t, s)
	want := func(what string, s *store.Store, want store.Replication) {
		t.Helper()
		var got store.Replication
		eventually(t, 20*time.Second, what, func() bool {
			var err error
			if got, err = s.Replication(t.Context()); err != nil {
				t.Fatal(err)
			}
			return got == want
		})
	}
	want("no standby", s, store.Replication{Known: true})
	standby := server.Standby(t, "second")
	want("an asynchronous standby", s, store.Replication{Standbys: 1, Known: true})
	if err := server.Configure("synchronous_standby_names", "second"); err != nil {
		t.Fatal(err)
	}
	want("a synchronous standby", s, store.Replication{Standbys: 1, Synchronous: 1, Known: true})
	third := server.Standby(t, "third")
	want("a synchronous standby and another one", s, store.Replication{Standbys: 2, Synchronous: 1, Known: true})
	for names, synchronous := range map[string]int{
		"FIRST 1 (second, third)": 1, "FIRST 2 (second, third)": 2, "ANY 1 (second, third)": 0, "any 2 (second, third)": 2, "2 (second, third)": 2,
	} {
		if err := server.Configure("synchronous_standby_names", names); err != nil {
			t.Fatal(err)
		}
		got := store.Replication{Standbys: 2, Synchronous: synchronous, Known: true}
		want(names, s, got)
		if got.Lossless() != (synchronous == 2) {
			t.Errorf("%s: lossless %t", names, got.Lossless())
		}
	}
	if err := server.Configure("synchronous_standby_names", "second"); err != nil {
		t.Fatal(err)
	}
	third.Stop()
	want("the other standby is gone", s, store.Replication{Standbys: 1, Synchronous: 1, Known: true})
	want("commits that wait for no standby", storetest.Open(t, address+"&synchronous_commit=local", time.Now),
		store.Replication{Standbys: 1, Known: true})

	db := admin(t, address)
	run(t, db, `CREATE ROLE ordinary LOGIN`)
	run(t, db, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ordinary`)
	ordinary := storetest.Open(t, strings.Replace(address, "user=postgres", "user=ordinary", 1), time.Now)
	if got, err := ordinary.Replication(t.Context()); err != nil || got.Known {
		t.Errorf("an ordinary role: %+v, %v; want an unknown state", got, err)
	}
	run(t, db, `GRANT pg_read_all_stats TO ordinary`)
	want("an ordinary role with the right", ordinary, store.Replication{Standbys: 1, Synchronous: 1, Known: true})
	if got := timeline(t, ordinary); got != before {
		t.Errorf("an ordinary role reads the timeline %q, want %q", got, before)
	}

	addScope(t, s)
	follower := storetest.Open(t, standby.URL("failover"), time.Now)
	if got, err := follower.Timeline(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a standby: %q, %v; want ErrUnavailable", got, err)
	}
	server.Halt()
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	after := timeline(t, follower)
	if system, _, _ := strings.Cut(before, "-"); after == before || !strings.HasPrefix(after, system+"-") {
		t.Errorf("the timeline is %q before and %q after the promotion", before, after)
	}
	if n := count(t, follower, "taxpayers"); n != 1 {
		t.Errorf("%d taxpayers after the failover to a synchronous standby, want 1", n)
	}
}

// A role without the right to read the timeline gets "unknown", not an error.
func TestTheTimelineIsUnknownWithoutTheRight(t *testing.T) {
	t.Parallel()
	server := storetest.PrivatePostgres(t)
	address := server.Empty(t)
	storetest.Open(t, address, time.Now)
	db := admin(t, address)
	run(t, db, `CREATE ROLE limited LOGIN`)
	run(t, db, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO limited`)
	run(t, db, `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM public`)
	limited := storetest.Open(t, strings.Replace(address, "user=postgres", "user=limited", 1), time.Now)
	if got := timeline(t, limited); got != store.UnknownTimeline {
		t.Errorf("the timeline is %q, want %q", got, store.UnknownTimeline)
	}
}

// Some hosted servers refuse the functions of the write-ahead log, each with another error.
// The database gets its migrations there, and its timeline is unknown.
func TestTheTimelineIsUnknownOnHostedServers(t *testing.T) {
	t.Parallel()
	server := storetest.PrivatePostgres(t)
	for _, code := range []string{"insufficient_privilege", "undefined_function", "feature_not_supported", "object_not_in_prerequisite_state"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			address := server.Empty(t)
			db := admin(t, address)
			run(t, db, `CREATE SCHEMA hosted`)
			run(t, db, `CREATE FUNCTION hosted.pg_current_wal_lsn() RETURNS pg_lsn LANGUAGE plpgsql AS 'BEGIN RAISE `+code+`; END'`)
			run(t, db, `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = hosted, pg_catalog, public', current_database()); END $$`)
			s := storetest.Open(t, address, time.Now)
			if got := timeline(t, s); got != store.UnknownTimeline {
				t.Errorf("the timeline is %q, want %q", got, store.UnknownTimeline)
			}
			for _, env := range []fiscal.Environment{fiscal.Certification, fiscal.Production} {
				if got, err := s.RecordedTimeline(t.Context(), env); err != nil || got != "" {
					t.Errorf("the recorded timeline of %s is %q, %v", env, got, err)
				}
			}
		})
	}
}
