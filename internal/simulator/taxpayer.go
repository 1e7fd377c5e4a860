package simulator

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The environments.
const (
	TestECF = "testecf"
	CertECF = "certecf"
	ECF     = "ecf"
)

func isEnvironment(amb string) bool { return amb == TestECF || amb == CertECF || amb == ECF }

// A Taxpayer is a taxpayer in the authority's registry.
type Taxpayer struct {
	RNC        string     `json:"rnc"`
	Name       string     `json:"name"`
	Active     *bool      `json:"active,omitempty"`           // true by default
	Electronic *bool      `json:"electronic,omitempty"`       // an electronic issuer; true by default
	Since      string     `json:"electronic_since,omitempty"` // yyyy-mm-dd; no start date if empty
	Deferred   bool       `json:"deferred_authorised,omitempty"`
	Delegates  []Delegate `json:"delegates,omitempty"`
	Ranges     []Range    `json:"ranges,omitempty"`
	Receiver   *Receiver  `json:"receiver,omitempty"`
}

// A Delegate is a person who acts for a taxpayer.
type Delegate struct {
	ID    string   `json:"id"`
	Roles []string `json:"roles,omitempty"` // signer, approver; both if empty
}

// A Range is a block of authorised numbers.
type Range struct {
	Amb     string `json:"amb,omitempty"` // every environment if empty
	Type    string `json:"type"`
	From    int64  `json:"from"`
	To      int64  `json:"to"`
	Expires string `json:"expires,omitempty"` // yyyy-mm-dd; never if empty
}

// A Receiver is the entry of a taxpayer in the directory. Without an address, it is the
// simulator's own receiver under /peer.
type Receiver struct {
	Reception string `json:"reception,omitempty"`
	Approval  string `json:"approval,omitempty"`
	Auth      string `json:"auth,omitempty"`
	NoAuth    bool   `json:"no_auth,omitempty"` // offers no authentication
	// RequireToken refuses deliveries without a token.
	RequireToken bool `json:"require_token,omitempty"`
}

// A Fixture is the initial state of a simulator, to which Reset returns.
type Fixture struct {
	Taxpayers []Taxpayer `json:"taxpayers,omitempty"`
	Trust     []string   `json:"trust,omitempty"` // PEM of roots beside the simulator's own
	Rules     []Rule     `json:"rules,omitempty"`
	Config    *Config    `json:"config,omitempty"`
}

func (t *Taxpayer) check() error {
	if !isRNC(t.RNC) {
		return fmt.Errorf("simulator: taxpayer %q: the RNC must have 9 or 11 digits", t.RNC)
	}
	if t.Since != "" {
		if _, err := time.Parse(time.DateOnly, t.Since); err != nil {
			return fmt.Errorf("simulator: taxpayer %s: electronic_since must be a date: yyyy-mm-dd", t.RNC)
		}
	}
	for _, d := range t.Delegates {
		if d.ID == "" {
			return fmt.Errorf("simulator: taxpayer %s: a delegate has no id", t.RNC)
		}
	}
	for _, r := range t.Ranges {
		if err := r.check(); err != nil {
			return fmt.Errorf("simulator: taxpayer %s: %w", t.RNC, err)
		}
	}
	return nil
}

func (r Range) check() error {
	if r.Amb != "" && !isEnvironment(r.Amb) {
		return fmt.Errorf("range: environment %q must be testecf, certecf or ecf", r.Amb)
	}
	if len(r.Type) != 2 || r.From < 1 || r.To < r.From || r.To > 9_999_999_999 {
		return errors.New("range: type must have two digits, and 1 ≤ from ≤ to ≤ 9999999999")
	}
	if r.Expires != "" {
		if _, err := time.Parse(time.DateOnly, r.Expires); err != nil {
			return errors.New("range: expires must be a date: yyyy-mm-dd")
		}
	}
	return nil
}

// clone returns a deep copy.
func (t Taxpayer) clone() *Taxpayer {
	t.Delegates = slices.Clone(t.Delegates)
	t.Ranges = slices.Clone(t.Ranges)
	for _, b := range []**bool{&t.Active, &t.Electronic} {
		if *b != nil {
			own := **b
			*b = &own
		}
	}
	if t.Receiver != nil {
		r := *t.Receiver
		t.Receiver = &r
	}
	return &t
}

// delegated reports whether a person may act for the taxpayer in a role. An empty role
// matches any.
func (t *Taxpayer) delegated(person, role string) bool {
	return slices.ContainsFunc(t.Delegates, func(d Delegate) bool {
		return d.ID == person && (len(d.Roles) == 0 || role == "" || slices.Contains(d.Roles, role))
	})
}

// rangeOf returns the authorised range of a number.
func (t *Taxpayer) rangeOf(amb, encf string) (Range, bool) {
	kind, n, ok := splitENCF(encf)
	if !ok {
		return Range{}, false
	}
	for _, r := range t.Ranges {
		if r.Type == kind && r.From <= n && n <= r.To && (r.Amb == "" || r.Amb == amb) {
			return r, true
		}
	}
	return Range{}, false
}

// onlyInOtherEnvironments reports whether a number is authorised in another environment
// and not in this one.
func (t *Taxpayer) onlyInOtherEnvironments(amb, encf string) bool {
	if _, here := t.rangeOf(amb, encf); here {
		return false
	}
	return slices.ContainsFunc([]string{TestECF, CertECF, ECF}, func(other string) bool {
		_, there := t.rangeOf(other, encf)
		return there
	})
}

// splitENCF splits an e-NCF into its type and its number.
func splitENCF(encf string) (kind string, n int64, ok bool) {
	if len(encf) != 13 || encf[0] != 'E' || !isDigits(encf[1:]) {
		return "", 0, false
	}
	n, err := strconv.ParseInt(encf[3:], 10, 64)
	return encf[1:3], n, err == nil
}

func isRNC(s string) bool { return (len(s) == 9 || len(s) == 11) && isDigits(s) }

func isDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// validCheckDigit reports whether the check digit of an RNC or a cédula is right.
func validCheckDigit(id string) bool {
	sum := 0
	switch {
	case !isDigits(id):
		return false
	case len(id) == 9:
		for i, weight := range []int{7, 9, 8, 6, 5, 4, 3, 2} {
			sum += int(id[i]-'0') * weight
		}
		return (10-sum%11)%9+1 == int(id[8]-'0')
	case len(id) == 11:
		for i := range 10 {
			product := int(id[i]-'0') * (1 + i%2)
			sum += product/10 + product%10
		}
		return (10-sum%10)%10 == int(id[10]-'0')
	}
	return false
}

// AddTaxpayer adds a taxpayer, or replaces the one with the same RNC.
func (s *Simulator) AddTaxpayer(t Taxpayer) error {
	if err := t.check(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state.addTaxpayer(t)
	return nil
}

func (st *state) addTaxpayer(t Taxpayer) {
	st.Taxpayers[t.RNC] = t.clone()
	// A person who was refused may be delegated now.
	clear(st.Refused)
}

// UpdateTaxpayer changes a taxpayer. It changes nothing and fails when change fails, the
// result is not valid, or there is no such taxpayer (ErrNotFound).
func (s *Simulator) UpdateTaxpayer(rnc string, change func(*Taxpayer) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.state.Taxpayers[rnc]
	if t == nil {
		return fmt.Errorf("simulator: taxpayer %s: %w", rnc, ErrNotFound)
	}
	next := t.clone()
	if err := change(next); err != nil {
		return err
	}
	next.RNC = rnc
	if err := next.check(); err != nil {
		return err
	}
	s.state.addTaxpayer(*next)
	return nil
}

// Baseline returns a taxpayer who may issue: active, with one delegate, and with the
// numbers 1 to 10,000,000 of types 31 and 32 in every environment.
func Baseline(rnc, delegate, expires string) Taxpayer {
	return Taxpayer{
		RNC: rnc, Name: "Contribuyente " + rnc, Delegates: []Delegate{{ID: delegate}},
		Ranges: []Range{{Type: "31", From: 1, To: 10_000_000, Expires: expires}, {Type: "32", From: 1, To: 10_000_000}},
	}
}
