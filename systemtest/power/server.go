//go:build linux

package power

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

const (
	// mountPoint is the environment variable with the folder on which a process of the
	// file system mounts it.
	mountPoint = "POWERTEST_MOUNT"
	// fileSystem is the name of the file system in the table of mounts.
	fileSystem = "fiscalhub-power"
)

// The orders to the process of the file system.
const (
	orderMount = "mount" // what the last cut has left
	orderSync  = "sync"  // everything
	orderCut   = "cut"
	orderTrap  = "trap" // cut when a file is about to be synced
)

// trapTime is how long a cut waits for a sync. Then it cuts at once.
const trapTime = 5 * time.Second

// An order is one line of the standard input of the process, and a result one line of its
// standard output.
type order struct {
	Do     string
	Seed   uint64
	Strict bool   // keep nothing that was not synced
	Prefix string // of the name of the file that is about to be synced
}

type result struct{ Error string }

// Main runs the file system and ends the process, if the process was started for that.
// TestMain of a package that uses the disk calls it first.
func Main() {
	folder := os.Getenv(mountPoint)
	if folder == "" {
		return
	}
	s := &server{folder: folder, volume: newVolume()}
	answers := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); { // until the test ends, in any way
		var o order
		err := json.Unmarshal(lines.Bytes(), &o)
		if err == nil {
			err = s.do(o)
		}
		var r result
		if err != nil {
			r.Error = err.Error()
		}
		_ = answers.Encode(r) // the test has ended
	}
	s.unmount()
	os.Exit(0)
}

// A server runs the orders of a test.
type server struct {
	folder  string
	volume  *volume
	mounted bool
}

func (s *server) do(o order) error {
	switch o.Do {
	case orderMount:
		return s.mount()
	case orderSync:
		s.volume.mu.Lock()
		defer s.volume.mu.Unlock()
		s.volume.syncAll()
		return nil
	case orderCut, orderTrap:
		return s.cut(o)
	}
	return fmt.Errorf("unknown order %q", o.Do)
}

// cut turns the power off, at once or when a file is about to be synced.
func (s *server) cut(o order) error {
	var keep chooser
	if !o.Strict {
		keep.Rand = rand.New(rand.NewPCG(o.Seed, 0)) // a seed repeats the choice
	}
	before := s.volume
	before.mu.Lock()
	defer before.mu.Unlock()
	if before.dead {
		return errors.New("the power is off already")
	}
	if o.Do == orderTrap {
		sprung := make(chan *volume, 1)
		before.trap = &trap{o.Prefix, keep, sprung}
		before.mu.Unlock()
		select {
		case s.volume = <-sprung:
			before.mu.Lock()
			return nil
		case <-time.After(trapTime):
			before.mu.Lock()
		}
		if before.dead { // at the last moment
			s.volume = <-sprung
			return nil
		}
	}
	s.volume = before.cut(keep)
	return nil
}

func (s *server) mount() error {
	s.unmount()
	always := time.Hour // every change goes through this mount, so the kernel may remember all
	options := fuse.MountOptions{
		FsName: fileSystem, Name: fileSystem, Options: []string{"default_permissions"},
		AllowOther: os.Getuid() == 0, DirectMount: os.Getuid() == 0, // PostgreSQL runs as another user then
		MaxWrite: 1 << 20, DisableXAttrs: true,
	}
	_, err := fs.Mount(s.folder, &node{v: s.volume, n: s.volume.root}, &fs.Options{
		MountOptions: options, AttrTimeout: &always, EntryTimeout: &always, RootStableAttr: &fs.StableAttr{Ino: s.volume.root.ino},
	})
	s.mounted = err == nil
	return err
}

// unmount removes the mount, also while programs use it. They get EIO.
func (s *server) unmount() {
	if s.mounted {
		_ = detach(s.folder) // it is not mounted any more
		s.mounted = false
	}
}

// detach removes a mount from the tree of files.
func detach(folder string) error {
	if os.Getuid() == 0 {
		return syscall.Unmount(folder, syscall.MNT_DETACH)
	}
	return exec.Command("fusermount3", "-u", "-z", folder).Run() //nolint:noctx // our own folder
}
