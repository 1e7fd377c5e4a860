package storetest

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// The roles of deploy/postgres/roles.sql. The databases of Address belong to Migrator, and
// their addresses are those of Service: a statement that needs more rights than the service
// has fails in every test that runs it.
const (
	Migrator = "fiscalhub_migrator"
	Service  = "fiscalhub_service"
	Reader   = "fiscalhub_reader"
)

// rolesFile returns the content of deploy/postgres/roles.sql.
var rolesFile = sync.OnceValues(func() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			text, err := os.ReadFile(filepath.Join(dir, "deploy", "postgres", "roles.sql"))
			return string(text), err
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no folder above the test has a go.mod")
		}
		dir = parent
	}
})

// createRoles runs deploy/postgres/roles.sql in a database.
func (s *Server) createRoles(database string) error {
	text, err := rolesFile()
	if err == nil {
		s.mu.Lock() // roles belong to the cluster
		defer s.mu.Unlock()
		err = s.execIn(database, text)
	}
	if err != nil {
		return fmt.Errorf("create the roles: %w", err)
	}
	return nil
}

// CreateRoles runs deploy/postgres/roles.sql in the database of an address, as an operator
// does before and after a migration.
func (s *Server) CreateRoles(t testing.TB, address string) {
	t.Helper()
	u, err := url.Parse(address)
	if err == nil {
		err = s.createRoles(u.Path[1:])
	}
	if err != nil {
		t.Fatal(err)
	}
}

// As returns the address of a PostgreSQL database for another role. It returns other
// addresses as they are.
func As(address, role string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "postgres" {
		return address
	}
	q := u.Query()
	q.Set("user", role)
	u.RawQuery = q.Encode()
	return u.String()
}
