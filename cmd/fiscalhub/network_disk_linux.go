package main

import "syscall"

// networkDisk returns the kind of the file system of a file when it is on another machine,
// and an empty text when it is not or when this is not known.
func networkDisk(file string) string {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(file, &stat); err != nil {
		return ""
	}
	return map[uint32]string{
		0x6969: "NFS", 0xff534d42: "CIFS", 0xfe534d42: "SMB", 0x517b: "SMB", 0x00c36400: "Ceph", 0x0bd00bd0: "Lustre",
	}[uint32(stat.Type)] //nolint:gosec // the number of a file system has 32 bits
}
