package event

import (
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Document is the data of an event about a fiscal document.
type Document struct {
	Object         string        `json:"object"`
	ID             string        `json:"id"`
	InvoiceID      string        `json:"invoice_id"`
	ExternalID     string        `json:"external_id"`
	Type           fiscal.Type   `json:"ecf_type"`
	Status         fiscal.Status `json:"status"`
	PreviousStatus fiscal.Status `json:"previous_status,omitempty"`
	Revision       int64         `json:"sequence"`
	ENCF           *string       `json:"encf"`
	TrackID        *string       `json:"track_id"`
	IssueDate      string        `json:"issue_date"`
	Total          string        `json:"total"`
	Result         string        `json:"result,omitempty"`
	Reason         string        `json:"reason,omitempty"`
	Signer         string        `json:"signer,omitempty"`
	Contradicts    string        `json:"contradicts,omitempty"`
	Links          Links         `json:"links"`
}

// Certificate is the data of CertificateExpiring.
type Certificate struct {
	Object        string `json:"object"`
	TaxpayerID    string `json:"id"`
	CertificateID string `json:"certificate_id"`
	ExpiresAt     string `json:"expires_at"`
}

// NewCertificate returns the data about a certificate of a taxpayer.
func NewCertificate(taxpayerID, certificateID string, expires time.Time) Certificate {
	return Certificate{"taxpayer", taxpayerID, certificateID, fiscal.FormatInstant(expires)}
}

// NumberRange is the data of SequenceLow: the numbers that are left in all ranges of
// a document type.
type NumberRange struct {
	Object     string      `json:"object"`
	TaxpayerID string      `json:"id"`
	Type       fiscal.Type `json:"ecf_type"`
	Remaining  int64       `json:"remaining"`
	ExpiresAt  string      `json:"expires_at,omitempty"`
}

// NewNumberRange returns the data about the numbers that are left. They never expire
// when expires is zero.
func NewNumberRange(taxpayerID string, t fiscal.Type, remaining int64, expires fiscal.Date) NumberRange {
	data := NumberRange{Object: "taxpayer", TaxpayerID: taxpayerID, Type: t, Remaining: remaining}
	if !expires.IsZero() {
		data.ExpiresAt = fiscal.FormatInstant(expires.End())
	}
	return data
}

// Contingency is the data of ContingencyStarted and ContingencyEnded. Deadline is
// the instant until which documents signed during the contingency must be sent.
type Contingency struct {
	Object     string `json:"object"`
	TaxpayerID string `json:"id"`
	StartedAt  string `json:"started_at"`
	EndedAt    string `json:"ended_at,omitempty"`
	Deadline   string `json:"deadline,omitempty"`
}

// NewContingency returns the data about a contingency. Pass zero for ended and
// deadline while the contingency lasts.
func NewContingency(taxpayerID string, started, ended, deadline time.Time) Contingency {
	data := Contingency{Object: "taxpayer", TaxpayerID: taxpayerID, StartedAt: fiscal.FormatInstant(started)}
	if !ended.IsZero() {
		data.EndedAt, data.Deadline = fiscal.FormatInstant(ended), fiscal.FormatInstant(deadline)
	}
	return data
}

// Credential is the data of CredentialExpiring.
type Credential struct {
	Object    string `json:"object"`
	ID        string `json:"id"`
	ExpiresAt string `json:"expires_at"`
}

// NewCredential returns the data about a credential.
func NewCredential(id string, expires time.Time) Credential {
	return Credential{"credential", id, fiscal.FormatInstant(expires)}
}

// RefusedCredential is the data of CredentialRefused.
type RefusedCredential struct {
	Object string `json:"object"`
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// NewRefusedCredential returns the data about a credential that was used although it is
// revoked or suspended.
func NewRefusedCredential(id, reason string) RefusedCredential {
	return RefusedCredential{"credential", id, reason}
}

// Endpoint is the data of EndpointDisabled and WebhookTest.
type Endpoint struct {
	Object string `json:"object"`
	ID     string `json:"id"`
	URL    string `json:"url"`
	Reason string `json:"reason,omitempty"`
}

// NewEndpoint returns the data about a webhook endpoint.
func NewEndpoint(id, url, reason string) Endpoint {
	return Endpoint{"webhook_endpoint", id, url, reason}
}
