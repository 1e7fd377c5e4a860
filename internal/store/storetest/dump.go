package storetest

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Dump writes the content of a database to a file, as pg_dump does.
func (s *Server) Dump(t testing.TB, address, file string) {
	t.Helper()
	s.tool(t, "pg_dump", "-f", file, address)
}

// Load creates a database with the content of a file of Dump, and returns its address.
func (s *Server) Load(t testing.TB, file string) string {
	t.Helper()
	address := s.Empty(t)
	s.tool(t, "psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", file, address)
	return address
}

// tool runs a program of PostgreSQL.
func (s *Server) tool(t testing.TB, name string, args ...string) {
	t.Helper()
	bin, err := postgresBinaries()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, name), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", name, err, out)
	}
}
