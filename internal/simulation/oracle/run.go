// Package oracle compares what clients were answered, what the database holds, what the
// authority and the buyers received, and what webhooks and the feed said. It shares no
// code with the service: it has its own table of statuses and its own rules, so that an
// error of the service cannot be on both sides.
package oracle

import "time"

// Outcome is what a client was answered.
type Outcome string

// The outcomes of a creation.
const (
	Created  Outcome = "created"  // the invoice is registered
	Replayed Outcome = "replayed" // the same request had registered it before
	Conflict Outcome = "conflict" // the external id belongs to another invoice
	Mismatch Outcome = "mismatch" // the key was used with another request
	Refused  Outcome = "refused"  // a rule or a missing fact: nothing is registered
	NoAnswer Outcome = "no answer"
)

// A Creation is one request of a client and its answer. Epoch counts the failovers to an
// older copy before the request.
type Creation struct {
	Key, ExternalID, Content string
	Outcome                  Outcome
	InvoiceID, Body          string
	Began, Ended             time.Time
	Epoch                    int
	Repeats                  bool // the client repeats the request until it is registered
}

// A Read is an invoice as a client has read it. Updated is the time of its last change, in a
// form that sorts.
type Read struct {
	InvoiceID, Status, Updated string
	Epoch                      int
}

// An Event is an event in the feed, as a client has read it, or as the database has it.
type Event struct {
	Number                     int64
	ID, Kind, DocumentID, Body string
	Revision                   int64
	Epoch                      int
}

// A Webhook is an attempt to deliver an event. Answered says that the receiver has
// accepted it.
type Webhook struct {
	EventID, Body string
	Answered      bool
	Epoch         int
}

// A Response is a commercial response of the buyer to a document. Answered says that the
// service has confirmed that it has the response.
type Response struct {
	ENCF              string
	Rejects, Answered bool
	Ended             time.Time
	Epoch             int
}

// An Invoice is a row of an invoice.
type Invoice struct {
	ID, DocumentID, ExternalID, Type, Status, ENCF, TrackID string
	Revision                                                int64
}

// A HistoryEntry is a row of the history of an invoice, in the order of the rows.
type HistoryEntry struct {
	InvoiceID, Kind, Status string
	At                      time.Time
}

// An Issued is a row of the ledger of numbers.
type Issued struct {
	RNC, ENCF, DocumentID, RangeID, State, XML, Sent string // XML and Sent are digests
}

// A Key is a row of an idempotency key.
type Key struct{ Key, InvoiceID, Body string }

// A Range is a row of a number range.
type Range struct {
	ID, Type          string
	First, Last, Next int64
}

// An Attempt is a row of an attempt to send a document to the authority.
type Attempt struct {
	DocumentID, Sent, Class string
	Number                  int64
	Open                    bool
}

// A Delivery is a row of a delivery of an event to an endpoint.
type Delivery struct{ EventID, State string }

// A Document is a document that the authority has received.
type Document struct {
	RNC, ENCF, Digest, TrackID string
	Code                       int // 1 accepted, 2 rejected, 4 accepted conditionally
	Foreign                    bool
	Faulty                     bool // the authority found an error in the document itself
}

// A Received is a document that a buyer has received.
type Received struct{ Number, Digest string } // Number is RNC and e-NCF

// A Run is everything that is known after a run.
type Run struct {
	Creations []Creation
	Reads     []Read
	Feed      []Event // as the client has read it, in that order
	Webhooks  []Webhook
	Responses []Response

	Invoices   []Invoice
	History    []HistoryEntry
	Issued     []Issued
	Keys       []Key
	Ranges     []Range
	Attempts   []Attempt
	Events     []Event // of the database, in the order of their numbers
	Deliveries []Delivery
	Abandoned  []string // numbers (e-NCF) that a release gave up
	Jobs       []string // documents that still have a job
	// Differences are documents of which the comparison has said that the authority shows
	// them otherwise.
	Differences []string

	Authority []Document
	Buyers    []Received
	Breaches  []string // of the authority's protocol

	// BuyerReceives says that the buyer has a receiver. SplitTracks says that the authority
	// may store one submission twice. Doubled are numbers that the network has sent twice,
	// or that somebody else has used.
	BuyerReceives, SplitTracks bool
	Doubled                    map[string]bool

	// Copies are the instants of the copies that the database went back to, by epoch:
	// what was answered before an instant must be there afterwards.
	Copies []time.Time
}

// A Violation is a broken rule.
type Violation struct{ Rule, Subject, Text string }

func (v Violation) String() string { return v.Rule + ": " + v.Subject + ": " + v.Text }
