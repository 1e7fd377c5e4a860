package database_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

func TestOpenRefusesAnInvalidOrUnreachableAddress(t *testing.T) {
	t.Parallel()
	const password = "s3cr3t-p4ss"
	missing := filepath.Join(t.TempDir(), "missing", "fiscalhub.db")
	tests := []struct {
		name    string
		address string
		retry   bool // want ErrUnavailable: a later call may succeed
	}{
		{"empty", "", false},
		{"a scheme alone", "sqlite:", false},
		{"a path without a scheme", "fiscalhub.db", false},
		{"another engine", "mysql://u:" + password + "@127.0.0.1/x", false},
		{"another case", "SQLITE:x.db", false},
		{"a folder that is not there", "sqlite:" + missing, true},
		{"a folder in place of a file", "sqlite:" + filepath.Dir(filepath.Dir(missing)), false},
		{"no server listens", "postgres://u:" + password + "@127.0.0.1:1/x", true},
		{"no server listens, with the other scheme", "postgresql://u:" + password + "@127.0.0.1:1/x", true},
		{"no socket", "postgres://u:" + password + "@/x?host=" + filepath.Dir(missing), true},
		{"a broken host", "postgres://u:" + password + "@[::1/x", false},
		{"a broken port", "postgres://u:" + password + "@127.0.0.1:port/x", false},
		{"a broken option", "postgres://u:" + password + "@127.0.0.1:1/x?sslmode=" + password, false},
		{"a broken escape", "postgres://u:" + password + "%zz@127.0.0.1:1/x", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := database.Open(t.Context(), tt.address, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
			if err == nil {
				t.Fatal("Open returned no error", s.Close())
			}
			if errors.Is(err, database.ErrUnavailable) != tt.retry {
				t.Errorf("is ErrUnavailable: %v, want %v: %v", !tt.retry, tt.retry, err)
			}
			if strings.Contains(err.Error(), password) {
				t.Errorf("the message contains the password: %q", err)
			}
		})
	}
}

// Parameters after a question mark are not parts of a file name, and are not ignored.
func TestOpenRefusesParametersOfSQLite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "x.db")
	for _, parameters := range []string{"?_pragma=busy_timeout(1)", "?mode=ro&cache=shared", "?"} {
		s, err := database.Open(t.Context(), "sqlite:"+path+parameters, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if err == nil {
			t.Fatal("Open returned no error", s.Close())
		}
		if !strings.Contains(err.Error(), "use sqlite:"+path) || errors.Is(err, database.ErrUnavailable) {
			t.Errorf("the message is %q", err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("files were made: %v, %v", files, err)
	}
}

func TestOpenNeedsItsOptions(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]database.Options{
		"no clock":  {Log: slog.New(slog.DiscardHandler)},
		"no logger": {Now: time.Now},
	} {
		path := filepath.Join(t.TempDir(), "fiscalhub.db")
		if s, err := database.Open(t.Context(), "sqlite:"+path, database.TestMigrations(), opt); err == nil {
			t.Errorf("%s: Open returned no error; %v", name, s.Close())
		}
	}
}
