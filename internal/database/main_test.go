package database_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/fiscalhub/fiscalhub/internal/database"
)

// helperAddress is the environment variable with the database that a helper process
// opens. A test that needs another process starts its own binary with it.
const helperAddress = "FISCALHUB_TEST_HELPER_ADDRESS"

func TestMain(m *testing.M) {
	if address := os.Getenv(helperAddress); address != "" {
		os.Exit(help(address))
	}
	// Many of these tests wait for locks, processes and servers, so more of them run at
	// a time than there are cores.
	flag.Parse()
	if err := flag.Set("test.parallel", strconv.Itoa(max(runtime.GOMAXPROCS(0), 6))); err != nil {
		panic(err)
	}
	// The test server runs until the process ends.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("os/exec.(*Cmd).writerDescriptor.func1"),
		goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"))
}

// help prints begin, opens the database, and prints opened.
func help(address string) int {
	_, _ = fmt.Println("begin")
	s, err := database.Open(context.Background(), address, database.TestMigrations(), database.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_, _ = fmt.Println("opened")
	if err := s.Close(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// helper returns a command that opens a database in another process.
func helper(t *testing.T, address string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), helperAddress+"="+address)
	return cmd
}
