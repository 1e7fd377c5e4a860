package overview

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cursor"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// env is a database with two taxpayers, an indexer and a searcher.
type env struct {
	*store.Store
	t        *testing.T
	clock    *storetest.Clock
	a, b     store.Scope
	indexer  *Indexer
	searcher *Searcher
	reporter *Reporter
	padding  int // bytes that the next requests have beside the buyer
}

// eachEngine runs a test in a new environment on each engine.
func eachEngine(t *testing.T, environment fiscal.Environment, test func(t *testing.T, e *env)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		clock := storetest.NewClock()
		clock.Set(time.Now()) // as the times in ids
		e := &env{Store: storetest.Open(t, address, clock.Now), t: t, clock: clock}
		e.a, e.b = e.taxpayer(environment, "199000013"), e.taxpayer(environment, "199000021")
		e.indexer = e.newIndexer()
		e.searcher = NewSearcher(e.Store, func() cursor.Keys { return cursor.Keys{[]byte("a key for cursors of this test..")} }, clock.Now)
		var err error
		if e.reporter, err = NewReporter(Options{Store: e.Store, Now: clock.Now}); err != nil {
			t.Fatal(err)
		}
		test(t, e)
	})
}

func (e *env) newIndexer() *Indexer {
	e.t.Helper()
	x, err := NewIndexer(IndexerOptions{Store: e.Store, Now: e.clock.Now, Log: slog.New(slog.DiscardHandler), Hurry: true})
	if err != nil {
		e.t.Fatal(err)
	}
	return x
}

func (e *env) taxpayer(environment fiscal.Environment, rnc string) store.Scope {
	e.t.Helper()
	made := store.Taxpayer{ID: store.NewID(), RNC: rnc, LegalName: "Palma Clara, SRL", Phones: []string{}, CreatedAt: e.clock.Now(), UpdatedAt: e.clock.Now()}
	e.update(func(ctx context.Context, tx *store.Tx) error { return tx.CreateTaxpayer(ctx, made) })
	return store.Scope{Environment: environment, TaxpayerID: made.ID}
}

func (e *env) update(fn func(ctx context.Context, tx *store.Tx) error) {
	e.t.Helper()
	if err := e.Update(e.t.Context(), func(tx *store.Tx) error { return fn(e.t.Context(), tx) }); err != nil {
		e.t.Fatal(err)
	}
}

// invoice stores an invoice as the API does. change may change it before.
func (e *env) invoice(scope store.Scope, externalID, buyer, rnc, total string, change func(*store.Invoice)) store.Invoice {
	e.t.Helper()
	now := e.clock.Now()
	inv := store.Invoice{
		Scope: scope, ID: store.NewID(), DocumentID: store.NewID(), ExternalID: externalID, Type: fiscal.FiscalCredit, Status: fiscal.Queued, Revision: 1,
		Currency: "DOP", IssueDate: "2026-11-15", Subtotal: "1.00", DiscountTotal: "0.00", TaxTotal: "0.00", Total: total, Paid: "0.00", Balance: "0.00",
		DocumentTotal: total, CreatedAt: now, UpdatedAt: now,
	}
	if change != nil {
		change(&inv)
	}
	_, err := e.Register(e.t.Context(), store.Registration{
		Invoice: inv, Request: fmt.Appendf(nil, `{"buyer":{"legal_name":%q,"tax_id":%q},"padding":"%0*d"}`, buyer, rnc, e.padding, 0),
		Reply: store.StoredReply{
			Scope: scope, Operation: "create_invoice", Key: "key-" + externalID, Fingerprint: []byte{1}, RawDigest: []byte{1}, ObjectID: inv.ID,
			HTTPStatus: 202, RequestID: "req_" + externalID, CreatedAt: now, Body: []byte{1},
		},
		Entry: store.HistoryEntry{Scope: scope, InvoiceID: inv.ID, ID: store.NewID(), At: inv.CreatedAt, Kind: "created", Status: inv.Status, RequestID: "req_" + externalID},
	})
	if err != nil {
		e.t.Fatal(err)
	}
	return inv
}

// become changes the status of an invoice, as a stage does, and returns it.
func (e *env) become(inv store.Invoice, status fiscal.Status, trackID string) store.Invoice {
	e.t.Helper()
	after := inv
	after.Status, after.Revision, after.UpdatedAt = status, inv.Revision+1, e.clock.Now().Add(time.Duration(inv.Revision)*time.Millisecond)
	if trackID != "" {
		after.TrackID = trackID
	}
	e.update(func(ctx context.Context, tx *store.Tx) error {
		return tx.Do(ctx, new(store.Batch).ChangeStatus(inv, after).AddHistoryEntry(store.HistoryEntry{
			Scope: inv.Scope, InvoiceID: inv.ID, ID: store.NewID(), At: after.UpdatedAt, Kind: "status_changed", Status: status,
		}))
	})
	return after
}

func (e *env) index() {
	e.t.Helper()
	e.indexWith(e.indexer)
}

// indexWith runs steps of an indexer until the index has every document, and every change
// of a status, that was committed before.
func (e *env) indexWith(x *Indexer) {
	e.t.Helper()
	for more := true; more; {
		var err error
		if more, err = x.Step(e.t.Context()); err != nil {
			e.t.Fatal(err)
		}
	}
}

func (e *env) everything() store.Within { return store.Within{Environment: e.a.Environment, All: true} }

func only(scopes ...store.Scope) store.Within {
	w := store.Within{Environment: scopes[0].Environment}
	for _, s := range scopes {
		w.Taxpayers = append(w.Taxpayers, s.TaxpayerID)
	}
	return w
}

// found returns the external ids of all pages of a search, in their order.
func (e *env) found(within store.Within, q Query) (all []string) {
	e.t.Helper()
	for range 100 {
		page, err := e.searcher.Search(e.t.Context(), within, q)
		if err != nil {
			e.t.Fatalf("search %+v: %v", q, err)
		}
		for _, f := range page.Documents {
			all = append(all, f.ExternalID)
		}
		if page.Next == "" {
			return all
		}
		q.Cursor = page.Next
	}
	e.t.Fatalf("the search %+v does not end", q)
	return nil
}
