package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	sendRounds   = 4
	sendInvoices = 2500 // of a round
)

// send compares the command fiscalhub send with clients that only create invoices, as
// many at the same time. Both run in turns, so that a slow moment of the machine affects
// both.
func (b *bench) send(ctx context.Context) error {
	return b.onEngines(ctx, b.sendOn)
}

func (b *bench) sendOn(ctx context.Context, engine string) error {
	s, err := b.startService(ctx, engine, "send")
	if err != nil {
		return err
	}
	for _, parallel := range []int{8, clients} { // 8 is the default of the command
		if err := b.sendInTurns(ctx, s, engine, parallel); err != nil {
			return errors.Join(err, s.stop())
		}
	}
	return s.stop()
}

func (b *bench) sendInTurns(ctx context.Context, s *service, engine string, parallel int) error {
	next := s.newInvoices(s.key)
	var sent, created int
	var sendTook, createTook time.Duration
	for round := range sendRounds {
		took, err := b.sendFile(ctx, s, fmt.Sprintf("send-%d-%d", parallel, round), parallel)
		if err != nil {
			return err
		}
		sent, sendTook = sent+sendInvoices, sendTook+took
		got, err := s.drive(ctx, parallel, measureTime/sendRounds, func(client int) func() ([]byte, time.Duration) {
			n := 0
			return func() ([]byte, time.Duration) {
				n++
				return next((parallel*sendRounds+round)*clients+client, n), 0
			}
		})
		if err != nil {
			return err
		}
		created, createTook = created+got.statuses[http.StatusAccepted], createTook+got.took
	}
	measured, baseline := float64(sent)/sendTook.Seconds(), float64(created)/createTook.Seconds()
	b.row(fmt.Sprintf("invoices sent/s, %d at a time, %s", parallel, engine), rateText(measured), rateText(baseline), measured/baseline, "",
		fmt.Sprintf("creations/s of %d clients that read no file, write no journal and decode no answer", parallel))
	return nil
}

// sendFile sends a new file of invoices and returns how long the command took.
func (b *bench) sendFile(ctx context.Context, s *service, name string, parallel int) (time.Duration, error) {
	var text bytes.Buffer
	for n := range sendInvoices {
		text.Write(invoiceBody(fmt.Sprintf("%s-%d", name, n), typicalLines))
		text.WriteByte('\n')
	}
	file := filepath.Join(b.dir, name+"-"+s.taxpayer+".ndjson")
	if err := os.WriteFile(file, text.Bytes(), 0o600); err != nil {
		return 0, err
	}
	cmd := exec.CommandContext(ctx, b.binary, "send", file, "--base-url", "http://"+s.address, "--taxpayer", s.taxpayer, "--parallel", fmt.Sprint(parallel))
	cmd.Env = append(os.Environ(), "FISCALHUB_KEY="+s.key)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("send: %w\n%s", err, out)
	}
	return time.Since(start), nil
}
