//go:build linux

package power

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/needtest"
)

// A Disk is a file system that can lose its power.
type Disk struct {
	Dir     string // where it is mounted
	orders  io.WriteCloser
	results *bufio.Scanner
}

// Start mounts an empty disk, and removes it when the test ends. It skips the test when
// this machine does not allow FUSE.
func Start(t testing.TB) *Disk {
	t.Helper()
	removeStale()
	if device, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		needtest.LeftOut(t, "fuse", err)
	} else {
		_ = device.Close()
	}
	dir, err := os.MkdirTemp("", "fiscalhub-power-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Without CommandContext: the process ends with its standard input.
	cmd := exec.Command(self) //nolint:noctx // see above
	cmd.Env = append(os.Environ(), mountPoint+"="+dir)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end it before the test
	d := &Disk{Dir: dir}
	d.orders, err = cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d.results = bufio.NewScanner(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = d.orders.Close()
		_ = cmd.Wait()
		_ = detach(dir) // the process has done so, unless it was killed
		_ = os.Remove(dir)
	})
	if err := d.order(order{Do: orderMount}); err != nil {
		needtest.LeftOut(t, "fuse", err)
	}
	return d
}

// order sends an order to the process of the file system and waits for its result.
func (d *Disk) order(o order) error {
	if err := json.NewEncoder(d.orders).Encode(o); err != nil {
		return err
	}
	var r result
	if !d.results.Scan() {
		return errors.Join(errors.New("the process of the file system has ended"), d.results.Err())
	}
	if err := json.Unmarshal(d.results.Bytes(), &r); err != nil {
		return err
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	return nil
}

// Sync makes everything durable that was written so far.
func (d *Disk) Sync(t testing.TB) {
	t.Helper()
	d.must(t, order{Do: orderSync})
}

// Cut turns the power off. Everything that was not synced is lost, except for what the
// seed chooses. Every operation fails from now on.
func (d *Disk) Cut(t testing.TB, seed uint64) {
	t.Helper()
	d.must(t, order{Do: orderCut, Seed: seed})
}

// CutAtSync is Cut at the moment when a file is about to be synced that has a name with
// this prefix. If no program syncs such a file for some seconds, it cuts then.
func (d *Disk) CutAtSync(t testing.TB, seed uint64, prefix string) {
	t.Helper()
	d.must(t, order{Do: orderTrap, Seed: seed, Prefix: prefix})
}

// CutStrict is Cut on a disk that keeps nothing but what was synced.
func (d *Disk) CutStrict(t testing.TB) {
	t.Helper()
	d.must(t, order{Do: orderCut, Strict: true})
}

// Mount turns the power on again. Programs that used the disk before must have ended.
func (d *Disk) Mount(t testing.TB) {
	t.Helper()
	d.must(t, order{Do: orderMount})
}

func (d *Disk) must(t testing.TB, o order) {
	t.Helper()
	if err := d.order(o); err != nil {
		t.Fatalf("%s: %v", o.Do, err)
	}
}

// removeStale removes the mounts that a killed process has left.
func removeStale() {
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		return
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[2] != "fuse."+fileSystem {
			continue
		}
		if _, err := os.Stat(fields[1]); errors.Is(err, syscall.ENOTCONN) {
			_ = detach(fields[1]) // another test may have done so
			_ = os.Remove(fields[1])
		}
	}
}
