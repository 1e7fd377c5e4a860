package storetest

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

// helperAddress is the environment variable with the database that a helper process
// opens. A test that needs another process starts its own binary with it.
const helperAddress = "FISCALHUB_TEST_HELPER_ADDRESS"

// Main runs the tests of a package, or the process that Helper starts, which opens a
// database with open.
func Main(m *testing.M, open func(ctx context.Context, address string) (io.Closer, error)) {
	if address := os.Getenv(helperAddress); address != "" {
		if err := help(address, open); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
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
func help(address string, open func(ctx context.Context, address string) (io.Closer, error)) error {
	_, _ = fmt.Println("begin")
	s, err := open(context.Background(), address)
	if err != nil {
		return err
	}
	_, _ = fmt.Println("opened")
	return s.Close()
}

// Helper returns a command that opens a database in another process.
func Helper(t *testing.T, address string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), helperAddress+"="+address)
	return cmd
}
