package systemtest

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// during returns an operation that begins and ends at the given times.
func during(call, end int64, in historyInput, out historyOutput) porcupine.Operation {
	return porcupine.Operation{Input: in, Call: call, Output: out, Return: end}
}

func askCreate(key, external int) historyInput {
	return historyInput{action: actionCreate, key: key, external: external}
}

func answerCreated(id string) historyOutput {
	return historyOutput{outcome: outcomeCreated, id: id, answer: "answer " + id}
}

func answerReplayed(id string) historyOutput {
	return historyOutput{outcome: outcomeReplayed, id: id, answer: "answer " + id}
}

func askRead(id string) historyInput { return historyInput{action: actionRead, id: id} }

func answerFound(id string, external int) historyOutput {
	return historyOutput{outcome: outcomeFound, id: id, external: external}
}

func askFind(external int) historyInput {
	return historyInput{action: actionFind, external: external}
}

func answerListed(ids ...string) historyOutput {
	out := historyOutput{outcome: outcomeFound}
	copy(out.listed[:], ids)
	return out
}

var (
	askList        = historyInput{action: actionList}
	answerNotFound = historyOutput{outcome: outcomeNotFound}
	answerUnknown  = historyOutput{outcome: outcomeUnknown}
	answerMismatch = historyOutput{outcome: outcomeMismatch}
)

func answerConflict(id string) historyOutput { return historyOutput{outcome: outcomeConflict, id: id} }

// Each history contains one defect that a service could have. The checker must find it.
func TestHistoriesFindPlantedDefects(t *testing.T) {
	t.Parallel()
	for name, operations := range map[string][]porcupine.Operation{
		"a key creates a second invoice": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(0, 1), answerCreated("b")),
		},
		"a repeated request creates a second invoice": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(0, 0), answerCreated("b")),
		},
		"two requests at the same time create two invoices": {
			during(1, 4, askCreate(0, 0), answerCreated("a")), during(2, 3, askCreate(0, 0), answerCreated("b")),
		},
		"two invoices have one external id": {
			during(1, 4, askCreate(0, 0), answerCreated("a")), during(2, 3, askCreate(1, 0), answerCreated("b")),
		},
		"two invoices have one id": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(1, 1), answerCreated("a")),
		},
		"an acknowledged invoice is lost, and created again": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(1, 0), answerCreated("b")),
		},
		"an acknowledged invoice is not found": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askRead("a"), answerNotFound),
		},
		"an acknowledged invoice is not in the list": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askFind(0), answerListed()),
		},
		"a list has an invoice, and a later list lacks it": {
			during(1, noAnswer, askCreate(0, 0), answerUnknown), during(2, 3, askList, answerListed("a")), during(4, 5, askList, answerListed()),
		},
		"a list has an external id twice": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askFind(0), historyOutput{outcome: outcomeFound, listed: [idsOfGroup]string{"a"}, twice: true}),
		},
		"a replay has other bytes": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(0, 0), historyOutput{outcome: outcomeReplayed, id: "a", answer: "other"}),
		},
		"a replay names another invoice": {
			during(1, noAnswer, askCreate(0, 0), answerUnknown), during(2, 3, askCreate(0, 0), answerReplayed("a")), during(4, 5, askCreate(0, 0), answerReplayed("b")),
		},
		"a replay comes before any creation": {
			during(1, 2, askCreate(0, 0), answerReplayed("a")), during(3, 4, askCreate(0, 0), answerCreated("a")),
		},
		"a creation without an answer succeeds twice": {
			during(1, noAnswer, askCreate(0, 0), answerUnknown), during(2, 3, askFind(0), answerListed("a")), during(4, 5, askCreate(0, 0), answerCreated("b")),
		},
		"a key is used with another request, which is accepted as a replay": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(0, 1), answerReplayed("a")),
		},
		"a mismatch of a key that is free": {
			during(1, 2, askCreate(0, 0), answerMismatch),
		},
		"a conflict with an external id that is free": {
			during(1, 2, askCreate(0, 0), answerConflict("a")),
		},
		"a conflict names the wrong invoice": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(1, 0), answerConflict("b")),
		},
		"a refused creation keeps its key": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(1, 0), answerConflict("a")), during(5, 6, askCreate(1, 1), answerMismatch),
		},
		"a read finds an invoice with another external id": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askRead("a"), answerFound("a", 1)),
		},
	} {
		if got := checkHistory(operations, time.Minute); got != porcupine.Illegal {
			t.Errorf("%s: the checker says %s", name, got)
		}
	}
}

// The checker must allow what a right service does.
func TestHistoriesAllowWhatIsRight(t *testing.T) {
	t.Parallel()
	for name, operations := range map[string][]porcupine.Operation{
		"a creation, its replay, a read and lists": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(0, 0), answerReplayed("a")), during(3, 4, askRead("a"), answerFound("a", 0)),
			during(3, 4, askFind(0), answerListed("a")), during(3, 4, askList, answerListed("a")), during(3, 4, askFind(1), answerListed()),
		},
		"a conflict and a mismatch": {
			during(1, 2, askCreate(0, 0), answerCreated("a")), during(3, 4, askCreate(1, 0), answerConflict("a")), during(3, 4, askCreate(0, 1), answerMismatch),
			during(5, 6, askCreate(1, 1), answerCreated("b")),
		},
		"the replay of a creation ends first": {
			during(1, 4, askCreate(0, 0), answerCreated("a")), during(2, 3, askCreate(0, 0), answerReplayed("a")),
		},
		"a creation without an answer has its effect late": {
			during(1, noAnswer, askCreate(0, 0), answerUnknown), during(2, 3, askFind(0), answerListed()), during(4, 5, askFind(0), answerListed("a")), during(6, 7, askCreate(0, 0), answerReplayed("a")),
		},
		"a creation without an answer has no effect": {
			during(1, noAnswer, askCreate(0, 0), answerUnknown), during(2, 3, askCreate(0, 0), answerCreated("a")),
		},
		"a list during a creation has it or not": {
			during(1, 4, askCreate(0, 0), answerCreated("a")), during(2, 3, askList, answerListed()), during(2, 3, askList, answerListed("a")),
		},
	} {
		if got := checkHistory(operations, time.Minute); got != porcupine.Ok {
			t.Errorf("%s: the checker says %s", name, got)
		}
	}
}
