package systemtest

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

// The disk is full when the service writes an invoice, a signed document or the
// log of the database. The service must acknowledge only invoices that it stored,
// answer reads, and continue when the disk has room again.
func TestFullDiskLosesNoAcknowledgedInvoice(t *testing.T) {
	t.Parallel()
	const inside = "TEST_SMALL_DISK"
	if os.Getenv(inside) != "" {
		fillDisk(t)
		return
	}
	// The test runs itself again in a namespace where it may mount a small file
	// system.
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), inside+"=1", "TEST_PROGRAM="+harness.Program(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		needtest.LeftOut(t, "mount-namespaces", err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && bytes.Contains(out.Bytes(), []byte(noMount)):
		needtest.LeftOut(t, "mount-namespaces", noMount)
	case err != nil:
		t.Errorf("%v\n%s", err, &out)
	}
}

const noMount = "this machine allows no file system for the test"

func fillDisk(t *testing.T) {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatalf("%s: %v", noMount, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }) // the namespace removes it anyway
	w := newEnv(t, "sqlite:"+filepath.Join(disk, "fiscalhub.db"), "happy")
	server := w.serve(t)
	made := 0
	create := func() harness.Answer {
		t.Helper()
		id := strconv.Itoa(made)
		got, err := w.client.Create(t.Context(), server.Base, "key-"+id, "ext-"+id)
		if err != nil {
			select {
			case <-server.Done:
				t.Fatalf("the server has ended: %v\n%s", server.Err, server.Log)
			default:
				t.Fatal(err)
			}
		}
		return got
	}
	// With a little room left, another write is the first that fails.
	for _, room := range []int{0, 56 << 10} {
		if got := create(); got.Status != http.StatusAccepted {
			t.Fatalf("before the disk is full: %d %s", got.Status, got.Body)
		}
		made++
		ballast := fill(t, disk, room)
		full := harness.Answer{}
		for ; made < 2000; made++ {
			if full = create(); full.Status != http.StatusAccepted {
				break
			}
		}
		for range 3 {
			if full.Status != http.StatusServiceUnavailable || full.Header.Get("Retry-After") == "" {
				t.Errorf("on a full disk: %d %s, want 503 with Retry-After", full.Status, full.Body)
			}
			full = create()
		}
		if status, err := harness.Status(t.Context(), server.Base+"/livez"); err != nil || status != http.StatusOK {
			t.Errorf("/livez: %d, %v", status, err)
		}
		if found := w.client.Invoices(t, server.Base); len(found) != made {
			t.Errorf("%d invoices can be read, and %d were acknowledged", len(found), made)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, 30*time.Second, "a creation succeeds when the disk has room", func() bool { return create().Status == http.StatusAccepted })
		made++
		w.settle(t)
	}
	w.checkDocuments(t, made)
}

// fill writes a file that leaves only some room on a disk.
func fill(t *testing.T, disk string, room int) (ballast string) {
	t.Helper()
	ballast = filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 16<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	took, err := os.Stat(ballast)
	if err == nil {
		err = os.Truncate(ballast, max(took.Size()-int64(room), 0))
	}
	if err != nil {
		t.Fatal(err)
	}
	return ballast
}
