package simulator_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestViolationsAreDetected(t *testing.T) {
	t.Parallel()
	peerURL := "/peer/" + buyer + "/fe/recepcion/api/ecf"
	for _, c := range []struct {
		kind simulator.ViolationKind
		name string
		do   func(*env)
	}{
		{simulator.ChunkedUpload, "chunked", func(e *env) {
			body, kind := newUpload(issuer+encf31(1)+".xml", e.sign(invoice, encf31(1)))
			q := e.request(e.t.Context(), http.MethodPost, reception, e.token, io.MultiReader(body))
			q.Header.Set("Content-Type", kind)
			if a := e.do(q); a.status != http.StatusBadRequest || a.body != `"El multipart no puede estar vacío"` {
				e.t.Errorf("%d %s", a.status, a.body)
			}
		}},
		{simulator.FileName, "generic name", func(e *env) {
			if a := e.upload(reception, "ecf.xml", e.sign(invoice, encf31(1))); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"codigo":3243`) {
				e.t.Errorf("%d %s", a.status, a.body)
			}
		}},
		{simulator.TokenAgain, "a second token", func(e *env) { e.login() }},
		{simulator.FastPolling, "look-ups too fast", func(e *env) {
			id := e.send(encf31(1), e.sign(invoice, encf31(1)))
			e.verdict(id)
			e.clock.advance(900 * time.Millisecond)
			e.get(result, "trackid", id)
		}},
		{simulator.PostUnasked, "again without a look-up", func(e *env) {
			must(e.t, e.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
			e.send(encf31(1), e.sign(invoice, encf31(1)))
			e.send(encf31(1), e.sign(invoice, encf31(1)))
		}},
		{simulator.PostUnasked, "again after a look-up without a response", func(e *env) {
			must(e.t, e.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
			e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.TrackIDs}, Action: simulator.Action{Fault: "F05"}})
			e.send(encf31(1), e.sign(invoice, encf31(1)))
			e.get(trackURL, "rncemisor", issuer, "encf", encf31(1))
			e.send(encf31(1), e.sign(invoice, encf31(1)))
		}},
		{simulator.DifferentBytes, "another document of the number", func(e *env) {
			must(e.t, e.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
			e.verdict(e.send(encf31(1), e.sign(invoice, encf31(1))))
			e.send(encf31(1), e.sign(invoice, encf31(1), "Taladro", "Martillo"))
		}},
		{simulator.UsedNumber, "after its acceptance", func(e *env) {
			raw := e.sign(invoice, encf31(1))
			e.verdict(e.send(encf31(1), raw))
			e.send(encf31(1), raw)
		}},
		{simulator.WrongHost, "the wrong host", func(e *env) { e.upload(reception, issuer+encf32(1)+".xml", e.sign(summary, encf32(1))) }},
		{simulator.WrongHost, "two environments", func(e *env) {
			raw := e.sign(invoice, encf31(1))
			e.send(encf31(1), raw)
			a := e.authenticate(strings.Replace(seedURL, "/ecf/", "/testecf/", 1), strings.Replace(tokenURL, "/ecf/", "/testecf/", 1), e.id)
			e.token, _ = a.json(e.t)["token"].(string)
			e.upload(strings.Replace(reception, "/ecf/", "/testecf/", 1), issuer+encf31(1)+".xml", raw)
		}},
		{simulator.WrongHost, "a number of another environment", func(e *env) {
			must(e.t, e.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error { t.Ranges[0].Amb = "testecf"; return nil }))
			e.send(encf31(1), e.sign(invoice, encf31(1)))
		}},
		{simulator.SmallInvoice, "a small type 32 as an e-CF", func(e *env) {
			e.upload(reception, issuer+encf32(1)+".xml", e.sign(invoice, encf32(1), large()[:4]...))
		}},
		{simulator.EarlyDelivery, "before acceptance", func(e *env) {
			e.token = ""
			e.upload(peerURL, issuer+encf31(1)+".xml", e.sign(invoice, encf31(1)))
		}},
		{simulator.DeliveryOf32, "a consumer invoice", func(e *env) {
			e.token = ""
			e.upload(peerURL, issuer+encf32(1)+".xml", e.sign(invoice, encf32(1), large()...))
		}},
		{simulator.AfterRefusal, "after a refused delegation", func(e *env) {
			must(e.t, e.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error { t.Delegates[0].Roles = []string{"approver"}; return nil }))
			e.verdict(e.send(encf31(1), e.sign(invoice, encf31(1))))
			e.send(encf31(2), e.sign(invoice, encf31(2)))
		}},
		{simulator.AfterRefusal, "after a refused token", func(e *env) {
			must(e.t, e.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error { t.Delegates[0].ID = "40200000001"; return nil }))
			token := e.token
			e.token = ""
			if a := e.authenticate(seedURL, tokenURL, e.id); a.status != http.StatusBadRequest || a.body != `"El RNC 00113918205 del certificado no está delegado para realizar transaciones."` {
				e.t.Errorf("%d %s", a.status, a.body)
			}
			e.token = token
			e.send(encf31(1), e.sign(invoice, encf31(1)))
		}},
		{simulator.AlteredBytes, "other bytes than in the first attempt", func(e *env) {
			e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F05"}, Count: 1})
			e.upload(reception, issuer+encf31(1)+".xml", e.sign(invoice, encf31(1)))
			e.send(encf31(1), e.sign(invoice, encf31(1), "Taladro", "Martillo"))
		}},
		{simulator.UnsignedDocument, "no signature", func(e *env) {
			e.upload(reception, issuer+encf31(1)+".xml", []byte(strings.ReplaceAll(invoice, "ENCF</eNCF>", encf31(1)+"</eNCF>")))
		}},
		{simulator.ParallelCalls, "nine at once", func(e *env) {
			e.Freeze()
			e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Seed}, Action: simulator.Action{Fault: "F01", Delay: simulator.Duration(time.Second)}})
			var wait sync.WaitGroup
			for range 9 {
				wait.Go(func() { e.get(seedURL) })
			}
			for len(e.Violations()) == 0 {
				time.Sleep(time.Millisecond)
			}
			e.Advance(time.Minute)
			wait.Wait()
		}},
	} {
		t.Run(string(c.kind)+" "+c.name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t).login()
			e.noViolations()
			c.do(e)
			if got := e.violationKinds(); got != string(c.kind) {
				t.Errorf("violations %q, want %q", got, c.kind)
			}
			for _, v := range e.Violations() {
				if v.Detail == "" || v.String() == "" {
					t.Errorf("%+v has no text", v)
				}
			}
			e.ClearViolations()
			e.noViolations()
		})
	}
}

func TestAllowedCallsAreNoViolations(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*env){
		"the same bytes after a lost answer and a look-up": func(e *env) {
			e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F02", Store: no()}, Count: 1})
			raw := e.sign(invoice, encf31(1))
			e.upload(reception, issuer+encf31(1)+".xml", raw)
			e.get(trackURL, "rncemisor", issuer, "encf", encf31(1))
			e.send(encf31(1), raw)
		},
		"a look-up at an absent service counts": func(e *env) {
			amb := func(path string) string { return strings.Replace(path, "/ecf/", "/certecf/", 1) }
			a := e.authenticate(amb(seedURL), amb(tokenURL), e.id)
			e.token, _ = a.json(e.t)["token"].(string)
			must(e.t, e.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
			e.addRule(simulator.Rule{Action: simulator.Action{Fault: "F02"}, Count: 1})
			raw := e.sign(invoice, encf31(1))
			e.upload(amb(reception), issuer+encf31(1)+".xml", raw)
			if a := e.get(amb(trackURL), "rncemisor", issuer, "encf", encf31(1)); a.status != http.StatusNotFound || a.body != "" {
				e.t.Errorf("%d %q", a.status, a.body)
			}
			e.upload(amb(reception), issuer+encf31(1)+".xml", raw)
		},
		"again after a look-up that finds nothing": func(e *env) {
			e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F02"}, Count: 1})
			e.addRule(simulator.Rule{Match: simulator.Match{Service: simulator.TrackIDs}, Action: simulator.Action{Fault: "F12"}})
			raw := e.sign(invoice, encf31(1))
			e.upload(reception, issuer+encf31(1)+".xml", raw)
			e.get(trackURL, "rncemisor", issuer, "encf", encf31(1))
			e.send(encf31(1), raw)
		},
		"a token after half an hour": func(e *env) { e.clock.advance(31 * time.Minute); e.login() },
		"a token after a 401": func(e *env) {
			token := e.token
			e.token = "x.y.z"
			e.get(result, "trackid", "x")
			e.token = token
			e.login()
		},
		"delivery after acceptance": func(e *env) {
			raw := e.sign(invoice, encf31(1))
			e.verdict(e.send(encf31(1), raw))
			e.token = ""
			e.upload("/peer/"+buyer+"/fe/recepcion/api/ecf", issuer+encf31(1)+".xml", raw)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEnv(t).login()
			do(e)
			e.noViolations()
		})
	}
}
