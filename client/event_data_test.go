package client

import (
	"encoding/json"
	"testing"
	"time"
)

func TestEventsHaveTypedData(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	const document = `{"object":"fiscal_document","id":"d1","invoice_id":"i1","external_id":"F-1","ecf_type":"31","status":"accepted",` +
		`"previous_status":"processing","sequence":4,"encf":"E310000000001","track_id":null,"issue_date":"2026-11-15","total":"590.00",` +
		`"links":{"self":"https://a/d1"},"later":"member"}`
	accepted := DocumentData{
		ID: "d1", InvoiceID: "i1", ExternalID: "F-1", ECFType: "31", Status: Accepted, PreviousStatus: Processing, Sequence: 4,
		ENCF: "E310000000001", IssueDate: "2026-11-15", Total: "590.00", Links: Links{Self: "https://a/d1"},
	}
	for kind, tt := range map[EventType]struct {
		data string
		want EventData
	}{
		EventDocumentAccepted:            {document, accepted},
		EventInvoiceValidationFailed:     {document, accepted},
		EventDocumentCommercialResponse:  {`{"id":"d1","result":"rejected","reason":"Monto","signer":"001","contradicts":"accepted"}`, DocumentData{ID: "d1", Result: "rejected", Reason: "Monto", Signer: "001", Contradicts: "accepted"}},
		EventTaxpayerCertificateExpiring: {`{"id":"t1","certificate_id":"c1","expires_at":"2026-11-15T12:00:00.000Z"}`, CertificateData{"t1", "c1", at}},
		EventTaxpayerSequenceLow:         {`{"id":"t1","ecf_type":"32","remaining":12}`, SequenceData{TaxpayerID: "t1", ECFType: "32", Remaining: 12}},
		EventTaxpayerContingencyStarted:  {`{"id":"t1","started_at":"2026-11-15T12:00:00.000Z"}`, ContingencyData{TaxpayerID: "t1", StartedAt: at}},
		EventCredentialExpiring:          {`{"id":"k1","expires_at":"2026-11-15T12:00:00.000Z"}`, CredentialData{ID: "k1", ExpiresAt: at}},
		EventCredentialRefused:           {`{"id":"k1","reason":"revoked"}`, CredentialData{ID: "k1", Reason: "revoked"}},
		EventWebhookTest:                 {`{"id":"e1","url":"https://a/"}`, EndpointData{ID: "e1", URL: "https://a/"}},
		"fiscal_document.of_tomorrow":    {document, UnknownData{}},
		EventDocumentRejected:            {`[]`, UnknownData{}},
		EventDocumentDelivered:           {`{"sequence":"four"}`, UnknownData{}},
	} {
		var e Event
		text := `{"id":"evt_1","type":"` + string(kind) + `","timestamp":"2026-11-15T12:00:00.000Z","api_version":"v1","environment":"production","taxpayer_id":"t1","data":` + tt.data + `}`
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
		if e.Data != tt.want || string(e.Raw) != tt.data || e.Type != kind || e.ID != "evt_1" || !e.Timestamp.Equal(at) || e.Environment != "production" {
			t.Errorf("%s: %+v, want the data %+v", kind, e, tt.want)
		}
	}
	if err := json.Unmarshal([]byte(`{"id":7}`), new(Event)); err == nil {
		t.Error("an event with a number as its id was decoded")
	}
}

func TestAllEventsEndsAtTheEndOfTheFeed(t *testing.T) {
	t.Parallel()
	c, s := start(t, nil, eventPage("1", true, "a", "b"), eventPage("2", false, "c"), eventPage("3", false, "d"))
	var got string
	for e, err := range c.AllEvents(testContext(t), EventOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		got += e.ID
	}
	if got != "abc" || len(s.seen) != 2 {
		t.Errorf("got %s with %d requests, want abc with 2", got, len(s.seen))
	}
	for range c.AllEvents(testContext(t), EventOptions{}) {
		break
	}
	c, _ = start(t, nil, reply(403, failure(CodeForbidden)))
	for _, err := range c.AllEvents(testContext(t), EventOptions{}) {
		if !HasCode(err, CodeForbidden) {
			t.Errorf("err = %v", err)
		}
	}
}
