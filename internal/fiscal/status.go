package fiscal

import "slices"

// A Status is the status of an invoice and of its fiscal document, which always
// have the same one.
type Status string

// The statuses of the API.
const (
	Queued              Status = "queued"
	ValidationFailed    Status = "validation_failed"
	Submitted           Status = "submitted"
	Processing          Status = "processing"
	Accepted            Status = "accepted"
	AcceptedConditional Status = "accepted_conditional"
	Rejected            Status = "rejected"
	OutcomeUnknown      Status = "outcome_unknown"
	Delivered           Status = "delivered"
)

// Statuses returns every status, in the order of the API reference.
func Statuses() []Status {
	return []Status{
		Queued, ValidationFailed, Submitted, Processing, Accepted,
		AcceptedConditional, Rejected, OutcomeUnknown, Delivered,
	}
}

// ParseStatus returns the status of a name. It reports false when there is none.
func ParseStatus(s string) (Status, bool) {
	if !slices.Contains(Statuses(), Status(s)) {
		return "", false
	}
	return Status(s), true
}

// Final reports whether the service expects no further answer of the authority.
// An accepted document may still be delivered to its buyer.
func (s Status) Final() bool {
	switch s {
	case ValidationFailed, Accepted, AcceptedConditional, Rejected, Delivered:
		return true
	case Queued, Submitted, Processing, OutcomeUnknown:
		return false
	}
	return false
}

// MayBecome reports whether a document of status s may change to another status.
// No document returns to queued, because its number may have been sent. A
// rejected document may become accepted, because it would be worse to hide a
// valid fiscal document than to correct a status.
func (s Status) MayBecome(to Status) bool {
	switch s {
	case Queued:
		return to == ValidationFailed || to == Submitted || to == OutcomeUnknown || to.verdict()
	case Submitted:
		return to == Processing || to == OutcomeUnknown || to.verdict()
	case Processing:
		return to == OutcomeUnknown || to.verdict()
	case OutcomeUnknown:
		return to == Submitted || to == Processing || to.verdict()
	case Accepted, AcceptedConditional:
		return to == Delivered
	case Rejected:
		return to == Accepted || to == AcceptedConditional
	case ValidationFailed, Delivered:
		return false
	}
	return false
}

// verdict reports whether s is a verdict of the authority.
func (s Status) verdict() bool {
	return s == Accepted || s == AcceptedConditional || s == Rejected
}
