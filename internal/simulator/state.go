package simulator

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// A state is everything that changes. A snapshot holds it as JSON, so its fields are
// exported and keep their names.
type state struct {
	Seed         uint64
	Counter      uint64 // makes seeds and pushed e-NCFs unique
	Taxpayers    map[string]*Taxpayer
	Environments map[string]*environment
	Peers        map[string]*peer
	Rules        []*activeRule
	ProfileRules []*activeRule
	RuleCounter  int
	Violations   []Violation
	Overflow     int                     // violations that were not kept
	Tokens       map[string]*tokenRecord // by environment and certificate
	TokenCalls   map[string]int          // calls left, for tokens with fault F09
	Refused      map[string]bool         // persons, or person and issuer, whose delegation was refused
	Bytes        map[string]string       // the environment that first received the bytes, by digest
	Acknowledged map[string]string       // answers to documents that the emulator pushed, by buyer and e-NCF
	Asks         map[string]int          // look-ups by service and document
	ResetCount   int
	Submissions  int
}

// An environment is the state of one of the three environments.
type environment struct {
	Seeds     map[string]time.Time
	Documents map[string]*document // by id: the trackId, except for summaries
	Order     []string             // ids in the order of arrival
	Numbers   map[string]*number   // by issuer and e-NCF
}

// A number is the state of an e-NCF.
type number struct {
	Posts    int
	First    string   // digest of the bytes that were posted first, stored or not
	IDs      []string // of documents
	Annulled bool
	Asked    bool            // the client looked it up after the last document was stored
	Codes    map[string]bool // security codes of rejected summaries
}

// A tokenRecord is the last token of a certificate.
type tokenRecord struct {
	Person string
	At     time.Time
	Cause  bool // the client has a reason to fetch another
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

func (st *state) nextCounter() string {
	st.Counter++
	return strconv.FormatUint(st.Counter, 10)
}

// number returns the state of an e-NCF, and creates it if there is none.
func (e *environment) number(rnc, encf string) *number {
	n := e.Numbers[rnc+encf]
	if n == nil {
		n = &number{}
		e.Numbers[rnc+encf] = n
	}
	return n
}

// documentsOf returns the documents of an e-NCF in the order of arrival.
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

// A document was received and stored.
type document struct {
	ID           string // the trackId; a summary (RFCE) has none
	Amb          string
	RFCE         bool
	Attempt      int // its position among the stored documents of its number
	File         string
	Raw          []byte
	SHA256       string
	Received     time.Time
	Visible      time.Time
	Hidden       bool // look-ups never find it
	Due          time.Time
	Stuck        bool // it never leaves the state in process
	Verdict      Verdict
	Facts        facts
	Polled       time.Time
	Polls        int
	VerdictShown bool // a response has shown the verdict to the client
}

// A Verdict is the authority's verdict on a document: 1 accepted, 2 rejected,
// 4 accepted conditionally.
type Verdict struct {
	Code     int       `json:"code"`
	Used     bool      `json:"used"` // the number cannot be used again
	Messages []Message `json:"messages,omitempty"`
	Row      int       `json:"row,omitempty"` // of the table of checks that decided
}

// A Message is one message of a verdict.
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

// codeAt returns the code that a look-up shows at a time.
func (d *document) codeAt(now time.Time) int {
	switch {
	case d.expired(now) || d.Hidden || now.Before(d.Visible):
		return codeNotFound
	case d.Stuck || now.Before(d.Due):
		return codeInProcess
	}
	return d.Verdict.Code
}

func (d *document) expired(now time.Time) bool {
	return d.Amb == TestECF && now.Sub(d.Received) > retention
}

// decided reports whether the validation has ended.
func (d *document) decided(now time.Time) bool { return !d.Stuck && !now.Before(d.Due) }

// reusable reports whether the number of the document may be used again.
func (d *document) reusable(now time.Time) bool {
	return d.decided(now) && d.Verdict.Code == codeRejected && !d.Verdict.Used
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

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
