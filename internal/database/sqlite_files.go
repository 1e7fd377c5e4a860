package database

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"

	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// privateMode is the mode of the files of a database: only the owner can open them.
const privateMode = 0o600

// SQLiteFiles returns the files that SQLite keeps for a database. Only the first one always
// exists.
func SQLiteFiles(location string) []string {
	return []string{location, location + "-wal", location + "-shm", location + "-journal"}
}

// SQLiteFile returns the file of the database that a SQLite address names, and an empty
// text for an address of PostgreSQL. It fails when the address is not valid, or names a
// folder. The file may be missing.
func SQLiteFile(address string) (string, error) {
	d, location, err := parseAddress(address)
	if err != nil || d.shared {
		return "", err
	}
	return location, checkNotFolder(location)
}

// checkNotFolder fails when the file of a database is a folder. SQLite would only say
// that it cannot open the file.
func checkNotFolder(location string) error {
	if info, err := os.Stat(location); err == nil && info.IsDir() {
		return lang.Errorf("database: %s is a folder: the address must name the file of the database; use sqlite:%s",
			"%s es una carpeta: la dirección debe indicar el archivo de la base de datos; use sqlite:%s", location, filepath.Join(location, "fiscalhub.db"))
	}
	return nil
}

// protectSQLite makes sure that only the owner can open the files of a database. It
// creates the database file before SQLite does, because SQLite gives it the mode that the
// umask leaves, and gives the other files the mode of the database. It narrows the mode
// of files that exist, with a warning, and fails when it cannot.
func protectSQLite(location string, log *slog.Logger) error {
	if runtime.GOOS == "windows" {
		return nil // modes do not restrict anything there
	}
	if _, err := os.Stat(location); errors.Is(err, fs.ErrNotExist) {
		// An open file must not be closed in a process that may have the database open:
		// POSIX then ends the locks of SQLite. Create links a closed file.
		if err := atomicfile.Create(location, ""); err != nil && !errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("database: create the database: %w: %w", ErrUnavailable, err)
		}
	}
	for _, file := range SQLiteFiles(location) {
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
		mode := info.Mode().Perm()
		if mode&^privateMode == 0 {
			continue
		}
		if err := os.Chmod(file, privateMode); errors.Is(err, fs.ErrNotExist) {
			continue // the last connection of another process has removed it
		} else if err != nil {
			return fmt.Errorf("database: other users may open %s (mode %04o), and the mode cannot be changed: run chmod 600 as its owner: %w", file, mode, err)
		}
		log.Warn("Other users could open a file of the database. The service has set its mode to 0600. Rotate the secrets if a person who must not know them had access to this machine.",
			"file", file, "mode", fmt.Sprintf("%04o", mode))
	}
	return nil
}
