package simulator_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func yes() *bool { b := true; return &b }
func no() *bool  { b := false; return &b }

// stored returns how many documents the simulator has stored.
func (e *env) stored() int { return len(e.Documents(simulator.Filter{})) }

func TestFaultsOfTheReception(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		action simulator.Action
		stored int
		status int    // 0 means no response
		body   string // a part of the body
	}{
		{"F02 stores and drops the connection", simulator.Action{Fault: "F02"}, 1, 0, ""},
		{"F02 drops the connection without storing", simulator.Action{Fault: "F02", Store: no()}, 0, 0, ""},
		{"F02 hangs", simulator.Action{Fault: "F02", Variant: "hang"}, 1, 0, ""},
		{"F03 drops the connection before the body", simulator.Action{Fault: "F03"}, 0, 0, ""},
		{"F04 drops the connection within the body", simulator.Action{Fault: "F04"}, 0, 0, ""},
		{"F05 an error, not stored", simulator.Action{Fault: "F05"}, 0, 503, "<html>"},
		{"F05 an error, stored", simulator.Action{Fault: "F05", Status: 502, Store: yes()}, 1, 502, "<html>"},
		{"F06 HTML", simulator.Action{Fault: "F06"}, 1, 200, "<html>"},
		{"F06 half a response", simulator.Action{Fault: "F06", Variant: "truncated"}, 1, 200, `{"trackId":"`},
		{"F06 empty object", simulator.Action{Fault: "F06", Variant: "empty-object"}, 1, 200, `{}`},
		{"F06 no trackId", simulator.Action{Fault: "F06", Variant: "no-trackid"}, 1, 200, `"trackId":""`},
		{"F06 another content type", simulator.Action{Fault: "F06", Variant: "content-type"}, 1, 200, `"trackId":"`},
		{"F07 page of a gateway", simulator.Action{Fault: "F07"}, 0, 400, "<html>"},
		{"F07 empty response of a gateway", simulator.Action{Fault: "F07", Variant: "empty"}, 0, 400, ""},
		{"F08 a JSON string", simulator.Action{Fault: "F08"}, 0, 400, `"El archivo`},
		{"F08 plain text", simulator.Action{Fault: "F08", Variant: "string"}, 0, 400, `El archivo`},
		{"F08 mensajes", simulator.Action{Fault: "F08", Variant: "mensajes"}, 0, 400, `{"mensajes":["`},
		{"F08 mensaje", simulator.Action{Fault: "F08", Variant: "mensaje"}, 0, 400, `{"mensaje":"`},
		{"F08 model state", simulator.Action{Fault: "F08", Variant: "model-state"}, 0, 400, `"errors":{`},
		{"F09 no token", simulator.Action{Fault: "F09"}, 0, 401, ""},
		{"F10 too many requests", simulator.Action{Fault: "F10", Delay: simulator.Duration(7 * time.Second)}, 0, 429, ""},
		{"F21 maintenance", simulator.Action{Fault: "F21"}, 0, 503, "<html>"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t).login()
			e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception, ENCF: encf31(1)}, Action: c.action, Count: 1})
			ctx := t.Context()
			if c.action.Variant == "hang" {
				ctx = e.cancelWhen(func() bool { return e.stored() == 1 })
			}
			raw := e.sign(invoice, encf31(1))
			a := e.uploadContext(ctx, reception, issuer+encf31(1)+".xml", raw)
			if (c.status == 0) != (a.err != nil) || a.status != c.status || !strings.Contains(a.body, c.body) || e.stored() != c.stored {
				t.Errorf("%d %q %v, %d stored; want %d %q, %d stored", a.status, a.body, a.err, e.stored(), c.status, c.body, c.stored)
			}
			if c.action.Fault == "F10" && a.header.Get("Retry-After") != "7" {
				t.Errorf("Retry-After %q", a.header.Get("Retry-After"))
			}
			// The rule applies once, so the second post succeeds.
			if c.stored == 0 {
				if v := e.verdict(e.send(encf31(1), raw)); v["codigo"] != "1" {
					t.Errorf("the second post: %v", v)
				}
				e.noViolations()
			}
			if fired := e.Rules()[0].Fired; fired != 1 {
				t.Errorf("the rule was applied %d times", fired)
			}
		})
	}
}

func TestF01DelaysUntilTheClientGivesUp(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.Freeze() // a wait ends only when the test moves the clock
	e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Result}, Action: simulator.Action{Fault: "F01", Delay: simulator.Duration(10 * time.Second)}})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if a := e.do(e.request(ctx, http.MethodGet, result+"?trackid=x", e.token, nil)); a.err == nil {
		t.Errorf("%d %s", a.status, a.body)
	}
	answered := make(chan response)
	go func() { answered <- e.do(e.request(t.Context(), http.MethodGet, result+"?trackid=x", e.token, nil)) }()
	for { // advances the clock until the call, which may not wait yet, has ended
		e.Advance(10 * time.Second)
		select {
		case a := <-answered:
			if a.status != http.StatusOK {
				t.Errorf("%d %v", a.status, a.err)
			}
			return
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// F03 must drop the connection before the client sends any byte of the body.
func TestF03DropsTheConnectionBeforeTheBody(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F03"}})
	body, kind := newUpload("x.xml", e.sign(invoice, encf31(1)))
	counted := &countingReader{from: body}
	q := e.request(t.Context(), http.MethodPost, reception, e.token, counted)
	q.ContentLength = int64(body.Len())
	q.Header.Set("Content-Type", kind)
	q.Header.Set("Expect", "100-continue")
	e.http.Transport.(*http.Transport).ExpectContinueTimeout = time.Minute
	if a := e.do(q); a.err == nil || counted.n.Load() > 0 {
		t.Errorf("%d, %d bytes were sent", a.status, counted.n.Load())
	}
}

// A countingReader counts the bytes that are read from it.
type countingReader struct {
	from io.Reader
	n    atomic.Int64
}

func (c *countingReader) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.n.Add(int64(n))
	return n, err
}

func TestF09EndsTokensEarly(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Token}, Action: simulator.Action{Fault: "F09", Variant: "expires-after", After: 2}, Count: 1})
	e.login()
	for i, want := range []int{200, 200, 401, 401} {
		if a := e.get(result, "trackid", "x"); a.status != want {
			t.Errorf("call %d: %d, want %d", i+1, a.status, want)
		}
	}
	e.login()
	if a := e.get(result, "trackid", "x"); a.status != 200 {
		t.Errorf("status with a new token: %d", a.status)
	}
	e.noViolations()

	e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Token}, Action: simulator.Action{Fault: "F09", Variant: "past-expiry"}, Count: 1})
	if a := e.authenticate(seedURL, tokenURL, e.id); a.json(t)["expira"] != "2026-06-01T15:00:00Z" {
		t.Errorf("%s", a.body)
	}
}

func TestF11AndF12DelayTheVerdict(t *testing.T) {
	t.Parallel()
	minute := simulator.Duration(time.Minute)
	for _, c := range []struct {
		name         string
		rule         simulator.Rule
		before, late string
	}{
		{"F11 stuck for a while", simulator.Rule{Action: simulator.Action{Fault: "F11", Delay: minute}}, "3", "1"},
		{"F11 stuck for ever", simulator.Rule{Action: simulator.Action{Fault: "F11"}}, "3", "3"},
		{"F11 for one look-up", simulator.Rule{Match: simulator.Match{Service: simulator.Result}, Action: simulator.Action{Fault: "F11"}, Count: 1}, "3", "1"},
		{"F12 not found for a while", simulator.Rule{Action: simulator.Action{Fault: "F12", Delay: minute}}, "0", "1"},
		{"F12 not found for ever", simulator.Rule{Action: simulator.Action{Fault: "F12"}}, "0", "0"},
		{"F12 for one look-up", simulator.Rule{Match: simulator.Match{Service: simulator.Result}, Action: simulator.Action{Fault: "F12"}, Count: 1}, "0", "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t).login()
			e.addRule(c.rule)
			id := e.send(encf31(1), e.sign(invoice, encf31(1)))
			if v := e.verdict(id); v["codigo"] != c.before {
				t.Errorf("at first %v", v)
			}
			e.clock.advance(time.Minute)
			if v := e.verdict(id); v["codigo"] != c.late {
				t.Errorf("later %v", v)
			}
			e.Settle()
			if v := e.verdict(id); v["codigo"] != "1" {
				t.Errorf("settled %v", v)
			}
		})
	}
}

func TestF13StoresTheDocumentTwice(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.addRule(simulator.Rule{Action: simulator.Action{Fault: "F13", Variant: "second"}})
	second := e.send(encf31(1), e.sign(invoice, encf31(1)))
	if v := e.verdict(second); v["codigo"] != "2" {
		t.Errorf("the second document: %v", v)
	}
	var list []struct{ TrackID, Estado string }
	must(t, json.Unmarshal([]byte(e.get(trackURL, "rncemisor", issuer, "encf", encf31(1)).body), &list))
	if len(list) != 2 || list[1].TrackID != second || list[0].Estado != "Aceptado" {
		t.Errorf("trackIds %+v", list)
	}
	e.noViolations()
}

func TestF14ReturnsThePreviousTrackID(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.addRule(simulator.Rule{Match: simulator.Match{ENCF: encf31(2)}, Action: simulator.Action{Fault: "F14"}})
	first := e.send(encf31(1), e.sign(invoice, encf31(1)))
	second := e.send(encf31(2), e.sign(invoice, encf31(2)))
	if v := e.verdict(second); first != second || v["encf"] != encf31(1) {
		t.Errorf("%s and %s: %v", first, second, v)
	}
}

func TestFaultsOfTheVerdict(t *testing.T) {
	t.Parallel()
	for variant, want := range map[string][3]string{
		"other-rnc": {"101000000", encf31(1), "1 Aceptado"}, "other-encf": {issuer, encf31(2), "1 Aceptado"},
		"contradiction": {issuer, encf31(1), "1 Rechazado"}, "unknown-code": {issuer, encf31(1), "7 Desconocido"},
	} {
		t.Run("F15 "+variant, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t).login()
			e.addRule(simulator.Rule{Action: simulator.Action{Fault: "F15", Variant: variant}, Count: 1})
			id := e.send(encf31(1), e.sign(invoice, encf31(1)))
			v := e.verdict(id)
			if v["rnc"] != want[0] || v["encf"] != want[1] || v["codigo"].(string)+" "+v["estado"].(string) != want[2] {
				t.Errorf("%v, want %v", v, want)
			}
			if v := e.verdict(id); v["codigo"] != "1" || v["rnc"] != issuer || v["encf"] != encf31(1) {
				t.Errorf("then %v", v)
			}
		})
	}
	t.Run("F15 with a verdict", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t).login()
		e.addRule(simulator.Rule{Action: simulator.Action{Fault: "F15", Variant: "other-encf", Verdict: &simulator.Verdict{Code: 2, Used: true}}, Count: 1})
		if v := e.verdict(e.send(encf31(1), e.sign(invoice, encf31(1)))); v["encf"] != encf31(2) || v["codigo"] != "2" || v["secuenciaUtilizada"] != true {
			t.Errorf("%v", v)
		}
	})
	t.Run("F16 flips", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t).login()
		e.addRule(simulator.Rule{Action: simulator.Action{Fault: "F16", After: 2}})
		id := e.send(encf31(1), e.sign(invoice, encf31(1)))
		for i, want := range []string{"1", "1", "2", "2"} {
			if v := e.verdict(id); v["codigo"] != want {
				t.Errorf("call %d: %v", i+1, v)
			}
		}
	})
	t.Run("F17 forced", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t).login()
		e.addRule(simulator.Rule{Match: simulator.Match{ENCFSuffix: "01", Type: "31"}, Action: simulator.Action{Fault: "F17", Verdict: &simulator.Verdict{Code: 2, Messages: []simulator.Message{{Code: 64}}}}})
		v := e.verdict(e.send(encf31(1), e.sign(invoice, encf31(1))))
		if v["codigo"] != "2" || v["secuenciaUtilizada"] != false {
			t.Errorf("%v", v)
		}
	})
	t.Run("F19 floods", func(t *testing.T) {
		t.Parallel()
		e := newEnv(t).login()
		e.addRule(simulator.Rule{Action: simulator.Action{Fault: "F19"}})
		v := e.verdict(e.send(encf31(1), e.sign(invoice, encf31(1))))
		if list, _ := v["mensajes"].([]any); len(list) != 200 {
			t.Errorf("%d messages", len(list))
		}
	})
}

func TestF18MakesLookUpsUnavailable(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	id := e.send(encf31(1), e.sign(invoice, encf31(1)))
	ask := func() [3]int {
		return [3]int{
			e.get(result, "trackid", id).status, e.get(trackURL, "rncemisor", issuer, "encf", encf31(1)).status,
			e.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(1)).status,
		}
	}
	e.addRule(simulator.Rule{Action: simulator.Action{Fault: "F18"}})
	if got := ask(); got != [3]int{200, 503, 503} {
		t.Errorf("%v", got)
	}
	e.ClearRules()
	e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Result}, Action: simulator.Action{Fault: "F18", Variant: "result"}})
	if got := ask(); got != [3]int{503, 200, 200} {
		t.Errorf("%v", got)
	}
}

func TestF20MovesTheClockOfTheServers(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F20", Delay: simulator.Duration(-5 * time.Minute)}})
	if v := e.verdict(e.send(encf31(1), e.sign(invoice, encf31(1)))); v["codigo"] != "2" {
		t.Errorf("signed in the future of the servers' clock: %v", v)
	}
}

func TestF21IsShownByTheStatusService(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *simulator.Options) { o.Config.StatusKey = "k" }).login()
	status := func() string {
		q := e.request(t.Context(), http.MethodGet, "/status-host/api/EstatusServicios/VerificarEstado?ambiente=2", "", nil)
		q.Header.Set("Authorization", "Apikey k")
		return e.do(q).body
	}
	if got := status(); got != `{"estado":"Disponible"}` {
		t.Errorf("%s", got)
	}
	must(t, e.SetProfile("dgii-down"))
	if a := e.get(seedURL); a.status != http.StatusServiceUnavailable {
		t.Errorf("%d", a.status)
	}
	if got := status(); got != `{"estado":"No Disponible"}` {
		t.Errorf("%s", got)
	}
	must(t, e.SetProfile("happy"))
	now := e.Now()
	e.addRule(simulator.Rule{Match: simulator.Match{From: now.Add(time.Minute), To: now.Add(2 * time.Minute)}, Action: simulator.Action{Fault: "F21"}})
	for _, want := range []int{200, 503, 200} {
		if a := e.get(seedURL); a.status != want {
			t.Errorf("%d, want %d", a.status, want)
		}
		if got := status() == `{"estado":"Disponible"}`; got != (want == 200) {
			t.Errorf("available: %t, want status %d", got, want)
		}
		e.clock.advance(time.Minute)
	}
}

func TestF22SendsByteByByte(t *testing.T) {
	t.Parallel()
	var slept atomic.Int64
	e := newEnv(t, func(o *simulator.Options) {
		o.Sleep = func(context.Context, time.Duration) error { slept.Add(1); return nil }
	})
	e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Seed}, Action: simulator.Action{Fault: "F22"}})
	if a := e.get(seedURL); a.err != nil || int64(len(a.body)) != slept.Load() || !strings.Contains(a.body, "<valor>") {
		t.Errorf("%d bytes in %d pieces, %v", len(a.body), slept.Load(), a.err)
	}
}

func TestF23ListenersFailTheHandshake(t *testing.T) {
	t.Parallel()
	e := newEnv(t, func(o *simulator.Options) { o.Now = time.Now })
	for _, c := range []struct {
		kind string
		ok   bool
	}{{"valid", true}, {"expired", false}, {"wrong-host", false}, {"tls11", false}} {
		t.Run(c.kind, func(t *testing.T) {
			config, err := e.TLSConfig(c.kind)
			must(t, err)
			server := httptest.NewUnstartedServer(e.Handler())
			server.TLS = config
			server.StartTLS()
			defer server.Close()
			transport := server.Client().Transport.(*http.Transport).Clone()
			transport.TLSClientConfig = &tls.Config{RootCAs: rootPool(e), MinVersion: tls.VersionTLS12}
			defer transport.CloseIdleConnections()
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+seedURL, nil)
			must(t, err)
			answer, err := transport.RoundTrip(q)
			if err == nil {
				_ = answer.Body.Close()
			}
			if (err == nil) != c.ok {
				t.Errorf("%v", err)
			}
		})
	}
	if _, err := e.TLSConfig("x"); err == nil {
		t.Error("TLSConfig accepted an unknown kind")
	}
}

func TestF24ChangesTheDirectory(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	for variant, want := range map[string]string{
		"null": "null", "empty": "", "swap": `[{"nombre"`, "dead": "https://receptor.invalid", "private": "https://10.0.0.1", "http": `"http://receptor.example`,
	} {
		e.ClearRules()
		e.addRule(simulator.Rule{Action: simulator.Action{Fault: "F24", Variant: variant}})
		if a := e.get(directory+"obtenerdirectorioporrnc", "RNC", buyer); a.status != http.StatusOK || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", variant, a.status, a.body)
		}
	}
}
