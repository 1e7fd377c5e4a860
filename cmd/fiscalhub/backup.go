package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/lang"
)

type backupCmd struct {
	File string `arg:"" help:"File to create. The command never replaces an existing file." placeholder:"FILE"`
}

// Run copies the database.
func (c backupCmd) Run(t *terminal) error {
	source, err := database.SQLiteFile(t.databaseAddress())
	if err != nil {
		return err
	}
	if err := checkDatabaseExists(source); err != nil {
		return err
	}
	progress := t.startProgress(lang.Messagef("backup", "copia"), unitBytes())
	bytes, err := database.Backup(t.ctx, t.databaseAddress(), c.File, progress.report)
	if err == nil && bytes > 0 {
		progress.report(bytes, bytes)
	}
	progress.end(t)
	switch {
	case errors.Is(err, database.ErrHasOwnTools):
		return lang.Errorf("this command copies SQLite databases only: for PostgreSQL use pg_dump or pg_basebackup",
			"este comando copia solo bases de datos SQLite: para PostgreSQL use pg_dump o pg_basebackup")
	case errors.Is(err, fs.ErrExist):
		return lang.Errorf("%s exists already: name another file",
			"%s ya existe: indique otro archivo", c.File)
	case err != nil:
		return t.interrupted(err, lang.Messagef("there is no backup, and the unfinished copy was removed; run the command again",
			"no hay copia, y la copia incompleta se eliminó; ejecute el comando otra vez"))
	}
	made := struct {
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}{c.File, bytes}
	return t.answer(made, func(w io.Writer) {
		say(w, lang.Literal(fmt.Sprintf("%s: %d bytes", c.File, bytes)))
		say(w, lang.Messagef("The backup contains neither the master key nor the witness. Keep those in another place.",
			"La copia no contiene la clave maestra ni el testigo. Guárdelos en otro lugar."))
	})
}
