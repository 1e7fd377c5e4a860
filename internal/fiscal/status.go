package fiscal

import "slices"

// A Status is where an invoice and its fiscal document stand; both always have
// the same one.
type Status string

// The statuses of the contract.
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

// Statuses returns every status in the order of the contract.
func Statuses() []Status {
	return []Status{
		Queued, ValidationFailed, Submitted, Processing, Accepted,
		AcceptedConditional, Rejected, OutcomeUnknown, Delivered,
	}
}

// ParseStatus returns the status of that name, and whether there is one.
func ParseStatus(s string) (Status, bool) {
	if !slices.Contains(Statuses(), Status(s)) {
		return "", false
	}
	return Status(s), true
}

// Final tells whether nothing more is awaited from the authority. An accepted
// document may still be delivered to its buyer.
func (s Status) Final() bool {
	switch s {
	case ValidationFailed, Accepted, AcceptedConditional, Rejected, Delivered:
		return true
	case Queued, Submitted, Processing, OutcomeUnknown:
		return false
	}
	return false
}

// MayBecome tells whether a document of status s may change to another status.
// Nothing returns to queued, because a number that may have been sent cannot be
// unsent. A rejected document may turn out accepted: hiding a valid fiscal
// document would be worse than a status that contradicts itself.
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

// verdict tells whether s is an answer of the authority about the document.
func (s Status) verdict() bool {
	return s == Accepted || s == AcceptedConditional || s == Rejected
}
