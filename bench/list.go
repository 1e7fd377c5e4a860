package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

const (
	manyInvoices = 1_000_000
	pageRuns     = 400
	pageSize     = 25
)

// list compares pages of a list of a million invoices with the page of a database
// that has only 25 invoices.
func (b *bench) list(ctx context.Context) error {
	for _, engine := range storetest.Engines() {
		empty, err := b.pages(ctx, engine, 0)
		if err != nil {
			return err
		}
		small, err := b.pages(ctx, engine, pageSize)
		if err != nil {
			return err
		}
		b.say("%d invoices on %s", manyInvoices, engine)
		full, err := b.pages(ctx, engine, manyInvoices)
		if err != nil {
			return err
		}
		baseline := "the page of a database with 25 invoices"
		b.row("first page of a million, "+engine, milliseconds(full.first), milliseconds(small.first),
			float64(full.first)/float64(small.first), "≤ 1.5", baseline)
		b.row("page in the middle of it, "+engine, milliseconds(full.deep), milliseconds(small.first),
			float64(full.deep)/float64(small.first), "≤ 1.5", baseline)
		b.fact("  the page of an empty database, "+engine, milliseconds(empty.first), "")
	}
	return nil
}

type pageTimes struct{ first, deep time.Duration }

func (b *bench) pages(ctx context.Context, engine string, invoices int) (t pageTimes, err error) {
	name := fmt.Sprintf("list_%d", invoices)
	s, err := b.startService(ctx, engine, name)
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, s.stop()) }()
	if err := b.fill(ctx, s, invoices); err != nil {
		return t, err
	}
	if engine == "postgres" {
		if err := b.postgres.Analyze(name); err != nil {
			return t, err
		}
	}
	c, err := dial(ctx, s.address)
	if err != nil {
		return t, err
	}
	defer func() { _ = c.Close() }()
	page := func(path string) timing {
		request := s.get(path)
		return median(pageRuns, func() error { return c.expect(http.StatusOK, request) })
	}
	first := page("invoices")
	t.first = first.took
	if invoices <= pageSize || first.err != nil {
		return t, first.err
	}
	cursor, err := s.walk(ctx, invoices/2/100)
	if err != nil {
		return t, err
	}
	deep := page("invoices?cursor=" + cursor)
	t.deep = deep.took
	return t, deep.err
}

// walk reads some pages of a list and returns the next cursor.
func (s *service) walk(ctx context.Context, pages int) (cursor string, err error) {
	for range pages {
		path := "invoices?limit=100"
		if cursor != "" {
			path += "&cursor=" + cursor
		}
		var answer struct {
			Meta struct {
				NextCursor string `json:"next_cursor"`
			} `json:"meta"`
		}
		if err := s.getJSON(ctx, path, &answer); err != nil {
			return "", err
		}
		cursor = answer.Meta.NextCursor
	}
	return cursor, nil
}

// fill stores invoices without the service, many in a transaction.
func (b *bench) fill(ctx context.Context, of *service, invoices int) (err error) {
	s, err := openStore(ctx, of.database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	const group = 2000
	request := invoiceBody("filled", 1)
	for n := 0; n < invoices; n += group {
		all := make([]store.Invoice, 0, group)
		for i := n; i < min(n+group, invoices); i++ {
			now := time.Now()
			all = append(all, store.Invoice{
				Scope: store.Scope{Environment: fiscal.Sandbox, TaxpayerID: of.taxpayer}, ID: store.NewID(), DocumentID: store.NewID(),
				ExternalID: fmt.Sprintf("filled-%07d", i), Type: fiscal.Consumer, Status: fiscal.Accepted, Revision: 1, Currency: "DOP",
				IssueDate: "2026-11-14", Subtotal: "111.11", DiscountTotal: "11.11", TaxTotal: "18.00", Total: "118.00", Paid: "118.00",
				Balance: "0.00", DocumentTotal: "118.00", CreatedAt: now, UpdatedAt: now,
			})
		}
		if err := s.ImportInvoices(ctx, all, request); err != nil {
			return err
		}
		if n%100_000 == 0 && n > 0 {
			b.say(strings.Repeat(" ", 2)+"%d stored", n)
		}
	}
	return nil
}
