package systemtest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/fiscalhub/fiscalhub/systemtest/harness"
)

const (
	historyClients = 64
	// historyRounds is how many operations a client has in a history. Each round opens
	// groupsOfRound groups, so that invoices are created until the end.
	historyRounds = 6
	groupsOfRound = 7
	historyGroups = historyRounds * groupsOfRound
	// historyPage is the size of the list of all invoices. One page must have all invoices
	// of a history: at most historyGroups * idsOfGroup = 84.
	historyPage = 100
)

// A history is what the clients did with fresh keys and external ids, by group.
type history struct {
	name   string
	begun  time.Time
	client *harness.Client
	spoil  func(*http.Request) // changes creations, for a test of the checker; may be nil

	mu     sync.Mutex
	groups [historyGroups][]porcupine.Operation
	ids    [historyGroups][]string // that answers have shown
	counts map[string]int          // of outcomes
}

func newHistory(name string, c *harness.Client) *history {
	return &history{name: name, begun: time.Now(), client: c, counts: map[string]int{}}
}

// run makes the operations of one client. After a creation without an answer the client
// usually sends the same request again.
func (h *history) run(ctx context.Context, t *testing.T, number int, base string) {
	var again *historyInput
	group := 0
	for round := range historyRounds {
		in := historyInput{action: actionCreate}
		if again != nil && rand.IntN(4) > 0 {
			in = *again
		} else {
			group = round*groupsOfRound + rand.IntN(groupsOfRound)
			if rand.IntN(3) == 0 {
				group = rand.IntN(group + 1) // of an earlier round
			}
			in = h.draw(group)
		}
		out, ok := h.operate(ctx, t, number, base, group, in)
		if !ok {
			return
		}
		again = nil
		if in.action == actionCreate && out.outcome == outcomeUnknown {
			again = &in
		}
	}
}

// draw draws an operation on a group.
func (h *history) draw(group int) historyInput {
	in := historyInput{key: rand.IntN(keysOfGroup), external: rand.IntN(idsOfGroup)}
	switch n := rand.IntN(20); {
	case n < 12:
		in.action = actionCreate
	case n < 15:
		in.action = actionFind
	case n < 16:
		in.action = actionList
	default:
		in.action = actionRead
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.ids[group]) == 0 {
			in.action = actionFind
		} else {
			in.id = h.ids[group][rand.IntN(len(h.ids[group]))]
		}
	}
	return in
}

// operate makes one operation and records it. It returns false after an answer that no
// client may get.
func (h *history) operate(ctx context.Context, t *testing.T, number int, base string, group int, in historyInput) (out historyOutput, ok bool) {
	r, err := h.request(ctx, base, group, in)
	if err != nil {
		t.Error(err)
		return out, false
	}
	call := time.Since(h.begun)
	got, err := h.client.Do(r)
	end := int64(time.Since(h.begun))
	var lists [historyGroups]historyOutput
	switch {
	case err != nil, got.Status == http.StatusServiceUnavailable, got.Status == http.StatusTooManyRequests, got.Status == http.StatusRequestTimeout:
		out.outcome, end = outcomeUnknown, noAnswer
	case in.action == actionCreate:
		out, ok = creationOutput(got)
	case in.action == actionRead:
		out, ok = h.readOutput(got, group)
	default:
		lists, ok = h.listOutput(got)
		out = lists[group]
	}
	if !ok && out.outcome != outcomeUnknown {
		t.Errorf("%s: %s %s is answered %d %s", h.name, r.Method, r.URL, got.Status, got.Body)
		return out, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count(in, out, got, err)
	if in.action != actionCreate && out.outcome == outcomeUnknown {
		return out, true // it has no effect
	}
	record := func(group int, out historyOutput) {
		h.groups[group] = append(h.groups[group], porcupine.Operation{ClientId: number, Input: in, Call: int64(call), Output: out, Return: end})
	}
	if in.action == actionList {
		for g := range historyGroups {
			record(g, lists[g])
		}
		return out, true
	}
	record(group, out)
	if out.id != "" {
		h.ids[group] = append(h.ids[group], out.id)
	}
	return out, true
}

func (h *history) count(in historyInput, out historyOutput, got harness.Answer, err error) {
	switch {
	case out.outcome != outcomeUnknown && in.action == actionCreate:
		h.counts[string(out.outcome)]++
	case out.outcome != outcomeUnknown:
		h.counts[string(in.action)]++
	case err != nil:
		h.counts["no answer"]++
	default:
		h.counts[fmt.Sprintf("answered %d", got.Status)]++
	}
}

// request returns the request of an operation.
func (h *history) request(ctx context.Context, base string, group int, in historyInput) (*http.Request, error) {
	invoices := base + "/v1/taxpayers/" + h.client.Taxpayer + "/invoices"
	switch in.action {
	case actionRead:
		return http.NewRequestWithContext(ctx, http.MethodGet, invoices+"/"+in.id, nil)
	case actionFind:
		return http.NewRequestWithContext(ctx, http.MethodGet, invoices+"?external_id="+h.external(group, in.external), nil)
	case actionList:
		return http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d", invoices, historyPage), nil)
	case actionCreate:
	}
	body := harness.Invoice(h.external(group, in.external))
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, invoices, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.GetBody = nil // or net/http sends the request again by itself, and one operation is two
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", fmt.Sprintf("%s-%d-key-%d", h.name, group, in.key))
	if h.spoil != nil {
		h.spoil(r)
	}
	return r, nil
}

func (h *history) external(group, external int) string {
	return fmt.Sprintf("%s-%d-ext-%d", h.name, group, external)
}

// place returns the group and the number of an external id of this history.
func (h *history) place(external string) (group, number int, ok bool) {
	for group := range historyGroups {
		for number := range idsOfGroup {
			if external == h.external(group, number) {
				return group, number, true
			}
		}
	}
	return 0, 0, false
}

func creationOutput(got harness.Answer) (out historyOutput, ok bool) {
	location := got.Header.Get("Location")
	switch {
	case got.Status == http.StatusAccepted:
		out = historyOutput{outcome: outcomeCreated, id: got.ID(), answer: location + " " + got.Body}
		if got.Header.Get("Idempotency-Replayed") == "true" {
			out.outcome = outcomeReplayed
		}
		return out, out.id != "" && strings.HasSuffix(location, "/"+out.id)
	case got.Status == http.StatusConflict && strings.Contains(got.Body, `"idempotency_mismatch"`):
		return historyOutput{outcome: outcomeMismatch}, true
	case got.Status == http.StatusConflict && strings.Contains(got.Body, `"external_id_conflict"`):
		return historyOutput{outcome: outcomeConflict, id: location[strings.LastIndex(location, "/")+1:]}, location != ""
	}
	return out, false
}

func (h *history) readOutput(got harness.Answer, group int) (out historyOutput, ok bool) {
	var read struct {
		Data struct {
			ID         string `json:"id"`
			ExternalID string `json:"external_id"`
		} `json:"data"`
	}
	switch {
	case got.Status == http.StatusNotFound:
		return historyOutput{outcome: outcomeNotFound}, true
	case got.Status != http.StatusOK || json.Unmarshal([]byte(got.Body), &read) != nil:
		return out, false
	}
	its, external, ok := h.place(read.Data.ExternalID)
	return historyOutput{outcome: outcomeFound, id: read.Data.ID, external: external}, ok && its == group
}

// listOutput returns what a list says about each group. Invoices of earlier histories
// may be in it.
func (h *history) listOutput(got harness.Answer) (lists [historyGroups]historyOutput, ok bool) {
	var page struct {
		Data []struct {
			ID         string `json:"id"`
			ExternalID string `json:"external_id"`
		} `json:"data"`
	}
	if got.Status != http.StatusOK || json.Unmarshal([]byte(got.Body), &page) != nil {
		return lists, false
	}
	for g := range lists {
		lists[g].outcome = outcomeFound
	}
	for _, inv := range page.Data {
		if group, external, ok := h.place(inv.ExternalID); ok {
			lists[group].twice = lists[group].twice || lists[group].listed[external] != ""
			lists[group].listed[external] = inv.ID
		}
	}
	return lists, true
}
