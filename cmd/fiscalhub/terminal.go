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
	return store.Open(t.ctx, t.address(), store.Options{Now: time.Now, Log: t.log(slog.LevelInfo)})
}

// address is that of the database of the shared flags.
func (t *terminal) address() string {
	if t.cli.Database != "" {
		return t.cli.Database
	}
	return "sqlite:" + filepath.Join(t.cli.Data, "fiscalhub.db")
}

// withStore runs fn on the open database.
func (t *terminal) withStore(fn func(*store.Store) error) error {
	s, err := t.openStore()
	if err != nil {
		return err
	}
	return errors.Join(fn(s), s.Close())
}

// masterKeys is where the master key is.
func (t *terminal) masterKeys() *seal.Keys {
	path := t.cli.MasterKey
	if path == "" {
		path = filepath.Join(t.cli.Data, "master.key")
	}
	return seal.NewKeys(path)
}

// keyring opens the service's own keys with the master key. A rotation of the
// master key that was interrupted is finished on the way.
func (t *terminal) keyring(s *store.Store, keys *seal.Keys) (*access.Keyring, error) {
	ring, err := access.LoadKeyring(t.ctx, s, keys)
	if err != nil {
		return nil, keyMissing(err, keys)
	}
	done, err := access.FinishRotation(t.ctx, s, keys)
	switch {
	case err != nil:
		// The key was found where the rotation had left it, so all is well but the file.
		t.warn("the master key in use could not be put into %s: %s", keys.File(), oneLine(err))
	case done:
		t.warn("%s held another master key than the database needs, after an interrupted rotation or a restore; it holds the right one now", keys.File())
	}
	return ring, nil
}

// keyMissing says what to do when there is no master key file.
func keyMissing(err error, keys *seal.Keys) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("the master key file %s is missing, and the database was made with one: put it back, or name it with --master-key", keys.File())
	}
	return err
}

// warn tells people what does not keep the command from its work.
func (t *terminal) warn(format string, args ...any) {
	_, _ = fmt.Fprintf(t.errOut, "fiscalhub: warning: "+format+"\n", args...)
}

// say tells people what is going on.
func (t *terminal) say(format string, args ...any) {
	_, _ = fmt.Fprintf(t.errOut, format+"\n", args...)
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
