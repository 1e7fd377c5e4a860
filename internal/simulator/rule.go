package simulator

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Rule applies a fault to the calls that match it.
type Rule struct {
	ID     string `json:"id,omitempty"` // generated if empty
	Match  Match  `json:"match"`
	Action Action `json:"action"`
	Count  int    `json:"count,omitempty"` // how often it is applied; without limit if 0
}

// A Match selects calls. An empty field matches every call.
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
	Attempt    int               `json:"attempt,omitempty"` // the nth post of an e-NCF, or the nth look-up of a document at a service
	Nth        int               `json:"nth,omitempty"`     // the nth call that matches the other fields
	From       time.Time         `json:"from,omitzero"`
	To         time.Time         `json:"to,omitzero"`
	Header     map[string]string `json:"header,omitempty"` // a part of each header's value
	Percent    float64           `json:"percent,omitempty"`
}

// An Action is a fault, F01 to F24 or peer, with its parameters. The package comment
// lists the faults and their variants.
type Action struct {
	Fault   string   `json:"fault"`
	Variant string   `json:"variant,omitempty"`
	Delay   Duration `json:"delay,omitempty"`
	Status  int      `json:"status,omitempty"`
	Store   *bool    `json:"store,omitempty"`
	After   int      `json:"after,omitempty"`
	Verdict *Verdict `json:"verdict,omitempty"`
}

// store reports whether the document of the call is stored: as the rule says, or else the
// default of the fault.
func (a *Action) store(defaultValue bool) bool {
	if a.Store != nil {
		return *a.Store
	}
	return defaultValue
}

// An activeRule is a rule with its counters.
type activeRule struct {
	Rule
	Matched int
	Fired   int
}

// A RuleView is a rule and how often it was applied.
type RuleView struct {
	Rule
	Fired int `json:"fired"`
}

// A documentKey identifies the document that a call is about, as far as it is known.
type documentKey struct {
	rnc, encf, trackID string
	attempt            int
}

// needsDocument reports whether the match depends on the document.
func (m *Match) needsDocument() bool {
	return m.RNC != "" || m.Type != "" || m.ENCF != "" || m.ENCFPrefix != "" || m.ENCFSuffix != "" || m.TrackID != "" || m.Attempt != 0 || m.Percent != 0
}

func (m *Match) document(k documentKey) bool {
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
	case m.Service == "" && !appliesByDefault(fault, c.service):
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

// appliesByDefault reports whether a fault applies to a service when the rule names no
// service.
func appliesByDefault(fault string, s Service) bool {
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

// AddRule adds a rule after the existing ones and returns its id. It fails when the rule
// is not valid or its id exists.
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
		return "", fmt.Errorf("simulator: rule: unknown service %q", r.Match.Service)
	}
	if r.Match.Amb != "" && !isEnvironment(r.Match.Amb) {
		return "", fmt.Errorf("simulator: rule: environment %q must be testecf, certecf or ecf", r.Match.Amb)
	}
	if r.ID == "" {
		st.RuleCounter++
		r.ID = "rule-" + strconv.Itoa(st.RuleCounter)
	}
	if slices.ContainsFunc(st.Rules, func(a *activeRule) bool { return a.ID == r.ID }) {
		return "", fmt.Errorf("simulator: rule: rule %q already exists", r.ID)
	}
	st.Rules = append(st.Rules, &activeRule{Rule: r})
	return r.ID, nil
}

// ClearRules removes every rule except those of the profile.
func (s *Simulator) ClearRules() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.Rules = nil
}

// RemoveRule removes one rule. It fails with ErrNotFound when there is no such rule.
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

// Rules returns the rules in their order, with those of the profile last.
func (s *Simulator) Rules() []RuleView {
	s.mu.Lock()
	defer s.mu.Unlock()
	views := []RuleView{}
	for _, a := range slices.Concat(s.state.Rules, s.state.ProfileRules) {
		views = append(views, RuleView{a.Rule, a.Fired})
	}
	return views
}

// applyRules sets the fault of the first rule that matches the call, and counts it. It
// reads the start of an upload only when a rule depends on the document: F03 must drop the
// connection before the body is read.
func (s *Simulator) applyRules(c *call) {
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
		c.findKey() // reads from the network, so the lock is not held
	}
	c.findQueryKey()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.countLookup(c)
	for _, a := range rules {
		if !a.Match.call(c, a.Action.Fault) || !a.Match.document(c.key) || !s.drawn(a, c) {
			continue
		}
		a.Matched++
		if a.Match.Nth != 0 && a.Matched != a.Match.Nth || a.Count != 0 && a.Fired >= a.Count {
			continue
		}
		a.Fired++
		action := a.Action
		c.fault, c.entry.Rule = &action, a.ID
		s.log.Info("A rule applies its fault to a call.", "rule", a.ID, "fault", a.Action.Fault, "service", string(c.service), "amb", c.amb, "encf", c.key.encf)
		return
	}
	if magic {
		c.fault = magicFault(c)
	}
}

// maxLookupCounts is how many counters of look-ups are kept.
const maxLookupCounts = 100_000

// countLookup counts the look-up and sets its number as the attempt: a rule with Percent
// draws again for each attempt. Posts of documents are counted by countAttempt.
func (st *state) countLookup(c *call) {
	if c.service == Reception || c.service == RFCE || c.service == PeerReception {
		return
	}
	if len(st.Asks) > maxLookupCounts {
		clear(st.Asks)
	}
	what := string(c.service) + "|" + c.amb + "|" + c.peer + "|" + c.key.rnc + "|" + c.key.encf + "|" + c.key.trackID
	st.Asks[what]++
	c.key.attempt = st.Asks[what]
}

// drawn reports whether a rule applies to this call. A rule with Percent draws a random
// value.
func (s *Simulator) drawn(a *activeRule, c *call) bool {
	if a.Match.Percent == 0 {
		return true
	}
	k := c.key
	return newRandom(s.state.Seed, "rule", a.ID, string(c.service), c.amb, k.rnc, k.encf, k.trackID, strconv.Itoa(k.attempt)).percent() < a.Match.Percent
}
