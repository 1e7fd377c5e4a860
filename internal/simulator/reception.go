package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// serveReception receives e-CFs. It returns a trackId; the client looks the verdict up
// later.
func (c *call) serveReception() response {
	return c.storeUpload("ECF", func(x *examination, d *document) response {
		trackID := d.ID
		switch {
		case c.hasFault("F13"):
			// The same document is stored a second time, and finds its number taken.
			if c.fault.Verdict != nil {
				d.Verdict = *c.fault.Verdict
			}
			if second := c.s.store(c, x); c.fault.variant() == "second" {
				trackID = second.ID
			}
		case c.hasFault("F14"):
			if order := c.s.state.Environments[c.amb].Order; len(order) > 1 {
				trackID = order[len(order)-2]
			}
		}
		c.key.trackID = trackID
		return jsonResponse(http.StatusOK, struct {
			TrackID string  `json:"trackId"`
			Error   *string `json:"error"`
			Text    *string `json:"mensaje"`
		}{TrackID: trackID})
	})
}

// serveSummaryReception receives summaries (RFCE) and returns the verdict at once.
func (c *call) serveSummaryReception() response {
	return c.storeUpload("RFCE", func(x *examination, d *document) response {
		d.Due, d.Stuck = d.Received, false
		if !c.losesResponse() {
			c.s.state.Environments[c.amb].number(x.facts.RNC, x.facts.ENCF).Asked = true // the response shows the verdict
			c.markVerdictSeen(d)
		}
		status := http.StatusOK
		if d.Verdict.Code == codeRejected {
			status = http.StatusBadRequest
		}
		return jsonResponse(status, struct {
			Code     int             `json:"codigo"`
			State    string          `json:"estado"`
			Messages []stringMessage `json:"mensajes"`
			ENCF     string          `json:"encf"`
			Used     bool            `json:"secuenciaUtilizada"`
		}{d.Verdict.Code, stateName(d.Verdict.Code), c.stringMessages(c.messages(d)), x.facts.ENCF, d.Verdict.Used})
	})
}

// storeUpload reads, examines and stores an uploaded document with the given root, and
// returns the response of respond. If the upload is refused or a fault keeps the document
// from being stored, it does not call respond. respond is called with the lock held.
func (c *call) storeUpload(root string, respond func(*examination, *document) response) response {
	x, refused := c.readDocument(root)
	if refused != nil {
		return *refused
	}
	c.examine(x)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.store {
		c.s.countLostPost(c, x)
		return response{status: http.StatusOK}
	}
	c.s.checkPost(c, x)
	return respond(x, c.s.store(c, x))
}

// countLostPost counts a post whose document is not stored. The caller holds the lock.
func (s *Simulator) countLostPost(c *call, x *examination) {
	n := s.state.Environments[c.amb].number(x.facts.RNC, x.facts.ENCF)
	s.checkPost(c, x)
	n.Posts++
	if n.First == "" {
		n.First = x.sha
	}
}

// store stores a document with its verdict and the times when look-ups show it. The caller
// holds the lock.
func (s *Simulator) store(c *call, x *examination) *document {
	e := s.state.Environments[c.amb]
	f := x.facts
	n := e.number(f.RNC, f.ENCF)
	earlier := e.documentsOf(f.RNC, f.ENCF)
	n.Posts++
	if n.First == "" || allReusable(earlier, c.now) {
		n.First = x.sha
	}
	n.Asked = false
	s.state.Submissions++
	if _, seen := s.state.Bytes[x.sha]; !seen {
		s.state.Bytes[x.sha] = c.amb
	}
	same := sameBytes(earlier, x.sha)
	if same != nil && c.config.DuplicateMode == DuplicateSameTrackID {
		return same
	}

	attempt := len(n.IDs) + 1
	what := []string{c.amb, f.RNC, f.ENCF, strconv.Itoa(attempt)}
	drawn := newRandom(s.state.Seed, what...)
	d := &document{
		ID: drawn.uuid(), Amb: c.amb, RFCE: x.rfce, Attempt: attempt, File: x.file, SHA256: x.sha,
		Received: c.now, Facts: f, Visible: c.now, Verdict: s.decide(c, x, n, earlier),
	}
	for e.Documents[d.ID] != nil { // the same seed was set a second time
		drawn = newRandom(s.state.Seed, append(what, s.state.nextCounter())...)
		d.ID = drawn.uuid()
	}
	if !c.config.Lean {
		d.Raw = x.raw
	}
	if lag := c.config.VisibilityLag; lag != nil {
		d.Visible = c.now.Add(newRandom(s.state.Seed, append(what, "lag")...).within(lag))
	}
	d.Due = c.now.Add(c.config.validationDelay(c.amb, drawn))
	if same != nil && c.config.DuplicateMode == DuplicateSameVerdict {
		d.Verdict = same.Verdict
	}
	s.applyFault(c, d)
	e.Documents[d.ID] = d
	e.Order = append(e.Order, d.ID)
	n.IDs = append(n.IDs, d.ID)
	if d.RFCE && d.Verdict.Code == codeRejected {
		if n.Codes == nil {
			n.Codes = map[string]bool{}
		}
		n.Codes[f.Code] = true
	}
	return d
}

// applyFault applies the fault of the call to the document.
func (s *Simulator) applyFault(c *call, d *document) {
	if c.fault == nil {
		return
	}
	after := time.Duration(c.fault.Delay)
	switch c.fault.Fault {
	case "F11":
		d.Stuck = after == 0
		d.Due = c.now.Add(after)
	case "F12":
		d.Hidden = after == 0
		d.Visible = c.now.Add(after)
	case "F17":
		d.Verdict = *c.fault.Verdict
	}
}

func allReusable(docs []*document, now time.Time) bool {
	return len(docs) > 0 && !slices.ContainsFunc(docs, func(d *document) bool { return !d.reusable(now) })
}

func sameBytes(docs []*document, sha string) *document {
	if i := slices.IndexFunc(docs, func(d *document) bool { return d.SHA256 == sha }); i >= 0 {
		return docs[i]
	}
	return nil
}

// Settle ends the validation of every document, even if a rule keeps it in process.
func (s *Simulator) Settle() {
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.state.Environments {
		for _, d := range e.Documents {
			d.Stuck, d.Hidden = false, false
			d.Due, d.Visible = minTime(d.Due, now), minTime(d.Visible, now)
		}
	}
}

// ForceVerdict sets the verdict of a document and ends its validation. It fails with
// ErrNotFound when there is no such document.
func (s *Simulator) ForceVerdict(id string, v Verdict) error {
	if err := (&Action{Fault: "F17", Verdict: &v}).check(); err != nil {
		return err
	}
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.state.Environments {
		if d := e.Documents[id]; d != nil {
			d.Verdict, d.Stuck, d.Hidden = v, false, false
			d.Due, d.Visible = minTime(d.Due, now), minTime(d.Visible, now)
			return nil
		}
	}
	return ErrNotFound
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
