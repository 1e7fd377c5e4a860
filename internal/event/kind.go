// Package event defines the events that integrators receive by webhook and read
// from the feed: their kinds, their envelope, their data and their links. It
// encodes events; it does not store or send them.
package event

import "github.com/fiscalhub/fiscalhub/internal/fiscal"

// All subscribes a webhook endpoint to every kind of event.
const All = "*"

// The kinds of events that are not a change of a document's status.
const (
	ArtifactsReady      = "fiscal_document.artifacts_ready"
	DeliveryFailed      = "fiscal_document.delivery_failed"
	CommercialResponse  = "fiscal_document.commercial_response"
	VerdictOverdue      = "fiscal_document.verdict_overdue"
	CertificateExpiring = "taxpayer.certificate_expiring"
	SequenceLow         = "taxpayer.sequence_low"
	ContingencyStarted  = "taxpayer.contingency_started"
	ContingencyEnded    = "taxpayer.contingency_ended"
	CredentialExpiring  = "credential.expiring"
	CredentialRefused   = "credential.refused"
	EndpointDisabled    = "webhook_endpoint.disabled"
	WebhookTest         = "webhook.test"
	// CommercialResponseUnconfirmed is a response whose signer is not known to act for
	// the buyer.
	CommercialResponseUnconfirmed = "fiscal_document.commercial_response_unconfirmed"
)

// StatusChanged returns the kind of the event that reports a new status of a
// document.
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
		CommercialResponseUnconfirmed,
		VerdictOverdue,
		ArtifactsReady,
		CertificateExpiring,
		SequenceLow,
		ContingencyStarted,
		ContingencyEnded,
		CredentialExpiring,
		CredentialRefused,
		EndpointDisabled,
		WebhookTest,
	}
}

// The kinds of inbound messages, which a source forwards from a buyer.
const (
	InboundReceipt    = "ecf.receipt_acknowledged"
	InboundCommercial = "ecf.commercial_response"
)

// InboundKinds returns the kinds of inbound messages.
func InboundKinds() []string { return []string{InboundReceipt, InboundCommercial} }

// The reasons of VerdictOverdue.
const (
	NoVerdictFor15Minutes    = "no_verdict_for_15_minutes"
	OutcomeUnknownFor24Hours = "outcome_unknown_for_24_hours"
)
