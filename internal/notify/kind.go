// Package notify tells integrators what happens to their documents: it owns the
// life of their endpoints and of the sources that tell us something, sends what
// is to be delivered, and reads the feed. What is told, and when, is written by
// whoever makes the change.
package notify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/store"
)

// All is what an endpoint asks for that wants every kind.
const All = "*"

// The kinds that are told by this package itself.
const (
	kindTest     = "webhook.test"
	kindDisabled = "webhook_endpoint.disabled"
)

// Kinds are the kinds of events that an endpoint may ask for.
func Kinds() []string {
	return []string{
		"invoice.validation_failed",
		"fiscal_document.submitted",
		"fiscal_document.processing",
		"fiscal_document.accepted",
		"fiscal_document.accepted_conditional",
		"fiscal_document.rejected",
		"fiscal_document.outcome_unknown",
		"fiscal_document.delivered",
		"fiscal_document.delivery_failed",
		"fiscal_document.commercial_response",
		"fiscal_document.artifacts_ready",
		"taxpayer.certificate_expiring",
		"taxpayer.sequence_low",
		"taxpayer.contingency_started",
		"taxpayer.contingency_ended",
		"credential.expiring",
		kindDisabled,
		kindTest,
	}
}

// envelope is how every event begins.
type envelope struct {
	ID          string `json:"id"`
	Type        string `json:"type"`
	Timestamp   string `json:"timestamp"`
	APIVersion  string `json:"api_version"`
	Environment string `json:"environment"`
	TaxpayerID  string `json:"taxpayer_id"`
	Data        any    `json:"data"`
}

// endpointData is what events about an endpoint tell.
type endpointData struct {
	Object string `json:"object"`
	ID     string `json:"id"`
	URL    string `json:"url"`
	Reason string `json:"reason,omitempty"`
}

// newNotice makes an event about an endpoint.
func newNotice(kind string, e store.Endpoint, reason string, at time.Time) (store.Notice, error) {
	n := store.Notice{Scope: e.Scope, ID: store.NewNoticeID(), Kind: kind, At: at}
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(envelope{
		ID: n.ID, Type: kind, Timestamp: at.UTC().Format("2006-01-02T15:04:05.000Z"), APIVersion: "v1",
		Environment: string(e.Environment), TaxpayerID: e.TaxpayerID,
		Data: endpointData{Object: "webhook_endpoint", ID: e.ID, URL: e.URL, Reason: reason},
	})
	if err != nil {
		return store.Notice{}, fmt.Errorf("notify: encode %s: %w", kind, err)
	}
	n.Body = bytes.TrimSuffix(body.Bytes(), []byte("\n"))
	return n, nil
}
