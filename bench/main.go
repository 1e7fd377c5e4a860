// Command bench measures the service. It prints each figure with a baseline, the
// same work without the service, from the same run: machines differ, but the ratio
// of both is stable.
//
// The service runs in a process of its own, on SQLite and on a temporary PostgreSQL
// server; this process produces the load. Arguments select measurements:
// go run ./bench documents creations send latency large list overload strangers live events backlog console.
// The measurements peers and scale run only when they are named: peers installs programs of
// others, and scale needs 40 GB of disk.
//
// It prints a table after each measurement, and writes all figures to bin/bench.json and a
// chart to bin/bench.svg. With -out NAME they are NAME.json and NAME.svg.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/bench/report"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	work := func() error { return run(ctx, os.Args[1:], os.Stdout, os.Stderr) }
	if len(os.Args) > 1 && os.Args[1] == attackArgument {
		work = func() error { return runAttack(ctx, os.Args[2:]) }
	}
	if err := work(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run: its temporary files and the table of its results.
type bench struct {
	dir      string
	data     string // data folder of the service
	binary   string
	progress io.Writer
	postgres *storetest.Server
	report   report.Report
	group    string // the measurement that runs
	began    time.Time
}

// measurement is a named group of figures.
type measurement struct {
	name string
	run  func(*bench, context.Context) error
	// alone says that it needs neither the service nor PostgreSQL.
	alone bool
}

func measurements() []measurement {
	return []measurement{
		{name: "documents", run: (*bench).documents, alone: true},
		{name: "creations", run: (*bench).creations},
		{name: "send", run: (*bench).send},
		{name: "latency", run: (*bench).latency},
		{name: "large", run: (*bench).large},
		{name: "list", run: (*bench).list},
		{name: "overload", run: (*bench).overload},
		{name: "strangers", run: (*bench).strangers},
		{name: "live", run: (*bench).live},
		{name: "events", run: (*bench).events},
		{name: "backlog", run: (*bench).backlog},
		{name: "console", run: (*bench).console},
		{name: "scale", run: (*bench).scale},
		{name: "peers", run: (*bench).peers},
	}
}

func run(ctx context.Context, args []string, out, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	target := flags.String("out", filepath.Join("bin", "bench"), "write the figures to `NAME`.json and a chart to NAME.svg")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "fiscalhub-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, data: filepath.Join(dir, "data"), binary: filepath.Join(dir, "fiscalhub"), progress: progress, began: time.Now()}
	if slices.ContainsFunc(chosen, func(m measurement) bool { return !m.alone }) {
		stop, err := b.prepare(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	b.report = report.Report{Machine: b.thisMachine(ctx), Date: time.Now().Format(time.DateOnly), Command: "make bench"}
	if names := strings.Join(flags.Args(), " "); names != "" {
		b.report.Command += ` ARGS="` + names + `"`
	}
	atStart := processorTimes()
	for i, m := range chosen {
		b.group = m.name
		b.say("%d of %d: %s", i+1, len(chosen), m.name)
		before := len(b.report.Figures)
		if err := m.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := report.Table(out, b.report.Figures[before:]); err != nil {
			return err
		}
		// Written after each measurement, so that an interrupted run leaves its figures.
		b.report.Machine.LoadAfter, b.report.Machine.Stolen = load(), stolenSince(atStart)
		if err := b.writeReport(*target); err != nil {
			return err
		}
	}
	b.say("the figures are in %s.json, the chart in %s.svg", *target, *target)
	return nil
}

// prepare builds the service and starts PostgreSQL. The returned function stops it.
func (b *bench) prepare(ctx context.Context) (stop func(), err error) {
	b.say("building the service")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.binary, "./cmd/fiscalhub")
	build.Stderr = b.progress
	if err := build.Run(); err != nil {
		return nil, fmt.Errorf("build: %w", err)
	}
	if b.postgres, err = storetest.StartPostgres(); err != nil {
		return nil, err
	}
	return b.postgres.Stop, nil
}

// choose returns the measurements with some names. Without names it returns all but peers,
// which installs other programs, and scale, which needs 40 GB of disk.
func choose(names []string) (chosen []measurement, err error) {
	for _, m := range measurements() {
		if slices.Contains(names, m.name) || len(names) == 0 && m.name != "peers" && m.name != "scale" {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) < len(names) {
		return nil, fmt.Errorf("a measurement of %q is not known", names)
	}
	return chosen, nil
}

func (b *bench) writeReport(target string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil { //nolint:gosec // figures for everyone to read
		return err
	}
	if err := b.report.Write(target + ".json"); err != nil {
		return err
	}
	return os.WriteFile(target+".svg", b.report.Chart(), 0o644) //nolint:gosec // as above
}

// say prints one line of progress, with the time since the start.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, "· %s  "+format+"\n", append([]any{time.Since(b.began).Round(time.Second)}, args...)...)
}

// onEngines takes some measurements on one engine after the other.
func (b *bench) onEngines(ctx context.Context, measure ...func(ctx context.Context, engine string) error) error {
	for _, engine := range storetest.Engines() {
		b.say("%s on %s", b.group, engine)
		for _, one := range measure {
			if err := one(ctx, engine); err != nil {
				return err
			}
		}
	}
	return nil
}

// row adds a figure with its baseline.
func (b *bench) row(figure, measured, baseline string, ratio float64, goal, about string) {
	b.report.Figures = append(b.report.Figures, report.Figure{
		Group: b.group, Name: figure, Measured: measured, Baseline: baseline, Ratio: math.Round(ratio*1000) / 1000, Goal: goal, About: about,
	})
}

// fact adds a figure without a baseline.
func (b *bench) fact(figure, measured, goal string) {
	b.report.Figures = append(b.report.Figures, report.Figure{Group: b.group, Name: figure, Measured: measured, Goal: goal})
}

// database creates an empty database and returns its address.
func (b *bench) database(engine, name string) (string, error) {
	if engine == "sqlite" {
		return "sqlite:" + filepath.Join(b.dir, name+".db"), nil
	}
	return b.postgres.Create(name)
}

// openStore opens a database in this process.
func openStore(ctx context.Context, address string) (*store.Store, error) {
	return store.Open(ctx, address, store.Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
}
