package database_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func timeline(t *testing.T, s *database.DB) string {
	t.Helper()
	name, err := s.Timeline(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return name
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
	s := open(t, address)
	before := timeline(t, s)
	want := func(what string, s *database.DB, want database.Replication) {
		t.Helper()
		var got database.Replication
		eventually(t, 20*time.Second, what, func() bool {
			var err error
			if got, err = s.Replication(t.Context()); err != nil {
				t.Fatal(err)
			}
			return got == want
		})
	}
	want("no standby", s, database.Replication{Known: true})
	standby := server.Standby(t, "second")
	want("an asynchronous standby", s, database.Replication{Standbys: 1, Known: true})
	if err := server.Configure("synchronous_standby_names", "second"); err != nil {
		t.Fatal(err)
	}
	want("a synchronous standby", s, database.Replication{Standbys: 1, Synchronous: 1, Known: true})
	third := server.Standby(t, "third")
	want("a synchronous standby and another one", s, database.Replication{Standbys: 2, Synchronous: 1, Known: true})
	for names, synchronous := range map[string]int{
		"FIRST 1 (second, third)": 1, "FIRST 2 (second, third)": 2, "ANY 1 (second, third)": 0, "any 2 (second, third)": 2, "2 (second, third)": 2,
	} {
		if err := server.Configure("synchronous_standby_names", names); err != nil {
			t.Fatal(err)
		}
		got := database.Replication{Standbys: 2, Synchronous: synchronous, Known: true}
		want(names, s, got)
		if got.Lossless() != (synchronous == 2) {
			t.Errorf("%s: lossless %t", names, got.Lossless())
		}
	}
	if err := server.Configure("synchronous_standby_names", "second"); err != nil {
		t.Fatal(err)
	}
	third.Stop()
	want("the other standby is gone", s, database.Replication{Standbys: 1, Synchronous: 1, Known: true})
	want("commits that wait for no standby", open(t, address+"&synchronous_commit=local"),
		database.Replication{Standbys: 1, Known: true})

	db := admin(t, address)
	run(t, db, `CREATE ROLE ordinary LOGIN`)
	run(t, db, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO ordinary`)
	ordinary := open(t, strings.Replace(address, "user=postgres", "user=ordinary", 1))
	if got, err := ordinary.Replication(t.Context()); err != nil || got.Known {
		t.Errorf("an ordinary role: %+v, %v; want an unknown state", got, err)
	}
	run(t, db, `GRANT pg_read_all_stats TO ordinary`)
	want("an ordinary role with the right", ordinary, database.Replication{Standbys: 1, Synchronous: 1, Known: true})
	if got := timeline(t, ordinary); got != before {
		t.Errorf("an ordinary role reads the timeline %q, want %q", got, before)
	}

	if err := insertItem(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	follower := open(t, standby.URL("failover"))
	if got, err := follower.Timeline(t.Context()); !errors.Is(err, database.ErrUnavailable) {
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
	if n := countItems(t, follower); n != 1 {
		t.Errorf("%d items after the failover to a synchronous standby, want 1", n)
	}
}

// A role without the right to read the timeline gets "unknown", not an error.
func TestTheTimelineIsUnknownWithoutTheRight(t *testing.T) {
	t.Parallel()
	server := storetest.PrivatePostgres(t)
	address := server.Empty(t)
	open(t, address)
	db := admin(t, address)
	run(t, db, `CREATE ROLE limited LOGIN`)
	run(t, db, `GRANT SELECT ON ALL TABLES IN SCHEMA public TO limited`)
	run(t, db, `REVOKE EXECUTE ON FUNCTION pg_control_system() FROM public`)
	limited := open(t, strings.Replace(address, "user=postgres", "user=limited", 1))
	if got := timeline(t, limited); got != database.UnknownTimeline {
		t.Errorf("the timeline is %q, want %q", got, database.UnknownTimeline)
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
			s := open(t, address)
			if got := timeline(t, s); got != database.UnknownTimeline {
				t.Errorf("the timeline is %q, want %q", got, database.UnknownTimeline)
			}
		})
	}
}
