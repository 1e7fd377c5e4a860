package pipeline

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// An ExtraEvent is an event about a document besides the change of its status.
type ExtraEvent struct {
	Kind           string
	Result, Reason string
	// Signer has signed a commercial response. Contradicts is the result of the response
	// that stands, when this one says the opposite.
	Signer, Contradicts string
}

// AddEvents adds the events of a change to the rows that are committed with it:
// the change of status, if there is one, and the extra ones. It returns the invoice as it
// is after the commit, and whether it added any event.
//
// Every event moves the time of the invoice's last change, so that the commit fails with
// store.ErrInvoiceChanged when another transaction has added an event meanwhile. Thus
// the feed has the events of a document in the order of their revisions, whatever the
// clocks say.
func AddEvents(rows *store.Batch, before, after store.Invoice, extra []ExtraEvent, now time.Time) (store.Invoice, bool) {
	if len(extra) > 0 && after.UpdatedAt.Equal(before.UpdatedAt) {
		after.UpdatedAt = before.NextUpdate(now)
		rows.UpdateInvoice(before, after)
	}
	at := after.UpdatedAt
	changed := after.Status != before.Status
	if changed {
		data := documentData(after)
		data.PreviousStatus = before.Status
		addDocumentEvent(rows, after, event.StatusChanged(after.Status), at, data)
		if after.Status == fiscal.Accepted || after.Status == fiscal.AcceptedConditional {
			extra = append([]ExtraEvent{{Kind: event.ArtifactsReady}}, extra...)
		}
	}
	for _, n := range extra {
		data := documentData(after)
		data.Result, data.Reason, data.Signer, data.Contradicts = n.Result, n.Reason, n.Signer, n.Contradicts
		addDocumentEvent(rows, after, n.Kind, at, data)
	}
	return after, changed || len(extra) > 0
}

func documentData(inv store.Invoice) event.Document {
	return event.Document{
		Object: "fiscal_document", ID: inv.DocumentID, InvoiceID: inv.ID, ExternalID: inv.ExternalID, Type: inv.Type, Status: inv.Status,
		Revision: inv.Revision, ENCF: present(inv.ENCF), TrackID: present(inv.TrackID), IssueDate: inv.IssueDate, Total: inv.DocumentTotal,
		Links: event.DocumentLinks(inv.TaxpayerID, inv.DocumentID),
	}
}

func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func addDocumentEvent(rows *store.Batch, inv store.Invoice, kind string, at time.Time, data event.Document) {
	e, err := NewEvent(inv.Scope, kind, at, data)
	e.DocumentID, e.Revision = inv.DocumentID, inv.Revision
	rows.Fail(err).AddEvent(e)
}

// NewEvent encodes an event for the store. It fails when the data cannot be
// encoded.
func NewEvent(scope store.Scope, kind string, at time.Time, data any) (store.Event, error) {
	e, err := event.New(event.Owner{Environment: scope.Environment, TaxpayerID: scope.TaxpayerID}, kind, at, data)
	return store.Event{Scope: scope, ID: e.ID, Kind: e.Kind, At: e.At, Body: e.Body}, err
}
