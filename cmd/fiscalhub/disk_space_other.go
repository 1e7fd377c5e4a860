//go:build !linux && !darwin

package main

// freeSpace returns that the free space is not known.
func freeSpace(string) (free uint64, known bool, err error) { return 0, false, nil }

// sameDisk returns that the disks are not known.
func sameDisk(string, string) (same, known bool) { return false, false }
