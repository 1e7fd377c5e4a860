package oracle

import (
	"fmt"
	"slices"
	"time"
)

// checker collects violations of one run.
type checker struct {
	Run
	violations []Violation

	invoices map[string]Invoice // by id
	byDoc    map[string]Invoice // by document
	issued   map[string]Issued  // by document
}

// Check applies every rule to a run.
func Check(r Run) []Violation {
	c := &checker{Run: r, invoices: map[string]Invoice{}, byDoc: map[string]Invoice{}, issued: map[string]Issued{}}
	for _, i := range r.Invoices {
		c.invoices[i.ID], c.byDoc[i.DocumentID] = i, i
	}
	for _, i := range r.Issued {
		c.issued[i.DocumentID] = i
	}
	c.creations()
	c.reads()
	c.statuses()
	c.numbers()
	c.submissions()
	c.attempts()
	c.verdicts()
	c.buyers()
	c.events()
	c.webhooks()
	c.responses()
	c.differences()
	c.ends()
	for _, b := range r.Breaches {
		c.fail("the authority's protocol", b, "the service broke it")
	}
	return c.violations
}

func (c *checker) fail(rule, subject, format string, args ...any) {
	c.violations = append(c.violations, Violation{rule, subject, fmt.Sprintf(format, args...)})
}

// epoch returns the last epoch.
func (c *checker) epoch() int { return len(c.Copies) }

// survives reports whether something that happened in an epoch, and ended at an instant,
// must be in the database now: no copy since then is older.
func (c *checker) survives(epoch int, ended time.Time) bool {
	for _, copied := range c.Copies[epoch:] {
		if !ended.Before(copied) {
			return false
		}
	}
	return true
}

// creations: nothing that was acknowledged is lost; one key and one external id are one
// invoice, with the same answer each time.
func (c *checker) creations() {
	keys := map[string]Key{}
	for _, k := range c.Keys {
		keys[k.Key] = k
	}
	external := map[string]string{}
	for _, i := range c.Invoices {
		if other, twice := external[i.ExternalID]; twice {
			c.fail("one external id is one invoice", i.ExternalID, "invoices %s and %s have it", other, i.ID)
		}
		external[i.ExternalID] = i.ID
	}
	content := map[string]string{} // by key and epoch
	for _, x := range c.Creations {
		if x.Outcome != Created && x.Outcome != Replayed {
			continue
		}
		if !c.survives(x.Epoch, x.Ended) {
			continue
		}
		stored, known := keys[x.Key]
		inv, there := c.invoices[x.InvoiceID]
		switch {
		case !there:
			c.fail("nothing acknowledged is lost", x.ExternalID, "invoice %s was acknowledged and is not in the database", x.InvoiceID)
		case inv.ExternalID != x.ExternalID:
			c.fail("nothing acknowledged is lost", x.ExternalID, "invoice %s has the external id %s", x.InvoiceID, inv.ExternalID)
		case !known:
			c.fail("one key has one answer", x.ExternalID, "the key %s was answered and is not stored", x.Key)
		case stored.InvoiceID != x.InvoiceID || stored.Body != x.Body:
			c.fail("one key has one answer", x.ExternalID, "the key %s was answered with invoice %s, and is stored with %s", x.Key, x.InvoiceID, stored.InvoiceID)
		}
		if before, seen := content[x.Key]; seen && before != x.Content {
			c.fail("one key has one request", x.ExternalID, "the key %s was accepted with two contents", x.Key)
		}
		content[x.Key] = x.Content
	}
	for _, x := range c.Creations {
		if x.Outcome == Conflict && x.Epoch == c.epoch() && external[x.ExternalID] == "" {
			c.fail("a conflict names an invoice", x.ExternalID, "no invoice has the external id")
		}
	}
}

// reads: the status that clients see moves only along the arrows, and never back. Each
// change has a time of its own.
func (c *checker) reads() {
	last := map[string]Read{}
	for _, r := range c.Reads {
		before, seen := last[r.InvoiceID]
		last[r.InvoiceID] = r
		if !seen || before.Epoch != r.Epoch {
			continue
		}
		switch {
		case r.Updated < before.Updated:
			c.fail("clients see no status twice", r.InvoiceID, "%s of %s was read after %s of %s", r.Status, r.Updated, before.Status, before.Updated)
		case r.Status == before.Status:
		case r.Updated == before.Updated:
			c.fail("clients see each change", r.InvoiceID, "%s and %s have the time %s", before.Status, r.Status, r.Updated)
		case !reachable(before.Status, r.Status):
			c.fail("statuses follow the arrows", r.InvoiceID, "%s became %s", before.Status, r.Status)
		}
	}
}

// arrows are the changes of status that the contract allows.
func arrows(status string) []string {
	verdicts := []string{"accepted", "accepted_conditional", "rejected"}
	switch status {
	case "queued":
		return append(verdicts, "validation_failed", "submitted", "outcome_unknown")
	case "submitted":
		return append(verdicts, "processing", "outcome_unknown")
	case "processing":
		return append(verdicts, "outcome_unknown")
	case "outcome_unknown":
		return append(verdicts, "submitted", "processing")
	case "accepted", "accepted_conditional":
		return []string{"delivered"}
	case "rejected":
		return []string{"accepted", "accepted_conditional"}
	}
	return nil
}

// final reports whether a status needs no further answer of the authority.
func final(status string) bool {
	return slices.Contains([]string{"accepted", "accepted_conditional", "rejected", "delivered", "validation_failed"}, status)
}

// reachable reports whether one status leads to another, over any number of arrows.
func reachable(from, to string) bool {
	seen, next := map[string]bool{}, []string{from}
	for len(next) > 0 {
		s := next[0]
		next = next[1:]
		for _, n := range arrows(s) {
			if n == to {
				return true
			}
			if !seen[n] {
				seen[n] = true
				next = append(next, n)
			}
		}
	}
	return false
}

// statuses: the history of an invoice is a path of the arrows, each change once.
func (c *checker) statuses() {
	paths := map[string][]HistoryEntry{}
	for _, h := range c.History {
		if h.Kind == "created" || h.Kind == "status_changed" {
			paths[h.InvoiceID] = append(paths[h.InvoiceID], h)
		}
	}
	for _, i := range c.Invoices {
		path := paths[i.ID]
		if len(path) == 0 || path[0].Kind != "created" {
			c.fail("every invoice has a history", i.ExternalID, "its creation is missing")
			continue
		}
		for n, h := range path[1:] {
			if !slices.Contains(arrows(path[n].Status), h.Status) {
				c.fail("statuses follow the arrows", i.ExternalID, "%s became %s", path[n].Status, h.Status)
			}
			if !h.At.After(path[n].At) {
				c.fail("no two changes have one instant", i.ExternalID, "%s and %s", path[n].Status, h.Status)
			}
		}
		if last := path[len(path)-1]; last.Status != i.Status || int64(len(path)) != i.Revision {
			c.fail("every change is in the history", i.ExternalID, "it is %s after %d changes; its history has %d and ends with %s", i.Status, i.Revision, len(path), last.Status)
		}
	}
}
