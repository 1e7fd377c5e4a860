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
		return lang.Errorf("%s exists already: name another file", "%s ya existe: indique otro archivo", c.File)
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

type migrateCmd struct{}

// Run prints the schema version. Opening the database has migrated it.
func (migrateCmd) Run(t *terminal) error {
	t.mayCreate = true
	progress := t.startProgress(lang.Messagef("migrate", "migración"), lang.Messagef("migrations", "migraciones"))
	t.onMigration = func(done, missing int) { progress.report(int64(done), int64(missing)) }
	s, err := t.openStore()
	progress.end(t)
	if err != nil {
		return t.interrupted(err, lang.Messagef("%d of %d migrations are applied, and the database can be used; run the command again to apply the others",
			"%d de %d migraciones están aplicadas, y la base de datos se puede usar; ejecute el comando otra vez para aplicar las demás", progress.done, progress.total))
	}
	return errors.Join(func() error {
		v, err := s.SchemaVersion(t.ctx)
		if err != nil {
			return err
		}
		answer := struct {
			Engine string `json:"engine"`
			Schema int64  `json:"schema"`
		}{s.Engine(), v}
		return t.confirm(answer, lang.Messagef("%s database at schema version %d", "base de datos %s en la versión %d del esquema", s.Engine(), v))
	}(), s.Close())
}
