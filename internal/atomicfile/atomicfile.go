// Package atomicfile writes small files whole: a reader sees the complete file or
// none, and a file that was written survives a power cut.
package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Create writes a new file with mode 0600. It fails with fs.ErrExist when the file
// exists, and then leaves that file as it is: of several processes that create the
// same file, one succeeds.
func Create(path, text string) error { return write(path, text, os.Link) }

// Replace writes a file with mode 0600 and replaces the one at path, if there is
// one.
func Replace(path, text string) error { return write(path, text, os.Rename) }

// CreateTemp creates a temporary file with mode 0600 in the folder of path. The error
// names the folder: the caller has never seen the name of the temporary file.
func CreateTemp(path string) (*os.File, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	var failed *fs.PathError
	if errors.As(err, &failed) {
		return nil, &fs.PathError{Op: "create a file in", Path: filepath.Dir(path), Err: failed.Err}
	}
	return tmp, err
}

// write writes a temporary file in the folder of path, syncs it, and calls publish
// to give it its name.
func write(path, text string, publish func(from, to string) error) (err error) {
	tmp, err := CreateTemp(path)
	if err != nil {
		return err
	}
	defer func() {
		if removed := os.Remove(tmp.Name()); !errors.Is(removed, fs.ErrNotExist) { // os.Rename has moved it
			err = errors.Join(err, removed)
		}
	}()
	_, err = tmp.WriteString(text)
	if err == nil {
		err = tmp.Sync()
	}
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := publish(tmp.Name(), path); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names of the files in a folder durable. Windows writes them to its
// journal, and cannot sync a folder.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// MkdirAll creates a folder and those above it that are missing, and makes their names
// durable: the files in a folder survive a power cut only if the name of the folder does.
// It leaves a folder that exists as it is.
func MkdirAll(dir string, mode fs.FileMode) error {
	dir = filepath.Clean(dir)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MkdirAll(parent, mode); err != nil {
			return err
		}
	}
	// os.MkdirAll also succeeds when another process has just created the folder.
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	return SyncDir(parent)
}
