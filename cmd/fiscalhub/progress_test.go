package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/lang"
)

// newTestProgress returns a progress with a clock that the test moves.
func newTestProgress(onTerminal bool) (*progressBar, *strings.Builder, *time.Time) {
	out, now := &strings.Builder{}, time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	return &progressBar{out: out, now: func() time.Time { return now }, terminal: onTerminal, width: 80, language: lang.English, what: lang.Messagef("reconcile", "conciliación"), unit: lang.Messagef("numbers", "secuencias"), first: -1}, out, &now
}

func TestProgressRewritesOneLineOnATerminal(t *testing.T) {
	t.Parallel()
	p, out, now := newTestProgress(true)
	term := &terminal{errOut: p}
	for i, done := range []int64{0, 10, 20, 50, 4000, 4000, 9999, 10000} {
		*now = now.Add(time.Duration(i) * 500 * time.Millisecond)
		p.report(done, 10000)
		p.report(done, 10000) // too soon: the line does not change, unless it is the last one
	}
	term.warn(lang.Literal("the authority is slow"))
	p.end(term)
	const want = "\rreconcile: 0 of 10000 numbers, 0 %" +
		"\rreconcile: 10 of 10000 numbers, 0 %" +
		"\rreconcile: 20 of 10000 numbers, 0 %, 13/s, 12 min 29 s left" +
		"\rreconcile: 50 of 10000 numbers, 0 %, 17/s, 9 min 57 s left " +
		"\rreconcile: 4000 of 10000 numbers, 40 %, 800/s, 8 s left   " +
		"\rreconcile: 4000 of 10000 numbers, 40 %, 533/s, 11 s left" +
		"\rreconcile: 9999 of 10000 numbers, 99 %, 952/s, 1 s left " +
		"\rreconcile: 10000 of 10000 numbers, 100 %, 714/s        " +
		"\rreconcile: 10000 of 10000 numbers, 100 %, 714/s" +
		"\r                                               \r" + "fiscalhub: warning: the authority is slow\n" +
		"\rreconcile: 10000 of 10000 numbers, 100 %, 714/s\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	if term.errOut != p.out {
		t.Error("messages still go through the progress")
	}
}

func TestProgressOfAnUnknownTotal(t *testing.T) {
	t.Parallel()
	p, out, now := newTestProgress(true)
	p.width = 30
	for range 3 {
		*now = now.Add(2 * time.Second)
		p.report(int64(now.Second()), 0)
	}
	p.end(&terminal{})
	if want := "\rreconcile: 2 numbers\rreconcile: 4 numbers, 1.0/s\rreconcile: 6 numbers, 1.0/s\n"; out.String() != want {
		t.Errorf("got %q, want %q", out, want)
	}
	p, out, _ = newTestProgress(false)
	p.report(5, 0)
	p.end(&terminal{})
	if out.String() != "" {
		t.Errorf("without a terminal: %q", out)
	}
}

func TestProgressWritesALineForEachTenthElsewhere(t *testing.T) {
	t.Parallel()
	p, out, now := newTestProgress(false)
	term := &terminal{errOut: p}
	for _, done := range []int64{0, 10, 25} {
		p.report(done, 250) // a command that is done at once writes nothing
	}
	*now = now.Add(time.Second)
	for _, done := range []int64{0, 24, 25, 26, 50, 49, 120, 249, 250} {
		p.report(done, 250)
	}
	term.warn(lang.Literal("the authority is slow"))
	p.end(term)
	const want = "reconcile: 10 % (25 of 250 numbers)\nreconcile: 20 % (50 of 250 numbers)\nreconcile: 40 % (120 of 250 numbers)\n" +
		"reconcile: 90 % (249 of 250 numbers)\nreconcile: 100 % (250 of 250 numbers)\nfiscalhub: warning: the authority is slow\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestProgressInBytes(t *testing.T) {
	t.Parallel()
	for _, onTerminal := range []bool{false, true} {
		p, out, now := newTestProgress(onTerminal)
		p.what, p.unit = lang.Messagef("backup", "copia"), unitBytes()
		p.report(0, 263004160)
		*now = now.Add(2 * time.Second)
		p.report(112259072, 263004160)
		p.end(&terminal{})
		want := "backup: 40 % (107.1 MiB of 250.8 MiB)\n"
		if onTerminal {
			want = "\rbackup: 0 B of 250.8 MiB, 0 %\rbackup: 107.1 MiB of 250.8 MiB, 42 %, 53.5 MiB/s, 3 s left\n"
		}
		if out.String() != want {
			t.Errorf("got %q, want %q", out, want)
		}
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 999 << 20: "999.0 MiB", 1000 << 20: "1.0 GiB", 5 << 50: "5120.0 TiB"} {
		if got := formatBytes(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestTheTimeThatIsLeftHasTwoUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "1 s", 59 * time.Second: "59 s", 61 * time.Second: "1 min 1 s", 2*time.Hour + 5*time.Minute: "2 h 5 min",
	} {
		if got := formatLeft(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestAnInterruptionSaysWhatWasDone(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	term, failure := &terminal{ctx: ctx}, errors.New("no space")
	if err := term.interrupted(failure, lang.Literal("1 of 3")); !errors.Is(err, failure) {
		t.Errorf("without an interruption: %v", err)
	}
	cancel()
	if err := term.interrupted(fmt.Errorf("x: %w", ctx.Err()), lang.Literal("1 of 3 are done")); err.Error() != "interrupted: 1 of 3 are done" {
		t.Errorf("got %v", err)
	}
	if term.interrupted(nil, lang.Message{}) != nil {
		t.Error("a command that succeeded was interrupted")
	}
}

// A command that a signal ends says what is done and how to continue, in one line, and
// exits with 1.
func TestInterruptedCommandsSayHowToContinue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := []string{"--data", dir}
	var out, errOut strings.Builder
	if code := run(t.Context(), append([]string{"taxpayer", "create", "--rnc", "101000001", "--legal-name", "Prueba", "--address", "Calle 1"}, data...), &out, &errOut); code != exitOK {
		t.Fatalf("%d: %s", code, &errOut)
	}
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for command, want := range map[string]string{
		"backup " + dir + "/copy.db": "fiscalhub: interrupted: there is no backup, and the unfinished copy was removed; run the command again\n",
		"migrate":                    "fiscalhub: interrupted: 0 of 0 migrations are applied, and the database can be used; run the command again to apply the others\n",
	} {
		errOut.Reset()
		code := run(interrupted, append(strings.Fields(command), data...), &out, &errOut)
		if code != exitFail || errOut.String() != want {
			t.Errorf("%s: %d %q, want %q", command, code, errOut.String(), want)
		}
	}
	errOut.Reset()
	if code := run(t.Context(), append([]string{"backup", dir + "/copy.db"}, data...), &out, &errOut); code != exitOK || errOut.String() != "" {
		t.Errorf("the next backup: %d %s", code, &errOut)
	}
}

// The line of progress is in the language of the reader.
func TestProgressIsInSpanish(t *testing.T) {
	t.Parallel()
	p, out, now := newTestProgress(true)
	p.language = lang.Spanish
	p.report(0, 100)
	*now = now.Add(10 * time.Second)
	p.report(50, 100)
	if want := "conciliación: 50 de 100 secuencias, 50 %, 5.0/s, quedan 10 s"; !strings.Contains(out.String(), want) {
		t.Errorf("the line is %q, want %q", out.String(), want)
	}
}
