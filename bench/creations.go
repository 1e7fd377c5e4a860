package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

const (
	clients      = 64
	measureTime  = 8 * time.Second
	typicalLines = 3
)

// creations compares creations through the API with a loop that only commits the
// same rows. Both run in turns, so that a slow moment of the machine affects both.
func (b *bench) creations(ctx context.Context) error {
	if err := b.onEngines(ctx, b.creationsOn); err != nil {
		return err
	}
	return b.creationParts()
}

const creationRounds = 4

func (b *bench) creationsOn(ctx context.Context, engine string) error {
	s, err := b.startService(ctx, engine, "creations")
	if err != nil {
		return err
	}
	// SQLite has one writer at a time. PostgreSQL has as many as the service has connections,
	// each with a store of its own: the writers of one store share commits.
	alone, shared := &floor{stores: map[string]int{"sqlite": 1, "postgres": 16}[engine], writers: 1}, &floor{stores: 1, writers: clients}
	floors := map[string]*floor{"plain": alone, "grouped": shared}
	next, round := s.newInvoices(s.key), 0
	created, took := 0, time.Duration(0)
	before, err := s.usage(ctx)
	for ; err == nil && round < creationRounds; round++ {
		var got result
		got, err = s.closed(ctx, measureTime/creationRounds, func(client, n int) []byte { return next(round*clients+client, n) })
		created, took = created+got.statuses[http.StatusAccepted], took+got.took
		for name, f := range floors {
			err = errors.Join(err, b.plainCommits(ctx, engine, fmt.Sprintf("%s_%d", name, round), f))
		}
	}
	after, usageErr := s.usage(ctx)
	if err := errors.Join(err, usageErr, s.stop()); err != nil {
		return err
	}
	measured := float64(created) / took.Seconds()
	if engine == "sqlite" {
		b.row("creations/s, 64 clients, sqlite", rateText(measured), rateText(shared.rate()), measured/shared.rate(), "≥ 0.7", "only the same rows, 64 writers share commits")
		b.row("  the same", rateText(measured), rateText(alone.rate()), measured/alone.rate(), "", "only the same rows, one commit each")
	} else {
		b.row("creations/s, 64 clients, postgres", rateText(measured), rateText(alone.rate()), measured/alone.rate(), "≥ 0.9", "only the same rows, one commit each")
		b.row("  the same", rateText(measured), rateText(shared.rate()), measured/shared.rate(), "", "only the same rows, 64 writers share commits")
	}
	b.used(before, after, created, "creation")
	return nil
}

// creationParts measures what a creation computes, part by part, on one core.
func (b *bench) creationParts() error {
	body := invoiceBody("s0abcdefghij-00-0000", typicalLines)
	document, err := strictjson.Parse(body)
	if err != nil {
		return err
	}
	request := fiscal.DecodeRequest(document)
	inv, err := fiscal.New(request)
	if err != nil {
		return err
	}
	canonical := document.Canonical()
	parts := []struct {
		name string
		run  func() error
	}{
		{"read the JSON", func() error { _, err := strictjson.Parse(body); return err }},
		{"make it canonical", func() error { document.Canonical(); return nil }},
		{"digests of both", func() error { sha256.Sum256(body); sha256.Sum256(canonical); return nil }},
		{"validate the invoice", func() error { _, err := fiscal.New(fiscal.DecodeRequest(document)); return err }},
		{"check the fiscal document", func() error { return ecf.Check(ecf.Synthetic(), inv) }},
	}
	functions := make([]func() error, len(parts))
	for i, p := range parts {
		functions[i] = p.run
	}
	taken, err := rounds(200, functions...)
	if err != nil {
		return err
	}
	for i, p := range parts {
		b.fact("  part of a creation: "+p.name, fmt.Sprintf("%.3f ms", taken[i].Seconds()*1000), "")
	}
	return nil
}

// newInvoices returns a function that makes creation requests, each for another
// invoice. It copies one request and replaces the id, which takes little CPU.
func (s *service) newInvoices(key string) func(client, n int) []byte {
	const placeholder = "00000000-0000000000"
	prefix := key[3:15] + "-"
	sample := s.post(key, prefix+placeholder, invoiceBody(prefix+placeholder, typicalLines))
	return func(client, n int) []byte {
		id := fmt.Appendf(nil, "%08d-%010d", client, n)
		return bytes.ReplaceAll(sample, []byte(placeholder), id)
	}
}

// A floor counts the creations that some stores commit without the service.
type floor struct {
	stores, writers int // writers of each store
	count           int64
	took            time.Duration
}

func (f *floor) rate() float64 { return float64(f.count) / f.took.Seconds() }

// plainCommits commits the rows of creations for a round, without the service.
func (b *bench) plainCommits(ctx context.Context, engine, name string, f *floor) (err error) {
	address, err := b.database(engine, name)
	if err != nil {
		return err
	}
	var stores []*store.Store
	defer func() {
		for _, s := range stores {
			err = errors.Join(err, s.Close())
		}
	}()
	for range f.stores {
		s, err := openStore(ctx, address)
		if err != nil {
			return err
		}
		stores = append(stores, s)
	}
	rows, err := newRows(ctx, stores[0])
	if err != nil {
		return err
	}
	var n atomic.Int64
	var failure atomic.Pointer[error]
	start := time.Now()
	var all sync.WaitGroup
	for i := range f.stores * f.writers {
		all.Go(func() {
			for ctx.Err() == nil && time.Since(start) < measureTime/creationRounds {
				if err := rows.commit(ctx, stores[i%f.stores]); err != nil {
					failure.Store(&err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	if err := failure.Load(); err != nil {
		return *err
	}
	f.count, f.took = f.count+n.Load(), f.took+time.Since(start)
	return nil
}

// rows are the values of the rows that a creation commits.
type rows struct {
	scope   store.Scope
	request []byte
	digest  []byte
	answer  []byte
	stage   string // of the job; empty: the creation adds no job
}

func newRows(ctx context.Context, s *store.Store) (rows, error) {
	scope := store.Scope{Environment: fiscal.Sandbox, TaxpayerID: store.NewID()}
	now := time.Now()
	err := s.Update(ctx, func(tx *store.Tx) error {
		return tx.CreateTaxpayer(ctx, store.Taxpayer{ID: scope.TaxpayerID, RNC: "199000013", LegalName: "x", Phones: []string{}, CreatedAt: now, UpdatedAt: now})
	})
	if err != nil {
		return rows{}, err
	}
	document, err := strictjson.Parse(invoiceBody("s0abcdefghij-00-0000", typicalLines))
	if err != nil {
		return rows{}, err
	}
	digest := sha256.Sum256([]byte(scope.TaxpayerID))
	return rows{scope: scope, request: document.Canonical(), digest: digest[:], answer: make([]byte, 620)}, nil
}

func (r rows) commit(ctx context.Context, s *store.Store) error {
	now := time.Now()
	inv := store.Invoice{
		Scope: r.scope, ID: store.NewID(), DocumentID: store.NewID(), ExternalID: store.NewID(), Type: fiscal.FiscalCredit,
		Status: fiscal.Accepted, Revision: 1, Currency: "DOP", IssueDate: "2026-11-14", Subtotal: "333.33", DiscountTotal: "33.33",
		TaxTotal: "54.00", Total: "354.00", Paid: "354.00", Balance: "0.00", DocumentTotal: "354.00",
		Messages:  []string{"Synthetic result of the sandbox; the tax authority has not seen this document."},
		CreatedAt: now, UpdatedAt: now,
	}
	registration := store.Registration{
		Reply: store.StoredReply{
			Scope: r.scope, Operation: "create_invoice", Key: inv.ExternalID, Fingerprint: r.digest, RawDigest: r.digest,
			ObjectID: inv.ID, HTTPStatus: http.StatusAccepted, Location: "/v1/taxpayers/" + r.scope.TaxpayerID + "/invoices/" + inv.ID,
			RequestID: "req_0123456789abcdef0123456789abcdef", CreatedAt: now, Body: r.answer,
		},
		Invoice: inv, Request: r.request,
		Entry: store.HistoryEntry{
			Scope: r.scope, InvoiceID: inv.ID, ID: store.NewID(), At: now, Kind: "created", Status: inv.Status,
			RequestID: "req_0123456789abcdef0123456789abcdef", Cause: "validated by the sandbox; a synthetic result",
		},
	}
	if r.stage != "" {
		registration.Job = &store.Job{Scope: r.scope, DocumentID: inv.DocumentID, Plan: "live", Stage: r.stage, RunAt: now, CreatedAt: now}
	}
	_, err := s.Register(ctx, registration)
	return err
}
