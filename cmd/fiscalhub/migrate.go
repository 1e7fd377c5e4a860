package main

import (
	"errors"
	"io"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

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
		return t.answer(answer, func(w io.Writer) {
			say(w, lang.Messagef("%s database at schema version %d", "base de datos %s en la versión %d del esquema", s.Engine(), v))
		})
	}(), s.Close())
}
