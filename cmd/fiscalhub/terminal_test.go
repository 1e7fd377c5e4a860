package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/fiscalhub/fiscalhub/internal/database"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// hostile is text of a stranger that would control a terminal: colours, the title of the
// window, an answerback, a line that overwrites another one, the other direction of
// writing, and bytes that are no UTF-8.
const hostile = "a\x1b[31mb\x1b]0;title\x07c\x9b2Jd\u009b2Je\rf\ng\th\x00\x7f\u202ei\u2028j\U000e0041\xff"

// wantHarmless fails when a text controls the terminal. A line break at the end of a line
// is allowed.
func wantHarmless(t interface{ Errorf(string, ...any) }, what, text string) {
	if !utf8.ValidString(text) {
		t.Errorf("%s is no UTF-8: %q", what, text)
	}
	for i, r := range text {
		if r != '\n' && !unicode.IsGraphic(r) {
			t.Errorf("%s: character %d is %U in %q", what, i, r, text)
			return
		}
	}
}

// No command prints a control character that it got from the database or from an error.
func TestCommandsPrintNoControlCharacters(t *testing.T) {
	t.Parallel()
	var out, errOut bytes.Buffer
	term := &terminal{ctx: t.Context(), cli: &cli{}, out: &out, errOut: &errOut}
	human := func(w io.Writer) { line(w, "detail", hostile) }
	must(t, term.answer(nil, human))
	wantHarmless(t, "the table", out.String())
	if strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `a\x1b[31mb`) || !strings.Contains(out.String(), `\u202e`) {
		t.Errorf("the table is not one line with escaped characters: %s", &out)
	}
	out.Reset()
	listed := newTable("DETAIL")
	listed.add(hostile)
	must(t, term.list(nil, listed))
	wantHarmless(t, "the list", out.String())
	out.Reset()
	term.cli.JSON = true
	must(t, term.answer(map[string]string{"detail": hostile}, human))
	wantHarmless(t, "the JSON", out.String())
	var back map[string]string
	if err := json.Unmarshal(out.Bytes(), &back); err != nil || back["detail"] != strings.ToValidUTF8(hostile, "\ufffd") {
		t.Errorf("the JSON is %q, %v", back, err)
	}
	term.warn(lang.Messagef("about %s", "sobre %s", hostile))
	term.progress(lang.Messagef("about %s", "sobre %s", hostile))
	fail(&errOut, errors.New(hostile), lang.Spanish)
	wantHarmless(t, "messages", errOut.String())
	errOut.Reset()
	term.log(slog.LevelInfo).Warn(hostile, "detail", hostile)
	wantHarmless(t, "the log", errOut.String())
}

// Escaping keeps harmless text as it is, and JSON means the same after it.
func TestEscapingKeepsTheMeaning(t *testing.T) {
	t.Parallel()
	if text := "Café “Ñandú” 日本 🙂 \\x1b"; printable(text) != text {
		t.Errorf("%q became %q", text, printable(text))
	}
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		wantHarmless(t, "the text", printable(text))
		var out bytes.Buffer
		encoded, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := (escapingWriter{&out}).Write(encoded); err != nil || n != len(encoded) {
			t.Fatalf("%d bytes, %v", n, err)
		}
		var back string
		if err := json.Unmarshal(out.Bytes(), &back); err != nil || back != text {
			t.Fatalf("%q became %q, %v", text, back, err)
		}
	})
}

// The times that commands store come from the database's clock, which the servers compare
// them with. A command on a machine whose clock is ahead must not store later times: an
// old key would stay valid after a rotation without an overlap.
func TestCommandsStoreTheTimeOfTheDatabase(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		ahead := func() time.Time { return time.Now().Add(10 * time.Minute) }
		server := time.Now
		if file, err := database.SQLiteFile(address); err != nil || file != "" {
			server = ahead // the clock of the machine
		}
		s := storetest.Open(t, address, server)
		var out bytes.Buffer
		term := &terminal{ctx: t.Context(), cli: &cli{JSON: true, Data: t.TempDir(), Database: address}, out: &out, errOut: io.Discard, now: ahead}
		run := func(c interface{ Run(t *terminal) error }) (id string) {
			t.Helper()
			out.Reset()
			must(t, c.Run(term))
			var v struct{ ID string }
			must(t, json.Unmarshal(out.Bytes(), &v))
			return v.ID
		}
		check := func(what string, at time.Time) {
			t.Helper()
			if d := server().Sub(at); d.Abs() > time.Minute {
				t.Errorf("%s: the stored time is %s from the database's clock", what, d)
			}
		}

		id := run(taxpayerCreateCmd{RNC: "199000102", LegalName: "Comercial Demostración, SRL"})
		made, err := s.Taxpayer(t.Context(), id)
		must(t, err)
		check("taxpayer create: created", made.CreatedAt)
		check("taxpayer create: updated", made.UpdatedAt)
		street := "Calle Ficticia 1"
		run(taxpayerUpdateCmd{ID: id, profile: profile{Address: &street}})
		if made, err = s.Taxpayer(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		check("taxpayer update", made.UpdatedAt)

		run(rangeAddCmd{Taxpayer: id, Environment: "certification", Type: "32", From: 1, To: 10})
		ranges, err := s.NumberRanges(t.Context())
		if err != nil || len(ranges) != 1 {
			t.Fatalf("%+v, %v", ranges, err)
		}
		check("range add", ranges[0].CreatedAt)

		old := run(credentialCreateCmd{Taxpayer: id, Environment: "sandbox", Scope: []string{"ecf.read"}})
		successor := run(credentialRotateCmd{ID: old})
		for _, one := range []string{old, successor} {
			c, err := s.Credential(t.Context(), one)
			must(t, err)
			check("credential", c.CreatedAt)
			if one == old && c.Live(server()) {
				t.Error("the old key is still valid after a rotation without an overlap")
			}
		}
	})
}
