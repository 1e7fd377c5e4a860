package simulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Rule makes the calls that match it go wrong.
type Rule struct {
	ID     string `json:"id,omitempty"` // given, unless named
	Match  Match  `json:"match"`
	Action Action `json:"action"`
	Count  int    `json:"count,omitempty"` // of firings; without end unless told
}

// A Match says which calls a rule is for. What is empty matches everything.
type Match struct {
	Service    Service           `json:"service,omitempty"`
	Amb        string            `json:"amb,omitempty"`
	RNC        string            `json:"rnc,omitempty"` // of the issuer
	Peer       string            `json:"peer,omitempty"`
	Type       string            `json:"type,omitempty"`
	ENCF       string            `json:"encf,omitempty"`
	ENCFPrefix string            `json:"encf_prefix,omitempty"`
	ENCFSuffix string            `json:"encf_suffix,omitempty"`
	TrackID    string            `json:"track_id,omitempty"`
	Attempt    int               `json:"attempt,omitempty"` // the nth post of an e-NCF, the nth question of a service about a document
	Nth        int               `json:"nth,omitempty"`     // the nth call that matches the rest
	From       time.Time         `json:"from,omitzero"`
	To         time.Time         `json:"to,omitzero"`
	Header     map[string]string `json:"header,omitempty"` // parts of values
	Percent    float64           `json:"percent,omitempty"`
}

// An Action is what goes wrong: a fault F01 to F24, or peer. The faults and their
// variants are told in the documentation of the simulator.
type Action struct {
	Fault   string   `json:"fault"`
	Variant string   `json:"variant,omitempty"`
	Delay   Duration `json:"delay,omitempty"`
	Status  int      `json:"status,omitempty"`
	Store   *bool    `json:"store,omitempty"`
	After   int      `json:"after,omitempty"`
	Verdict *Verdict `json:"verdict,omitempty"`
}

// store tells whether the document of a call is kept, which depends on the fault
// unless the rule says.
func (a *Action) store(unlessTold bool) bool {
	if a.Store != nil {
		return *a.Store
	}
	return unlessTold
}

// An armed rule counts.
type armed struct {
	Rule
	Matched int
	Fired   int
}

// A RuleView is a rule and how often it fired.
type RuleView struct {
	Rule
	Fired int `json:"fired"`
}

// A docKey is what is known of the document that a call is about.
type docKey struct {
	rnc, encf, trackID string
	attempt            int
}

// needsDocument tells whether only the document can decide.
func (m *Match) needsDocument() bool {
	return m.RNC != "" || m.Type != "" || m.ENCF != "" || m.ENCFPrefix != "" || m.ENCFSuffix != "" || m.TrackID != "" || m.Attempt != 0 || m.Percent != 0
}

func (m *Match) document(k docKey) bool {
	return (m.RNC == "" || m.RNC == k.rnc) &&
		(m.Type == "" || len(k.encf) > 3 && k.encf[1:3] == m.Type) &&
		(m.ENCF == "" || m.ENCF == k.encf) &&
		strings.HasPrefix(k.encf, m.ENCFPrefix) && strings.HasSuffix(k.encf, m.ENCFSuffix) &&
		(m.TrackID == "" || m.TrackID == k.trackID) &&
		(m.Attempt == 0 || m.Attempt == k.attempt)
}

func (m *Match) call(c *call, fault string) bool {
	switch {
	case m.Service != "" && m.Service != c.service:
		return false
	case m.Service == "" && !natural(fault, c.service):
		return false
	case m.Amb != "" && m.Amb != c.amb, m.Peer != "" && m.Peer != c.peer:
		return false
	case !m.From.IsZero() && c.now.Before(m.From), !m.To.IsZero() && !c.now.Before(m.To):
		return false
	}
	for name, part := range m.Header {
		if !strings.Contains(c.r.Header.Get(name), part) {
			return false
		}
	}
	return true
}

// natural tells to which services a fault applies when its rule names none.
func natural(fault string, s Service) bool {
	upload := s == Reception || s == RFCE
	switch fault {
	case "F02":
		return upload
	case "F03", "F04":
		return upload || s == Token || s == PeerReception
	case "F09":
		return s.needsToken()
	case "F11", "F12", "F13", "F14":
		return s == Reception
	case "F15", "F16", "F19":
		return s == Result
	case "F17":
		return upload
	case "F18":
		return s == StateLookup || s == TrackIDs
	case "F21":
		return s != Status && !strings.HasPrefix(string(s), "peer_")
	case "F24":
		return s == Directory
	case "peer":
		return s == PeerReception
	}
	return true
}

// AddRule arms a rule after those there are, and returns its id.
func (s *Simulator) AddRule(r Rule) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.addRule(r)
}

func (st *state) addRule(r Rule) (string, error) {
	if err := r.Action.check(); err != nil {
		return "", err
	}
	if r.Match.Service != "" && !r.Match.Service.known() {
		return "", fmt.Errorf("simulator: rule: no service %q", r.Match.Service)
	}
	if r.Match.Amb != "" && !isEnvironment(r.Match.Amb) {
		return "", fmt.Errorf("simulator: rule: no environment %q", r.Match.Amb)
	}
	if r.ID == "" {
		st.RuleCounter++
		r.ID = "rule-" + strconv.Itoa(st.RuleCounter)
	}
	if slices.ContainsFunc(st.Rules, func(a *armed) bool { return a.ID == r.ID }) {
		return "", fmt.Errorf("simulator: rule: there is a rule %q already", r.ID)
	}
	st.Rules = append(st.Rules, &armed{Rule: r})
	return r.ID, nil
}

// ClearRules removes every rule, but not those of the profile.
func (s *Simulator) ClearRules() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Rules = nil
}

// RemoveRule removes one rule.
func (s *Simulator) RemoveRule(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, a := range s.state.Rules {
		if a.ID == id {
			s.state.Rules = slices.Delete(s.state.Rules, i, i+1)
			return nil
		}
	}
	return fmt.Errorf("simulator: rule %s: %w", id, ErrNotFound)
}

// Rules returns the rules in their order, those of the profile last.
func (s *Simulator) Rules() []RuleView {
	s.mu.Lock()
	defer s.mu.Unlock()
	views := []RuleView{}
	for _, a := range slices.Concat(s.state.Rules, s.state.ProfileRules) {
		views = append(views, RuleView{a.Rule, a.Fired})
	}
	return views
}

// fire finds the first rule that matches a call, and counts it. The document of
// an upload is looked for only when a rule asks for it: one that is to break
// off before the body must not have read it.
func (s *Simulator) fire(c *call) {
	s.mu.Lock()
	rules := slices.Concat(s.state.Rules, s.state.ProfileRules)
	magic := s.config.MagicNumbers && (c.service == Reception || c.service == RFCE)
	needed := magic
	for _, a := range rules {
		if a.Count != 0 && a.Fired >= a.Count || !a.Match.call(c, a.Action.Fault) {
			continue
		}
		if needed = a.Match.needsDocument(); needed || a.Match.Nth == 0 {
			break
		}
	}
	s.mu.Unlock()
	if needed {
		c.findKey() // reads, so not under the lock
	}
	c.findQueryKey()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.countAsk(c)
	for _, a := range rules {
		if !a.Match.call(c, a.Action.Fault) || !a.Match.document(c.key) || !s.chosen(a, c) {
			continue
		}
		a.Matched++
		if a.Match.Nth != 0 && a.Matched != a.Match.Nth || a.Count != 0 && a.Fired >= a.Count {
			continue
		}
		a.Fired++
		action := a.Action
		c.fault, c.entry.Rule = &action, a.ID
		s.log.Info("rule fired", "rule", a.ID, "fault", a.Action.Fault, "service", string(c.service), "amb", c.amb, "encf", c.key.encf)
		return
	}
	if magic {
		c.fault = magicFault(c)
	}
}

// maxAsks bounds what is counted of questions.
const maxAsks = 100_000

// countAsk tells which question this is, so that another one may have better
// luck with a rule of some per cent. Posts of documents are counted elsewhere.
func (st *state) countAsk(c *call) {
	if c.service == Reception || c.service == RFCE || c.service == PeerReception {
		return
	}
	if len(st.Asks) > maxAsks {
		clear(st.Asks)
	}
	what := string(c.service) + "|" + c.amb + "|" + c.peer + "|" + c.key.rnc + "|" + c.key.encf + "|" + c.key.trackID
	st.Asks[what]++
	c.key.attempt = st.Asks[what]
}

// chosen draws whether a rule of some per cent is for this call.
func (s *Simulator) chosen(a *armed, c *call) bool {
	if a.Match.Percent == 0 {
		return true
	}
	k := c.key
	return newDraw(s.state.Seed, "rule", a.ID, string(c.service), c.amb, k.rnc, k.encf, k.trackID, strconv.Itoa(k.attempt)).percent() < a.Match.Percent
}
