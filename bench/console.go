package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/overview"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

const (
	consoleRuns       = 100
	consoleBuyers     = 20_000
	consoleAmounts    = 50_000
	consoleGoal       = "≤ 20 ms"
	consoleSpread     = 30 * 24 * time.Hour
	consoleProgress   = 100_000 // documents between two lines of progress
	documentsVariable = "FISCALHUB_BENCH_DOCUMENTS"
)

// console measures the searches and the overview of the console with a million
// documents, and what keeping their data costs creations. The environment variable
// FISCALHUB_BENCH_DOCUMENTS sets another number of documents.
func (b *bench) console(ctx context.Context) error {
	documents, err := documentsWanted()
	if err != nil {
		return err
	}
	reads := func(ctx context.Context, engine string) error { return b.consoleReads(ctx, engine, documents) }
	return b.onEngines(ctx, reads, b.consoleCreations, b.consoleBrowsers)
}

// documentsWanted returns how many documents a database is filled with.
func documentsWanted() (int, error) {
	text := os.Getenv(documentsVariable)
	if text == "" {
		return manyInvoices, nil
	}
	documents, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", documentsVariable, err)
	}
	return documents, nil
}

// A consoleEnv is a database with documents of three taxpayers.
type consoleEnv struct {
	*store.Store
	address   string
	scopes    []store.Scope
	documents int
	start     time.Time
}

// consoleReads fills a database, indexes it, and times what the console reads.
func (b *bench) consoleReads(ctx context.Context, engine string, documents int) (err error) {
	address, err := b.database(engine, "console")
	if err != nil {
		return err
	}
	s, err := openStore(ctx, address)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	e := &consoleEnv{Store: s, address: address, documents: documents, start: time.Now().Add(-consoleSpread)}
	b.say("%d documents on %s", documents, engine)
	if err := e.fill(ctx, b); err != nil {
		return err
	}
	if err := e.index(ctx, b, engine); err != nil {
		return err
	}
	if engine == "postgres" {
		if err := b.postgres.Analyze("console"); err != nil {
			return err
		}
	}
	if err := e.measure(ctx, b, engine); err != nil {
		return err
	}
	return b.consolePages(ctx, engine, e)
}

// index indexes all documents.
func (e *consoleEnv) index(ctx context.Context, b *bench, engine string) error {
	const group = 2000
	indexer, err := overview.NewIndexer(overview.IndexerOptions{
		Store: e.Store, Now: time.Now, Log: slog.New(slog.DiscardHandler), Hurry: true, Batch: group,
	})
	if err != nil {
		return err
	}
	began := time.Now()
	for step := 1; ; step++ {
		more, err := indexer.Step(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
		if step*group%consoleProgress == 0 {
			b.say("  %d indexed", step*group)
		}
	}
	b.fact("documents indexed per second, in large steps, "+engine, fmt.Sprintf("%.0f", float64(e.documents)/time.Since(began).Seconds()), "")
	return nil
}

// fill stores the documents of a month.
func (e *consoleEnv) fill(ctx context.Context, b *bench) error {
	for range 3 {
		rows, err := newRows(ctx, e.Store)
		if err != nil {
			return err
		}
		e.scopes = append(e.scopes, rows.scope)
	}
	const group = 2000
	for n := 0; n < e.documents; n += group {
		count := min(group, e.documents-n)
		all := make([]store.Invoice, count)
		for i := range all {
			all[i] = e.document(n + i)
		}
		err := e.ImportRequests(ctx, all, func(i int) []byte {
			buyer := e.buyer(n + i)
			return fmt.Appendf(nil, `{"buyer":{"legal_name":"%s Número %d, SRL","tax_id":"%d"}}`, names()[buyer%len(names())], buyer, 101_000_000+buyer)
		})
		if err != nil {
			return err
		}
		if n%consoleProgress == 0 && n > 0 {
			b.say("  %d stored", n)
		}
	}
	return nil
}

func names() []string {
	return []string{"Ferretería El Tornillo", "Colmado La Esquina", "Farmacia Central", "Comercial Pérez", "Inversiones del Este", "Distribuidora Palma Clara"}
}

func (e *consoleEnv) buyer(n int) int { return n * 7919 % consoleBuyers }

// document returns a document; half of them belong to the first taxpayer.
func (e *consoleEnv) document(n int) store.Invoice {
	at := e.start.Add(time.Duration(float64(consoleSpread) * float64(n) / float64(e.documents)))
	status := fiscal.Accepted
	switch {
	case n%100 == 0:
		status = fiscal.Rejected
	case n%1000 == 1:
		status = fiscal.OutcomeUnknown
	case n%10 == 2:
		status = fiscal.Delivered
	}
	total := fmt.Sprintf("%d.00", n*31%consoleAmounts+1)
	if n%50 == 0 {
		total = "118.00"
	}
	return store.Invoice{
		Scope: e.scopes[[]int{0, 1, 0, 2}[n%4]], ID: store.NewIDAt(at), DocumentID: store.NewIDAt(at), ExternalID: fmt.Sprintf("filled-%07d", n),
		Type: fiscal.Consumer, Status: status, Revision: 1, Currency: "DOP", IssueDate: fiscal.DateOf(at).String(), Subtotal: total, DiscountTotal: "0.00",
		TaxTotal: "0.00", Total: total, Paid: total, Balance: "0.00", DocumentTotal: total, TrackID: fmt.Sprintf("track-%07d", n), CreatedAt: at, UpdatedAt: at,
	}
}

// measure times each kind of search and the overview, for an operator and for the
// accountant of a taxpayer.
func (e *consoleEnv) measure(ctx context.Context, b *bench, engine string) error {
	searcher := overview.NewSearcher(e.Store, func() cursor.Keys { return cursor.Keys{make([]byte, 32)} }, time.Now)
	reporter, err := overview.NewReporter(overview.Options{Store: e.Store, Now: time.Now})
	if err != nil {
		return err
	}
	everything := store.Within{Environment: fiscal.Sandbox, All: true}
	one := store.Within{Environment: fiscal.Sandbox, Taxpayers: []string{e.scopes[0].TaxpayerID}}
	week := fiscal.DateOf(e.start.Add(7 * 24 * time.Hour))
	queries := []struct {
		name  string
		query func(i int) overview.Query
	}{
		{"newest documents", func(int) overview.Query { return overview.Query{} }},
		{"by external id", func(i int) overview.Query { return overview.Query{Text: fmt.Sprintf("filled-%07d", i*997%e.documents)} }},
		{"by trackId", func(i int) overview.Query { return overview.Query{Text: fmt.Sprintf("track-%07d", i*997%e.documents)} }},
		{"by RNC", func(i int) overview.Query {
			return overview.Query{Text: strconv.Itoa(101_000_000 + i*997%consoleBuyers)}
		}},
		{"by two words of the name", func(i int) overview.Query {
			return overview.Query{Text: fmt.Sprintf("numero %d", 1000+i*97%(consoleBuyers-1000))}
		}},
		{"by a word of many names", func(int) overview.Query { return overview.Query{Text: "ferreteria"} }},
		{"by amount", func(i int) overview.Query { return overview.Query{Text: strconv.Itoa(i*997%consoleAmounts + 1)} }},
		{"by an amount of many", func(int) overview.Query { return overview.Query{Text: "RD$ 118.00"} }},
		{"by status", func(int) overview.Query { return overview.Query{Status: fiscal.Rejected} }},
		{"by status and days", func(int) overview.Query { return overview.Query{Status: fiscal.OutcomeUnknown, From: week, To: week} }},
		{"nothing found", func(i int) overview.Query { return overview.Query{Text: fmt.Sprintf("nothing-%d", i)} }},
	}
	for name, within := range map[string]store.Within{"all taxpayers": everything, "a taxpayer": one} {
		for _, q := range queries {
			err := e.time(b, "search "+q.name+", "+name+", "+engine, func(i int) error {
				_, err := searcher.Search(ctx, within, q.query(i))
				return err
			})
			if err != nil {
				return err
			}
		}
		err := e.time(b, "overview, "+name+", "+engine, func(int) error {
			_, err := reporter.Overview(ctx, within)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// time adds the median and the 99th percentile of a call.
func (e *consoleEnv) time(b *bench, name string, call func(i int) error) error {
	return e.timeWithin(b, name, consoleGoal, call)
}

// timeWithin is time with another goal.
func (e *consoleEnv) timeWithin(b *bench, name, goal string, call func(i int) error) error {
	took := make([]time.Duration, consoleRuns)
	for i := range took {
		start := time.Now()
		if err := call(i); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		took[i] = time.Since(start)
	}
	slices.Sort(took)
	b.say("  %s: %s", name, milliseconds(took[consoleRuns/2]))
	b.fact(name, fmt.Sprintf("%s (p99 %s)", milliseconds(took[consoleRuns/2]), milliseconds(took[consoleRuns*99/100])), goal)
	return nil
}

// consoleCreations compares creations of a service that keeps the data of the console
// with creations of a service that does not.
func (b *bench) consoleCreations(ctx context.Context, engine string) (failure error) {
	b.say("creations on %s with and without the data of the console", engine)
	var turns [2]func() (float64, error)
	for i, flags := range [][]string{nil, {"--no-console-data"}} {
		s, err := b.startService(ctx, engine, fmt.Sprintf("console_creations_%d", i), flags...)
		if err != nil {
			return err
		}
		defer func() { failure = errors.Join(failure, s.stop()) }()
		turns[i] = s.creationTurns(ctx)
	}
	with, without, ratio, err := inTurns(turns[0], turns[1])
	if err != nil {
		return err
	}
	b.row("creations/s with the index and the log of the console, "+engine, rateText(with), rateText(without), ratio, "≥ 0.95",
		"the same without them, in turns")
	return nil
}
