package fiscal

import (
	"errors"
	"time"
)

// A Verdict is what the authority says of a document, by its own codes.
type Verdict int

// The authority's codes.
const (
	VerdictNotFound    Verdict = 0
	VerdictAccepted    Verdict = 1
	VerdictRejected    Verdict = 2
	VerdictInProcess   Verdict = 3
	VerdictConditional Verdict = 4
)

// ConditionalMessage leads the messages of a conditional acceptance. It is the
// authority's code and name of that verdict.
const ConditionalMessage = "[4] Aceptado Condicional"

// How an exchange with the authority ended when it did not end in an Answer.
// Only what was certainly not received may be sent again without asking first.
var (
	// ErrNotReceived is an exchange of which nothing can have arrived, or that
	// the authority declined to take before looking at the document.
	ErrNotReceived = errors.New("the tax authority has not received it")
	// ErrInconclusive is an exchange that may have arrived: nobody knows until
	// the authority has been asked.
	ErrInconclusive = errors.New("the tax authority may have received it")
	// ErrAbsent is a look-up that the authority does not offer in the
	// environment. It says nothing about the document.
	ErrAbsent = errors.New("the tax authority does not offer the service here")
	// ErrNotDelegated is a signer whom the taxpayer has not delegated. Nothing
	// that this signer sends will be taken until that is mended.
	ErrNotDelegated = errors.New("the signer is not delegated by the taxpayer")
	// ErrUnavailable is a look-up that could not be made, or whose answer is
	// no answer.
	ErrUnavailable = errors.New("the tax authority does not answer")
	// ErrBlocked comes with ErrUnavailable where a buyer's address must not be
	// called, now or later.
	ErrBlocked = errors.New("the address must not be called")
)

// A Message is one remark of the authority about a document, word for word.
type Message struct {
	Code string // "" when there is none
	Text string
}

// An Answer is a conclusive answer of the authority about one document: a
// verdict, or the track id of one that is still to come. Fields that the
// authority did not give are zero.
type Answer struct {
	// Known tells that Verdict was given; a reception gives only a TrackID.
	Known   bool
	Verdict Verdict
	TrackID string

	RNC, ENCF string
	Messages  []Message
	// SequenceUsed tells whether the number is burnt; it counts when
	// SequenceStated.
	SequenceUsed, SequenceStated bool

	// What a look-up by number shows of the document that the authority holds,
	// which proves whether it is ours.
	SecurityCode string
	Total        Decimal
	HasTotal     bool
	IssueDate    Date

	// Raw is the answer as it came, at most 64 KiB of it.
	Raw []byte
	// At is when the authority says it answered, zero when it does not.
	At time.Time
}

// A Shipment is a signed document on its way to the authority or to a buyer.
type Shipment struct {
	RNC  string // of the issuer
	ENCF string
	XML  []byte // the stored bytes
}

// A Query names a document that the authority is asked about.
type Query struct {
	RNC, ENCF, BuyerRNC, SecurityCode string
}

// A Receiver is where a buyer takes electronic documents: the addresses of the
// authority's directory, to which the standard paths are appended.
type Receiver struct {
	RNC                                 string
	Reception, Approval, Authentication string
}

// A Receipt is a buyer's acknowledgement (ARECF), read from its verified
// signature.
type Receipt struct {
	Received  bool // Estado 0
	Reason    string
	RNC, ENCF string // of the document that it acknowledges
	BuyerRNC  string
	Signer    string
	XML       []byte // as it came
}

// LookupError joins the errors of two look-ups for the same document. It prefers a
// real failure over "the service is absent": the absence of one service says
// nothing while another one may still answer.
func LookupError(first, second error) error {
	if first != nil && !errors.Is(first, ErrAbsent) {
		return first
	}
	return second
}
