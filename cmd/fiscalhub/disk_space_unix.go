//go:build linux || darwin

package main

import (
	"os"
	"syscall"
)

// freeSpace returns how many bytes this user can still write to the disk of a folder.
// known is false when the system does not say.
func freeSpace(folder string) (free uint64, known bool, err error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, false, err
	}
	return stat.Bavail * uint64(stat.Bsize), true, nil //nolint:gosec,nolintlint // a size of a block is positive; its type differs between systems
}

// sameDisk reports whether two folders are on one disk. known is false when the system does
// not say.
func sameDisk(a, b string) (same, known bool) {
	first, err := os.Stat(a)
	if err != nil {
		return false, false
	}
	second, err := os.Stat(b)
	if err != nil {
		return false, false
	}
	one, ok := first.Sys().(*syscall.Stat_t)
	other, also := second.Sys().(*syscall.Stat_t)
	return ok && also && one.Dev == other.Dev, ok && also
}
