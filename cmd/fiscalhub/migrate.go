package main

import (
	"io"

	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

type migrateCmd struct{}

// Run prints the schema version. Opening the database has migrated it.
func (migrateCmd) Run(t *terminal) error {
	t.mayCreate = true
	return t.withStore(func(s *store.Store) error {
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
	})
}
