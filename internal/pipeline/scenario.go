package pipeline

import (
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// Scenario is the status that an integrator asks a synthetic document of the
// sandbox to end at. The zero Scenario asks for nothing.
type Scenario string

// scenarioPaths are the statuses that a document goes through after queued.
var scenarioPaths = map[Scenario][]fiscal.Status{
	"submitted":            {fiscal.Submitted},
	"processing":           {fiscal.Submitted, fiscal.Processing},
	"accepted":             {fiscal.Submitted, fiscal.Processing, fiscal.Accepted},
	"accepted_conditional": {fiscal.Submitted, fiscal.Processing, fiscal.AcceptedConditional},
	"rejected":             {fiscal.Submitted, fiscal.Processing, fiscal.Rejected},
	"outcome_unknown":      {fiscal.OutcomeUnknown},
	"delivered":            {fiscal.Submitted, fiscal.Processing, fiscal.Accepted, fiscal.Delivered},
	"validation_failed":    {fiscal.ValidationFailed},
}

// ParseScenario reads the name of a scenario.
func ParseScenario(name string) (Scenario, bool) {
	_, ok := scenarioPaths[Scenario(name)]
	return Scenario(name), ok
}

// Fits reports whether a document of this type can reach the status: only a fiscal
// credit invoice is delivered to its buyer.
func (s Scenario) Fits(t fiscal.Type) bool {
	return s != "delivered" || t == fiscal.FiscalCredit
}
