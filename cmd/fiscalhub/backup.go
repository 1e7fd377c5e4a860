package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

type backupCmd struct {
	File string `arg:"" help:"File to create. The command never replaces an existing file." placeholder:"FILE"`
}

// Run copies the database.
func (c backupCmd) Run(t *terminal) error {
	progress := t.startProgress("backup", unitBytes)
	bytes, err := store.Backup(t.ctx, t.databaseAddress(), c.File, progress.report)
	if err == nil && bytes > 0 {
		progress.report(bytes, bytes)
	}
	progress.end(t)
	switch {
	case errors.Is(err, store.ErrHasOwnTools):
		return errors.New("this command copies SQLite databases only: for PostgreSQL use pg_dump or pg_basebackup")
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists already: name another file", c.File)
	case err != nil:
		return t.interrupted(err, "there is no backup, and the unfinished copy was removed; run the command again")
	}
	made := struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}{c.File, bytes}
	return t.answer(made, func(w io.Writer) {
		line(w, fmt.Sprintf("%s: %d bytes", c.File, bytes))
		line(w, "The backup contains neither the master key nor the witness. Keep those in another place.")
	})
}
