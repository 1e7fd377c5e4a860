package store_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// noon has microseconds, which both engines store exactly.
var noon = time.Date(2026, 11, 15, 12, 0, 0, 123456000, time.UTC)

// update commits fn, or fails the test.
func update(t *testing.T, s *store.Store, fn func(ctx context.Context, tx *store.Tx) error) {
	t.Helper()
	if err := s.Update(t.Context(), func(tx *store.Tx) error { return fn(t.Context(), tx) }); err != nil {
		t.Fatal(err)
	}
}

// count counts the rows of a table.
func count(t *testing.T, s *store.Store, table string) (n int) {
	t.Helper()
	if err := s.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func sampleTaxpayer() store.Taxpayer {
	return store.Taxpayer{
		ID: store.NewID(), RNC: "199000013", LegalName: "Distribuidora Palma Clara, SRL", TradeName: "Palma Clara",
		Branch: "Centro", Address: "Av. Inventada 1", Municipality: "010100", Province: "010000",
		Phones: []string{"809-555-0100", "829-555-0101"}, Email: "a@example.com", Website: "https://example.com",
		EconomicActivity: "Comercio «al por mayor»", IncomeType: "01", ElectronicSince: "2026-01-01",
		Logo: []byte{0x89, 'P', 'N', 'G', 0}, PageFormat: "receipt", CreatedAt: noon, UpdatedAt: noon.Add(time.Second),
	}
}

// addScope adds a taxpayer and returns its scope in the sandbox.
func addScope(t *testing.T, s *store.Store) store.Scope {
	t.Helper()
	made := sampleTaxpayer()
	update(t, s, func(ctx context.Context, tx *store.Tx) error { return tx.CreateTaxpayer(ctx, made) })
	return store.Scope{Environment: fiscal.Sandbox, TaxpayerID: made.ID}
}

func sampleInvoice(scope store.Scope, externalID string) store.Invoice {
	return store.Invoice{
		Scope: scope, ID: store.NewID(), DocumentID: store.NewID(), ExternalID: externalID,
		Type: fiscal.Consumer, Status: fiscal.Queued, Revision: 1, Currency: "DOP", IssueDate: "2026-11-15",
		Subtotal: "500.00", DiscountTotal: "0.00", TaxTotal: "90.00", Total: "590.00", Paid: "590.00", Balance: "0.00",
		DocumentTotal: "590.00", Messages: []string{"«ñ»", `"quoted"`}, CreatedAt: noon, UpdatedAt: noon,
	}
}

// sampleRegistration returns the creation of an invoice, with its own idempotency key.
func sampleRegistration(inv store.Invoice) store.Registration {
	answer := sampleAnswer(inv.Scope, inv.ID)
	answer.ObjectID = inv.ID
	return store.Registration{
		Reply: answer, Invoice: inv, Request: []byte(`{"a":1}`),
		Entry: store.HistoryEntry{Scope: inv.Scope, InvoiceID: inv.ID, ID: store.NewID(), At: noon, Kind: "created", Status: inv.Status, RequestID: "req_" + inv.ID},
	}
}

// register stores an invoice, and fails the test when its key exists.
func register(t *testing.T, s *store.Store, inv store.Invoice) store.Invoice {
	t.Helper()
	known, err := s.Register(t.Context(), sampleRegistration(inv))
	if err != nil || known != nil {
		t.Fatalf("register: known %v, %v", known, err)
	}
	return inv
}

func addInvoice(t *testing.T, s *store.Store, scope store.Scope, externalID string) store.Invoice {
	t.Helper()
	return register(t, s, sampleInvoice(scope, externalID))
}

func sampleAnswer(scope store.Scope, key string) store.StoredReply {
	return store.StoredReply{
		Scope: scope, Operation: "create_invoice", Key: key, Fingerprint: []byte{1, 0, 2}, RawDigest: []byte{3, 0},
		ObjectID: store.NewID(), HTTPStatus: 202, Location: "/v1/x", RequestID: "req_1", CreatedAt: noon,
		Body: []byte("{\"a\":\"\x00é\"}"),
	}
}

// together runs fn n times at the same time and waits for all.
func together(n int, fn func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		all.Go(func() {
			<-start
			fn(i)
		})
	}
	close(start)
	all.Wait()
}

// sizeOf returns the size of a test: that of an environment variable, which `make soak`
// sets, or a small one.
func sizeOf(t *testing.T, variable string, small int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return small
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// name returns a name for row i, such as J-007.
func name(prefix string, i int) string { return fmt.Sprintf("%s-%03d", prefix, i) }
