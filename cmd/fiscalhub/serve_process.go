package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"syscall"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/api"
	"github.com/fiscalhub/fiscalhub/internal/fence"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	requestGrace = 20 * time.Second
	workGrace    = 30 * time.Second
)

// process is everything that runs, and the order in which it stops.
type process struct {
	log        *slog.Logger
	store      *store.Store
	api        *api.API
	pipeline   *pipeline.Pipeline
	events     *events
	fence      *fence.Fence
	listeners  listeners
	drainDelay time.Duration
}

// run serves until the process is asked to stop or a disk fails. It stops in this
// order: /readyz fails, the listeners close, open requests finish, stages finish.
func (p process) run(ctx context.Context) error {
	life := context.WithoutCancel(ctx)
	working, stopWork := context.WithCancel(life)
	defer stopWork()
	worked := make(chan struct{})
	go func() {
		defer close(worked)
		var others sync.WaitGroup
		others.Go(func() { p.fence.Run(working) })
		others.Go(func() { p.events.run(working) })
		p.pipeline.Run(working)
		others.Wait()
	}()
	served := make(chan error, len(p.listeners.servers))
	for i, server := range p.listeners.servers {
		go func() { served <- server.Serve(p.listeners.listeners[i]) }()
	}

	var failure error
	select {
	case err := <-served:
		failure = fmt.Errorf("server: %w", err)
	case <-p.store.Broken():
		failure = errors.New("the database failed: the process stops, because it cannot acknowledge anything more")
	case <-p.fence.Broken():
		failure = errors.New("the witness could not be written: the process stops, because it cannot send anything more")
	case <-ctx.Done():
		p.log.Info("Stopping.", "reason", context.Cause(ctx).Error())
		p.api.Stopping()
		p.pause(ctx)
	}
	p.api.Drain()
	grace, cancel := context.WithTimeout(life, requestGrace)
	defer cancel()
	for _, server := range p.listeners.servers {
		if err := server.Shutdown(grace); err != nil {
			p.log.Warn("Some requests did not finish in time and were cut off.", "error", err.Error())
		}
	}
	stopWork()
	select {
	case <-worked:
	case <-time.After(workGrace):
		p.log.Warn("Some stages did not finish in time. Their leases end by themselves, and the jobs are claimed again.")
	}
	return failure
}

// pause gives load balancers time to see that /readyz fails. It does not delay a
// person who stops the service at a terminal.
func (p process) pause(ctx context.Context) {
	var stop stopSignal
	if errors.As(context.Cause(ctx), &stop) && stop.Signal == syscall.SIGTERM {
		time.Sleep(p.drainDelay)
	}
}
