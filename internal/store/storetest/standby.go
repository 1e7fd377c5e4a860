package storetest

import (
	"net/url"
	"path/filepath"
	"testing"
	"time"
)

// Standby starts a standby that follows the server, and stops it when the test ends. The
// setting synchronous_standby_names of the server can contain the name.
func (s *Server) Standby(t testing.TB, name string, settings ...string) *Server {
	t.Helper()
	standby, err := startServer("", settings, func(bin, data string) []string {
		return []string{filepath.Join(bin, "pg_basebackup"), "-d", "host=" + s.Dir + " user=postgres application_name=" + name,
			"--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync", "-D", data}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	return standby
}

// URLWith returns the address of a database of the server and of its standby. Clients use
// the one that accepts writes.
func (s *Server) URLWith(standby *Server, name string) string {
	return databaseURL(name, url.Values{"host": {s.Dir + "," + standby.Dir}, "target_session_attrs": {"read-write"}})
}

// Disconnect lets a standby replay everything that its primary has committed, and then
// ends its connection: from then on it misses every commit.
func (s *Server) Disconnect(t testing.TB, primary *Server) {
	t.Helper()
	from, to := OpenSQL(t, primary.URL("postgres")), OpenSQL(t, s.URL("postgres"))
	var position string
	if err := from.QueryRowContext(t.Context(), `SELECT pg_current_wal_lsn()::text`).Scan(&position); err != nil {
		t.Fatal(err)
	}
	wait := func(what, query string, args ...any) {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			var yes bool
			if err := to.QueryRowContext(t.Context(), query, args...).Scan(&yes); err != nil {
				t.Fatal(err)
			}
			if yes {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("the standby has not %s in time", what)
			}
		}
	}
	wait("replayed the commits", `SELECT pg_last_wal_replay_lsn() >= $1::pg_lsn`, position)
	if err := s.Configure("primary_conninfo", ""); err != nil {
		t.Fatal(err)
	}
	wait("ended its connection", `SELECT NOT EXISTS (SELECT 1 FROM pg_stat_wal_receiver)`)
}

// Promote makes a standby a server that accepts writes, and returns when it is one.
func (s *Server) Promote() error { return s.exec(`SELECT pg_promote(true, 60)`) }

// Configure changes a setting of the running server that needs no restart.
func (s *Server) Configure(name, value string) error {
	if err := s.exec(`ALTER SYSTEM SET ` + name + ` = '` + value + `'`); err != nil {
		return err
	}
	return s.exec(`SELECT pg_reload_conf()`)
}
