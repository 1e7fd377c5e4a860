package simulator

import (
	"fmt"
	"time"
)

// A ViolationKind is a way to break the protocol.
type ViolationKind string

// The ways. Tests of a client assert that there are none.
const (
	ChunkedUpload    ViolationKind = "chunked_upload"
	FileName         ViolationKind = "file_name"
	TokenAgain       ViolationKind = "token_again"       // within 30 min and without cause
	FastPolling      ViolationKind = "fast_polling"      // of a trackId
	PostUnasked      ViolationKind = "post_unasked"      // again, without a look-up since the last one was stored
	DifferentBytes   ViolationKind = "different_bytes"   // under a number that is not free
	UsedNumber       ViolationKind = "used_number"       // after the client was told of its acceptance
	WrongHost        ViolationKind = "wrong_host"        // or environment
	SmallInvoice     ViolationKind = "small_invoice"     // type 32 below 250,000, whole
	EarlyDelivery    ViolationKind = "early_delivery"    // to a peer, before acceptance
	DeliveryOf32     ViolationKind = "delivery_of_32"    // to a peer
	ParallelCalls    ViolationKind = "parallel_calls"    // more than 8 to a host
	AfterRefusal     ViolationKind = "after_refusal"     // of a delegation
	AlteredBytes     ViolationKind = "altered_bytes"     // compared with the first attempt
	UnsignedDocument ViolationKind = "unsigned_document" // or one whose signature does not match
)

// maxViolations is how many are kept; one tells as much as a thousand.
const maxViolations = 1000

// A Violation is something that a client must not do.
type Violation struct {
	At      time.Time     `json:"at"`
	Kind    ViolationKind `json:"kind"`
	Service Service       `json:"service"`
	Amb     string        `json:"amb,omitempty"`
	RNC     string        `json:"rnc,omitempty"`
	ENCF    string        `json:"encf,omitempty"`
	TrackID string        `json:"track_id,omitempty"`
	Detail  string        `json:"detail"`
}

// String is the violation as a test prints it.
func (v Violation) String() string {
	return fmt.Sprintf("%s at %s %s %s%s: %s", v.Kind, v.Service, v.Amb, v.RNC, v.ENCF, v.Detail)
}

// Violations returns what clients did and must not, as it happened.
func (s *Simulator) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Violation{}, s.state.Violations...)
}

// ClearViolations forgets them.
func (s *Simulator) ClearViolations() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Violations, s.state.Overflow = nil, 0
}

// violate records a violation. The lock is held.
func (s *Simulator) violate(c *call, kind ViolationKind, detail string) {
	if len(s.state.Violations) >= maxViolations {
		s.state.Overflow++
		return
	}
	s.state.Violations = append(s.state.Violations, Violation{
		At: c.now, Kind: kind, Service: c.service, Amb: c.amb, RNC: c.key.rnc, ENCF: c.key.encf, TrackID: c.key.trackID, Detail: detail,
	})
}

// record is violate where the lock is not held.
func (s *Simulator) record(c *call, kind ViolationKind, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violate(c, kind, detail)
}

// judgePost looks at a post of a document beside those before it. The lock is
// held.
func (s *Simulator) judgePost(c *call, x *examination) {
	f := x.facts
	n := s.state.Environments[c.amb].number(f.RNC, f.ENCF)
	earlier := s.state.Environments[c.amb].documentsOf(f.RNC, f.ENCF)
	if x.unverified != nil {
		s.violate(c, UnsignedDocument, x.unverified.Error())
	}
	if len(x.found[rowRoute]) > 0 && !x.rfce {
		s.violate(c, SmallInvoice, "a consumer invoice of "+f.Total+" was sent whole")
	}
	if amb, seen := s.state.Bytes[x.sha]; seen && amb != c.amb {
		s.violate(c, WrongHost, "the same document was sent to "+amb)
	}
	if t := s.state.Taxpayers[f.RNC]; t != nil && t.elsewhere(c.amb, f.ENCF) {
		s.violate(c, WrongHost, "the number is authorised in another environment")
	}
	if s.state.Refused[f.Signer] || s.state.Refused[f.Signer+"|"+f.RNC] {
		s.violate(c, AfterRefusal, f.Signer+" is known not to be delegated")
	}
	if allFree(earlier, c.now) {
		return
	}
	if len(earlier) > 0 && !n.Asked {
		s.violate(c, PostUnasked, "an earlier post was stored and nobody asked what became of it")
	}
	for _, d := range earlier {
		// Who was never told, and where there is nobody to ask, may send again.
		if d.Told && d.Verdict.valid() {
			s.violate(c, UsedNumber, "the number was accepted before, and the client was told")
			break
		}
	}
	if len(earlier) > 0 && sameBytes(earlier, x.sha) == nil {
		s.violate(c, DifferentBytes, "other bytes than those of the earlier post")
	} else if n.First != "" && n.First != x.sha {
		s.violate(c, AlteredBytes, "other bytes than those of the first attempt")
	}
}

// told remembers that a client is told the verdict, unless a fault keeps it from
// that. The lock is held.
func (c *call) told(d *document) {
	if c.spoils() {
		return
	}
	d.Told = true
	if d.Verdict.Code == codeRejected && d.Verdict.Row == rowDelegation {
		c.s.state.Refused[d.Facts.Signer+"|"+d.Facts.RNC] = true
	}
}
