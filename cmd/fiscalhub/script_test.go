package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

func TestMain(m *testing.M) {
	testscript.Main(harness.Tests{M: m}, map[string]func(){"fiscalhub": main})
}

// TestScripts runs every testdata/*.txtar: command lines of an operator and their
// output. A command line runs the built program; serve runs the program of this test,
// which has the race detector. These commands are added to those of testscript:
//
//	exits CODE COMMAND...  runs a command that must end with that exit code
//	serve FLAGS...         starts a server; sets BASE, TAXPAYER and KEY
//	limit N                checks the rate limit that a server announces
//	answers STATUS         waits until the server answers KEY with a status, for 20 s
//	post KEY EXTERNAL-ID   creates an invoice; sets INVOICE, DOCUMENT and REQUEST
//	field NAME PATH        sets NAME from the JSON on standard output
//	shape FILE             compares names and types of the JSON on standard output
//	p12 NAME KIND          makes NAME.p12, NAME.password, NAME.key and NAME.roots
//	hidden DIR NAME        checks that no file in DIR contains that key or password
//	simulate               starts a simulated authority that loses summaries; sets
//	                       AUTHORITY, makes person.p12, person.password, person.roots
//	postgres NAME          sets NAME to the address of an empty database
//	roles ADDRESS          runs deploy/postgres/roles.sql; sets MIGRATOR, SERVICE and
//	                       READER to the address of the database for each role
//	sql DATABASE STATEMENT runs a statement on a SQLite file or on an address of postgres
func TestScripts(t *testing.T) {
	t.Parallel()
	fiscalhub := harness.Program(t)
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("PATH", filepath.Dir(fiscalhub)+string(filepath.ListSeparator)+env.Getenv("PATH"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    scriptExits,
			"serve":    func(ts *testscript.TestScript, _ bool, args []string) { scriptServe(t.Context(), ts, args) },
			"limit":    func(ts *testscript.TestScript, _ bool, args []string) { scriptLimit(t.Context(), ts, args) },
			"answers":  func(ts *testscript.TestScript, _ bool, args []string) { scriptAnswers(t.Context(), ts, args) },
			"post":     func(ts *testscript.TestScript, _ bool, args []string) { scriptPost(t.Context(), ts, args) },
			"simulate": func(ts *testscript.TestScript, _ bool, _ []string) { scriptSimulate(t, ts) },
			"field":    scriptField,
			"shape":    scriptShape,
			"p12":      scriptP12,
			"hidden":   scriptHidden,
			"roles": func(ts *testscript.TestScript, _ bool, args []string) {
				storetest.Postgres(t).CreateRoles(t, args[0])
				for name, role := range map[string]string{"MIGRATOR": storetest.Migrator, "SERVICE": storetest.Service, "READER": storetest.Reader} {
					ts.Setenv(name, storetest.As(args[0], role))
				}
			},
			"sql": func(ts *testscript.TestScript, _ bool, args []string) {
				address := args[0]
				if !strings.HasPrefix(address, "postgres") {
					address = "sqlite:" + ts.MkAbs(address)
				}
				_, err := storetest.OpenSQL(t, address).ExecContext(t.Context(), args[1])
				ts.Check(err)
			},
			"postgres": func(ts *testscript.TestScript, _ bool, args []string) {
				ts.Setenv(args[0], storetest.Postgres(t).Empty(t))
			},
		},
	})
}

func scriptExits(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d\n%s%s", got, want, ts.ReadFile("stdout"), ts.ReadFile("stderr"))
	}
}

func scriptServe(ctx context.Context, ts *testscript.TestScript, args []string) {
	cmd := exec.CommandContext(ctx, "fiscalhub", append([]string{"serve"}, args...)...)
	// Scripts run side by side, so a server without --listen takes a free port.
	cmd.Dir, cmd.Env = ts.MkAbs("."), append(harness.Environment(), "FISCALHUB_LISTEN=127.0.0.1:0")
	for _, name := range []string{"FISCALHUB_DATA", "FISCALHUB_DATABASE", "FISCALHUB_LISTEN", "FISCALHUB_RATE_LIMIT", "FISCALHUB_BASE_URL", "FISCALHUB_MASTER_KEY"} {
		if value := ts.Getenv(name); value != "" {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	s, err := harness.Launch(cmd)
	ts.Check(err)
	ts.Defer(s.Kill)
	ts.Setenv("BASE", s.Base)
	if s.Key != "" {
		ts.Setenv("TAXPAYER", s.Taxpayer)
		ts.Setenv("KEY", s.Key)
	}
}

// scriptClient returns a client of the server of a script.
func scriptClient(ts *testscript.TestScript) *harness.Client {
	return &harness.Client{Taxpayer: ts.Getenv("TAXPAYER"), Key: ts.Getenv("KEY"), HTTP: harness.HTTP}
}

func scriptLimit(ctx context.Context, ts *testscript.TestScript, args []string) {
	got, err := scriptClient(ts).Get(ctx, ts.Getenv("BASE"), "invoices")
	ts.Check(err)
	if got.Status != http.StatusOK || got.Header.Get("RateLimit-Limit") != args[0] {
		ts.Fatalf("%d with a rate limit of %s, want %s", got.Status, got.Header.Get("RateLimit-Limit"), args[0])
	}
}

func scriptAnswers(ctx context.Context, ts *testscript.TestScript, args []string) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		got, err := scriptClient(ts).Get(ctx, ts.Getenv("BASE"), "invoices")
		ts.Check(err)
		if strconv.Itoa(got.Status) == args[0] {
			return
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			ts.Fatalf("the server answers %d after 20 seconds, want %s", got.Status, args[0])
		}
	}
}

func scriptPost(ctx context.Context, ts *testscript.TestScript, args []string) {
	got, err := scriptClient(ts).Create(ctx, ts.Getenv("BASE"), args[0], args[1])
	ts.Check(err)
	var made struct {
		Data struct {
			ID       string `json:"id"`
			Document string `json:"fiscal_document_id"`
		} `json:"data"`
		Meta struct {
			RequestID string `json:"request_id"`
		} `json:"meta"`
	}
	if err := json.Unmarshal([]byte(got.Body), &made); err != nil || got.Status != http.StatusAccepted {
		ts.Fatalf("%d %s, %v", got.Status, got.Body, err)
	}
	ts.Setenv("INVOICE", made.Data.ID)
	ts.Setenv("DOCUMENT", made.Data.Document)
	ts.Setenv("REQUEST", made.Meta.RequestID)
}

func scriptField(ts *testscript.TestScript, _ bool, args []string) {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	for name := range strings.SplitSeq(args[1], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			i, err := strconv.Atoi(name)
			ts.Check(err)
			v = in[i]
		}
	}
	text, ok := v.(string)
	if !ok {
		ts.Fatalf("%s is %v", args[1], v)
	}
	ts.Setenv(args[0], text)
}

func scriptShape(ts *testscript.TestScript, _ bool, args []string) {
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	var got bytes.Buffer
	ts.Check(shape(d, &got))
	if _, err := d.Token(); err == nil {
		ts.Fatalf("standard output has more than one value")
	}
	want := strings.Join(strings.Fields(ts.ReadFile(args[0])), " ")
	if got.String() != want {
		ts.Fatalf("the answer has the shape\n%s\nwant\n%s", got.String(), want)
	}
}

// shape writes the names and types of a value, in order. The first element of an
// array stands for all.
func shape(d *json.Decoder, out *bytes.Buffer) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch v := token.(type) {
	case json.Delim:
		out.WriteString(v.String())
		closing := map[json.Delim]string{'{': "}", '[': "]"}[v]
		var skipped bytes.Buffer
		for i := 0; d.More(); i++ {
			to := out
			if v == '[' && i > 0 {
				to = &skipped
			}
			if v == '{' {
				name, err := d.Token()
				if err != nil {
					return err
				}
				if i > 0 {
					out.WriteString(", ")
				}
				_, _ = fmt.Fprintf(out, "%s: ", name)
			}
			if err := shape(d, to); err != nil {
				return err
			}
		}
		out.WriteString(closing)
		_, err := d.Token()
		return err
	case nil:
		out.WriteString("null")
	default:
		out.WriteString(map[string]string{"string": "string", "bool": "bool", "float64": "number"}[fmt.Sprintf("%T", v)])
	}
	return nil
}

// must fails the test when err is not nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
