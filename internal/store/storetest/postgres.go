package storetest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// watchdog runs a server for as long as its own standard input stays open, so
// that no server outlives the test process, however that ends. One that is told
// to halt leaves its files for another start.
const watchdog = `"$0" "$@" & pid=$!; read -r order; kill -QUIT $pid; wait $pid; [ "$order" = halt ] || rm -rf "$PGDATA_ROOT"`

// StartPostgres makes and starts a cluster that nobody else uses: it listens on
// a socket in its own folder and on no port.
func StartPostgres(settings ...string) (*Server, error) {
	bin, err := postgresBinaries()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "fiscalhub-pg-")
	if err != nil {
		return nil, err
	}
	cred, err := serverUser(dir)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "postgres", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8") //nolint:noctx // the installed binary, with our own arguments
	initdb.Dir, initdb.SysProcAttr = dir, &syscall.SysProcAttr{Credential: cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w\n%s", err, out)
	}
	args := []string{"-c", watchdog, filepath.Join(bin, "postgres"), "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"}
	for _, s := range settings {
		args = append(args, "-c", s)
	}
	s := &Server{Dir: dir, args: args, cred: cred}
	return s, s.Start()
}

// Start starts the server again after a Halt, on what it had stored.
func (s *Server) Start() error {
	var log bytes.Buffer
	cmd := exec.Command("sh", s.args...) //nolint:noctx // ends with its standard input
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), "PGDATA_ROOT="+s.Dir)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true} // a Ctrl-C is for the tests
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.stop = func(order string) {
		_, _ = io.WriteString(stdin, order) // a watchdog that is gone has nothing to be told
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	for range 300 {
		if err := s.exec(`SELECT 1`); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Stop()
	return fmt.Errorf("postgres did not start:\n%s", log.String())
}

// Set changes a setting of the command line for the next Start.
func (s *Server) Set(name, value string) { s.args = append(s.args, "-c", name+"="+value) }

// Halt ends the server at once, without a checkpoint, as a crash would. Start
// brings it back.
func (s *Server) Halt() { s.stop("halt\n") }

// Stop ends the server at once, if it runs, and removes its files.
func (s *Server) Stop() {
	s.stop("")
	_ = os.RemoveAll(s.Dir) // after a Halt nobody else does
}

// postgresBinaries finds the newest server that is installed; Debian keeps it
// outside of PATH.
func postgresBinaries() (string, error) {
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if len(found) > 0 {
		newest := slices.MaxFunc(found, func(a, b string) int { return majorVersion(a) - majorVersion(b) })
		return filepath.Dir(newest), nil
	}
	path, err := exec.LookPath("postgres")
	if err != nil {
		return "", errors.New("no PostgreSQL server is installed: run scripts/setup, or install the package postgresql")
	}
	path, err = filepath.EvalSymlinks(path)
	return filepath.Dir(path), err
}

func majorVersion(path string) int {
	n, err := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	if err != nil {
		return 0
	}
	return n
}

// serverUser is whom the server runs as: PostgreSQL refuses to run as root.
func serverUser(dir string) (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, os.Chown(dir, int(uid), int(gid))
}

// Create makes an empty database and returns its address.
func (s *Server) Create(name string) (string, error) {
	return s.URL(name), s.exec(`CREATE DATABASE ` + name)
}

// Server is a running throw-away cluster. Its socket is in Dir.
type Server struct {
	Dir   string
	args  []string
	cred  *syscall.Credential
	stop  func(order string)
	once  sync.Once
	err   error
	mu    sync.Mutex
	count atomic.Int64
}

// Postgres is the cluster of this test process. Without the binaries the test
// is skipped aloud; with CI set it fails.
func Postgres(t testing.TB) *Server {
	t.Helper()
	serverOnce.Do(func() { server, errServer = StartPostgres() })
	if errServer != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("PostgreSQL is needed under CI: %v", errServer)
		}
		t.Skipf("SKIPPED on PostgreSQL: %v", errServer)
	}
	return server
}

// database makes a database of its own for a test.
func (s *Server) database(t testing.TB) string {
	t.Helper()
	s.once.Do(func() {
		if s.err = s.exec(`CREATE DATABASE ` + template); s.err != nil {
			return
		}
		var st *store.Store
		st, s.err = store.Open(t.Context(), s.URL(template), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
		if s.err == nil {
			s.err = st.Close()
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	name := fmt.Sprintf("test_%d", s.count.Add(1))
	s.mu.Lock() // a template is copied for one at a time
	defer s.mu.Unlock()
	if err := s.exec(`CREATE DATABASE ` + name + ` TEMPLATE ` + template); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

// Private is a cluster of its own for a test that changes its settings or stops
// it. It is skipped or failed as Postgres is.
func Private(t testing.TB, settings ...string) *Server {
	t.Helper()
	Postgres(t)
	s, err := StartPostgres(settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Empty is the address of a database without any table.
func (s *Server) Empty(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("empty_%d", s.count.Add(1))
	if err := s.exec(`CREATE DATABASE ` + name); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

func (s *Server) exec(statement string) error { return s.execIn("postgres", statement) }

func (s *Server) execIn(database, statement string) error {
	db, err := sql.Open("pgx", s.URL(database))
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.Exec(statement) //nolint:noctx // setting up, nothing to cancel
	return err
}

// Settle does at once what the server does by itself after a large load: it
// gathers statistics and marks what everybody may see.
func (s *Server) Settle(database string) error { return s.execIn(database, `VACUUM (ANALYZE)`) }

// URL is the address of one of the server's databases.
func (s *Server) URL(name string) string {
	q := url.Values{"host": {s.Dir}, "user": {"postgres"}}
	return "postgres:///" + name + "?" + q.Encode()
}

// template is the database that fresh ones are copied from.
const template = "fiscalhub_template"
