package oracle

import "slices"

// statusOf returns the status that a kind of event reports.
func statusOf(kind string) string {
	for _, s := range []string{"submitted", "processing", "accepted", "accepted_conditional", "rejected", "outcome_unknown", "delivered"} {
		if kind == "fiscal_document."+s {
			return s
		}
	}
	if kind == "invoice.validation_failed" {
		return "validation_failed"
	}
	return ""
}

// events: every change of status is one event, and the feed has each event once, in
// order.
func (c *checker) events() {
	changes := map[string][]string{} // by invoice, without the creation
	for _, h := range c.History {
		if h.Kind == "status_changed" {
			changes[h.InvoiceID] = append(changes[h.InvoiceID], h.Status)
		}
	}
	reported := map[string][]string{} // by document
	last := map[string]int64{}
	for n, e := range c.Events {
		if e.Number != int64(n)+1 {
			c.fail("the feed has no gap", e.Kind, "position %d has the number %d", n+1, e.Number)
		}
		if e.DocumentID == "" {
			continue
		}
		if e.Revision < last[e.DocumentID] {
			c.fail("events of a document are in order", e.DocumentID, "revision %d comes after %d", e.Revision, last[e.DocumentID])
		}
		last[e.DocumentID] = e.Revision
		if s := statusOf(e.Kind); s != "" {
			reported[e.DocumentID] = append(reported[e.DocumentID], s)
		}
	}
	for _, i := range c.Invoices {
		if got := reported[i.DocumentID]; !slices.Equal(got, changes[i.ID]) {
			c.fail("every change is one event", i.ExternalID, "the history has %v, and the feed %v", changes[i.ID], got)
		}
	}
	c.feed()
}

// feed: a client that reads the feed from position to position sees every event of the
// database once, in order, with the same bytes.
func (c *checker) feed() {
	var seen []Event
	for _, e := range c.Feed {
		if e.Epoch == c.epoch() {
			seen = append(seen, e)
		}
	}
	for n, e := range seen {
		if n >= len(c.Events) || c.Events[n].ID != e.ID || c.Events[n].Number != e.Number || c.Events[n].Body != e.Body {
			c.fail("the feed skips and repeats nothing", e.Kind, "event %d of the client is not event %d of the database", n+1, n+1)
			return
		}
	}
	if len(seen) < len(c.Events) {
		c.fail("the feed skips and repeats nothing", c.Events[len(seen)].Kind, "the client has seen %d events of %d", len(seen), len(c.Events))
	}
}

// webhooks: every event reaches the endpoint at least once, with the bytes of the feed.
func (c *checker) webhooks() {
	bodies, arrived := map[string]string{}, map[string]bool{}
	for _, e := range c.Events {
		bodies[e.ID] = e.Body
	}
	for _, w := range c.Webhooks {
		if w.Epoch != c.epoch() {
			continue
		}
		if body, known := bodies[w.EventID]; !known || body != w.Body {
			c.fail("a webhook is an event of the feed", w.EventID, "the database has no such event with these bytes")
		}
		arrived[w.EventID] = arrived[w.EventID] || w.Answered
	}
	inEpoch := map[string]bool{}
	for _, d := range c.Deliveries {
		inEpoch[d.EventID] = true
		if d.State == "delivered" && !arrived[d.EventID] && len(c.Copies) == 0 {
			c.fail("every event arrives", d.EventID, "the database says delivered, and the receiver never answered")
		}
		if d.State == "failed" && len(c.Copies) == 0 && arrived[d.EventID] {
			c.fail("every event arrives", d.EventID, "the database says failed, and the receiver has accepted it")
		}
	}
	for _, e := range c.Events {
		if !inEpoch[e.ID] {
			c.fail("every event arrives", e.Kind, "no delivery of event %d exists", e.Number)
		}
	}
}
