package storetest

import (
	"path/filepath"
	"testing"
)

// Standby starts a standby that follows the server, and stops it when the test ends. The
// setting synchronous_standby_names of the server can contain the name.
func (s *Server) Standby(t testing.TB, name string, settings ...string) *Server {
	t.Helper()
	standby, err := startServer(settings, func(bin, data string) []string {
		return []string{filepath.Join(bin, "pg_basebackup"), "-d", "host=" + s.Dir + " user=postgres application_name=" + name,
			"--write-recovery-conf", "--checkpoint=fast", "--wal-method=stream", "--no-sync", "-D", data}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(standby.Stop)
	return standby
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
