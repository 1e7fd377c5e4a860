package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
)

// sendTogether sends n requests at the same time.
func (e *env) sendTogether(n int, of func(i int) request) []response {
	e.t.Helper()
	answers, errs := make([]response, n), make([]error, n)
	ready := newBarrier(n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			ready()
			answers[i], errs[i] = e.try(of(i))
		})
	}
	all.Wait()
	for _, err := range errs {
		e.must(err)
	}
	return answers
}

// newBarrier returns a function that blocks until n goroutines have called it.
func newBarrier(n int) func() {
	var waiting sync.WaitGroup
	waiting.Add(n)
	return func() {
		waiting.Done()
		waiting.Wait()
	}
}

const concurrentRequests = 50

func TestConcurrentEqualRequestsCreateOneInvoice(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		answers := e.sendTogether(concurrentRequests, func(int) request {
			return request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody("A-1")}
		})
		replayed, text := 0, string(answers[0].body)
		for _, a := range answers {
			e.created(a)
			if a.header.Get("Idempotency-Replayed") == "true" {
				replayed++
			}
			if string(a.body) != text || a.header.Get("Location") != answers[0].header.Get("Location") {
				t.Errorf("the answers differ: %s and %s", text, a.body)
			}
		}
		if replayed != concurrentRequests-1 {
			t.Errorf("%d of %d say that they are replays, want all but one", replayed, concurrentRequests)
		}
		e.wantRows(1)
	})
}

// wantRows checks how many creations are stored, in each table.
func (e *env) wantRows(n int) {
	e.t.Helper()
	db := e.database(e.t)
	for _, table := range []string{"invoices", "idempotency", "history WHERE kind = 'created'"} {
		if got := rowCount(e.t, db, table); got != n {
			e.t.Errorf("%d rows in %s, want %d", got, table, n)
		}
	}
}

// wantOneCreated checks that one creation was accepted and that all others were
// refused with a code. It returns the accepted one.
func (e *env) wantOneCreated(answers []response, code string) response {
	e.t.Helper()
	var winners []response
	for _, a := range answers {
		switch {
		case a.status == http.StatusAccepted && a.header.Get("Idempotency-Replayed") == "":
			winners = append(winners, a)
		case a.status != http.StatusConflict || a.code() != code:
			e.t.Errorf("want 409 %s, got %s", code, a)
		}
	}
	if len(winners) != 1 {
		e.t.Fatalf("%d creations were accepted, want one", len(winners))
	}
	e.wantRows(1)
	return winners[0]
}

func TestConcurrentBodiesUnderOneKeyCreateOneInvoice(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		e.wantOneCreated(e.sendTogether(concurrentRequests, func(i int) request {
			return request{method: http.MethodPost, path: "invoices", idem: "k", body: invoiceBody(fmt.Sprintf("A-%d", i))}
		}), "idempotency_mismatch")
	})
}

func TestConcurrentKeysForOneExternalIDCreateOneInvoice(t *testing.T) {
	eachEngine(t, envOptions{}, func(t *testing.T, e *env) {
		answers := e.sendTogether(concurrentRequests, func(i int) request {
			return request{method: http.MethodPost, path: "invoices", idem: fmt.Sprintf("k-%d", i), body: invoiceBody("A-1")}
		})
		location := e.wantOneCreated(answers, "external_id_conflict").header.Get("Location")
		for _, a := range answers {
			if a.header.Get("Location") != location {
				t.Errorf("Location %q, want that of the one invoice, %q", a.header.Get("Location"), location)
			}
		}
	})
}

// flakyPlan is a sandbox plan that sometimes fails before the invoice is stored.
type flakyPlan struct {
	pipeline.Sandbox
	failures *atomic.Int64
}

func (f flakyPlan) Check(context.Context, store.Scope, *fiscal.Invoice) error {
	switch rand.IntN(8) {
	case 0:
		f.failures.Add(1)
		return fmt.Errorf("%w: by the test", store.ErrUnavailable)
	case 1:
		return fiscal.Problems{{Field: "issue_date", Code: fiscal.CodeDateInFuture, Message: lang.Literal("by the test")}}
	}
	return nil
}

// exchangeRecord is one request of TestIdempotencyIsLinearizable and its answer.
type exchangeRecord struct {
	key, variant int
	began, ended int64
	status       int
	code, id     string
	replayed     bool
}

// For each key there is one order of the requests that explains all answers: the
// first commit decides; after it every equal request gets the stored answer and
// every other request gets 409.
func TestIdempotencyIsLinearizable(t *testing.T) {
	failures := new(atomic.Int64)
	eachEngine(t, envOptions{plan: flakyPlan{failures: failures}}, func(t *testing.T, e *env) {
		const clients, rounds, keys, variants = 16, 25, 12, 3
		var order atomic.Int64
		results := make([][]exchangeRecord, clients)
		ready := newBarrier(clients)
		var all sync.WaitGroup
		for c := range clients {
			all.Go(func() {
				ready()
				for range rounds {
					one := exchangeRecord{key: rand.IntN(keys), variant: rand.IntN(variants)}
					b := invoiceBody(fmt.Sprintf("E-%d", one.key), setField("notes", fmt.Sprintf("variant %d", one.variant)))
					one.began = order.Add(1)
					a, err := e.try(request{method: http.MethodPost, path: "invoices", idem: fmt.Sprintf("k-%d", one.key), body: b})
					one.ended = order.Add(1)
					if err != nil {
						t.Error(err)
						return
					}
					one.status, one.code, one.replayed = a.status, a.code(), a.header.Get("Idempotency-Replayed") == "true"
					if a.status == http.StatusAccepted {
						var envelope struct{ Data resource }
						if err := json.Unmarshal(a.body, &envelope); err != nil {
							t.Error(err)
						}
						one.id = envelope.Data.ID
					}
					results[c] = append(results[c], one)
				}
			})
		}
		all.Wait()
		byKey := make([][]exchangeRecord, keys)
		for _, list := range results {
			for _, one := range list {
				byKey[one.key] = append(byKey[one.key], one)
			}
		}
		created := 0
		for key, list := range byKey {
			if checkKeyHistory(t, key, list) {
				created++
			}
		}
		e.wantRows(created)
	})
}

// checkKeyHistory checks the records of one key, and reports whether an invoice
// was created.
func checkKeyHistory(t *testing.T, key int, list []exchangeRecord) bool {
	t.Helper()
	var creator *exchangeRecord
	for i := range list {
		if list[i].status == http.StatusAccepted && !list[i].replayed {
			if creator != nil {
				t.Errorf("key %d was created twice: %+v and %+v", key, *creator, list[i])
			}
			creator = &list[i]
		}
	}
	for _, one := range list {
		switch {
		case one.status == http.StatusServiceUnavailable:
			continue // the outcome is not known
		case one.status == http.StatusUnprocessableEntity:
			// A known key is answered before any rule.
			if creator != nil && one.began > creator.ended {
				t.Errorf("key %d is known, but %+v", key, one)
			}
		case creator == nil:
			t.Errorf("key %d was never created, but %+v", key, one)
			return false
		case one.ended < creator.began:
			t.Errorf("key %d: %+v was answered before the creation began at %d", key, one, creator.began)
		case one.variant == creator.variant && (one.status != http.StatusAccepted || one.id != creator.id):
			t.Errorf("key %d: the equal request %+v, the creation %+v", key, one, *creator)
		case one.variant != creator.variant && (one.status != http.StatusConflict || one.code != "idempotency_mismatch"):
			t.Errorf("key %d: the other request %+v, the creation %+v", key, one, *creator)
		}
	}
	return creator != nil
}

// rawCreation returns the header and the body of a creation as bytes.
func (e *env) rawCreation(idem string, b []byte) (head string, body []byte) {
	return e.rawRequest(http.MethodPost, "/v1/taxpayers/"+e.taxpayer+"/invoices", e.key,
		"Idempotency-Key: "+idem, "Content-Type: application/json", "Content-Length: "+strconv.Itoa(len(b))), b
}

// wantOneInvoice retries a creation whose outcome the client does not know, and
// checks that there is one invoice.
func (e *env) wantOneInvoice(name, idem, externalID string) {
	e.t.Helper()
	first := e.create(idem, invoiceBody(externalID))
	inv := e.created(first)
	wantReplay(e.t, name, response{first.status, http.Header{"Location": first.header["Location"], "Content-Type": first.header["Content-Type"]}, first.body},
		e.create(idem, invoiceBody(externalID)))
	var list []resource
	e.send(request{path: "invoices?external_id=" + url.QueryEscape(externalID)}).data(e.t, &list)
	if len(list) != 1 || list[0].ID != inv.ID {
		e.t.Errorf("%s: %d invoices", name, len(list))
	}
}

func TestRetryAfterTheClientDisconnected(t *testing.T) {
	blocking := newBlockingPlan()
	eachEngine(t, envOptions{plan: blocking.plan()}, func(t *testing.T, e *env) {
		made := 0
		for name, sent := range map[string]func(head, body int) int{
			"before anything":            func(int, int) int { return 0 },
			"within the head":            func(head, _ int) int { return head / 2 },
			"after the head":             func(head, _ int) int { return head },
			"after a byte of the body":   func(head, _ int) int { return head + 1 },
			"half way through the body":  func(head, body int) int { return head + body/2 },
			"a byte before the end":      func(head, body int) int { return head + body - 1 },
			"at the end of the creation": func(head, body int) int { return head + body },
		} {
			id := "left " + name
			head, text := e.rawCreation(id, invoiceBody(id))
			c := e.dial(t)
			_, err := c.Write(append([]byte(head), text...)[:sent(len(head), len(text))])
			e.must(err)
			e.must(c.Close())
			e.wantOneInvoice(name, id, id)
			made++
			e.wantRows(made)
		}
		// The client disconnects before its creation is stored.
		head, text := e.rawCreation("slow", invoiceBody("slow"))
		c := e.dial(t)
		_, err := c.Write(append([]byte(head), text...))
		e.must(err)
		blocking.await(t, 1)
		e.must(c.Close())
		eventually(t, "the creation is cancelled", func() bool { return e.inFlight() == 0 })
		e.wantRows(made)

		// The client disconnects after the answer has arrived, without reading it.
		id := "answered"
		head, text = e.rawCreation(id, invoiceBody(id))
		c = e.dial(t)
		_, err = c.Write(append([]byte(head), text...))
		e.must(err)
		_, err = c.r.Peek(1)
		e.must(err)
		e.must(c.Close())
		a := e.create(id, invoiceBody(id))
		e.created(a)
		if a.header.Get("Idempotency-Replayed") != "true" {
			t.Errorf("want a replay, got %s", a)
		}
		e.wantRows(made + 1)
	})
}

// inFlight returns how many requests the service is answering.
func (e *env) inFlight() int {
	e.t.Helper()
	families, err := e.registry.Gather()
	e.must(err)
	for _, f := range families {
		if f.GetName() == "fiscalhub_http_requests_in_flight" {
			return int(f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	e.t.Fatal("the metric of requests in flight does not exist")
	return 0
}

// The service stops after the commit, before the client reads the answer.
func TestRetryAfterTheServiceStoppedBeforeItsAnswerWasRead(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := envOptions{clock: newClock(), masterKey: filepath.Join(t.TempDir(), "master.key")}
		var taxpayer, key, id string
		t.Run("before the end", func(t *testing.T) {
			e := newEnv(t, address, opt)
			taxpayer, key = e.taxpayer, e.key
			head, text := e.rawCreation("k", invoiceBody("A-1"))
			c := e.dial(t)
			_, err := c.Write(append([]byte(head), text...))
			e.must(err)
			eventually(t, "the commit", func() bool {
				inv, err := e.store.InvoiceByExternalID(t.Context(), e.scope(), "A-1")
				id = inv.ID
				return err == nil
			})
		})
		t.Run("after it", func(t *testing.T) {
			e := newNode(t, address, opt)
			e.taxpayer, e.key = taxpayer, key
			a := e.create("k", invoiceBody("A-1"))
			if inv := e.created(a); inv.ID != id || a.header.Get("Idempotency-Replayed") != "true" {
				t.Errorf("want a replay of %s, got %s", id, a)
			}
			e.wantRows(1)
		})
	})
}
