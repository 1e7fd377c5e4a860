package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/atomicfile"
	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// terminal is what a command runs with: its context, the shared flags and its
// output. Answers go to out, progress and logs go to errOut.
type terminal struct {
	ctx      context.Context //nolint:containedctx // a command runs for as long as its context
	cli      *cli
	out      io.Writer
	errOut   io.Writer
	language lang.Language // of texts for people; JSON does not depend on it

	noMigrate bool // the command must not change the tables of the database
	mayCreate bool // the command may create the database

	onMigration func(done, missing int) // shows how far the migration is; may be nil
	now         func() time.Time        // the clock of this machine; nil: time.Now
}

// answer prints v as JSON with --json, and calls human to print it as a table
// without.
func (t *terminal) answer(v any, human func(w io.Writer)) error {
	if !t.cli.JSON {
		table := tabwriter.NewWriter(t.out, 0, 8, 2, ' ', 0)
		human(localWriter{table, t.language})
		return table.Flush()
	}
	e := json.NewEncoder(escapingWriter{t.out})
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// confirm prints v as JSON with --json, and a sentence without.
func (t *terminal) confirm(v any, done lang.Message) error {
	return t.answer(v, func(w io.Writer) { say(w, done) })
}

// line writes one line of a table. Cells may have text of strangers: what could control
// the terminal or break the table is escaped. The first cell names the line: it is
// written in the language of the reader.
func line(w io.Writer, cells ...string) {
	if len(cells) > 1 {
		cells = append([]string{label(cells[0], languageOfWriter(w))}, cells[1:]...)
	}
	_, _ = fmt.Fprintln(w, strings.Join(mapEach(cells, printable), "\t")) // Flush returns the error
}

func (t *terminal) log(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(escapingWriter{t.errOut}, &slog.HandlerOptions{Level: level}))
}

// openStore opens the database that the shared flags name, and migrates it unless
// noMigrate is set. The caller closes it.
//
// A command that only reads or changes things never creates a database: a wrong --data
// would otherwise look like an empty database.
func (t *terminal) openStore() (*store.Store, error) {
	file, err := database.SQLiteFile(t.databaseAddress())
	if err != nil {
		return nil, err
	}
	if t.mayCreate {
		if err := atomicfile.MkdirAll(t.cli.Data, 0o700); err != nil {
			return nil, lang.Errorf("data folder: %s", "carpeta de datos: %s", err)
		}
	} else if err := checkDatabaseExists(file); err != nil {
		return nil, err
	}
	now := t.now
	if now == nil {
		now = time.Now
	}
	s, err := store.Open(t.ctx, t.databaseAddress(), store.Options{Now: now, Log: t.log(slog.LevelInfo), NoMigrate: t.noMigrate, OnMigration: t.onMigration})
	if errors.Is(err, store.ErrNotMigrated) {
		return nil, lang.Errorf(
			"run `fiscalhub migrate` with a database role that may change tables, then run this command again: %s",
			"ejecute `fiscalhub migrate` con un rol de base de datos que pueda cambiar tablas y luego ejecute este comando otra vez: %s", err)
	}
	if errors.Is(err, store.ErrUnavailable) && file == "" {
		return nil, lang.Errorf("the database server does not answer: check that it runs, and the address in --database: %s",
			"el servidor de la base de datos no responde: revise que esté en marcha y la dirección de --database: %s", err)
	}
	return s, err
}

// checkDatabaseExists fails when there is no SQLite file. The name is empty for an address
// of PostgreSQL.
func checkDatabaseExists(file string) error {
	if file == "" {
		return nil
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return lang.Errorf(
			"there is no database at %s: name its folder with --data or its address with --database. `fiscalhub serve`, `fiscalhub onboard` and `fiscalhub taxpayer create` create one",
			"no hay base de datos en %s: indique su carpeta con --data o su dirección con --database. `fiscalhub serve`, `fiscalhub onboard` y `fiscalhub taxpayer create` crean una", file)
	}
	return nil
}

// databaseAddress returns the address of the database that the shared flags name.
func (t *terminal) databaseAddress() string {
	if t.cli.Database != "" {
		return t.cli.Database
	}
	return "sqlite:" + filepath.Join(t.cli.Data, "fiscalhub.db")
}

// databaseFlags returns the flags that name the database of this command, for another
// command. It is empty when the other command finds the database without them.
func (t *terminal) databaseFlags() string {
	var flags string
	if t.cli.Data != "./data" {
		flags += " --data " + t.cli.Data
	}
	switch {
	case strings.HasPrefix(t.cli.Database, "sqlite:"):
		flags += " --database " + t.cli.Database
	case t.cli.Database != "":
		flags += " --database URL" // it may contain a password
	}
	return flags
}

// withStore opens the database, runs fn and closes the database.
func (t *terminal) withStore(fn func(*store.Store) error) error {
	s, err := t.openStore()
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

// withKeys is withStore for commands that read or write secrets. It fails when
// the master key does not belong to the database.
func (t *terminal) withKeys(fn func(*store.Store, *seal.Keys, *access.Keyring) error) error {
	return t.withStore(func(s *store.Store) error {
		keys := t.masterKeys()
		ring, err := t.keyring(s, keys)
		if err != nil {
			return err
		}
		return fn(s, keys, ring)
	})
}

// masterKeys returns the master key file that the shared flags name.
func (t *terminal) masterKeys() *seal.Keys {
	path := t.cli.MasterKey
	if path == "" {
		path = filepath.Join(t.cli.Data, "master.key")
	}
	return seal.NewKeys(path)
}

// keyring decrypts the service's own keys with the master key. It also finishes
// a rotation of the master key that was interrupted.
func (t *terminal) keyring(s *store.Store, keys *seal.Keys) (*access.Keyring, error) {
	ring, err := access.LoadKeyring(t.ctx, s, keys)
	if err != nil {
		return nil, explainKeyFile(err, keys)
	}
	done, err := access.FinishRotation(t.ctx, s, keys)
	switch {
	case err != nil:
		// The right key was found in the same folder, so the command can continue.
		t.warn(lang.Messagef("the master key in use could not be written to %s: %s",
			"no se pudo escribir la clave maestra en uso en %s: %s", keys.File(), oneLine(err)))
	case done:
		t.warn(lang.Messagef(
			"%s held another master key than the database needs, after an interrupted rotation or a restore; it holds the right one now",
			"%s tenía otra clave maestra que la que necesita la base de datos, después de una rotación interrumpida o una restauración; ahora tiene la correcta", keys.File()))
	}
	return ring, nil
}

// explainKeyFile adds what to do to the error of a master key file that is missing or that
// other users may open.
func explainKeyFile(err error, keys *seal.Keys) error {
	var open *seal.OpenToOthersError
	if errors.As(err, &open) {
		return lang.Errorf("other users may open %s (mode %04o): run chmod 600 %s, and rotate the key if others had access",
			"otros usuarios pueden abrir %s (modo %04o): ejecute chmod 600 %s, y rote la clave si otros tuvieron acceso", open.Path, open.Mode, open.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return lang.Errorf(
			"the master key file %s is missing, and the database was created with one: put the file back, or name it with --master-key",
			"falta el archivo de la clave maestra %s, con la que se creó la base de datos: devuelva el archivo a su lugar o indíquelo con --master-key", keys.File())
	}
	return err
}

// missing replaces ErrNotFound by a message that names the object and the
// command that lists such objects. It returns other errors as they are.
func missing(err error, object, id string) error {
	if errors.Is(err, store.ErrNotFound) {
		return lang.Errorf("there is no %s %s: see fiscalhub %s list",
			"no existe %s %s: vea fiscalhub %s list", lang.Translated(object, withArticle(object)), id, object)
	}
	return err
}

// withArticle returns the Spanish name of a kind of object, with its article.
func withArticle(object string) string {
	name := label(object, lang.Spanish)
	switch object {
	case "credential", "source", "user":
		return "la " + name
	}
	return "el " + name
}
