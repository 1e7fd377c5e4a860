package storetest

import (
	"bytes"
	"context"
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

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// watchdog is a shell script that runs a server until its standard input is closed, so
// that the server ends with the test process. On the line "halt" it stops the server
// and keeps its files for another start.
const watchdog = `"$0" "$@" & pid=$!; read -r order; kill -QUIT $pid; wait $pid; [ "$order" = halt ] || rm -rf "$PGDATA_ROOT"`

// Server is a temporary PostgreSQL cluster. Its socket is in Dir.
type Server struct {
	Dir  string
	args []string
	// strategy ends the statement that copies a database. A copy of the files takes two
	// thirds of the time of a copy that is logged.
	strategy string
	cred     *syscall.Credential
	stop     func(order string)
	once     sync.Once
	err      error
	mu       sync.Mutex
	count    atomic.Int64
}

var (
	serverOnce sync.Once
	server     *Server
	errServer  error
)

// StartPostgres creates and starts a temporary cluster with the given settings. It
// listens only on a socket in its own folder.
func StartPostgres(settings ...string) (*Server, error) {
	return startServer("", settings, func(bin, data string) []string {
		// The script keeps a copy of the new files for other servers of this process.
		return []string{"sh", "-c", `"$0/initdb" -U postgres -A trust --no-sync --no-locale -E UTF8 -D "$1" && cp -a "$1" "$1` + pristine + `"`, bin, data}
	})
}

// pristine ends the name of the folder with the files of a server that has never run.
const pristine = ".new"

// startCopy starts a server with the files that another one had before its first start.
func (s *Server) startCopy(folder string, settings ...string) (*Server, error) {
	return startServer(folder, settings, func(_, data string) []string {
		return []string{"cp", "-a", filepath.Join(s.Dir, "data"+pristine), data}
	})
}

// startServer makes the files of a server with a command, and starts it. The files are in
// the folder data of another folder, or of Dir if no other is named.
func startServer(folder string, settings []string, command func(bin, data string) []string) (*Server, error) {
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
	if folder == "" {
		folder = dir
	} else if _, err := serverUser(folder); err != nil {
		return nil, err
	}
	data := filepath.Join(folder, "data")
	args := command(bin, data)
	setup := exec.Command(args[0], args[1:]...) //nolint:noctx // an installed program, with our own arguments
	setup.Dir, setup.SysProcAttr = dir, &syscall.SysProcAttr{Credential: cred}
	if out, err := setup.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", args, err, out)
	}
	s := &Server{Dir: dir, cred: cred, args: []string{"-c", watchdog, filepath.Join(bin, "postgres"), "-D", data, "-k", dir,
		"-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=256MB", "-c", "max_wal_size=4GB"}}
	if majorVersion(filepath.Join(bin, "postgres")) >= 15 { // older releases know no other strategy
		s.strategy = ` STRATEGY file_copy`
	}
	for _, setting := range settings {
		s.args = append(s.args, "-c", setting)
	}
	return s, s.Start()
}

// Start starts the server again after Halt, with the rows that it had stored.
func (s *Server) Start() error {
	var log bytes.Buffer
	cmd := exec.Command("sh", s.args...) //nolint:noctx // ends with its standard input
	cmd.Dir, cmd.Env = s.Dir, append(os.Environ(), "PGDATA_ROOT="+s.Dir)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true} // Ctrl-C must stop the tests only
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	s.stop = func(order string) {
		_, _ = io.WriteString(stdin, order) // fails when the watchdog has ended, which does not matter
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	for range 1200 { // a minute: after a power cut the server syncs all its files first
		if err := s.exec(`SELECT 1`); err == nil {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Stop()
	return fmt.Errorf("postgres did not start:\n%s", log.String())
}

// Halt stops the server at once and without a checkpoint, like a crash. Start starts it
// again.
func (s *Server) Halt() { s.stop("halt\n") }

// Stop stops the server at once, if it runs, and removes its files.
func (s *Server) Stop() {
	s.stop("")
	_ = os.RemoveAll(s.Dir) // after Halt the watchdog does not remove them
}

// postgresBinaries returns the folder of the newest installed server. Debian installs it
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

// serverUser returns the user that runs the server when the tests run as root, because
// PostgreSQL refuses to run as root. The user owns dir.
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

// Create creates an empty database and returns its address.
func (s *Server) Create(name string) (string, error) {
	return s.URL(name), s.exec(`CREATE DATABASE ` + name)
}

// Postgres returns the cluster of this test process, and starts it on the first call.
// When it cannot start, the test is skipped; with the environment variable CI it fails.
func Postgres(t testing.TB) *Server {
	t.Helper()
	// A small cache, because a copy of a database writes all of it to the files. With hundreds
	// of databases, the server would start a process several times a second to vacuum one.
	serverOnce.Do(func() { server, errServer = StartPostgres("shared_buffers=64MB", "autovacuum=off") })
	if errServer != nil {
		needtest.Missing(t, "postgresql", errServer)
	}
	return server
}

// template is the migrated database that new databases are copied from.
const template = "fiscalhub_template"

// database creates a migrated database for a test, and returns its address for the role of
// the service.
func (s *Server) database(t testing.TB) string {
	t.Helper()
	s.once.Do(func() {
		if s.err = s.exec(`CREATE DATABASE ` + template); s.err == nil {
			s.err = s.migrate(t.Context(), template)
		}
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	name := fmt.Sprintf("test_%d", s.count.Add(1))
	s.mu.Lock() // PostgreSQL copies a template for one session at a time
	defer s.mu.Unlock()
	if err := s.exec(`CREATE DATABASE ` + name + ` TEMPLATE ` + template + s.strategy); err != nil {
		t.Fatal(err)
	}
	return As(s.URL(name), Service)
}

// migrate migrates a database in the way that the roles of the service need.
func (s *Server) migrate(ctx context.Context, database string) error {
	if err := s.createRoles(database); err != nil {
		return err
	}
	st, err := store.Open(ctx, As(s.URL(database), Migrator), store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	return errors.Join(st.Close(), s.createRoles(database))
}

// PrivatePostgres starts a cluster for one test that changes its settings or stops it. Without
// PostgreSQL it skips or fails the test, as Postgres does.
func PrivatePostgres(t testing.TB, settings ...string) *Server {
	t.Helper()
	return PrivatePostgresOn(t, "", settings...)
}

// PrivatePostgresOn is PrivatePostgres with the files of the cluster in the folder data of
// another folder, which must exist. The socket stays in Dir.
func PrivatePostgresOn(t testing.TB, folder string, settings ...string) *Server {
	t.Helper()
	s, err := Postgres(t).startCopy(folder, settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

// Empty creates a database without tables and returns its address.
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
	_, err = db.Exec(statement) //nolint:noctx // a set-up that no test cancels
	return err
}

// Analyze runs VACUUM (ANALYZE), which the server otherwise runs some time after a large
// load.
func (s *Server) Analyze(database string) error { return s.execIn(database, `VACUUM (ANALYZE)`) }

// URL returns the address of a database of the server.
func (s *Server) URL(name string) string { return databaseURL(name, url.Values{"host": {s.Dir}}) }

func databaseURL(name string, q url.Values) string {
	q.Set("user", "postgres")
	return "postgres:///" + name + "?" + q.Encode()
}
