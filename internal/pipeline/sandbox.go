package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/cause"
	"github.com/fiscalhub/fiscalhub/internal/ecf"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/wake"
)

// Sandbox is the plan of the sandbox: a synthetic result at once and no stages,
// so that no number is taken, nothing is signed or sent, and no event is
// emitted. A scenario adds stages that do nothing but move the status.
type Sandbox struct {
	Pace wake.Pace // divides the pauses of scenarios
}

const (
	scenarioPrefix = "sandbox-scenario/"
	scenarioPause  = time.Second
)

// Check builds the real document with a made-up issuer, address and number, and checks
// it as the authority would. It does not compare a date with today, so that fixed test
// data keep working.
func (Sandbox) Check(_ context.Context, _ store.Scope, inv *fiscal.Invoice) error {
	return ecf.Check(ecf.Synthetic(), inv)
}

// Ready returns nothing: the sandbox needs no certificate and no numbers.
func (Sandbox) Ready(context.Context, store.Scope, fiscal.Type) (fiscal.Problems, error) {
	return nil, nil
}

// Start returns the synthetic result, or the first stage of a scenario.
func (s Sandbox) Start(inv *fiscal.Invoice, scenario Scenario) Start {
	if scenario == "" {
		return Start{
			Status:   fiscal.Accepted,
			Messages: append(slices.Clone(inv.Warnings), syntheticNote()),
			Cause:    cause.New(cause.Sandbox),
		}
	}
	return Start{
		Status:   fiscal.Queued,
		Messages: append(slices.Clone(inv.Warnings), scenarioNote(scenario)),
		Cause:    cause.New(cause.SandboxScenario, scenario),
		Plan:     scenarioPrefix + string(scenario),
		Stage:    string(scenarioPaths[scenario][0]),
		After:    s.Pace.Scale(scenarioPause),
	}
}

func syntheticNote() lang.Message {
	return lang.Messagef(
		"Synthetic result of the sandbox; the tax authority has not seen this document.",
		"Resultado sintético del entorno de pruebas (sandbox); la DGII no ha visto este comprobante.")
}

func scenarioNote(s Scenario) lang.Message {
	return lang.Messagef(
		"Synthetic document of the sandbox, scenario %s; the tax authority has not seen it.",
		"Comprobante sintético del entorno de pruebas (sandbox), escenario %s; la DGII no lo ha visto.", s)
}

// Notifies reports false: the sandbox emits no events.
func (Sandbox) Notifies() bool { return false }

// Resumes returns 0: no job of the sandbox is suspended.
func (Sandbox) Resumes(store.Queue) int { return 0 }

// Settle returns no move: nothing is learnt about a synthetic document.
func (Sandbox) Settle(Document) Move { return Move{} }

// Do moves a synthetic document to its next status.
func (s Sandbox) Do(_ context.Context, w Work) (Result, error) {
	name, ok := strings.CutPrefix(w.Job.Plan, scenarioPrefix)
	path := scenarioPaths[Scenario(name)]
	at := slices.Index(path, fiscal.Status(w.Job.Stage))
	if !ok || at < 0 {
		return Result{}, fmt.Errorf("pipeline: the sandbox has no stage %q in plan %q", w.Job.Stage, w.Job.Plan)
	}
	m := &Move{Status: path[at], Messages: slices.Clone(w.Invoice.Messages), Cause: cause.New(cause.Scenario, name)}
	if m.Status == fiscal.AcceptedConditional {
		// A conditional verdict leads the messages, as with the authority's.
		m.Messages = slices.Insert(m.Messages, 0, fiscal.ConditionalMessage)
	}
	if at+1 < len(path) {
		m.Next, m.After = string(path[at+1]), s.Pace.Scale(scenarioPause)
	}
	return Result{Move: m}, nil
}
