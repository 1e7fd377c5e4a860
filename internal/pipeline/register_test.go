package pipeline

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
)

// command returns the command of a valid request with a key and an external id.
func (b *env) command(key, external string) Command {
	b.t.Helper()
	raw := fmt.Appendf(nil, `{"external_id":%q,"ecf_type":"32","issue_date":"2026-11-14","currency":"DOP","payment_type":"cash","buyer":{"legal_name":"Prueba"},
		"lines":[{"line_id":"1","description":"Servicio","item_kind":"service","billing_indicator":1,"quantity":"1","unit_price":"100.00","discount":null,"taxes":[]}],
		"declared_totals":{"subtotal":"100.00","discount_total":"0","tax_total":"18.00","total":"118.00"}}`, external)
	document, err := strictjson.Parse(raw)
	b.must(err)
	c, err := NewCommand(raw, document, "")
	b.must(err)
	c.Scope, c.Key, c.RequestID = b.scope, key, "req"
	return c
}

// A repeated request is answered by one read: it starts no transaction, so it cannot undo
// the one that the creations of others share.
func TestARepeatedKeyStartsNoTransaction(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		first, err := b.Register(t.Context(), b.command("known", "F-1"))
		b.must(err)
		var mu sync.Mutex
		var transactions []error
		b.o.Store.OnCommit(func(_ time.Duration, err error) {
			mu.Lock()
			defer mu.Unlock()
			transactions = append(transactions, err)
		})
		invalid := b.command("known", "F-1")
		invalid.Refusal, invalid.Invoice = fiscal.Problems{}, nil // a rule of today refuses it
		other := b.command("known", "F-2")
		for name, c := range map[string]Command{"equal": b.command("known", "F-1"), "not valid any more": invalid, "another": other} {
			before := b.o.Store.WorkCount()
			again, err := b.Register(t.Context(), c)
			if name == "another" {
				if !errors.Is(err, ErrMismatch) {
					t.Errorf("%s: %v", name, err)
				}
			} else if err != nil || !again.Replayed || again.ObjectID != first.ObjectID {
				t.Errorf("%s: %+v, %v", name, again, err)
			}
			if n := b.o.Store.WorkCount().Statements - before.Statements; n != 1 {
				t.Errorf("%s: %d statements, want 1", name, n)
			}
		}
		if len(transactions) > 0 {
			t.Errorf("repeated requests started transactions: %v", transactions)
		}

		// While others create, the repetitions of a known key make no transaction fail.
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				for n := range 10 {
					key, name := "known", "F-1"
					if i%2 == 0 {
						key, name = fmt.Sprint("key ", i, n), fmt.Sprint(i, "-", n)
					}
					if _, err := b.Register(t.Context(), b.command(key, name)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		for _, err := range transactions {
			if err != nil {
				t.Errorf("a transaction failed: %v", err)
			}
		}
	})
}

// The unique index decides between equal requests of which none is known yet.
func TestEqualRequestsAtOnceMakeOneInvoice(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		b := newEnv(t, address, Sandbox{})
		var mu sync.Mutex
		var all sync.WaitGroup
		ids, fresh := map[string]bool{}, 0
		for range 16 {
			all.Go(func() {
				done, err := b.Register(t.Context(), b.command("key", "F-1"))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				ids[done.ObjectID] = true
				if !done.Replayed {
					fresh++
				}
			})
		}
		all.Wait()
		if len(ids) != 1 || fresh != 1 {
			t.Errorf("%d invoices, %d of the answers are no repetition", len(ids), fresh)
		}
	})
}
