package simulator

import (
	"fmt"
	"strings"
	"time"
)

// SetProfile replaces the rules and settings of the last profile by those of the
// named one: happy, slow-day, flaky, dgii-down, certification-strict or chaos.
func (s *Simulator) SetProfile(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.config = s.config.clone()
	return s.setProfile(name)
}

func (s *Simulator) setProfile(name string) error {
	no, yes := false, true
	var rules []Rule
	addRule := func(percent float64, service Service, a Action) {
		rules = append(rules, Rule{ID: fmt.Sprintf("profile-%d", len(rules)+1), Match: Match{Service: service, Percent: percent}, Action: a})
	}
	maintenance := s.config.Maintenance && s.config.Profile != "dgii-down"
	strict := s.config.Strict && s.config.Profile != "certification-strict"
	switch name {
	case "", "happy":
	case "slow-day":
		addRule(30, Reception, Action{Fault: "F11", Delay: Duration(20 * time.Second)})
		addRule(50, "", Action{Fault: "F01", Delay: Duration(2 * time.Second)})
	case "flaky":
		for _, service := range []Service{Reception, RFCE} {
			addRule(5, service, Action{Fault: "F02"})
			addRule(5, service, Action{Fault: "F05", Store: &yes})
			addRule(5, service, Action{Fault: "F05", Status: 502, Store: &no})
			addRule(5, service, Action{Fault: "F06"})
		}
	case "dgii-down":
		maintenance = true
	case "certification-strict":
		strict = true
	case "chaos":
		for _, service := range []Service{Reception, RFCE} {
			addRule(4, service, Action{Fault: "F02"})
			addRule(4, service, Action{Fault: "F02", Store: &no})
			addRule(3, service, Action{Fault: "F04"})
			addRule(3, service, Action{Fault: "F05", Status: 500, Store: &yes})
			addRule(3, service, Action{Fault: "F05", Status: 504, Store: &no})
			addRule(3, service, Action{Fault: "F06", Variant: "truncated"})
			addRule(3, service, Action{Fault: "F07"})
			addRule(2, service, Action{Fault: "F10", Delay: Duration(time.Second)})
		}
		addRule(3, Reception, Action{Fault: "F12", Delay: Duration(3 * time.Second)})
		addRule(3, Result, Action{Fault: "F05", Status: 503})
		addRule(2, Result, Action{Fault: "F15", Variant: "unknown-code"})
		addRule(3, TrackIDs, Action{Fault: "F05", Status: 503})
		addRule(3, StateLookup, Action{Fault: "F05", Status: 503})
		addRule(3, RFCELookup, Action{Fault: "F05", Status: 503})
	default:
		return fmt.Errorf("simulator: profile %q must be happy, slow-day, flaky, dgii-down, certification-strict or chaos", name)
	}
	s.config.Profile, s.config.Maintenance, s.config.Strict = name, maintenance, strict
	s.state.ProfileRules = nil
	for _, r := range rules {
		s.state.ProfileRules = append(s.state.ProfileRules, &activeRule{Rule: r})
	}
	return nil
}

// magicFault returns the fault that the last three digits of an e-NCF select, or nil.
func magicFault(c *call) *Action {
	if c.service != Reception && c.service != RFCE {
		return nil
	}
	forced := func(code int, used bool) *Action {
		return &Action{Fault: "F17", Verdict: &Verdict{Code: code, Used: used, Messages: []Message{{90099, "Resultado pedido por los últimos dígitos del e-NCF."}}}}
	}
	switch last := strings.TrimPrefix(c.key.encf, c.key.encf[:max(len(c.key.encf)-3, 0)]); {
	case last == "901":
		return forced(codeRejected, false)
	case last == "902":
		return forced(codeRejected, true)
	case last == "903":
		return forced(codeConditional, true)
	case last == "904" && c.service == Reception:
		return &Action{Fault: "F11"}
	case last == "905" && c.key.attempt <= 1:
		return &Action{Fault: "F02"}
	case last == "906" && c.key.attempt <= 1:
		return &Action{Fault: "F05", Status: 503}
	case last == "907" && c.service == Reception:
		return &Action{Fault: "F12"}
	}
	return nil
}
