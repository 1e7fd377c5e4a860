package fiscal

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// A Verdict is the authority's decision about a document, as its status code.
type Verdict int

// The authority's codes.
const (
	VerdictNotFound    Verdict = 0
	VerdictAccepted    Verdict = 1
	VerdictRejected    Verdict = 2
	VerdictInProcess   Verdict = 3
	VerdictConditional Verdict = 4
)

// Accepted reports whether the verdict makes a document valid, with remarks or without.
func (v Verdict) Accepted() bool { return v == VerdictAccepted || v == VerdictConditional }

// Word returns the verdict as a word, like a status of a document. It returns the number
// of a code that the authority does not document.
func (v Verdict) Word() string {
	switch v {
	case VerdictAccepted:
		return "accepted"
	case VerdictConditional:
		return "accepted_conditional"
	case VerdictRejected:
		return "rejected"
	case VerdictInProcess:
		return "processing"
	case VerdictNotFound:
		return "not_found"
	}
	return strconv.Itoa(int(v))
}

// ConditionalMessage is the first message of a conditional acceptance: the
// authority's code and name of that verdict.
const ConditionalMessage = "[4] Aceptado Condicional"

// The errors of an exchange with the authority that gave no AuthorityAnswer. Only after
// ErrNotReceived may a document be sent again without a look-up first.
var (
	// ErrNotReceived means that no part of the document can have arrived, or that
	// the authority declined the request before it read the document.
	ErrNotReceived = errors.New("the tax authority has not received the document")
	// ErrInconclusive means that the document may have arrived. Only a look-up
	// can tell.
	ErrInconclusive = errors.New("the tax authority may have received the document")
	// ErrAbsent means that the authority does not offer the look-up in this
	// environment. It says nothing about the document.
	ErrAbsent = errors.New("the tax authority does not offer this service in this environment")
	// ErrNotDelegated means that the taxpayer has not delegated the signer. The
	// authority refuses everything from this signer until the taxpayer does.
	ErrNotDelegated = errors.New("the taxpayer has not delegated the signer at the tax authority")
	// ErrUnavailable means that a look-up failed, or that its answer cannot be
	// understood.
	ErrUnavailable = errors.New("the tax authority does not answer")
	// ErrOutage comes with ErrUnavailable when the service itself does not work, or
	// must not be called now: a look-up of another document would fail too.
	ErrOutage = errors.New("a service of the tax authority does not work or must not be called now")
	// ErrBlocked comes with ErrUnavailable when the address of a buyer must not
	// be called, now or later.
	ErrBlocked = errors.New("calls to this address are not allowed")
)

// A Message is one message of the authority about a document, unchanged.
type Message struct {
	Code string // "" when the message has no code
	Text string
}

// String returns the message as it appears in the status messages: [code] text. A
// message may have a code alone.
func (m Message) String() string { return strings.TrimSpace("[" + m.Code + "] " + m.Text) }

// An AuthorityAnswer is a conclusive answer of the authority about one document: a
// verdict, or the track id with which the verdict can be asked for later. Fields
// that the authority did not give are zero.
type AuthorityAnswer struct {
	// Known is true when the answer has a Verdict. The answer to a submission
	// has only a TrackID.
	Known   bool
	Verdict Verdict
	TrackID string

	RNC, ENCF string
	Messages  []Message
	// NumberUsed is true when the number cannot be used again. It is valid
	// only when NumberStated is true.
	NumberUsed, NumberStated bool

	// SecurityCode, BuyerRNC, Total and IssueDate come from a look-up by number.
	// They are those of the document that the authority holds, and show whether it
	// is ours.
	SecurityCode string
	BuyerRNC     string
	Total        Decimal
	HasTotal     bool
	IssueDate    Date

	// Raw is the body of the answer, at most its first 64 KiB.
	Raw []byte
	// At is the authority's time of the answer, zero when it gives none.
	At time.Time
}

// A Shipment is a signed document on its way to the authority or to a buyer.
type Shipment struct {
	RNC  string // of the issuer
	ENCF string
	XML  []byte // the stored bytes
}

// A Query identifies a document for a look-up at the authority.
type Query struct {
	RNC, ENCF, BuyerRNC, SecurityCode string
}

// A BuyerEndpoint holds the base addresses at which a buyer receives electronic
// documents, from the authority's directory. The standard paths are appended to
// them.
type BuyerEndpoint struct {
	RNC                                 string
	Reception, Approval, Authentication string
}

// An Acknowledgement is a buyer's acknowledgement (ARECF) whose signature was verified.
type Acknowledgement struct {
	Received  bool // Estado 0
	Reason    string
	RNC, ENCF string // of the document that it acknowledges; RNC is the issuer's
	BuyerRNC  string
	Signer    string // the identifier of the holder of the certificate
	XML       []byte // the canonical form of what was received
}

// LookupError returns the more useful error of two look-ups for the same
// document. It prefers a real failure over ErrAbsent, because the absence of one
// service says nothing while the other may still answer.
func LookupError(first, second error) error {
	if first != nil && !errors.Is(first, ErrAbsent) {
		return first
	}
	return second
}
