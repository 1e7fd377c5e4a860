//go:build !unix

package seal

import "io/fs"

// OpenToOthers returns false: the modes of files restrict nothing on this system.
func OpenToOthers(fs.FileInfo) bool { return false }
