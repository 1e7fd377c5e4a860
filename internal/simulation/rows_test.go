package simulation

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"slices"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulation/oracle"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

const suspended = 100_000_000_000_000_000 // the run_at of jobs that wait for the authority begins here

// The rows of the simulator's table of checks for a number that is used, and for a summary
// that was sent before.
const (
	rowTaken    = 9
	rowSameCode = 10
)

// ctx returns the context of statements of the simulation itself. It never ends, so that
// database/sql starts no goroutine that waits for its end.
func (w *world) ctx() context.Context { return context.WithoutCancel(w.t.Context()) }

// readDue reads when the next job and the next delivery are due.
func (w *world) readDue() {
	w.mu.Lock()
	dirty := w.dirty
	w.dirty = false
	w.mu.Unlock()
	if !dirty {
		return
	}
	var jobs, hooks sql.NullInt64
	var waiting int
	w.must(w.queryJobs.QueryRowContext(w.ctx(), int64(suspended)).Scan(&jobs, &waiting))
	w.must(w.queryHooks.QueryRowContext(w.ctx()).Scan(&hooks))
	w.dueJobs, w.dueHooks, w.waiting = instant(jobs), instant(hooks), waiting > 0
}

func instant(micros sql.NullInt64) time.Time {
	if !micros.Valid {
		return time.Time{}
	}
	return time.UnixMicro(micros.Int64).UTC()
}

// settled reports whether no work is left: every client has its answers, no job and no
// delivery is left, and the feed was read to its end.
func (w *world) settled() bool {
	w.mu.Lock()
	for _, c := range w.clients {
		if len(c.open) > 0 {
			w.mu.Unlock()
			return false
		}
	}
	w.mu.Unlock()
	for _, n := range w.nodes {
		if !n.up() {
			return false
		}
	}
	var jobs, hooks, events int64
	w.must(w.rows.QueryRowContext(w.ctx(), `SELECT count(*) FROM jobs`).Scan(&jobs))
	w.must(w.rows.QueryRowContext(w.ctx(), `SELECT count(*) FROM webhook_deliveries d JOIN endpoints e ON e.id = d.endpoint_id WHERE d.state = 'pending' AND e.status = 'enabled'`).Scan(&hooks))
	w.must(w.rows.QueryRowContext(w.ctx(), `SELECT count(*) FROM events`).Scan(&events))
	return jobs == 0 && hooks == 0 && w.feed.epoch == w.epoch && events <= w.feed.seen && w.compared()
}

// compared reports whether every judged document was compared with the authority, a day
// after its last change, if the run is to go on for so long.
func (w *world) compared() bool {
	if !w.plan.compares {
		return true
	}
	var left int64
	w.must(w.rows.QueryRowContext(w.ctx(), `SELECT count(*) FROM invoices i WHERE encf IS NOT NULL AND status IN ('accepted', 'accepted_conditional', 'delivered', 'rejected')
		AND NOT EXISTS (SELECT 1 FROM comparisons c WHERE c.first_at > i.updated_at OR c.first_at = i.updated_at AND c.first_id >= i.document_id)`).Scan(&left))
	return left == 0
}

// each calls scan for every row of a query.
func (w *world) each(query string, scan func(row *sql.Rows) error) {
	rows, err := w.rows.QueryContext(w.ctx(), query)
	w.must(err)
	defer rows.Close()
	for rows.Next() {
		w.must(scan(rows))
	}
	w.must(rows.Err())
}

// collect reads the rows of the database and what the authority and the buyers have, for
// the oracle.
func (w *world) collect() oracle.Run {
	r := w.run
	r.Copies, r.BuyerReceives, r.Doubled = w.copied, w.plan.buyerReceives, w.doubled
	for _, rule := range w.plan.rules {
		r.SplitTracks = r.SplitTracks || rule.Action.Fault == "F13"
	}
	w.each(`SELECT id, document_id, external_id, ecf_type, status, revision, coalesce(encf, ''), coalesce(track_id, '') FROM documents ORDER BY external_id`, func(row *sql.Rows) error {
		var i oracle.Invoice
		err := row.Scan(&i.ID, &i.DocumentID, &i.ExternalID, &i.Type, &i.Status, &i.Revision, &i.ENCF, &i.TrackID)
		r.Invoices = append(r.Invoices, i)
		return err
	})
	w.each(`SELECT invoice_id, kind, status, at FROM history ORDER BY invoice_id, at, id`, func(row *sql.Rows) error {
		var h oracle.HistoryEntry
		var at int64
		err := row.Scan(&h.InvoiceID, &h.Kind, &h.Status, &at)
		h.At = time.UnixMicro(at)
		r.History = append(r.History, h)
		return err
	})
	w.each(`SELECT rnc, encf, document_id, range_id, number_state, xml_sha256, sent_sha256 FROM issued_documents WHERE former_document_id IS NULL ORDER BY encf`, func(row *sql.Rows) error {
		var i oracle.Issued
		var xml, sent []byte
		err := row.Scan(&i.RNC, &i.ENCF, &i.DocumentID, &i.RangeID, &i.State, &xml, &sent)
		i.XML, i.Sent = hex.EncodeToString(xml), hex.EncodeToString(sent)
		r.Issued = append(r.Issued, i)
		return err
	})
	w.each(`SELECT key, object_id, body FROM idempotency WHERE operation = 'create_invoice' ORDER BY key`, func(row *sql.Rows) error {
		var k oracle.Key
		err := row.Scan(&k.Key, &k.InvoiceID, &k.Body)
		r.Keys = append(r.Keys, k)
		return err
	})
	w.each(`SELECT id, ecf_type, first_number, last_number, next_number FROM number_ranges ORDER BY ecf_type, first_number`, func(row *sql.Rows) error {
		var s oracle.Range
		err := row.Scan(&s.ID, &s.Type, &s.First, &s.Last, &s.Next)
		r.Ranges = append(r.Ranges, s)
		return err
	})
	w.each(`SELECT document_id, number, sha256, class, closed_at IS NULL FROM attempts WHERE kind = 'submit' ORDER BY document_id, number`, func(row *sql.Rows) error {
		var a oracle.Attempt
		var sent []byte
		err := row.Scan(&a.DocumentID, &a.Number, &sent, &a.Class, &a.Open)
		a.Sent = hex.EncodeToString(sent)
		r.Attempts = append(r.Attempts, a)
		return err
	})
	w.each(`SELECT coalesce(number, 0), id, kind, document_id, revision, body FROM events ORDER BY number`, func(row *sql.Rows) error {
		var e oracle.Event
		err := row.Scan(&e.Number, &e.ID, &e.Kind, &e.DocumentID, &e.Revision, &e.Body)
		r.Events = append(r.Events, e)
		return err
	})
	w.each(`SELECT event_id, state FROM webhook_deliveries ORDER BY event_id`, func(row *sql.Rows) error {
		var d oracle.Delivery
		err := row.Scan(&d.EventID, &d.State)
		r.Deliveries = append(r.Deliveries, d)
		return err
	})
	text := func(to *[]string) func(*sql.Rows) error {
		return func(row *sql.Rows) error {
			var s string
			err := row.Scan(&s)
			*to = append(*to, s)
			return err
		}
	}
	w.each(`SELECT encf FROM burned ORDER BY encf`, text(&r.Abandoned))
	w.each(`SELECT document_id FROM differences ORDER BY document_id, kind`, text(&r.Differences))
	w.each(`SELECT document_id FROM jobs ORDER BY document_id`, text(&r.Jobs))
	for _, d := range w.sim.Documents(simulator.Filter{}) {
		r.Authority = append(r.Authority, oracle.Document{RNC: d.RNC, ENCF: d.ENCF, Digest: d.SHA256, TrackID: d.TrackID, Code: d.Verdict.Code, Foreign: w.foreign[d.SHA256],
			Faulty: d.Verdict.Code == 2 && d.Verdict.Row != 0 && d.Verdict.Row != rowTaken && d.Verdict.Row != rowSameCode})
	}
	for _, d := range w.sim.Deliveries(buyerRNC) {
		r.Buyers = append(r.Buyers, oracle.Received{Number: d.Key, Digest: d.SHA256})
	}
	for _, v := range w.sim.Violations() {
		if w.breach(v) {
			r.Breaches = append(r.Breaches, v.String())
		}
	}
	return r
}

// traceUnknown adds to the trace what is known of documents without a verdict.
func (w *world) traceUnknown() {
	w.each(`SELECT i.encf, e.body FROM evidence e JOIN documents i ON i.document_id = e.document_id WHERE i.status = 'outcome_unknown' ORDER BY e.at, e.id`, func(row *sql.Rows) error {
		var encf, body string
		err := row.Scan(&encf, &body)
		w.tracef("world", "evidence of %s: %s", encf, body)
		return err
	})
}

// breach reports whether a violation that the simulator counts is one of the service.
// Several nodes may ask for tokens on their own, a message that the network doubled is no
// second one of the service, and an older copy of the database does not know when a verdict
// was last asked for. When a disk was lost as well, a number that was sent and did not arrive
// may be recorded nowhere.
func (w *world) breach(v simulator.Violation) bool {
	if v.Kind == simulator.FastPolling {
		return !w.doubled[v.TrackID] && len(w.copied) == 0
	}
	if w.doubled[v.ENCF] || v.Kind == simulator.AlteredBytes && len(w.copied) > 0 && w.plan.lostDisks > 0 {
		return false
	}
	return slices.Contains([]simulator.ViolationKind{
		simulator.PostUnasked, simulator.DifferentBytes, simulator.AlteredBytes, simulator.UsedNumber, simulator.EarlyDelivery,
		simulator.SmallInvoice, simulator.DeliveryOf32, simulator.UnsignedDocument, simulator.WrongHost, simulator.FileName, simulator.ChunkedUpload,
	}, v.Kind)
}

// digestOf names the bytes of a document.
func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
