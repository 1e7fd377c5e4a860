package main

import (
	"errors"
	"fmt"
	"io"
)

type migrateCmd struct{}

// Run prints the schema version. Opening the database has migrated it.
func (migrateCmd) Run(t *terminal) error {
	t.mayCreate = true
	progress := t.startProgress("migrate", "migrations")
	t.onMigration = func(done, missing int) { progress.report(int64(done), int64(missing)) }
	s, err := t.openStore()
	progress.end(t)
	if err != nil {
		return t.interrupted(err, "%d of %d migrations are applied, and the database is whole; run the command again to apply the others", progress.done, progress.total)
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
		return t.answer(answer, func(w io.Writer) { line(w, fmt.Sprintf("%s database at schema version %d", s.Engine(), v)) })
	}(), s.Close())
}
