package systemtest

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// The clients of a history use groups of few keys and external ids, so that they often
// use the same ones. An operation concerns one group.
const (
	keysOfGroup = 2
	idsOfGroup  = 2
	// noAnswer is the time at which an operation without an answer ends: it may have its
	// effect at any later time, or never.
	noAnswer = math.MaxInt64
)

// historyAction is what a client asks for.
type historyAction string

const (
	actionCreate historyAction = "create" // with a key and an external id
	actionRead   historyAction = "read"   // an invoice by its id
	actionFind   historyAction = "find"   // the list of invoices with an external id
	actionList   historyAction = "list"   // the list of all invoices
)

// historyOutcome is how the service answered.
type historyOutcome string

const (
	outcomeUnknown  historyOutcome = "unknown"  // no answer, or one that says to try again
	outcomeCreated  historyOutcome = "created"  // 202
	outcomeReplayed historyOutcome = "replayed" // 202 with Idempotency-Replayed
	outcomeMismatch historyOutcome = "mismatch" // 409: the key was used with another request
	outcomeConflict historyOutcome = "conflict" // 409: the external id is in use
	outcomeFound    historyOutcome = "found"    // 200
	outcomeNotFound historyOutcome = "not found"
)

// historyInput is the request of an operation.
type historyInput struct {
	action   historyAction
	key      int    // of a creation
	external int    // of a creation or a find
	id       string // of a read
}

// historyOutput is the answer of an operation.
type historyOutput struct {
	outcome  historyOutcome
	id       string             // of the invoice that the answer names
	answer   string             // the bytes of a creation's answer
	external int                // of the invoice that a read found
	listed   [idsOfGroup]string // ids that a list has, by external id
	twice    bool               // the list has two invoices with one external id
}

// registered is an invoice in the model. An invoice of a creation without an answer has
// an id and an answer that are not known until another operation shows them.
type registered struct {
	made       bool
	key        int
	id, answer string
}

// groupState is the state of one group: its invoices by external id.
type groupState [idsOfGroup]registered

// byKey returns the external id of the invoice that was created with a key, or -1.
func (s groupState) byKey(key int) int {
	return slices.IndexFunc(s[:], func(r registered) bool { return r.made && r.key == key })
}

// show returns the state after an operation has shown the id of the invoice with an
// external id, and whether the operation may show it.
func (s groupState) show(external int, id string) (groupState, bool) {
	if external < 0 || external >= idsOfGroup || !s[external].made || id == "" {
		return s, false
	}
	for other, r := range s {
		if other != external && r.id == id {
			return s, false
		}
	}
	if s[external].id == "" {
		s[external].id = id
	}
	return s, s[external].id == id
}

// next returns the state after an operation, and whether the service may answer so in
// this state. It is the sequential specification of the service.
func (s groupState) next(in historyInput, out historyOutput) (groupState, bool) {
	switch in.action {
	case actionCreate:
		return s.create(in, out)
	case actionRead:
		if out.outcome == outcomeFound {
			next, ok := s.show(out.external, out.id)
			return next, ok && out.id == in.id
		}
		known := slices.ContainsFunc(s[:], func(r registered) bool { return r.id == in.id })
		return s, out.outcome == outcomeNotFound && !known
	case actionFind:
		return s.list(out, in.external)
	case actionList:
		next, ok := s, true
		for external := 0; ok && external < idsOfGroup; external++ {
			next, ok = next.list(out, external)
		}
		return next, ok
	}
	return s, false
}

func (s groupState) create(in historyInput, out historyOutput) (groupState, bool) {
	owner := s.byKey(in.key)
	free := owner < 0 && !s[in.external].made
	switch out.outcome {
	case outcomeUnknown:
		if free {
			s[in.external] = registered{made: true, key: in.key}
		}
		return s, true
	case outcomeCreated:
		if !free {
			return s, false
		}
		s[in.external] = registered{made: true, key: in.key, answer: out.answer}
		return s.show(in.external, out.id)
	case outcomeReplayed:
		if owner != in.external {
			return s, false
		}
		if s[owner].answer == "" {
			s[owner].answer = out.answer
		}
		next, ok := s.show(owner, out.id)
		return next, ok && s[owner].answer == out.answer
	case outcomeMismatch:
		return s, owner >= 0 && owner != in.external
	case outcomeConflict:
		next, ok := s.show(in.external, out.id)
		return next, ok && owner < 0
	case outcomeFound, outcomeNotFound: // no answers to a creation
	}
	return s, false
}

// list checks what a list says about one external id.
func (s groupState) list(out historyOutput, external int) (groupState, bool) {
	switch {
	case out.twice || out.outcome != outcomeFound:
		return s, false
	case out.listed[external] == "":
		return s, !s[external].made
	}
	return s.show(external, out.listed[external])
}

// historyModel is the specification of one group for the checker.
var historyModel = porcupine.Model{
	Init: func() any { return groupState{} },
	Step: func(state, input, output any) (bool, any) {
		next, ok := state.(groupState).next(input.(historyInput), output.(historyOutput))
		return ok, next
	},
}

// checkHistory reports whether the operations of a group are linearizable: whether there
// is an order of them that agrees with real time and that the specification allows.
func checkHistory(operations []porcupine.Operation, limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(historyModel, withoutIdle(operations), limit)
}

// withoutIdle leaves out creations without an answer that cannot have had an effect,
// because the time of the checker grows fast with their number. It changes no result:
//   - An invoice is never deleted. When an answer says that another operation created the
//     invoice of the key or of the external id, this one created nothing.
//   - Of equal requests without an answer one at most has an effect, and the one that
//     began first may have it at any time at which another may.
func withoutIdle(operations []porcupine.Operation) (rest []porcupine.Operation) {
	var keys [keysOfGroup]bool
	var externals [idsOfGroup]bool
	for _, o := range operations {
		if o.Output.(historyOutput).outcome == outcomeCreated {
			keys[o.Input.(historyInput).key], externals[o.Input.(historyInput).external] = true, true
		}
	}
	first := map[historyInput]porcupine.Operation{}
	for _, o := range operations {
		in := o.Input.(historyInput)
		if o.Output.(historyOutput).outcome != outcomeUnknown {
			rest = append(rest, o)
			continue
		}
		if earlier, again := first[in]; !keys[in.key] && !externals[in.external] && (!again || o.Call < earlier.Call) {
			first[in] = o
		}
	}
	return slices.AppendSeq(rest, maps.Values(first))
}

// describeHistory returns the operations of a group in lines, in the order of their
// beginning.
func describeHistory(operations []porcupine.Operation) string {
	sorted := slices.SortedFunc(slices.Values(operations), func(a, b porcupine.Operation) int { return cmp.Compare(a.Call, b.Call) })
	var text strings.Builder
	for _, o := range sorted {
		ended := "no answer"
		if o.Return != noAnswer {
			ended = time.Duration(o.Return).String()
		}
		in, out := o.Input.(historyInput), o.Output.(historyOutput)
		fmt.Fprintf(&text, "client %2d from %s to %s: %s", o.ClientId, time.Duration(o.Call), ended, in.action)
		switch in.action {
		case actionCreate:
			fmt.Fprintf(&text, " key %d external id %d: %s %s\n", in.key, in.external, out.outcome, out.id)
		case actionRead:
			fmt.Fprintf(&text, " %s: %s\n", in.id, out.outcome)
		case actionFind:
			fmt.Fprintf(&text, " external id %d: %q, twice %v\n", in.external, out.listed[in.external], out.twice)
		case actionList:
			fmt.Fprintf(&text, ": %q, twice %v\n", out.listed, out.twice)
		}
	}
	return text.String()
}
