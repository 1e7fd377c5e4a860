//go:build !linux && !darwin

package main

// freeSpace returns that the free space is not known.
func freeSpace(string) (free uint64, known bool, err error) { return 0, false, nil }
