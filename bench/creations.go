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

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

const (
	clients      = 64
	measureTime  = 8 * time.Second
	typicalLines = 3
)

// creations compares creations through the API with a loop that only commits the
// same rows.
func (b *bench) creations(ctx context.Context) error {
	for _, engine := range storetest.Engines() {
		b.say("creations on %s", engine)
		address, err := b.database(engine, "creations")
		if err != nil {
			return err
		}
		s, err := b.startService(ctx, address)
		if err != nil {
			return err
		}
		got, err := s.closed(ctx, measureTime, s.newInvoices(s.key))
		if err := errors.Join(err, s.stop()); err != nil {
			return err
		}
		// SQLite has one writer at a time, PostgreSQL one for each client.
		writers := map[string]int{"sqlite": 1, "postgres": clients}[engine]
		plain, err := b.plainCommits(ctx, engine, "plain", writers)
		if err != nil {
			return err
		}
		b.row("creations/s, 64 clients, "+engine, fmt.Sprintf("%.0f", got.rate(http.StatusAccepted)), fmt.Sprintf("%.0f", plain),
			got.rate(http.StatusAccepted)/plain, "≥ 0.6", "only the same rows, one commit each")
		if engine == "sqlite" {
			grouped, err := b.plainCommits(ctx, engine, "grouped", clients)
			if err != nil {
				return err
			}
			b.row("  the same", fmt.Sprintf("%.0f", got.rate(http.StatusAccepted)), fmt.Sprintf("%.0f", grouped),
				got.rate(http.StatusAccepted)/grouped, "", "only the same rows, 64 writers share commits")
		}
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

// plainCommits returns how many creations per second the store commits without the
// service.
func (b *bench) plainCommits(ctx context.Context, engine, name string, writers int) (rate float64, err error) {
	address, err := b.database(engine, name)
	if err != nil {
		return 0, err
	}
	s, err := openStore(ctx, address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	rows, err := newRows(ctx, s)
	if err != nil {
		return 0, err
	}
	var n atomic.Int64
	var failure atomic.Pointer[error]
	start := time.Now()
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for ctx.Err() == nil && time.Since(start) < measureTime {
				if err := rows.commit(ctx, s); err != nil {
					failure.Store(&err)
					return
				}
				n.Add(1)
			}
		})
	}
	all.Wait()
	if f := failure.Load(); f != nil {
		return 0, *f
	}
	return float64(n.Load()) / time.Since(start).Seconds(), nil
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
		Answer: store.Answer{
			Scope: r.scope, Operation: "create_invoice", Key: inv.ExternalID, Fingerprint: r.digest, RawDigest: r.digest,
			ObjectID: inv.ID, HTTPStatus: http.StatusAccepted, Location: "/v1/taxpayers/" + r.scope.TaxpayerID + "/invoices/" + inv.ID,
			RequestID: "req_0123456789abcdef0123456789abcdef", CreatedAt: now, Body: r.answer,
		},
		Invoice: inv, Request: r.request,
		Entry: store.HistoryEntry{
			Scope: r.scope, InvoiceID: inv.ID, ID: store.NewID(), At: now, Kind: "created", Status: inv.Status,
			RequestID: "req_0123456789abcdef0123456789abcdef", Detail: "validated by the sandbox; a synthetic result",
		},
	}
	if r.stage != "" {
		registration.Job = &store.Job{Scope: r.scope, DocumentID: inv.DocumentID, Plan: "live", Stage: r.stage, RunAt: now, CreatedAt: now}
	}
	_, err := s.Register(ctx, registration)
	return err
}
