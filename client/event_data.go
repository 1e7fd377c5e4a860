package client

import (
	"encoding/json"
	"time"
)

// EventType is the kind of an event. The service may add kinds.
type EventType string

// The kinds of events. AllEvents subscribes an endpoint to every kind.
const (
	AllEvents EventType = "*"

	EventInvoiceValidationFailed               EventType = "invoice.validation_failed"
	EventDocumentSubmitted                     EventType = "fiscal_document.submitted"
	EventDocumentProcessing                    EventType = "fiscal_document.processing"
	EventDocumentAccepted                      EventType = "fiscal_document.accepted"
	EventDocumentAcceptedConditional           EventType = "fiscal_document.accepted_conditional"
	EventDocumentRejected                      EventType = "fiscal_document.rejected"
	EventDocumentOutcomeUnknown                EventType = "fiscal_document.outcome_unknown"
	EventDocumentDelivered                     EventType = "fiscal_document.delivered"
	EventDocumentDeliveryFailed                EventType = "fiscal_document.delivery_failed"
	EventDocumentCommercialResponse            EventType = "fiscal_document.commercial_response"
	EventDocumentCommercialResponseUnconfirmed EventType = "fiscal_document.commercial_response_unconfirmed"
	EventDocumentVerdictOverdue                EventType = "fiscal_document.verdict_overdue"
	EventDocumentArtifactsReady                EventType = "fiscal_document.artifacts_ready"
	EventTaxpayerCertificateExpiring           EventType = "taxpayer.certificate_expiring"
	EventTaxpayerSequenceLow                   EventType = "taxpayer.sequence_low"
	EventTaxpayerContingencyStarted            EventType = "taxpayer.contingency_started"
	EventTaxpayerContingencyEnded              EventType = "taxpayer.contingency_ended"
	EventCredentialExpiring                    EventType = "credential.expiring"
	EventCredentialRefused                     EventType = "credential.refused"
	EventEndpointDisabled                      EventType = "webhook_endpoint.disabled"
	EventWebhookTest                           EventType = "webhook.test"
)

// EventData is the data of an event: DocumentData, CertificateData, SequenceData,
// ContingencyData, CredentialData, EndpointData, or UnknownData for a kind that this
// version of the client does not know.
type EventData interface{ eventData() }

// DocumentData is the data of the events of a fiscal document and of
// EventInvoiceValidationFailed.
type DocumentData struct {
	ID             string `json:"id"`
	InvoiceID      string `json:"invoice_id"`
	ExternalID     string `json:"external_id"`
	ECFType        string `json:"ecf_type"`
	Status         Status `json:"status"`
	PreviousStatus Status `json:"previous_status"` // empty when the status did not change
	// Sequence counts the changes of status of one document. Store the highest value,
	// and ignore events with a lower one: events may arrive in any order.
	Sequence  int64  `json:"sequence"`
	ENCF      string `json:"encf"`     // empty before the document has a number
	TrackID   string `json:"track_id"` // empty before the authority has given one
	IssueDate string `json:"issue_date"`
	Total     string `json:"total"`
	// Result is "accepted" or "rejected", in a commercial response.
	Result string `json:"result"`
	// Reason says why: in a failed delivery, a commercial response, an overdue verdict.
	Reason string `json:"reason"`
	// Signer is the person who signed a commercial response.
	Signer string `json:"signer"`
	// Contradicts is the earlier result that stands, when a buyer says the opposite.
	Contradicts string `json:"contradicts"`
	Links       Links  `json:"links"`
}

// CertificateData is the data of EventTaxpayerCertificateExpiring.
type CertificateData struct {
	TaxpayerID    string    `json:"id"`
	CertificateID string    `json:"certificate_id"`
	ExpiresAt     time.Time `json:"expires_at"`
}

// SequenceData is the data of EventTaxpayerSequenceLow: the fiscal numbers that are left for
// a document type.
type SequenceData struct {
	TaxpayerID string    `json:"id"`
	ECFType    string    `json:"ecf_type"`
	Remaining  int64     `json:"remaining"`
	ExpiresAt  time.Time `json:"expires_at"` // zero when the numbers do not expire
}

// ContingencyData is the data of EventTaxpayerContingencyStarted and EventTaxpayerContingencyEnded.
type ContingencyData struct {
	TaxpayerID string    `json:"id"`
	StartedAt  time.Time `json:"started_at"`
	EndedAt    time.Time `json:"ended_at"` // zero while the contingency lasts
	// Deadline is until when the documents of the contingency must be sent; zero while
	// the contingency lasts.
	Deadline time.Time `json:"deadline"`
}

// CredentialData is the data of EventCredentialExpiring and EventCredentialRefused.
type CredentialData struct {
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at"` // of EventCredentialExpiring
	Reason    string    `json:"reason"`     // of EventCredentialRefused
}

// EndpointData is the data of EventEndpointDisabled and EventWebhookTest.
type EndpointData struct {
	ID     string `json:"id"`
	URL    string `json:"url"`
	Reason string `json:"reason"`
}

// UnknownData is the data of an event whose kind this version of the client does not
// know. Event.Raw has its JSON.
type UnknownData struct{}

func (DocumentData) eventData()    {}
func (CertificateData) eventData() {}
func (SequenceData) eventData()    {}
func (ContingencyData) eventData() {}
func (CredentialData) eventData()  {}
func (EndpointData) eventData()    {}
func (UnknownData) eventData()     {}

// decodeData returns the typed data of an event. Data that does not have the form of its
// kind becomes UnknownData: one strange event must not stop the feed.
func decodeData(kind EventType, raw json.RawMessage) EventData {
	switch kind {
	case EventInvoiceValidationFailed, EventDocumentSubmitted, EventDocumentProcessing, EventDocumentAccepted, EventDocumentAcceptedConditional,
		EventDocumentRejected, EventDocumentOutcomeUnknown, EventDocumentDelivered, EventDocumentDeliveryFailed, EventDocumentCommercialResponse,
		EventDocumentCommercialResponseUnconfirmed, EventDocumentVerdictOverdue, EventDocumentArtifactsReady:
		return decodeAs[DocumentData](raw)
	case EventTaxpayerCertificateExpiring:
		return decodeAs[CertificateData](raw)
	case EventTaxpayerSequenceLow:
		return decodeAs[SequenceData](raw)
	case EventTaxpayerContingencyStarted, EventTaxpayerContingencyEnded:
		return decodeAs[ContingencyData](raw)
	case EventCredentialExpiring, EventCredentialRefused:
		return decodeAs[CredentialData](raw)
	case EventEndpointDisabled, EventWebhookTest:
		return decodeAs[EndpointData](raw)
	default:
		return UnknownData{}
	}
}

func decodeAs[T EventData](raw json.RawMessage) EventData {
	var data T
	if err := json.Unmarshal(raw, &data); err != nil {
		return UnknownData{}
	}
	return data
}
