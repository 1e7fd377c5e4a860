package pipeline

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

// What integrators are told about a document beside the changes of its status.
const (
	NoticeArtifacts      = "fiscal_document.artifacts_ready"
	NoticeDeliveryFailed = "fiscal_document.delivery_failed"
	NoticeCommercial     = "fiscal_document.commercial_response"
)

// Tidings is something to tell about a document that is no change of its status.
type Tidings struct {
	Kind           string
	Result, Reason string
}

// noticeOf is what a change to a status is called.
func noticeOf(s fiscal.Status) string {
	if s == fiscal.ValidationFailed {
		return "invoice.validation_failed"
	}
	return "fiscal_document." + string(s)
}

// An envelope is what integrators get. Its links are paths: whoever sends it
// knows the address of the service.
type envelope struct {
	ID          string             `json:"id"`
	Type        string             `json:"type"`
	Timestamp   string             `json:"timestamp"`
	APIVersion  string             `json:"api_version"`
	Environment fiscal.Environment `json:"environment"`
	TaxpayerID  string             `json:"taxpayer_id"`
	Data        any                `json:"data"`
}

type documentData struct {
	Object         string        `json:"object"`
	ID             string        `json:"id"`
	InvoiceID      string        `json:"invoice_id"`
	ExternalID     string        `json:"external_id"`
	Type           fiscal.Type   `json:"ecf_type"`
	Status         fiscal.Status `json:"status"`
	PreviousStatus fiscal.Status `json:"previous_status,omitempty"`
	Sequence       int64         `json:"sequence"`
	ENCF           *string       `json:"encf"`
	TrackID        *string       `json:"track_id"`
	IssueDate      string        `json:"issue_date"`
	Total          string        `json:"total"`
	Result         string        `json:"result,omitempty"`
	Reason         string        `json:"reason,omitempty"`
	Links          struct {
		Self string `json:"self"`
	} `json:"links"`
}

// announce adds what integrators are told: the change of status, if there is one,
// and what comes with it. It says whether there was anything.
func announce(rows *store.Batch, before, after store.Invoice, also []Tidings, now time.Time) bool {
	// Never before the change that it comes after, whatever the clock says.
	at := now.UTC().Truncate(time.Millisecond)
	if at.Before(after.UpdatedAt) {
		at = after.UpdatedAt
	}
	told := len(also) > 0
	if after.Status != before.Status {
		told = true
		data := dataOf(after)
		data.PreviousStatus = before.Status
		addNotice(rows, after, noticeOf(after.Status), at, data)
		if after.Status == fiscal.Accepted || after.Status == fiscal.AcceptedConditional {
			also = append([]Tidings{{Kind: NoticeArtifacts}}, also...)
		}
	}
	for _, t := range also {
		data := dataOf(after)
		data.Result, data.Reason = t.Result, t.Reason
		addNotice(rows, after, t.Kind, at, data)
	}
	return told
}

func dataOf(inv store.Invoice) documentData {
	data := documentData{
		Object: "fiscal_document", ID: inv.DocumentID, InvoiceID: inv.ID, ExternalID: inv.ExternalID, Type: inv.Type, Status: inv.Status,
		Sequence: inv.Sequence, ENCF: present(inv.ENCF), TrackID: present(inv.TrackID), IssueDate: inv.IssueDate, Total: inv.DocumentTotal,
	}
	data.Links.Self = "/v1/taxpayers/" + inv.TaxpayerID + "/fiscal-documents/" + inv.DocumentID
	return data
}

// instant is how moments are told.
func instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func addNotice(rows *store.Batch, inv store.Invoice, kind string, at time.Time, data documentData) {
	n, err := NewNotice(inv.Scope, kind, at, data)
	n.DocumentID, n.Sequence = inv.DocumentID, inv.Sequence
	rows.Fail(err).AddNotice(n)
}

// NewNotice makes something to tell of what can be encoded.
func NewNotice(scope store.Scope, kind string, at time.Time, data any) (store.Notice, error) {
	n := store.Notice{Scope: scope, ID: store.NewNoticeID(), Kind: kind, At: at}
	body, err := json.Marshal(envelope{
		ID: n.ID, Type: kind, Timestamp: instant(at), APIVersion: "v1",
		Environment: scope.Environment, TaxpayerID: scope.TaxpayerID, Data: data,
	})
	if err != nil {
		return n, fmt.Errorf("pipeline: encode notice: %w", err)
	}
	n.Body = body
	return n, nil
}
