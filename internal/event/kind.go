// Package event defines the events that integrators receive by webhook and read
// from the feed: their kinds, their envelope, their data and their links. It
// encodes them and does nothing else: it neither stores nor sends an event.
package event

import "github.com/fiscalhub/fiscalhub/internal/fiscal"

// All is the name by which a webhook endpoint subscribes to every kind.
const All = "*"

// The kinds of events that are not a change of a document's status.
const (
	ArtifactsReady      = "fiscal_document.artifacts_ready"
	DeliveryFailed      = "fiscal_document.delivery_failed"
	CommercialResponse  = "fiscal_document.commercial_response"
	CertificateExpiring = "taxpayer.certificate_expiring"
	SequenceLow         = "taxpayer.sequence_low"
	ContingencyStarted  = "taxpayer.contingency_started"
	ContingencyEnded    = "taxpayer.contingency_ended"
	CredentialExpiring  = "credential.expiring"
	EndpointDisabled    = "webhook_endpoint.disabled"
	WebhookTest         = "webhook.test"
)

// StatusChanged returns the kind of the event for a document that has reached a
// status.
func StatusChanged(s fiscal.Status) string {
	if s == fiscal.ValidationFailed {
		return "invoice.validation_failed"
	}
	return "fiscal_document." + string(s)
}

// Kinds returns the kinds of events that an endpoint may subscribe to.
func Kinds() []string {
	return []string{
		StatusChanged(fiscal.ValidationFailed),
		StatusChanged(fiscal.Submitted),
		StatusChanged(fiscal.Processing),
		StatusChanged(fiscal.Accepted),
		StatusChanged(fiscal.AcceptedConditional),
		StatusChanged(fiscal.Rejected),
		StatusChanged(fiscal.OutcomeUnknown),
		StatusChanged(fiscal.Delivered),
		DeliveryFailed,
		CommercialResponse,
		ArtifactsReady,
		CertificateExpiring,
		SequenceLow,
		ContingencyStarted,
		ContingencyEnded,
		CredentialExpiring,
		EndpointDisabled,
		WebhookTest,
	}
}

// The kinds of inbound messages: what a source passes on from a buyer.
const (
	InboundReceipt    = "ecf.receipt_acknowledged"
	InboundCommercial = "ecf.commercial_response"
)

// InboundKinds returns the kinds of inbound messages.
func InboundKinds() []string { return []string{InboundReceipt, InboundCommercial} }
