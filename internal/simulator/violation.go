package simulator

import (
	"fmt"
	"time"
)

// A ViolationKind is a kind of violation of the protocol.
type ViolationKind string

// The kinds of violations. Tests of a client check that there are none.
const (
	ChunkedUpload    ViolationKind = "chunked_upload"
	FileName         ViolationKind = "file_name"
	TokenAgain       ViolationKind = "token_again"       // a token within 30 min without a reason
	FastPolling      ViolationKind = "fast_polling"      // look-ups of a trackId that are too frequent
	PostUnasked      ViolationKind = "post_unasked"      // a second post without a look-up in between
	DifferentBytes   ViolationKind = "different_bytes"   // other bytes with a number that is not reusable
	UsedNumber       ViolationKind = "used_number"       // a post after the client saw the acceptance of the number
	WrongHost        ViolationKind = "wrong_host"        // the wrong host or environment
	SmallInvoice     ViolationKind = "small_invoice"     // a type 32 below 250,000 as an e-CF
	EarlyDelivery    ViolationKind = "early_delivery"    // a delivery to a peer before acceptance
	DeliveryOf32     ViolationKind = "delivery_of_32"    // a delivery of a type 32 to a peer
	ParallelCalls    ViolationKind = "parallel_calls"    // more than MaxParallel calls to a host
	AfterRefusal     ViolationKind = "after_refusal"     // a post after a delegation was refused
	AlteredBytes     ViolationKind = "altered_bytes"     // other bytes than in the first attempt
	UnsignedDocument ViolationKind = "unsigned_document" // no signature or an invalid one
)

// maxViolations is how many violations are kept. The others are only counted.
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

// String returns the violation in one line, for tests.
func (v Violation) String() string {
	return fmt.Sprintf("%s at %s %s %s%s: %s", v.Kind, v.Service, v.Amb, v.RNC, v.ENCF, v.Detail)
}

// Violations returns the violations in the order in which they happened.
func (s *Simulator) Violations() []Violation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Violation{}, s.state.Violations...)
}

// ClearViolations removes all violations.
func (s *Simulator) ClearViolations() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Violations, s.state.Overflow = nil, 0
}

// addViolationLocked adds a violation. The caller holds the lock.
func (s *Simulator) addViolationLocked(c *call, kind ViolationKind, detail string) {
	if len(s.state.Violations) >= maxViolations {
		s.state.Overflow++
		return
	}
	s.state.Violations = append(s.state.Violations, Violation{
		At: c.now, Kind: kind, Service: c.service, Amb: c.amb, RNC: c.key.rnc, ENCF: c.key.encf, TrackID: c.key.trackID, Detail: detail,
	})
}

// addViolation adds a violation. The caller does not hold the lock.
func (s *Simulator) addViolation(c *call, kind ViolationKind, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addViolationLocked(c, kind, detail)
}

// checkPost compares a post of a document with earlier posts and adds violations. The
// caller holds the lock.
func (s *Simulator) checkPost(c *call, x *examination) {
	f := x.facts
	n := s.state.Environments[c.amb].number(f.RNC, f.ENCF)
	earlier := s.state.Environments[c.amb].documentsOf(f.RNC, f.ENCF)
	if x.signatureErr != nil {
		s.addViolationLocked(c, UnsignedDocument, x.signatureErr.Error())
	}
	if len(x.found[rowRoute]) > 0 && !x.rfce {
		s.addViolationLocked(c, SmallInvoice, "a consumer invoice of "+f.Total+" was sent as an e-CF and not as a summary")
	}
	if amb, seen := s.state.Bytes[x.sha]; seen && amb != c.amb {
		s.addViolationLocked(c, WrongHost, "the same document was sent to "+amb)
	}
	if t := s.state.Taxpayers[f.RNC]; t != nil && t.onlyInOtherEnvironments(c.amb, f.ENCF) {
		s.addViolationLocked(c, WrongHost, "the number is authorised in another environment")
	}
	if s.state.Refused[f.Signer] || s.state.Refused[f.Signer+"|"+f.RNC] {
		s.addViolationLocked(c, AfterRefusal, f.Signer+" was refused before: the taxpayer has not delegated this person")
	}
	if allReusable(earlier, c.now) {
		return
	}
	if len(earlier) > 0 && !n.Asked {
		s.addViolationLocked(c, PostUnasked, "an earlier post was stored and the client has not looked it up")
	}
	for _, d := range earlier {
		// A client that has not seen the verdict may send again, for example where
		// the environment has no look-up.
		if d.VerdictShown && d.Verdict.valid() {
			s.addViolationLocked(c, UsedNumber, "the number was accepted before, and the client has seen the acceptance")
			break
		}
	}
	if len(earlier) > 0 && sameBytes(earlier, x.sha) == nil {
		s.addViolationLocked(c, DifferentBytes, "the bytes differ from those of the earlier post")
	} else if n.First != "" && n.First != x.sha {
		s.addViolationLocked(c, AlteredBytes, "the bytes differ from those of the first attempt")
	}
}

// markVerdictSeen remembers that a response shows the verdict to the client, unless a fault
// loses the response. The caller holds the lock.
func (c *call) markVerdictSeen(d *document) {
	if c.losesResponse() {
		return
	}
	d.VerdictShown = true
	if d.Verdict.Code == codeRejected && d.Verdict.Row == rowDelegation {
		c.s.state.Refused[d.Facts.Signer+"|"+d.Facts.RNC] = true
	}
}
