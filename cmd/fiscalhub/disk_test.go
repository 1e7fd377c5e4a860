package main

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
)

// P-76: the disk is full, at whatever write that is met: of a creation, of a
// signed document, of the log. Nothing is acknowledged that is not kept, what is
// there can be read, and all goes on by itself once there is room.
func TestP76AFullDisk(t *testing.T) {
	t.Parallel()
	const inside = "TEST_SMALL_DISK"
	if os.Getenv(inside) != "" {
		fillDisk(t)
		return
	}
	// A small disk is one that nobody else sees: the test runs in a namespace of
	// its own, with a file system of its own.
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	cmd.Env = append(os.Environ(), inside+"=1", "TEST_PROGRAM="+program(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("SKIPPED: no namespace of its own for the test: %v", err)
	}
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && bytes.Contains(out.Bytes(), []byte(noMount)):
		t.Skipf("SKIPPED: %s", noMount)
	case err != nil:
		t.Errorf("%v\n%s", err, &out)
	}
}

const noMount = "no file system of its own for the test"

func fillDisk(t *testing.T) {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Fatalf("%s: %v", noMount, err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) }) // it ends with the namespace
	w := newLiveTown(t, "sqlite:"+filepath.Join(disk, "fiscalhub.db"), "happy")
	server := serve(t, w.args...)
	made := 0
	create := func() answer {
		t.Helper()
		id := strconv.Itoa(made)
		got, err := w.client.create(t.Context(), server.base, "key-"+id, "ext-"+id)
		if err != nil {
			select {
			case <-server.done:
				t.Fatalf("the server has ended: %v\n%s", server.err, server.log)
			default:
				t.Fatal(err)
			}
		}
		return got
	}
	// Room for a few more writes lets different ones be the first that finds none.
	for _, room := range []int{0, 56 << 10} {
		if got := create(); got.status != http.StatusAccepted {
			t.Fatalf("before: %d %s", got.status, got.body)
		}
		made++
		ballast := fill(t, disk, room)
		full := answer{}
		for ; made < 2000; made++ {
			if full = create(); full.status != http.StatusAccepted {
				break
			}
		}
		for range 3 {
			if full.status != http.StatusServiceUnavailable || full.header.Get("Retry-After") == "" {
				t.Errorf("on a full disk: %d %s, want 503 with Retry-After", full.status, full.body)
			}
			full = create()
		}
		if status, err := get(t.Context(), server.base+"/livez"); err != nil || status != http.StatusOK {
			t.Errorf("/livez: %d, %v", status, err)
		}
		if found := w.client.invoices(t, server.base); len(found) != made {
			t.Errorf("%d invoices can be read, and %d were acknowledged", len(found), made)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		eventually(t, 30*time.Second, "a creation once there is room", func() bool { return create().status == http.StatusAccepted })
		made++
		eventually(t, time.Minute, "every document comes to its end", func() bool { return w.settled(t, server.base) })
	}
	w.audit(t, made)
}

// fill takes what a disk has, but for some room.
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
