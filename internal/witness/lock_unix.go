//go:build unix && !solaris && !illumos && !aix

package witness

import (
	"os"
	"syscall"
)

// lock waits until no other process holds the lock. The system releases the lock when
// the process ends.
func lock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}

func unlock(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
}
