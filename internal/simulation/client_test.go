package simulation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulation/oracle"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// record changes what the oracle will see.
func (w *world) record(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func hookOf(m webhook.Message, answered bool, epoch int) oracle.Webhook {
	return oracle.Webhook{EventID: m.ID, Body: relative(m.Body), Answered: answered, Epoch: epoch}
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
	answer, err := n.call(http.MethodPost, c.w.taxpayerPath("invoices"), http.Header{
		"Authorization": {"Bearer " + w.tp.key}, "Idempotency-Key": {key}, "Content-Type": {"application/json"},
	}, body)
	if err == nil {
		x.InvoiceID, x.Body = read(answer.Body.Bytes(), "data", "id"), answer.Body.String()
		switch code := read(answer.Body.Bytes(), "error", "code"); {
		case answer.Code == http.StatusAccepted && answer.Header().Get("Idempotency-Replayed") == "true":
			x.Outcome = oracle.Replayed
		case answer.Code == http.StatusAccepted:
			x.Outcome = oracle.Created
		case code == "external_id_conflict":
			x.Outcome = oracle.Conflict
		case code == "idempotency_mismatch":
			x.Outcome = oracle.Mismatch
		case code == "operational_readiness_failed":
			x.Outcome = oracle.Refused
		case answer.Code != http.StatusServiceUnavailable:
			w.problem("%s: the creation %s is answered %d %s", c.name, key, answer.Code, code)
		}
	}
	x.Ended = w.now()
	w.tracef(c.name, "%s: %s", key, x.Outcome)
	w.record(func() { w.run.Creations = append(w.run.Creations, x) })
	return x
}

// taxpayerPath returns the path of something that belongs to the taxpayer.
func (w *world) taxpayerPath(rest string) string {
	return "/v1/taxpayers/" + w.tp.scope.TaxpayerID + "/" + rest
}

// get reads from the API of a node. It fails when the answer is not 200.
func (w *world) get(n *node, path string) ([]byte, error) {
	answer, err := n.call(http.MethodGet, w.taxpayerPath(path), http.Header{"Authorization": {"Bearer " + w.tp.key}}, nil)
	if err == nil && answer.Code != http.StatusOK {
		err = fmt.Errorf("%d %s", answer.Code, answer.Body)
	}
	return answer.Body.Bytes(), err
}

// read returns a member of a member of a JSON object; empty if there is none.
func read(body []byte, outer, inner string) string {
	var all map[string]json.RawMessage
	var members map[string]any
	if json.Unmarshal(body, &all) != nil || json.Unmarshal(all[outer], &members) != nil {
		return ""
	}
	text, _ := members[inner].(string)
	return text
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
		body, err := w.get(n, "invoices/"+id)
		if err != nil {
			return
		}
		status := read(body, "data", "status")
		w.tracef(c.name, "%s is %s", key, status)
		w.record(func() {
			w.run.Reads = append(w.run.Reads, oracle.Read{InvoiceID: id, Status: status, Updated: read(body, "data", "updated_at"), Epoch: epoch})
		})
	})
}

// A feedReader reads the feed from cursor to cursor.
type feedReader struct {
	w      *world
	cursor string
	seen   int64 // events of this epoch
	epoch  int
	busy   bool
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
		f.epoch, f.cursor, f.seen = w.epoch, "", 0
	}
	epoch := f.epoch
	w.mu.Unlock()
	f.busy = true
	w.spawn(n.group, "feed", func() {
		query := url.Values{"limit": {strconv.Itoa(limit)}}
		if f.cursor != "" {
			query.Set("cursor", f.cursor)
		}
		body, err := w.get(n, "events?"+query.Encode())
		var page struct{ Data []json.RawMessage }
		if err == nil {
			err = json.Unmarshal(body, &page)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		f.busy = false
		if err != nil || epoch != w.epoch {
			return
		}
		for _, e := range page.Data {
			f.seen++
			w.run.Feed = append(w.run.Feed, oracle.Event{Number: f.seen, ID: stringOf(e, "id"), Kind: stringOf(e, "type"), Body: relative(e), Epoch: epoch})
		}
		f.cursor = read(body, "meta", "next_cursor")
	})
}

func stringOf(object []byte, member string) string {
	var all map[string]any
	if json.Unmarshal(object, &all) != nil {
		return ""
	}
	text, _ := all[member].(string)
	return text
}

// relative returns an event with links as the database has them.
func relative(event []byte) string { return strings.ReplaceAll(string(event), `"`+publicURL, `"`) }
