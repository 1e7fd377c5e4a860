package api_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/inbox"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/notify"
	"github.com/fiscalhub/fiscalhub/internal/store"
	"github.com/fiscalhub/fiscalhub/internal/store/storetest"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig/xmlsigtest"
)

// stubInbox records messages.
type stubInbox struct {
	mu       sync.Mutex
	received []inbox.Message
	err      error
}

// Receive records the message.
func (r *stubInbox) Receive(_ context.Context, in inbox.Message) (inbox.Received, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := slices.ContainsFunc(r.received, func(m inbox.Message) bool { return m.MessageID == in.MessageID })
	r.received = append(r.received, in)
	return inbox.Received{EventID: "evt_" + strings.Repeat("0", 32), Duplicate: known}, r.err
}

func inboundBody(encf, xml string) []byte {
	b, err := json.Marshal(map[string]any{
		"type": "ecf.commercial_response", "timestamp": "2026-11-15T12:00:00Z", "vendor": map[string]any{"hop": 1},
		"data": map[string]any{"encf": encf, "xml_base64": base64.StdEncoding.EncodeToString([]byte(xml)), "more": true},
	})
	if err != nil {
		panic(err)
	}
	return b
}

// eachEngineWithSource runs a test with a source of the taxpayer on each database
// engine.
func eachEngineWithSource(t *testing.T, rateLimit int64, test func(t *testing.T, e *env, r *stubInbox, source store.Source, secret webhook.Secret)) {
	t.Helper()
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		r := &stubInbox{}
		opt := liveOptions()
		opt.inbox, opt.rateLimit = r, rateLimit
		e := newEnv(t, address, opt)
		source, secret, err := e.Sources.Create(t.Context(), e.scope())
		e.must(err)
		test(t, e, r, source, secret)
	})
}

func TestInboundNeedsAFreshSignatureOfTheSource(t *testing.T) {
	eachEngineWithSource(t, 0, func(t *testing.T, e *env, r *stubInbox, source store.Source, secret webhook.Secret) {
		body, now := inboundBody("E310000000001", "<x/>"), e.clock.now()
		good := func() request { return signedMessage(source.ID, "msg_1", now, body, secret) }
		other, otherSecret, err := e.Sources.Create(t.Context(), e.scope())
		e.must(err)
		without := func(header string) request {
			r := good()
			r.header.Del(header)
			return r
		}
		changed := good()
		changed.body = append(bytes.Clone(body), ' ')
		renamed := good()
		renamed.header.Set("Webhook-Id", "msg_2")
		twice := good()
		twice.header["Webhook-Signature"] = append(twice.header["Webhook-Signature"], twice.header["Webhook-Signature"][0])
		for name, q := range map[string]request{
			"no signature":         without("Webhook-Signature"),
			"no id":                without("Webhook-Id"),
			"no time":              without("Webhook-Timestamp"),
			"two signatures":       twice,
			"a wrong secret":       signedMessage(source.ID, "msg_1", now, body, webhook.NewSecret()),
			"another source's":     signedMessage(source.ID, "msg_1", now, body, otherSecret),
			"six minutes old":      signedMessage(source.ID, "msg_1", now.Add(-6*time.Minute), body, secret),
			"six minutes early":    signedMessage(source.ID, "msg_1", now.Add(6*time.Minute), body, secret),
			"another body":         changed,
			"another id":           renamed,
			"an unsigned non-JSON": {method: http.MethodPost, path: "/v1/events/inbound/" + source.ID, key: "-", body: []byte("{")},
		} {
			a := e.send(q)
			if a.status != http.StatusUnauthorized || a.code() != "unauthorized" || a.header.Get("WWW-Authenticate") != `Signature realm="fh-inbound"` {
				t.Errorf("%s: %s %v", name, a, a.header)
			}
		}
		if len(r.received) > 0 {
			t.Fatalf("received %+v", r.received)
		}
		for i, duplicate := range []bool{false, true} {
			a := e.send(good())
			if want := fmt.Sprintf(`202 {"data":{"event_id":"evt_%s","duplicate":%v},"meta":`, strings.Repeat("0", 32), duplicate); !strings.HasPrefix(a.String(), want) {
				t.Errorf("time %d: want %s, got %s", i+1, want, a)
			}
		}
		in := r.received[0]
		if in.Source.ID != source.ID || in.Source.Scope != e.scope() || in.MessageID != "msg_1" || in.Kind != event.InboundCommercial ||
			in.ENCF != "E310000000001" || string(in.XML) != "<x/>" {
			t.Errorf("received %+v", in)
		}
		// After a rotation both secrets are accepted for a day.
		_, next, err := e.Sources.Rotate(t.Context(), source.ID, notify.Overlap)
		e.must(err)
		for name, s := range map[string]webhook.Secret{"old": secret, "new": next} {
			if a := e.send(signedMessage(source.ID, "msg_"+name, now, body, s)); a.status != http.StatusAccepted {
				t.Errorf("the %s secret: %s", name, a)
			}
		}
		e.must(e.Sources.Revoke(t.Context(), other.ID))
		for name, q := range map[string]request{
			"a source that is revoked": signedMessage(other.ID, "m", now, body, otherSecret),
			"no such source":           signedMessage(store.NewID(), "m", now, body, secret),
			"no UUID":                  signedMessage("x", "m", now, body, secret),
		} {
			wantCode(t, name, e.send(q), http.StatusNotFound, "not_found")
		}
	})
}

func TestInboundRefusesInvalidMessages(t *testing.T) {
	eachEngineWithSource(t, 0, func(t *testing.T, e *env, r *stubInbox, source store.Source, secret webhook.Secret) {
		now := e.clock.now()
		for text, want := range map[string]string{
			`{`: "400 invalid_json", ``: "400 invalid_json", `{"type":"a","type":"b"}`: "400 invalid_json", "{\"type\":\"\xff\"}": "400 invalid_json",
			`[]`: "400 bad_request", `null`: "400 bad_request", `{}`: "400 bad_request", `{"type":1,"data":{"encf":"E","xml_base64":""}}`: "400 bad_request",
			`{"type":"a","data":[]}`: "400 bad_request", `{"type":"a","encf":"E","xml_base64":""}`: "400 bad_request",
			`{"type":"a","data":{"encf":"E"}}`: "400 bad_request", `{"type":"a","data":{"encf":"E","xml_base64":"?"}}`: "422 validation_error",
		} {
			if a := e.send(signedMessage(source.ID, "m", now, []byte(text), secret)); fmt.Sprint(a.status, " ", a.code()) != want {
				t.Errorf("%s: want %s, got %s", text, want, a)
			}
		}
		large := signedMessage(source.ID, "m", now, bytes.Repeat([]byte(" "), 256<<10+1), secret)
		wantStatus(t, "too large", e.send(large), http.StatusRequestEntityTooLarge)
		plain := signedMessage(source.ID, "m", now, inboundBody("E", ""), secret)
		plain.header.Set("Content-Type", "text/xml")
		wantStatus(t, "not JSON", e.send(plain), http.StatusUnsupportedMediaType)
		wantStatus(t, "an id that is not ASCII", e.send(signedMessage(source.ID, "m\xff", now, inboundBody("E", ""), secret)), http.StatusBadRequest)
		if len(r.received) > 0 {
			t.Fatalf("received %+v", r.received)
		}
		for _, tt := range []struct {
			err  error
			want string
		}{
			{&inbox.InvalidMessageError{Problem: fiscal.Problem{Field: "data.encf", Code: fiscal.CodeInvalidFormat, Message: lang.Literal("not so")}}, "422 validation_error"},
			{fmt.Errorf("busy: %w", store.ErrUnavailable), "503 service_unavailable"},
			{errors.New("a bug"), "500 internal_error"},
		} {
			r.err = tt.err
			a := e.send(signedMessage(source.ID, "m", now, inboundBody("E310000000001", ""), secret))
			if fmt.Sprint(a.status, " ", a.code()) != tt.want || (a.status == 422 && (a.details(t)[0].Field != "data.encf" || a.details(t)[0].Code != fiscal.CodeInvalidFormat || a.details(t)[0].Message != "not so")) {
				t.Errorf("%v: want %s, got %s", tt.err, tt.want, a)
			}
		}
	})
}

// Failed requests are counted by address; each source has a window of its own.
func TestInboundRateLimits(t *testing.T) {
	eachEngineWithSource(t, 20, func(t *testing.T, e *env, _ *stubInbox, source store.Source, secret webhook.Secret) {
		body, now := inboundBody("E310000000001", ""), e.clock.now()
		bad := signedMessage(source.ID, "m", now, body, webhook.NewSecret())
		for i := range 300 {
			if a := e.send(bad); a.status != http.StatusUnauthorized {
				t.Fatalf("failure %d: %s", i+1, a)
			}
		}
		if a := e.send(bad); a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") == "" {
			t.Errorf("failure 301: %s", a)
		}
		for i := range 20 {
			if a := e.send(signedMessage(source.ID, "m", now, body, secret)); a.status != http.StatusAccepted || a.header.Get("RateLimit-Limit") != "20" {
				t.Fatalf("message %d: %s %v", i+1, a, a.header)
			}
		}
		wantStatus(t, "message 21", e.send(signedMessage(source.ID, "m", now, body, secret)), http.StatusTooManyRequests)
	})
}

// A message about the document of another taxpayer gets the same answer as one
// about a document that does not exist.
func TestInboundDoesNotReachDocumentsOfOtherTaxpayers(t *testing.T) {
	t.Parallel()
	storetest.EachAddress(t, func(t *testing.T, address string) {
		opt := liveOptions()
		peer := xmlsigtest.Must(t, xmlsigtest.Options{})
		opt.roots, opt.now = peer.CA.Pool(), time.Now // its certificate is valid now
		e := newEnv(t, address, opt)
		other := *e
		other.taxpayer = e.newTaxpayer()
		other.key = e.newKey(other.taxpayer, e.opt.environment, "invoices.write", "ecf.submit", "ecf.read")
		made := other.created(other.create("k", invoiceBody("A", asFiscalCredit)))
		e.must(e.store.Update(t.Context(), func(tx *store.Tx) error {
			return tx.Issue(t.Context(), store.Issued{
				Scope: other.scope(), RNC: "199000013", ENCF: "E310000000058", DocumentID: made.FiscalDocumentID, NumberRangeID: store.NewID(), State: store.NumberIssued,
				BuyerRNC: "199000021", SignedAt: time.Now(), CreatedAt: time.Now(), XMLDigest: []byte{1}, SentDigest: []byte{1}, XML: []byte("<x/>"),
			})
		}))
		source, secret, err := e.Sources.Create(t.Context(), e.scope())
		e.must(err)
		send := func(id, encf string) response {
			xml := signedXML(t, peer.Identity, `<ACECF><DetalleAprobacionComercial><Version>1.0</Version><RNCEmisor>199000013</RNCEmisor><eNCF>`+encf+
				`</eNCF><FechaEmision>14-11-2026</FechaEmision><MontoTotal>590.00</MontoTotal><RNCComprador>199000021</RNCComprador><Estado>1</Estado>`+
				`<FechaHoraAprobacionComercial>`+time.Now().Add(-6*time.Hour).Format("02-01-2006 15:04:05")+`</FechaHoraAprobacionComercial></DetalleAprobacionComercial></ACECF>`)
			return e.send(signedMessage(source.ID, id, time.Now(), inboundBody(encf, xml), secret))
		}
		theirs, unknown := send("m1", "E310000000058"), send("m2", "E310000000059")
		shape := func(a response) string {
			return fmt.Sprint(a.status, len(a.body), strings.Contains(string(a.body), `"duplicate":false`))
		}
		if theirs.status != http.StatusAccepted || shape(theirs) != shape(unknown) {
			t.Errorf("of another taxpayer: %s\nof no taxpayer: %s", theirs, unknown)
		}
		if a := send("m1", "E310000000058"); !strings.Contains(string(a.body), `"duplicate":true`) {
			t.Errorf("the same message again: %s", a)
		}
		parked, err := e.store.Parked(t.Context(), e.scope(), "E310000000058", time.Now())
		e.must(err)
		if len(parked) != 1 {
			t.Errorf("%d messages are stored, want 1", len(parked))
		}
		a := other.send(request{path: "fiscal-documents/" + made.FiscalDocumentID})
		if a.status != http.StatusOK || strings.Contains(string(a.body), "comercial") {
			t.Errorf("the message changed the document: %s", a)
		}
	})
}

func signedXML(t *testing.T, id *xmlsig.Identity, document string) string {
	t.Helper()
	d, err := xmlsig.Parse([]byte(document), xmlsig.InvoiceLimits())
	must(t, err)
	text, err := id.SignDocument(d)
	must(t, err)
	return string(text)
}

// signedMessage returns a signed message of a source.
func signedMessage(source, id string, at time.Time, body []byte, secrets ...webhook.Secret) request {
	return request{
		method: http.MethodPost, path: "/v1/events/inbound/" + source, key: "-", body: body,
		header: http.Header{
			"Webhook-Id": {id}, "Webhook-Timestamp": {strconv.FormatInt(at.Unix(), 10)}, "Webhook-Signature": {webhook.Sign(id, at, body, secrets...)},
		},
	}
}
