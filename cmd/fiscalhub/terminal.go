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
	"github.com/fiscalhub/fiscalhub/internal/seal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// terminal is what a command works with: its context, the shared flags, and
// where it writes. Answers go to out, progress and logs to errOut.
type terminal struct {
	ctx    context.Context //nolint:containedctx // a command lives as long as it
	cli    *cli
	out    io.Writer
	errOut io.Writer
}

// answer prints v as JSON, or lets human print it.
func (t *terminal) answer(v any, human func(w io.Writer)) error {
	if !t.cli.JSON {
		table := tabwriter.NewWriter(t.out, 0, 8, 2, ' ', 0)
		human(table)
		return table.Flush()
	}
	e := json.NewEncoder(t.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// line writes one line for people.
func line(w io.Writer, cells ...string) {
	_, _ = fmt.Fprintln(w, strings.Join(cells, "\t")) // Flush tells
}

func (t *terminal) log(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(t.errOut, &slog.HandlerOptions{Level: level}))
}

// openStore opens the database of the shared flags, and migrates it.
func (t *terminal) openStore() (*store.Store, error) {
	if err := os.MkdirAll(t.cli.Data, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	address := t.cli.Database
	if address == "" {
		address = "sqlite:" + filepath.Join(t.cli.Data, "fiscalhub.db")
	}
	return store.Open(t.ctx, address, store.Options{Now: time.Now, Log: t.log(slog.LevelInfo)})
}

// withStore runs fn on the open database.
func (t *terminal) withStore(fn func(*store.Store) error) error {
	s, err := t.openStore()
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

// keyring opens the service's own keys with the master key.
func (t *terminal) keyring(s *store.Store) (*access.Keyring, error) {
	path := t.cli.MasterKey
	if path == "" {
		path = filepath.Join(t.cli.Data, "master.key")
	}
	made, err := access.HasKeyring(t.ctx, s)
	if err != nil {
		return nil, err
	}
	load := seal.LoadOrCreate
	if made {
		// A new key would not open what the database holds.
		load = seal.Load
	}
	master, err := load(path)
	if errors.Is(err, fs.ErrNotExist) && made {
		return nil, fmt.Errorf("the master key file %s is missing, and the database was made with one: put it back, or name it with --master-key", path)
	}
	if err != nil {
		return nil, err
	}
	return access.LoadKeyring(t.ctx, s, master)
}

// oneLine is an error as one line of text.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// day and moment are how instants are shown.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func optionalMoment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := moment(t)
	return &text
}
