package simulator_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

// control calls the control API and returns the body. The test fails unless the status is
// 200.
func control(t testing.TB, e *env, method, path, body string) string {
	t.Helper()
	status, text := controlStatus(e, method, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, status, text)
	}
	return text
}

func controlStatus(e *env, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	q := httptest.NewRequestWithContext(e.t.Context(), method, "/_sim/v1"+path, strings.NewReader(body))
	e.Control().ServeHTTP(w, q)
	return w.Code, w.Body.String()
}

func TestControlAPISetsUpAnIssuer(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	control(t, e, http.MethodPost, "/taxpayers", `{"rnc":"101023122","name":"Nueva","delegates":[{"id":"00113918205"}],"ranges":[{"type":"31","from":1,"to":10,"expires":"2027-12-31"}],"receiver":{}}`)
	var c struct {
		P12      string `json:"p12"`
		Password string `json:"password"`
	}
	must(t, json.Unmarshal([]byte(control(t, e, http.MethodPost, "/certificates", `{"holder":"00113918205","days":365,"flavour":"legacy"}`)), &c))
	p12, err := base64.StdEncoding.DecodeString(c.P12)
	must(t, err)
	if e.id, err = xmlsig.OpenP12(p12, c.Password); err != nil {
		t.Fatal(err)
	}
	if pem := control(t, e, http.MethodGet, "/trust", ""); !strings.HasPrefix(pem, "-----BEGIN CERTIFICATE-----") || pem != string(e.RootsPEM()) {
		t.Errorf("trust %q", pem)
	}
	e.login()
	raw := e.sign(invoice, encf31(1), issuer, "101023122")
	a := e.upload(reception, "101023122"+encf31(1)+".xml", raw)
	id, _ := a.json(t)["trackId"].(string)
	var doc simulator.DocumentView
	must(t, json.Unmarshal([]byte(control(t, e, http.MethodGet, "/documents/"+id, "")), &doc))
	if doc.State != "Aceptado" || string(doc.Bytes) != string(raw) || doc.SHA256 == "" {
		t.Errorf("document %+v", doc)
	}
	control(t, e, http.MethodPost, "/documents/"+id+"/verdict", `{"code":2,"used":true,"messages":[{"code":7,"text":"no"}]}`)
	if v := e.verdict(id); v["codigo"] != "2" {
		t.Errorf("forced: %v", v)
	}
	if list := control(t, e, http.MethodGet, "/documents?rnc=101023122&amb=ecf&encf="+encf31(1), ""); !strings.Contains(list, id) {
		t.Errorf("documents %s", list)
	}
	requests := control(t, e, http.MethodGet, "/requests?since=2", "")
	if strings.Contains(requests, e.token) || !strings.Contains(requests, "[redacted]") {
		t.Errorf("the journal shows the token: %s", requests)
	}
	if got := control(t, e, http.MethodGet, "/violations", ""); got != "[]\n" {
		t.Errorf("violations %s", got)
	}
	if m := control(t, e, http.MethodGet, "/metrics", ""); !strings.Contains(m, "simulator_submissions_total 1") {
		t.Errorf("metrics %s", m)
	}
	control(t, e, http.MethodGet, "/healthz", "")
}

func TestControlAPIChecksItsInput(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	control(t, e, http.MethodPost, "/clock", `{"freeze":true}`)
	control(t, e, http.MethodPost, "/clock", `{"set":"2026-07-01T12:00:00-04:00"}`)
	control(t, e, http.MethodPost, "/clock", `{"advance":"1h"}`)
	e.clock.advance(time.Hour)
	if want := time.Date(2026, 7, 1, 13, 0, 0, 0, zone); !e.Now().Equal(want) {
		t.Errorf("now %s, want %s", e.Now(), want)
	}
	control(t, e, http.MethodPost, "/clock", `{"freeze":false}`)
	e.clock.advance(time.Hour)
	if want := time.Date(2026, 7, 1, 14, 0, 0, 0, zone); !e.Now().Equal(want) {
		t.Errorf("thawed %s, want %s", e.Now(), want)
	}

	control(t, e, http.MethodPut, "/config", `{"seed":7,"wire":"documented","validation_delay":{"min":"1s","max":"2s"}}`)
	got := control(t, e, http.MethodGet, "/config", "")
	if !strings.Contains(got, `"seed":7`) || !strings.Contains(got, `"wire":"documented"`) || !strings.Contains(got, `"latency":{"min":"0s","max":"0s"}`) {
		t.Errorf("config %s", got)
	}
	for _, wrong := range []string{`{"wire":"smoke"}`, `{"duplicate_mode":"x"}`, `{"nonsense":1}`, `{"profile":"x"}`, `{"latency":{"min":"2s","max":"1s"}}`, `{"check_buyer":"x"}`, `{"tolerance":"x"}`, `{"validation_delays":{"x":null}}`, `[`} {
		if status, _ := controlStatus(e, http.MethodPut, "/config", wrong); status != http.StatusBadRequest {
			t.Errorf("config %s: %d", wrong, status)
		}
	}

	id := control(t, e, http.MethodPost, "/rules", `{"match":{"service":"reception","attempt":2},"action":{"fault":"F05","status":502},"count":1}`)
	if id != "{\"id\":\"rule-1\"}\n" {
		t.Errorf("rule %s", id)
	}
	if v := control(t, e, http.MethodGet, "/rules/rule-1", ""); !strings.Contains(v, `"fired":0`) {
		t.Errorf("rule %s", v)
	}
	control(t, e, http.MethodDelete, "/rules/rule-1", "")
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "/rules/rule-1", ""}, {http.MethodDelete, "/rules/rule-1", ""}, {http.MethodGet, "/documents/x", ""},
		{http.MethodPost, "/documents/x/verdict", `{"code":1}`}, {http.MethodPatch, "/taxpayers/x", `{}`},
	} {
		if status, _ := controlStatus(e, c.method, c.path, c.body); status != http.StatusNotFound {
			t.Errorf("%s %s: %d", c.method, c.path, status)
		}
	}
	for _, c := range []struct{ path, body string }{
		{"/rules", `{"action":{"fault":"F99"}}`}, {"/rules", `{"action":{"fault":"F23"}}`}, {"/rules", `{"action":{"fault":"F06","variant":"x"}}`},
		{"/rules", `{"action":{"fault":"F17"}}`}, {"/rules", `{"match":{"service":"x"},"action":{"fault":"F01"}}`}, {"/rules", `{"match":{"amb":"x"},"action":{"fault":"F01"}}`},
		{"/taxpayers", `{"rnc":"1"}`}, {"/taxpayers", `{"rnc":"101023122","ranges":[{"type":"31","from":2,"to":1}]}`}, {"/taxpayers", `{"rnc":"101023122","electronic_since":"x"}`},
		{"/taxpayers", `{"rnc":"101023122","ranges":[{"type":"31","from":1,"to":2,"expires":"x"}]}`}, {"/taxpayers", `{"rnc":"101023122","delegates":[{}]}`},
		{"/certificates", `{}`}, {"/certificates", `{"holder":"1","flavour":"x"}`}, {"/restore", `{}`}, {"/reset", `{"trust":["x"]}`},
	} {
		if status, text := controlStatus(e, http.MethodPost, c.path, c.body); status != http.StatusBadRequest {
			t.Errorf("%s %s: %d %s", c.path, c.body, status, text)
		}
	}
	control(t, e, http.MethodPatch, "/taxpayers/"+issuer, `{"active":false}`)
	if list := control(t, e, http.MethodGet, "/taxpayers", ""); !strings.Contains(list, `"active":false`) {
		t.Errorf("taxpayers %s", list)
	}
}
