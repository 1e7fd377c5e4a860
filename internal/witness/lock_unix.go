//go:build unix && !solaris && !illumos && !aix

package witness

import (
	"os"
	"syscall"
)

// lock waits until no other process writes. It ends with the process.
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
