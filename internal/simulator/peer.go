package simulator

import (
	"encoding/base64"
	"errors"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// startTag matches where an editor inserts white space: before start tags.
var startTag = regexp.MustCompile(`><([^/])`)

// A peer is the state of a taxpayer's receiver.
type peer struct {
	Seeds     map[string]time.Time
	Posts     map[string]int       // by issuer and e-NCF
	Received  map[string]*delivery // by issuer and e-NCF
	Approvals []string             // ACECFs in the order of arrival
}

// A delivery is a document that a peer has received.
type delivery struct {
	SHA256 string
	At     time.Time
	ARECF  []byte
}

// peerOf returns the receiver of a taxpayer, or nil. The caller holds the lock.
func (s *Simulator) peerOf(rnc string) *peer {
	t := s.state.Taxpayers[rnc]
	if t == nil || t.Receiver == nil {
		return nil
	}
	p := s.state.Peers[rnc]
	if p == nil {
		p = &peer{Seeds: map[string]time.Time{}, Posts: map[string]int{}, Received: map[string]*delivery{}}
		s.state.Peers[rnc] = p
	}
	return p
}

func (c *call) servePeerSeed() response {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	p := c.s.peerOf(c.peer)
	if p == nil || c.s.state.Taxpayers[c.peer].Receiver.NoAuth {
		return response{status: http.StatusNotFound}
	}
	d := newRandom(c.s.state.Seed, "peer seed", c.peer, c.s.state.nextCounter())
	value := base64.StdEncoding.EncodeToString(d[:])
	removeExpiredSeeds(p.Seeds, c.now)
	p.Seeds[value] = c.now
	return seedDocument(value, c.now)
}

func (c *call) servePeerToken() response {
	c.s.mu.Lock()
	p := c.s.peerOf(c.peer)
	c.s.mu.Unlock()
	if p == nil {
		return response{status: http.StatusNotFound}
	}
	v, refusal := c.verifySeed(func() map[string]time.Time { return p.Seeds })
	if refusal != "" {
		return jsonResponse(http.StatusBadRequest, refusal)
	}
	_, answered := newToken(tokenKey(c.s.seed(), "peer "+c.peer), xmlsig.Person(v.Certificate), c.now, c.hasFault("F09") && c.fault.variant() == "past-expiry")
	return answered
}

// servePeerReception receives a document as a buyer does, and answers with a signed
// acknowledgement. It checks the signature, the structure, the buyer and whether it
// already has the document, in this order.
func (c *call) servePeerReception() response {
	variant := ""
	if c.hasFault("peer") {
		variant = c.fault.variant()
	}
	c.s.mu.Lock()
	p := c.s.peerOf(c.peer)
	must := p != nil && (c.s.state.Taxpayers[c.peer].Receiver.RequireToken || variant == "requires-token")
	c.s.mu.Unlock()
	if p == nil {
		return response{status: http.StatusNotFound}
	}
	if c.r.Header.Get("Authorization") != "" || must {
		if _, _, ok := readToken(c.r, tokenKey(c.s.seed(), "peer "+c.peer), c.now); !ok {
			c.countPost("")
			return response{status: http.StatusUnauthorized}
		}
	}
	if status := map[string]int{"500": http.StatusInternalServerError, "html": http.StatusOK}[variant]; status != 0 {
		c.countPost("")
		return response{status: status, contentType: kindHTML, body: []byte(gatewayPage)}
	}
	up, refused := c.readUpload()
	if refused != nil {
		return *refused
	}
	reason, f := c.checkDelivery(p, up)
	if f.RNC == "" || f.ENCF == "" {
		return jsonResponse(http.StatusBadRequest, "El archivo no es un e-CF.")
	}
	if code, ok := strings.CutPrefix(variant, "arecf-"); ok && len(code) == 1 {
		reason = code
	}
	a, err := c.acknowledge(p, up, f, reason, variant)
	if err != nil {
		return response{status: http.StatusServiceUnavailable}
	}
	if variant == "timeout-after-store" {
		c.fault = &Action{Fault: "F02", Variant: "hang"}
	}
	return a
}

// checkDelivery returns the code of the ARECF when the peer refuses the document, or "".
func (c *call) checkDelivery(p *peer, up upload) (reason string, f facts) {
	verified, err := xmlsig.Verify(up.raw, xmlsig.InvoiceLimits())
	var root xmlsig.Element
	if err == nil {
		root = verified.Root()
	} else if d, parsed := xmlsig.Parse(up.raw, xmlsig.InvoiceLimits()); parsed == nil {
		root = d.Root()
	}
	f = readFacts(root)
	c.key.rnc, c.key.encf = f.RNC, f.ENCF
	var wrong []string
	if err == nil {
		wrong = c.s.documentSchemas.check(root, f.Type)
	}
	sha := sha256Hex(up.raw)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	p.Posts[f.RNC+f.ENCF]++
	if up.name != f.RNC+f.ENCF+".xml" {
		c.s.addViolationLocked(c, FileName, up.name+" is not the name of "+f.RNC+f.ENCF)
	}
	if f.Type == "32" {
		c.s.addViolationLocked(c, DeliveryOf32, "consumer invoices are not delivered to buyers")
	} else if !c.s.hasAccepted(f, sha, c.now) {
		c.s.addViolationLocked(c, EarlyDelivery, "the authority has not accepted these bytes")
	}
	switch before := p.Received[f.RNC+f.ENCF]; {
	case err != nil || verified.Trusted(c.s.trust, c.now) != nil:
		return "2", f
	case len(wrong) > 0 || f.Type == "32" || f.Type == "41" || f.Type == "43" || f.Type == "45" || f.Type == "46" || f.Type == "47":
		return "1", f
	case f.Buyer != c.peer:
		return "4", f
	case before != nil && before.SHA256 != sha:
		return "3", f
	}
	return "", f
}

// hasAccepted reports whether the authority has accepted these bytes in any environment.
// The caller holds the lock.
func (s *Simulator) hasAccepted(f facts, sha string, now time.Time) bool {
	for _, e := range s.state.Environments {
		accepted := func(d *document) bool { return d.SHA256 == sha && d.decided(now) && d.Verdict.valid() }
		if slices.ContainsFunc(e.documentsOf(f.RNC, f.ENCF), accepted) {
			return true
		}
	}
	return false
}

// peerSigner returns the person who signs for a peer.
func (s *Simulator) peerSigner(rnc string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.state.Taxpayers[rnc]; t != nil && len(t.Delegates) > 0 {
		return t.Delegates[0].ID
	}
	return "001" + rnc[:min(8, len(rnc))]
}

// acknowledge signs an ARECF and stores the delivery. For bytes that were received before
// it returns the same ARECF again.
func (c *call) acknowledge(p *peer, up upload, f facts, reason, variant string) (response, error) {
	signer := c.s.peerSigner(c.peer)
	if variant == "other-signer" {
		signer = "40200000001"
	}
	id, err := c.s.Identity(signer)
	if err != nil {
		return response{}, err
	}
	c.s.mu.Lock()
	before := p.Received[f.RNC+f.ENCF]
	c.s.mu.Unlock()
	if reason == "" && variant == "" && before != nil {
		return response{status: http.StatusOK, contentType: kindXML, body: before.ARECF}, nil
	}
	encf := f.ENCF
	if variant == "other-encf" {
		encf = "E319999999999"
	}
	w := xmlsig.NewWriter("ARECF", 1<<10, xmlsig.Namespace{Prefix: "xsi", URI: xsi}, xmlsig.Namespace{Prefix: "xsd", URI: xsd})
	w.Open("DetalleAcusedeRecibo")
	w.Text("Version", "1.0")
	w.Text("RNCEmisor", f.RNC)
	w.Text("RNCComprador", c.peer)
	w.Text("eNCF", encf)
	if reason == "" {
		w.Text("Estado", "0")
	} else {
		w.Text("Estado", "1")
		w.Text("CodigoMotivoNoRecibido", reason)
	}
	w.Text("FechaHoraAcuseRecibo", c.now.In(zone).Format(timeLayout))
	w.Close("DetalleAcusedeRecibo")
	var signed []byte
	if variant == "unsigned" {
		signed = w.Unsigned()
	} else if signed, _, err = w.Sign(id); err != nil {
		return response{}, errors.Join(errors.New("simulator: acknowledge"), err)
	}
	if variant == "indented" {
		signed = startTag.ReplaceAll(signed, []byte(">\r\n  <$1"))
	}
	if reason == "" && c.store {
		c.s.mu.Lock()
		p.Received[f.RNC+f.ENCF] = &delivery{SHA256: sha256Hex(up.raw), At: c.now, ARECF: signed}
		c.s.mu.Unlock()
	}
	return response{status: http.StatusOK, contentType: kindXML, body: signed}, nil
}

// servePeerApproval receives an ACECF.
func (c *call) servePeerApproval() response {
	up, refused := c.readUpload()
	if refused != nil {
		return *refused
	}
	v, err := xmlsig.Verify(up.raw, xmlsig.SmallLimits())
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	p := c.s.peerOf(c.peer)
	switch {
	case p == nil:
		return response{status: http.StatusNotFound}
	case err != nil || v.Root().Name() != "ACECF" || v.Trusted(c.s.trust, c.now) != nil:
		return jsonResponse(http.StatusBadRequest, map[string]string{"estado": "Error", "mensaje": "El archivo o su firma no es válido."})
	}
	p.Approvals = append(p.Approvals, string(up.raw))
	return jsonResponse(http.StatusOK, map[string]string{"estado": "OK"})
}

// A Delivered is a document that a peer has received.
type Delivered struct {
	Peer   string    `json:"peer"`
	Key    string    `json:"key"` // issuer and e-NCF
	At     time.Time `json:"at"`
	SHA256 string    `json:"sha256"`
	ARECF  string    `json:"arecf"`
}

// Deliveries returns the documents that a peer has received, ordered by issuer and number.
func (s *Simulator) Deliveries(rnc string) []Delivered {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []Delivered{}
	if p := s.state.Peers[rnc]; p != nil {
		for key, d := range p.Received {
			out = append(out, Delivered{rnc, key, d.At, d.SHA256, string(d.ARECF)})
		}
	}
	slices.SortFunc(out, func(a, b Delivered) int { return strings.Compare(a.Key, b.Key) })
	return out
}
