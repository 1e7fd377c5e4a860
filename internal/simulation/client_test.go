package simulation

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/pipeline"
	"github.com/fiscalhub/fiscalhub/internal/simulation/oracle"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/strictjson"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// record changes what the oracle will see.
func (w *world) record(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func hookOf(m webhook.Message, answered bool, epoch int) oracle.Webhook {
	return oracle.Webhook{EventID: m.ID, Body: string(m.Body), Answered: answered, Epoch: epoch}
}

var (
	kindOf     = regexp.MustCompile(`"type":"([a-z_.]+)"`)
	externalOf = regexp.MustCompile(`"external_id":"([^"]*)"`)
)

// short describes an event without anything that differs from process to process.
func short(body []byte) string {
	text := "?"
	if m := kindOf.FindSubmatch(body); m != nil {
		text = string(m[1])
	}
	if m := externalOf.FindSubmatch(body); m != nil {
		text += " of " + string(m[1])
	}
	return text
}

// A client creates invoices, repeats requests that got no answer, and reads what became
// of them.
type client struct {
	w     *world
	name  string
	open  map[string]int    // creations without a definite answer, with the number of the chain of tries
	tries int               // chains of tries so far
	made  []string          // keys of its creations
	sent  map[string][]byte // what it sent, by key
	known map[string]string // invoice ids, by key
}

func newClient(w *world, index int) *client {
	return &client{w: w, name: fmt.Sprintf("c%d", index+1), open: map[string]int{}, sent: map[string][]byte{}, known: map[string]string{}}
}

// request returns the body of a creation.
func request(external, kind string, net int) []byte {
	body, err := json.Marshal(map[string]any{
		"external_id": external, "ecf_type": kind, "issue_date": "2026-11-14", "currency": "DOP", "payment_type": "cash",
		"buyer": map[string]any{"legal_name": "Comprador, SRL", "tax_id": buyerRNC},
		"lines": []any{map[string]any{
			"line_id": "1", "description": "Cosa", "item_kind": "product", "quantity": "1", "unit_price": fmt.Sprint(net), "discount": nil,
			"taxes": []any{map[string]any{"code": "ITBIS", "label": "ITBIS", "rate_percent": "18"}},
		}},
		"declared_totals": map[string]any{
			"subtotal": fmt.Sprint(net), "discount_total": "0",
			"tax_total": fmt.Sprintf("%d.%02d", net*18/100, net*18%100), "total": fmt.Sprintf("%d.%02d", net*118/100, net*118%100),
		},
	})
	if err != nil {
		return nil
	}
	return body
}

// create begins a new invoice.
func (c *client) create() {
	w := c.w
	external := fmt.Sprintf("%s-%d", c.name, len(c.made)+1)
	kind, net := "31", 1000+w.draw(1000)
	switch w.draw(5) {
	case 0, 1:
		kind = "32"
	case 2:
		kind, net = "32", 300_000+w.draw(1000)
	}
	key := "key-" + external
	c.made, c.sent[key] = append(c.made, key), request(external, kind, net)
	c.begin(key)
}

// begin starts to send a creation until there is a definite answer. Earlier tries of it
// end.
func (c *client) begin(key string) {
	c.w.mu.Lock()
	c.tries++
	chain := c.tries
	c.open[key] = chain
	c.w.mu.Unlock()
	c.try(key, chain)
}

// try sends a creation to a node, and again after a while when there is no definite
// answer.
func (c *client) try(key string, chain int) {
	w := c.w
	w.mu.Lock()
	current := c.open[key] == chain
	w.mu.Unlock()
	if !current {
		return
	}
	n := w.anyNode()
	if n == nil {
		w.after(w.between(time.Second, 20*time.Second), func() { c.try(key, chain) })
		return
	}
	w.spawn(n.group, key, func() {
		x := c.call(n, key, c.sent[key], true)
		definite := x.Outcome == oracle.Created || x.Outcome == oracle.Replayed
		w.mu.Lock()
		current := c.open[key] == chain && x.Epoch == w.epoch
		if definite && current {
			c.known[key] = x.InvoiceID
			delete(c.open, key)
		}
		w.mu.Unlock()
		if x.Outcome == oracle.Conflict || x.Outcome == oracle.Mismatch {
			w.problem("%s: a repeated creation of %s is answered %s", c.name, x.ExternalID, x.Outcome)
			w.record(func() { delete(c.open, key) })
			return
		}
		if definite || !current {
			return
		}
		random := w.source("pause " + key)
		pause := time.Second + time.Duration(random.Int64N(int64(30*time.Second)))
		if x.Outcome == oracle.Refused {
			pause = time.Minute + time.Duration(random.Int64N(int64(15*time.Minute)))
		}
		w.after(pause, func() { c.try(key, chain) })
	})
}

// again repeats an earlier request, as it was or with other contents or under another key.
func (c *client) again() {
	w := c.w
	n := w.anyNode()
	if n == nil || len(c.made) == 0 {
		return
	}
	key := c.made[w.draw(len(c.made))]
	body, way := c.sent[key], w.draw(4)
	if w.epoch > 0 {
		way = 3 // an older copy may lack the invoice, and another request would create it
	}
	switch way {
	case 0:
		body = []byte(strings.Replace(string(body), "Cosa", "Otra cosa", 1))
	case 1:
		key += "-other"
	}
	w.mu.Lock()
	_, known := c.known[strings.TrimSuffix(key, "-other")]
	w.mu.Unlock()
	if !known {
		return
	}
	w.spawn(n.group, key, func() { c.call(n, key, body, false) })
}

// call sends one creation to a node, and records the answer.
func (c *client) call(n *node, key string, body []byte, repeats bool) oracle.Creation {
	w := c.w
	digest := sha256.Sum256(body)
	x := oracle.Creation{Key: key, ExternalID: externalID(body), Content: hex.EncodeToString(digest[:]), Outcome: oracle.NoAnswer, Began: w.now(), Repeats: repeats}
	w.mu.Lock()
	x.Epoch = w.epoch
	w.mu.Unlock()
	w.tracef(c.name, "sends %s to %s", key, n.name)
	done, err := n.create(w.tp.scope, key, body)
	var conflict *pipeline.ConflictError
	var notReady *pipeline.NotReadyError
	var later *pipeline.WaitError // the certificate has ended since its row was read
	w.mu.Lock()
	dead := n.dead
	w.mu.Unlock()
	switch {
	case dead: // the connection broke with the node
	case err == nil && done.Replayed:
		x.Outcome, x.InvoiceID, x.Body = oracle.Replayed, done.ObjectID, string(done.Body)
	case err == nil:
		x.Outcome, x.InvoiceID, x.Body = oracle.Created, done.ObjectID, string(done.Body)
	case errors.As(err, &conflict):
		x.Outcome, x.InvoiceID = oracle.Conflict, conflict.InvoiceID
	case errors.Is(err, pipeline.ErrMismatch):
		x.Outcome = oracle.Mismatch
	case errors.As(err, &notReady), errors.As(err, &later):
		x.Outcome = oracle.Refused
	case !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, errCrashed) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded):
		w.problem("%s: the creation %s fails: %v", c.name, key, err)
	}
	x.Ended = w.now()
	w.tracef(c.name, "%s: %s", key, x.Outcome)
	w.record(func() { w.run.Creations = append(w.run.Creations, x) })
	return x
}

// create registers an invoice, as the API does.
func (n *node) create(scope store.Scope, key string, body []byte) (done pipeline.Registered, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, 20*time.Second)
	defer cancel()
	document, err := strictjson.Parse(body)
	if err != nil {
		return done, err
	}
	command, err := pipeline.NewCommand(body, document, "")
	command.Scope, command.Key, command.RequestID, command.Refusal = scope, key, "req", err
	return n.pipeline.Register(ctx, command)
}

func externalID(body []byte) string {
	if m := externalOf.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	return ""
}

// look reads an invoice from a node.
func (c *client) look() {
	w := c.w
	n := w.anyNode()
	if n == nil || len(c.made) == 0 {
		return
	}
	key := c.made[w.draw(len(c.made))]
	w.mu.Lock()
	id, epoch := c.known[key], w.epoch
	w.mu.Unlock()
	if id == "" {
		return
	}
	w.spawn(n.group, "read", func() {
		inv, err := n.store.Invoice(n.ctx, w.tp.scope, id)
		if err != nil {
			return
		}
		w.tracef(c.name, "%s is %s", key, inv.Status)
		w.record(func() {
			w.run.Reads = append(w.run.Reads, oracle.Read{InvoiceID: id, Status: string(inv.Status), Revision: inv.Revision, At: w.now(), Epoch: epoch})
		})
	})
}

// A feedReader reads the feed from position to position.
type feedReader struct {
	w     *world
	after int64
	epoch int
	busy  bool
}

// read reads the next events from a node.
func (f *feedReader) read(limit int) {
	w := f.w
	n := w.anyNode()
	if n == nil || f.busy {
		return
	}
	w.mu.Lock()
	if f.epoch != w.epoch {
		f.epoch, f.after = w.epoch, 0
	}
	epoch := f.epoch
	w.mu.Unlock()
	f.busy = true
	w.spawn(nil, "feed", func() {
		events, err := n.feed.Read(n.ctx, w.tp.scope, f.after, limit)
		w.mu.Lock()
		defer w.mu.Unlock()
		f.busy = false
		if err != nil || epoch != w.epoch {
			return
		}
		for _, e := range events {
			w.run.Feed = append(w.run.Feed, oracle.Event{
				Number: e.Number, ID: e.ID, Kind: e.Kind, DocumentID: e.DocumentID, Body: string(e.Body), Revision: e.Revision, Epoch: epoch,
			})
			f.after = e.Number
		}
	})
}
