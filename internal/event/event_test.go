package event

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

const documentJSON = `"invoice_id":"i1","external_id":"FAC-«1»","ecf_type":"31"`

// document returns the data of an event about a fiscal document. change sets the
// members that differ between kinds.
func document(status fiscal.Status, change func(*Document)) Document {
	encf, trackID := "E310000000001", "track-1"
	d := Document{
		Object: "fiscal_document", ID: "d1", InvoiceID: "i1", ExternalID: "FAC-«1»", Type: fiscal.FiscalCredit, Status: status, Revision: 4,
		ENCF: &encf, TrackID: &trackID, IssueDate: "2026-11-15", Total: "590.00", Links: DocumentLinks("t1", "d1"),
	}
	if change != nil {
		change(&d)
	}
	return d
}

// documentWant returns the JSON of document; changed are the members after status,
// detail those before links.
func documentWant(status, changed, detail string) string {
	return `{"object":"fiscal_document","id":"d1",` + documentJSON + `,"status":"` + status + `",` + changed +
		`"sequence":4,"encf":"E310000000001","track_id":"track-1","issue_date":"2026-11-15","total":"590.00",` + detail +
		`"links":{"self":"/v1/taxpayers/t1/fiscal-documents/d1"}}`
}

type golden struct {
	kind string
	data any
	want string // the JSON of data
}

func goldens(t *testing.T) []golden {
	t.Helper()
	expires, err := fiscal.ParseDate("2027-12-31")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 15, 8, 0, 0, 0, time.FixedZone("", -4*3600))
	all := []golden{
		{StatusChanged(fiscal.ValidationFailed), document(fiscal.ValidationFailed, func(d *Document) {
			d.PreviousStatus, d.ENCF, d.TrackID = fiscal.Queued, nil, nil
		}), `{"object":"fiscal_document","id":"d1",` + documentJSON + `,"status":"validation_failed","previous_status":"queued",` +
			`"sequence":4,"encf":null,"track_id":null,"issue_date":"2026-11-15","total":"590.00",` +
			`"links":{"self":"/v1/taxpayers/t1/fiscal-documents/d1"}}`},
		{ArtifactsReady, document(fiscal.Accepted, nil), documentWant("accepted", "", "")},
		{DeliveryFailed, document(fiscal.Accepted, func(d *Document) { d.Reason = `the buyer's "server" is down` }),
			documentWant("accepted", "", `"reason":"the buyer's \"server\" is down",`)},
		{CommercialResponse, document(fiscal.Delivered, func(d *Document) { d.Result, d.Reason, d.Signer = "rejected", "Monto", "00112345678" }),
			documentWant("delivered", "", `"result":"rejected","reason":"Monto","signer":"00112345678",`)},
		{CommercialResponse, document(fiscal.Delivered, func(d *Document) {
			d.Result, d.Signer, d.Contradicts = "accepted", "00112345678", "rejected"
		}), documentWant("delivered", "", `"result":"accepted","signer":"00112345678","contradicts":"rejected",`)},
		{CommercialResponseUnconfirmed, document(fiscal.Delivered, func(d *Document) { d.Result, d.Signer = "accepted", "40212345678" }),
			documentWant("delivered", "", `"result":"accepted","signer":"40212345678",`)},
		{VerdictOverdue, document(fiscal.Processing, func(d *Document) { d.Reason = NoVerdictFor15Minutes }),
			documentWant("processing", "", `"reason":"no_verdict_for_15_minutes",`)},
		{CertificateExpiring, NewCertificate("t1", "c1", at),
			`{"object":"taxpayer","id":"t1","certificate_id":"c1","expires_at":"2026-11-15T12:00:00.000Z"}`},
		{SequenceLow, NewNumberRange("t1", fiscal.Consumer, 12, fiscal.Date{}),
			`{"object":"taxpayer","id":"t1","ecf_type":"32","remaining":12}`},
		{SequenceLow, NewNumberRange("t1", fiscal.FiscalCredit, 0, expires),
			`{"object":"taxpayer","id":"t1","ecf_type":"31","remaining":0,"expires_at":"2028-01-01T04:00:00.000Z"}`},
		{ContingencyStarted, NewContingency("t1", at, time.Time{}, time.Time{}),
			`{"object":"taxpayer","id":"t1","started_at":"2026-11-15T12:00:00.000Z"}`},
		{ContingencyEnded, NewContingency("t1", at, at.Add(time.Hour), at.Add(73*time.Hour)),
			`{"object":"taxpayer","id":"t1","started_at":"2026-11-15T12:00:00.000Z","ended_at":"2026-11-15T13:00:00.000Z","deadline":"2026-11-18T13:00:00.000Z"}`},
		{CredentialRefused, NewRefusedCredential("k1", "revoked"), `{"object":"credential","id":"k1","reason":"revoked"}`},
		{CredentialExpiring, NewCredential("k1", at), `{"object":"credential","id":"k1","expires_at":"2026-11-15T12:00:00.000Z"}`},
		{EndpointDisabled, NewEndpoint("e1", "https://hooks.example.com/a?b=c&d=<e>", "gone"),
			`{"object":"webhook_endpoint","id":"e1","url":"https://hooks.example.com/a?b=c&d=<e>","reason":"gone"}`},
		{WebhookTest, NewEndpoint("e1", "https://hooks.example.com/", ""),
			`{"object":"webhook_endpoint","id":"e1","url":"https://hooks.example.com/"}`},
	}
	for _, status := range []fiscal.Status{
		fiscal.Submitted, fiscal.Processing, fiscal.Accepted, fiscal.AcceptedConditional, fiscal.Rejected, fiscal.OutcomeUnknown, fiscal.Delivered,
	} {
		all = append(all, golden{
			StatusChanged(status), document(status, func(d *Document) { d.PreviousStatus = fiscal.Queued }),
			documentWant(string(status), `"previous_status":"queued",`, ""),
		})
	}
	return all
}

// Integrators rely on these bytes: an event of each kind is encoded exactly so.
func TestNewEncodesEachKind(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 15, 12, 30, 45, 678_900_000, time.UTC)
	owner := Owner{Environment: fiscal.Certification, TaxpayerID: "t1"}
	covered := map[string]bool{}
	for _, g := range goldens(t) {
		e, err := New(owner, g.kind, at, g.data)
		if err != nil {
			t.Fatalf("%s: %v", g.kind, err)
		}
		want := `{"id":"` + e.ID + `","type":"` + g.kind + `","timestamp":"2026-11-15T12:30:45.678Z","api_version":"v1",` +
			`"environment":"certification","taxpayer_id":"t1","data":` + g.want + `}`
		if diff := cmp.Diff(want, string(e.Body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", g.kind, diff)
		}
		if e.Kind != g.kind || !e.At.Equal(at) || !json.Valid(e.Body) {
			t.Errorf("%s: %+v", g.kind, e)
		}
		covered[g.kind] = true
	}
	for _, kind := range Kinds() {
		if !covered[kind] {
			t.Errorf("no test encodes an event of the kind %s", kind)
		}
	}
	if len(covered) != len(Kinds()) {
		t.Errorf("%d kinds are encoded, and Kinds has %d", len(covered), len(Kinds()))
	}
}

// Absolute completes the link of an encoded event.
func TestAbsoluteCompletesAnEncodedEvent(t *testing.T) {
	t.Parallel()
	e, err := New(Owner{}, ArtifactsReady, time.Now(), document(fiscal.Accepted, func(d *Document) {
		d.ExternalID = `"links":{"self":"/v1/`
	}))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Data struct {
			ExternalID string `json:"external_id"`
			Links      Links  `json:"links"`
		} `json:"data"`
	}
	if err := json.Unmarshal(Absolute(e.Body, "https://invoices.example"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Data.Links.Self != "https://invoices.example/v1/taxpayers/t1/fiscal-documents/d1" || got.Data.ExternalID != `"links":{"self":"/v1/` {
		t.Errorf("%+v", got.Data)
	}
}

func TestNewFailsWhenTheDataCannotBeEncoded(t *testing.T) {
	t.Parallel()
	e, err := New(Owner{}, WebhookTest, time.Now(), make(chan int))
	if err == nil || e.Body != nil || !bytes.Contains([]byte(err.Error()), []byte(WebhookTest)) {
		t.Errorf("%+v, %v; want an error that names the kind", e, err)
	}
}

func TestIDsSortByTime(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^evt_[0-9a-f]{32}$`)
	ids := make([]string, 1000)
	for i := range ids {
		ids[i] = NewID()
		if !form.MatchString(ids[i]) {
			t.Fatalf("%s does not have the form of an event id", ids[i])
		}
	}
	if !slices.IsSorted(ids) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Error("the ids are not distinct and in the order of their creation")
	}
}

func TestInboundKindsAreNotSubscribable(t *testing.T) {
	t.Parallel()
	for _, kind := range InboundKinds() {
		if slices.Contains(Kinds(), kind) {
			t.Errorf("an endpoint can subscribe to the inbound kind %s", kind)
		}
	}
}
