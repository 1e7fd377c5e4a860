//go:build unix

package seal

import (
	"io/fs"
	"os"
	"syscall"
)

// OpenToOthers reports whether other users than those who are meant can open a file with
// secrets. Normally only the owner is meant. A file that belongs to root and that its group
// may only read (mode 0440) is also good when this process does not run as root: so systemd
// passes credentials to a service, and Kubernetes passes secrets to a container.
func OpenToOthers(info fs.FileInfo) bool {
	perm := info.Mode().Perm()
	if perm&0o077 == 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || !passedByRoot(perm, stat.Uid, os.Geteuid())
}

// passedByRoot reports whether root passes a file to the group of the process, or by an
// access control list, which the mode shows as rights of the group.
func passedByRoot(perm fs.FileMode, owner uint32, process int) bool {
	return perm&^0o440 == 0 && owner == 0 && process != 0
}
