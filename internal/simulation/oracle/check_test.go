package oracle

import (
	"slices"
	"testing"
	"time"
)

// sound is a run in which one invoice of type 31 was created, accepted and delivered.
func sound() Run {
	at := func(seconds int) time.Time { return time.Unix(int64(seconds), 0) }
	events := []Event{
		{Number: 1, ID: "e1", Kind: "fiscal_document.submitted", DocumentID: "d", Revision: 2, Body: "1"},
		{Number: 2, ID: "e2", Kind: "fiscal_document.accepted", DocumentID: "d", Revision: 3, Body: "2"},
		{Number: 3, ID: "e3", Kind: "fiscal_document.delivered", DocumentID: "d", Revision: 4, Body: "3"},
	}
	r := Run{
		Creations: []Creation{
			{Key: "k", ExternalID: "x", Content: "c", Outcome: NoAnswer, Ended: at(1), Repeats: true},
			{Key: "k", ExternalID: "x", Content: "c", Outcome: Created, InvoiceID: "i", Body: "b", Ended: at(2), Repeats: true},
			{Key: "k", ExternalID: "x", Content: "c", Outcome: Replayed, InvoiceID: "i", Body: "b", Ended: at(3)},
		},
		Reads:    []Read{{InvoiceID: "i", Status: "queued", Updated: "1"}, {InvoiceID: "i", Status: "accepted", Updated: "3"}},
		Feed:     slices.Clone(events),
		Events:   events,
		Invoices: []Invoice{{ID: "i", DocumentID: "d", ExternalID: "x", Type: "31", Status: "delivered", ENCF: "E310000000001", TrackID: "t", Revision: 4}},
		History: []HistoryEntry{
			{"i", "created", "queued", at(2)}, {"i", "status_changed", "submitted", at(4)}, {"i", "status_changed", "accepted", at(5)},
			{"i", "replayed", "accepted", at(6)}, {"i", "status_changed", "delivered", at(7)},
		},
		Issued:        []Issued{{RNC: "1", ENCF: "E310000000001", DocumentID: "d", RangeID: "r", State: "used", XML: "xml", Sent: "xml"}},
		Keys:          []Key{{"k", "i", "b"}},
		Ranges:        []Range{{ID: "r", Type: "31", First: 1, Last: 9, Next: 3}},
		Attempts:      []Attempt{{DocumentID: "d", Sent: "xml", Class: "conclusive", Number: 1}},
		Abandoned:     []string{"E310000000002"},
		Authority:     []Document{{RNC: "1", ENCF: "E310000000001", Digest: "xml", TrackID: "t", Code: 1}},
		Buyers:        []Received{{"1E310000000001", "xml"}},
		BuyerReceives: true,
	}
	for _, e := range events {
		r.Deliveries = append(r.Deliveries, Delivery{e.ID, "delivered"})
		r.Webhooks = append(r.Webhooks, Webhook{EventID: e.ID, Body: e.Body, Answered: true})
	}
	return r
}

func TestASoundRunBreaksNoRule(t *testing.T) {
	t.Parallel()
	for _, v := range Check(sound()) {
		t.Error(v)
	}
}

// Each rule fails when what it asks for is missing.
func TestEachRuleCanFail(t *testing.T) {
	t.Parallel()
	for rule, change := range map[string]func(*Run){
		"nothing acknowledged is lost":                 func(r *Run) { r.Creations[1].InvoiceID = "other" },
		"one key has one answer":                       func(r *Run) { r.Creations[2].Body = "other" },
		"one key has one request":                      func(r *Run) { r.Creations[2].Content = "other" },
		"one external id is one invoice":               func(r *Run) { r.Invoices = append(r.Invoices, Invoice{ID: "j", ExternalID: "x"}) },
		"a conflict names an invoice":                  func(r *Run) { r.Creations[0].Outcome, r.Creations[0].ExternalID = Conflict, "y" },
		"clients see no status twice":                  func(r *Run) { slices.Reverse(r.Reads) },
		"clients see each change":                      func(r *Run) { r.Reads[1].Updated = r.Reads[0].Updated },
		"statuses follow the arrows":                   func(r *Run) { r.History[1].Status = "delivered" },
		"every change is in the history":               func(r *Run) { r.History = r.History[:3] },
		"no two changes have one instant":              func(r *Run) { r.History[1].At = r.History[0].At },
		"every invoice has a history":                  func(r *Run) { r.History = nil },
		"a number is used once":                        func(r *Run) { r.Issued = append(r.Issued, r.Issued[0]) },
		"a number belongs to an invoice":               func(r *Run) { r.Invoices[0].ENCF = "E310000000007" },
		"an abandoned number is not used":              func(r *Run) { r.Abandoned[0] = "E310000000001" },
		"no number is skipped":                         func(r *Run) { r.Abandoned = nil },
		"a number has one content":                     func(r *Run) { r.Authority[0].Digest = "other" },
		"every document at the authority is known":     func(r *Run) { r.Authority = append(r.Authority, Document{RNC: "1", ENCF: "E310000000009"}) },
		"documents are valid":                          func(r *Run) { r.Authority[0].Faulty = true },
		"a document that arrived is not sent again":    func(r *Run) { r.Authority = append(r.Authority, r.Authority[0]) },
		"every attempt sends the stored bytes":         func(r *Run) { r.Attempts[0].Sent = "other" },
		"every attempt ends":                           func(r *Run) { r.Attempts[0].Open = true },
		"every attempt is recorded":                    func(r *Run) { r.Attempts = nil },
		"a status is the authority's verdict":          func(r *Run) { r.Authority[0].Code = 2 },
		"a track id is the document's own":             func(r *Run) { r.Invoices[0].TrackID = "other" },
		"an accepted number is used up":                func(r *Run) { r.Issued[0].State = "reusable" },
		"a document that was sent has a number":        func(r *Run) { r.Issued = nil },
		"the buyer gets the signed document":           func(r *Run) { r.Buyers[0].Digest = "other" },
		"the buyer gets accepted documents of type 31": func(r *Run) { r.Invoices[0].Type = "32" },
		"a delivered document was received":            func(r *Run) { r.Buyers = nil },
		"an accepted document reaches its buyer":       func(r *Run) { r.Invoices[0].Status = "accepted" },
		"every invoice comes to an end":                func(r *Run) { r.Invoices[0].Status = "processing" },
		"no work is left":                              func(r *Run) { r.Jobs = []string{"d"} },
		"every client gets an answer":                  func(r *Run) { r.Creations = r.Creations[:1] },
		"the feed has no gap":                          func(r *Run) { r.Events[2].Number = 4 },
		"events of a document are in order":            func(r *Run) { r.Events[2].Revision = 1 },
		"every change is one event":                    func(r *Run) { r.Events = r.Events[:2] },
		"the feed skips and repeats nothing":           func(r *Run) { r.Feed = append(r.Feed[:1], r.Feed[2]) },
		"a webhook is an event of the feed":            func(r *Run) { r.Webhooks[0].Body = "other" },
		"every event arrives":                          func(r *Run) { r.Webhooks[0].Answered = false },
		"a response is one event":                      func(r *Run) { r.Events = append(r.Events, responseEvent(4), responseEvent(5)) },
		"no confirmed response is lost":                func(r *Run) { r.Responses = []Response{{ENCF: "E310000000001", Answered: true}} },
		"the comparison raises no false alarm":         func(r *Run) { r.Differences = []string{"d"} },
		"the authority's protocol":                     func(r *Run) { r.Breaches = []string{"post_unasked"} },
	} {
		r := sound()
		change(&r)
		if !slices.ContainsFunc(Check(r), func(v Violation) bool { return v.Rule == rule }) {
			t.Errorf("nothing breaks the rule %q: %v", rule, Check(r))
		}
	}
}

func responseEvent(number int64) Event {
	return Event{Number: number, Kind: "fiscal_document.commercial_response", DocumentID: "d", Revision: 4, Body: `{"result":"accepted"}`}
}

// After a failover to an older copy only what was answered before the copy must be there.
func TestWhatAnOlderCopyLacksMayBeLost(t *testing.T) {
	t.Parallel()
	for copied, lost := range map[int64]bool{1: true, 100: false} {
		r := sound()
		r.Copies = []time.Time{time.Unix(copied, 0)}
		r.Creations = append(r.Creations, Creation{Key: "new", ExternalID: "y", Outcome: Created, InvoiceID: "gone", Ended: time.Unix(50, 0)})
		found := slices.ContainsFunc(Check(r), func(v Violation) bool { return v.Rule == "nothing acknowledged is lost" })
		if found == lost {
			t.Errorf("a copy of second %d: a lost invoice of second 50 is a violation: %t", copied, found)
		}
	}
}
