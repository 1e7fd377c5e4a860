package main

import (
	"log/slog"
	"path/filepath"

	"github.com/fiscalhub/fiscalhub/internal/export"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// newExports returns the exports of the console. While a file is made, it is in the folder
// exports of the data folder.
func (t *terminal) newExports(env fiscal.Environment, s *store.Store, p *pipeline.Pipeline, pace wake.Pace, log *slog.Logger) (*export.Jobs, error) {
	return export.NewJobs(export.JobsOptions{
		Store: s, Pipeline: p, Environment: env, Dir: filepath.Join(t.cli.Data, "exports"), Now: s.Now, Log: log, Pace: pace,
	})
}

// jobs returns the exports that the process makes; nil when it serves no console.
func (s *servedConsole) jobs(all *export.Jobs) *export.Jobs {
	if s == nil {
		return nil
	}
	return all
}
