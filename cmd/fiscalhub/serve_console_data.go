package main

import (
	"context"
	"log/slog"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/requestlog"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// consoleData keeps what the console shows besides documents: the search index, the counts
// of the overview, and the log of API requests.
type consoleData struct {
	kept     bool // false: this process keeps none of it
	indexer  *overview.Indexer
	requests *requestlog.Log
}

func newConsoleData(config serveConfig, s *store.Store, registry prometheus.Registerer, log *slog.Logger) (*consoleData, error) {
	d := &consoleData{kept: config.consoleData}
	var err error
	if d.requests, err = requestlog.New(requestlog.Options{Store: s, Env: config.env, Log: log, Metrics: registry}); err != nil {
		return nil, err
	}
	d.indexer, err = overview.NewIndexer(overview.IndexerOptions{Store: s, Now: s.Now, Log: log})
	return d, err
}

// requestLog returns the log for the API; nil when the process keeps none.
func (d *consoleData) requestLog() api.RequestLog {
	if !d.kept {
		return nil
	}
	return d.requests
}

// run indexes documents and writes the log of requests until ctx ends.
func (d *consoleData) run(ctx context.Context) {
	if !d.kept {
		return
	}
	var all sync.WaitGroup
	all.Go(func() { d.indexer.Run(ctx) })
	all.Go(func() { d.requests.Run(ctx) })
	all.Wait()
}

// flush writes the log of the last requests, after run has ended.
func (d *consoleData) flush(ctx context.Context) {
	if d.kept {
		d.requests.Flush(ctx)
	}
}
