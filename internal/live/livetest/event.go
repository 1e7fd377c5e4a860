package livetest

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// Emitted is an event as integrators read it.
type Emitted struct {
	ID, Type, Timestamp, Environment string
	TaxpayerID                       string `json:"taxpayer_id"`
	Data                             struct {
		Object, ID     string
		InvoiceID      string `json:"invoice_id"`
		Status         fiscal.Status
		PreviousStatus fiscal.Status `json:"previous_status"`
		Sequence       int64
		ENCF           *string
		TrackID        *string `json:"track_id"`
		Total          string
		Result, Reason string
		Signer         string
		Contradicts    string
		ECFType        string `json:"ecf_type"`
		Remaining      *int64
		ExpiresAt      string `json:"expires_at"`
		Deadline       string
	}
}

// Feed returns the events of the taxpayer, in order.
func (w *Env) Feed() []Emitted {
	w.T.Helper()
	var all []Emitted
	for after := int64(0); ; {
		page, err := w.Store().Feed(w.T.Context(), w.Scope, after, 100)
		w.Must(err)
		for _, n := range page {
			var e Emitted
			w.Must(json.Unmarshal(n.Body, &e))
			if e.ID != n.ID || e.Type != n.Kind || len(n.Body) > 20<<10 || n.Number != after+1 {
				w.T.Errorf("event %d: %s", n.Number, n.Body)
			}
			all, after = append(all, e), n.Number
		}
		if len(page) == 0 {
			return all
		}
	}
}

// Kinds returns the kinds of the events about an invoice.
func (w *Env) Kinds(inv store.Invoice) string {
	var list []string
	for _, e := range w.Feed() {
		if e.Data.InvoiceID == inv.ID {
			list = append(list, e.Type)
		}
	}
	return strings.Join(list, " ")
}

// Audit asserts that every change of status emitted one event, with consecutive
// numbers, whatever has happened.
func (w *Env) Audit() {
	w.T.Helper()
	statuses, last := map[string][]string{}, map[string]int64{}
	for _, e := range w.Feed() {
		if e.Data.Object != "fiscal_document" {
			continue
		}
		id := e.Data.InvoiceID
		if last[id] == 0 {
			last[id] = 1 // the creation
		}
		if e.Data.PreviousStatus != "" {
			last[id]++
			statuses[id] = append(statuses[id], string(e.Data.Status))
			if e.Type != event.StatusChanged(e.Data.Status) {
				w.T.Errorf("%s has status %s", e.Type, e.Data.Status)
			}
		}
		if e.Data.Sequence != last[id] {
			w.T.Errorf("%s of %s has sequence %d, want %d", e.Type, id, e.Data.Sequence, last[id])
		}
	}
	page, err := w.Store().ListInvoices(w.T.Context(), w.Scope, store.InvoiceFilter{Limit: 100_000})
	w.Must(err)
	for _, inv := range page {
		events, err := w.Store().History(w.T.Context(), w.Scope, inv.ID)
		w.Must(err)
		var want []string
		for _, e := range events {
			if e.Kind == "status_changed" {
				want = append(want, string(e.Status))
			}
		}
		if !slices.Equal(statuses[inv.ID], want) {
			w.T.Errorf("%s: events %q, want %q", inv.ExternalID, statuses[inv.ID], want)
		}
	}
}
