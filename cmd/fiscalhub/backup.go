package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

type backupCmd struct {
	File string `arg:"" help:"File to make; one that exists is never replaced." placeholder:"FILE"`
}

// Run copies the database.
func (c backupCmd) Run(t *terminal) error {
	bytes, err := store.Backup(t.ctx, t.address(), c.File)
	switch {
	case errors.Is(err, store.ErrHasOwnTools):
		return errors.New("a PostgreSQL database is copied with its own tools: see pg_dump, or a base backup with pg_basebackup")
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s exists, and a backup replaces nothing: name another file", c.File)
	case err != nil:
		return err
	}
	made := struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}{c.File, bytes}
	return t.answer(made, func(w io.Writer) {
		line(w, fmt.Sprintf("%s: %d bytes", c.File, bytes))
		line(w, "The master key and the witness are not part of it, and should not lie beside it.")
	})
}
