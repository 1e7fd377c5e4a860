// Command bench measures the service. It prints each figure with a baseline, the
// same work without the service, from the same run: machines differ, but the ratio
// of both is stable.
//
// The service runs in a process of its own, on SQLite and on a temporary PostgreSQL
// server; this process produces the load. Arguments select measurements:
// go run ./bench documents creations latency large list overload strangers live events backlog console.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

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
	table    *tabwriter.Writer
	progress io.Writer
	postgres *storetest.Server
}

// measurement is a named group of figures.
type measurement struct {
	name string
	run  func(*bench, context.Context) error
}

func measurements() []measurement {
	return []measurement{
		{"documents", (*bench).documents},
		{"creations", (*bench).creations},
		{"latency", (*bench).latency},
		{"large", (*bench).large},
		{"list", (*bench).list},
		{"overload", (*bench).overload},
		{"strangers", (*bench).strangers},
		{"live", (*bench).live},
		{"events", (*bench).events},
		{"backlog", (*bench).backlog},
		{"console", (*bench).console},
	}
}

func run(ctx context.Context, names []string, out, progress io.Writer) (err error) {
	dir, err := os.MkdirTemp("", "fiscalhub-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	b := &bench{dir: dir, data: filepath.Join(dir, "data"), binary: filepath.Join(dir, "fiscalhub"), progress: progress,
		table: tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)}
	b.say("building the service")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", b.binary, "./cmd/fiscalhub")
	build.Stderr = progress
	if err := build.Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	if b.postgres, err = storetest.StartPostgres(); err != nil {
		return err
	}
	defer b.postgres.Stop()
	_, _ = fmt.Fprintln(b.table, "figure\tmeasured\tbaseline\tratio\tgoal\tbaseline is\t")
	for _, m := range measurements() {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		if err := m.run(b, ctx); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		if err := b.table.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// say prints one line of progress.
func (b *bench) say(format string, args ...any) {
	_, _ = fmt.Fprintf(b.progress, "· "+format+"\n", args...)
}

// row adds a figure with its baseline.
func (b *bench) row(figure, measured, baseline string, ratio float64, goal, about string) {
	_, _ = fmt.Fprintf(b.table, "%s\t%s\t%s\t%.2f\t%s\t%s\t\n", figure, measured, baseline, ratio, goal, about)
}

// fact adds a figure without a baseline.
func (b *bench) fact(figure, measured, goal string) {
	_, _ = fmt.Fprintf(b.table, "%s\t%s\t\t\t%s\t\t\n", figure, measured, goal)
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
