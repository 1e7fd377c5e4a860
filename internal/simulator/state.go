package simulator

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// A state is everything that changes. It is what a snapshot holds, hence the
// exported names.
type state struct {
	Seed         uint64
	Counter      uint64 // of what has no number of its own
	Taxpayers    map[string]*Taxpayer
	Environments map[string]*environment
	Peers        map[string]*peer
	Rules        []*armed
	ProfileRules []*armed
	RuleCounter  int
	Violations   []Violation
	Overflow     int                     // violations beyond those that are kept
	Tokens       map[string]*tokenRecord // by environment and certificate
	TokenCalls   map[string]int          // calls left, of the tokens of F09
	Refused      map[string]bool         // persons, and person and issuer, that a delegation was refused to
	Bytes        map[string]string       // environment where bytes were first seen, by digest
	Acknowledged map[string]string       // answers to what the emulator pushed, by buyer and e-NCF
	Asks         map[string]int          // questions by service and document
	ResetCount   int
	Submissions  int
}

// An environment is what one of the three has for itself.
type environment struct {
	Seeds     map[string]time.Time
	Documents map[string]*document // by id, which is the trackId of those that have one
	Order     []string             // ids as they came
	Numbers   map[string]*number   // by issuer and e-NCF
}

// A number is what the authority knows of an e-NCF.
type number struct {
	Posts    int
	First    string   // digest of what was first posted, stored or not
	IDs      []string // of documents
	Annulled bool
	Asked    bool            // since the last document was stored
	Codes    map[string]bool // security codes that were rejected
}

// A tokenRecord is when a certificate last got a token.
type tokenRecord struct {
	Person string
	At     time.Time
	Cause  bool // to fetch another
}

func newState(seed uint64) *state {
	st := &state{
		Seed: seed, Taxpayers: map[string]*Taxpayer{}, Environments: map[string]*environment{}, Peers: map[string]*peer{},
		Tokens: map[string]*tokenRecord{}, TokenCalls: map[string]int{}, Refused: map[string]bool{}, Bytes: map[string]string{}, Acknowledged: map[string]string{}, Asks: map[string]int{},
	}
	for _, amb := range []string{TestECF, CertECF, ECF} {
		st.Environments[amb] = &environment{Seeds: map[string]time.Time{}, Documents: map[string]*document{}, Numbers: map[string]*number{}}
	}
	return st
}

func (st *state) next() string {
	st.Counter++
	return strconv.FormatUint(st.Counter, 10)
}

// number returns what is known of an e-NCF, and makes a place for it.
func (e *environment) number(rnc, encf string) *number {
	n := e.Numbers[rnc+encf]
	if n == nil {
		n = &number{}
		e.Numbers[rnc+encf] = n
	}
	return n
}

// documentsOf returns the documents of an e-NCF as they came.
func (e *environment) documentsOf(rnc, encf string) []*document {
	n := e.Numbers[rnc+encf]
	if n == nil {
		return nil
	}
	docs := make([]*document, 0, len(n.IDs))
	for _, id := range n.IDs {
		docs = append(docs, e.Documents[id])
	}
	return docs
}

// retention is how long testecf keeps documents.
const retention = 60 * 24 * time.Hour

// A document is one that was received and stored.
type document struct {
	ID       string // the trackId, but for an RFCE, which has none
	Amb      string
	RFCE     bool
	Attempt  int // among the stored of its number
	File     string
	Raw      []byte
	SHA256   string
	Received time.Time
	Visible  time.Time
	Hidden   bool // for ever
	Due      time.Time
	Stuck    bool // for ever
	Verdict  Verdict
	Facts    facts
	Polled   time.Time
	Polls    int
	Told     bool // a client has been told the verdict
}

// A Verdict is what the authority thinks of a document: 1 accepted, 2 rejected,
// 4 accepted conditionally.
type Verdict struct {
	Code     int       `json:"code"`
	Used     bool      `json:"used"` // the number cannot be used again
	Messages []Message `json:"messages,omitempty"`
	Row      int       `json:"row,omitempty"` // of the table of checks
}

// A Message is one finding.
type Message struct {
	Code int    `json:"code"`
	Text string `json:"text"`
}

// The codes of answers.
const (
	codeNotFound    = 0
	codeAccepted    = 1
	codeRejected    = 2
	codeInProcess   = 3
	codeConditional = 4
)

func (v Verdict) valid() bool { return v.Code == codeAccepted || v.Code == codeConditional }

// at tells what a look-up says of the document at an instant.
func (d *document) at(now time.Time) int {
	switch {
	case d.gone(now) || d.Hidden || now.Before(d.Visible):
		return codeNotFound
	case d.Stuck || now.Before(d.Due):
		return codeInProcess
	}
	return d.Verdict.Code
}

func (d *document) gone(now time.Time) bool {
	return d.Amb == TestECF && now.Sub(d.Received) > retention
}

// final tells whether the verdict can be known.
func (d *document) final(now time.Time) bool { return !d.Stuck && !now.Before(d.Due) }

// free tells whether the number of a document may be used again.
func (d *document) free(now time.Time) bool {
	return d.final(now) && d.Verdict.Code == codeRejected && !d.Verdict.Used
}

func stateName(code int) string {
	switch code {
	case codeAccepted:
		return "Aceptado"
	case codeRejected:
		return "Rechazado"
	case codeInProcess:
		return "En Proceso"
	case codeConditional:
		return "Aceptado Condicional"
	}
	return "No encontrado"
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
