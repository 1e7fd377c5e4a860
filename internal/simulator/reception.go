package simulator

import (
	"net/http"
	"strconv"
	"time"
)

// receive is the reception of e-CFs: it gives a trackId, and the verdict is asked
// for later.
func (c *call) receive() answer {
	x, refused := c.document("ECF")
	if refused != nil {
		return *refused
	}
	c.examine(x)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.store {
		c.s.postUnstored(c, x)
		return answer{status: http.StatusOK}
	}
	c.s.judgePost(c, x)
	d := c.s.store(c, x)
	told := d.ID
	switch {
	case c.has("F13"):
		// A twin of the same bytes, which finds the number taken.
		if twin := c.s.store(c, x); c.fault.variant() == "second" {
			told = twin.ID
		}
	case c.has("F14"):
		if order := c.s.state.Environments[c.amb].Order; len(order) > 1 {
			told = order[len(order)-2]
		}
	}
	c.key.trackID = told
	return reply(http.StatusOK, struct {
		TrackID string  `json:"trackId"`
		Error   *string `json:"error"`
		Text    *string `json:"mensaje"`
	}{TrackID: told})
}

// receiveSummary is the reception of RFCEs, which gives the verdict at once.
func (c *call) receiveSummary() answer {
	x, refused := c.document("RFCE")
	if refused != nil {
		return *refused
	}
	c.examine(x)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if !c.store {
		c.s.postUnstored(c, x)
		return answer{status: http.StatusOK}
	}
	c.s.judgePost(c, x)
	d := c.s.store(c, x)
	d.Due, d.Stuck = d.Received, false
	n := c.s.state.Environments[c.amb].number(x.facts.RNC, x.facts.ENCF)
	if !c.spoils() {
		n.Asked = true // the answer tells it
		c.told(d)
	}
	status := http.StatusOK
	if d.Verdict.Code == codeRejected {
		status = http.StatusBadRequest
	}
	return reply(status, struct {
		Code     int             `json:"codigo"`
		State    string          `json:"estado"`
		Messages []stringMessage `json:"mensajes"`
		ENCF     string          `json:"encf"`
		Used     bool            `json:"secuenciaUtilizada"`
	}{d.Verdict.Code, stateName(d.Verdict.Code), c.stringMessages(c.messages(d)), x.facts.ENCF, d.Verdict.Used})
}

// postUnstored counts a post that a fault loses. The lock is held.
func (s *Simulator) postUnstored(c *call, x *examination) {
	n := s.state.Environments[c.amb].number(x.facts.RNC, x.facts.ENCF)
	s.judgePost(c, x)
	n.Posts++
	if n.First == "" {
		n.First = x.sha
	}
}

// store keeps a document, and decides what becomes of it and when. The lock is
// held.
func (s *Simulator) store(c *call, x *examination) *document {
	e := s.state.Environments[c.amb]
	f := x.facts
	n := e.number(f.RNC, f.ENCF)
	earlier := e.documentsOf(f.RNC, f.ENCF)
	n.Posts++
	if n.First == "" || allFree(earlier, c.now) {
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
	drawn := newDraw(s.state.Seed, what...)
	d := &document{
		ID: drawn.uuid(), Amb: c.amb, RFCE: x.rfce, Attempt: attempt, File: x.file, SHA256: x.sha,
		Received: c.now, Facts: f, Visible: c.now, Verdict: s.decide(c, x, n, earlier),
	}
	for e.Documents[d.ID] != nil { // a seed that was set again
		drawn = newDraw(s.state.Seed, append(what, s.state.next())...)
		d.ID = drawn.uuid()
	}
	if !c.config.Lean {
		d.Raw = x.raw
	}
	if lag := c.config.VisibilityLag; lag != nil {
		d.Visible = c.now.Add(newDraw(s.state.Seed, append(what, "lag")...).within(lag))
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

// applyFault does to a document what the rule of its call says.
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

func allFree(docs []*document, now time.Time) bool {
	for _, d := range docs {
		if !d.free(now) {
			return false
		}
	}
	return len(docs) > 0
}

func sameBytes(docs []*document, sha string) *document {
	for _, d := range docs {
		if d.SHA256 == sha {
			return d
		}
	}
	return nil
}

// Settle ends the validation of every document, also of those that a rule holds.
func (s *Simulator) Settle() {
	now := s.clock.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.state.Environments {
		for _, d := range e.Documents {
			d.Stuck, d.Hidden = false, false
			if d.Due.After(now) {
				d.Due = now
			}
			if d.Visible.After(now) {
				d.Visible = now
			}
		}
	}
}

// ForceVerdict decides what becomes of a document, at once.
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
