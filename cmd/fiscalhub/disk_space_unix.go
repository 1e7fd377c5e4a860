//go:build linux || darwin

package main

import "syscall"

// freeSpace returns how many bytes this user can still write to the disk of a folder.
// known is false when the system does not say.
func freeSpace(folder string) (free uint64, known bool, err error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(folder, &stat); err != nil {
		return 0, false, err
	}
	return stat.Bavail * uint64(stat.Bsize), true, nil //nolint:gosec,nolintlint // a size of a block is positive; its type differs between systems
}
