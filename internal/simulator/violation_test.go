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

func TestEveryViolation(t *testing.T) {
	t.Parallel()
	peerURL := "/peer/" + buyer + "/fe/recepcion/api/ecf"
	for _, c := range []struct {
		kind simulator.ViolationKind
		name string
		do   func(*rig)
	}{
		{simulator.ChunkedUpload, "chunked", func(r *rig) {
			body, kind := file(issuer+encf31(1)+".xml", r.sign(invoice, encf31(1)))
			q := r.request(r.t.Context(), http.MethodPost, reception, r.token, io.MultiReader(body))
			q.Header.Set("Content-Type", kind)
			if a := r.do(q); a.status != http.StatusBadRequest || a.body != `"El multipart no puede estar vacío"` {
				r.t.Errorf("%d %s", a.status, a.body)
			}
		}},
		{simulator.FileName, "generic name", func(r *rig) {
			if a := r.upload(reception, "ecf.xml", r.sign(invoice, encf31(1))); a.status != http.StatusBadRequest || !strings.Contains(a.body, `"codigo":3243`) {
				r.t.Errorf("%d %s", a.status, a.body)
			}
		}},
		{simulator.TokenAgain, "a token too many", func(r *rig) { r.login() }},
		{simulator.FastPolling, "impatience", func(r *rig) {
			id := r.send(encf31(1), r.sign(invoice, encf31(1)))
			r.verdict(id)
			r.clock.advance(900 * time.Millisecond)
			r.get(result, "trackid", id)
		}},
		{simulator.PostUnasked, "again without asking", func(r *rig) {
			must(r.t, r.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
			r.send(encf31(1), r.sign(invoice, encf31(1)))
			r.send(encf31(1), r.sign(invoice, encf31(1)))
		}},
		{simulator.PostUnasked, "again after a question without an answer", func(r *rig) {
			must(r.t, r.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
			r.fault(simulator.Rule{Match: simulator.Match{Service: simulator.TrackIDs}, Action: simulator.Action{Fault: "F05"}})
			r.send(encf31(1), r.sign(invoice, encf31(1)))
			r.get(trackURL, "rncemisor", issuer, "encf", encf31(1))
			r.send(encf31(1), r.sign(invoice, encf31(1)))
		}},
		{simulator.DifferentBytes, "another document of the number", func(r *rig) {
			must(r.t, r.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
			r.verdict(r.send(encf31(1), r.sign(invoice, encf31(1))))
			r.send(encf31(1), r.sign(invoice, encf31(1), "Taladro", "Martillo"))
		}},
		{simulator.UsedNumber, "after its acceptance", func(r *rig) {
			raw := r.sign(invoice, encf31(1))
			r.verdict(r.send(encf31(1), raw))
			r.send(encf31(1), raw)
		}},
		{simulator.WrongHost, "the wrong host", func(r *rig) { r.upload(reception, issuer+encf32(1)+".xml", r.sign(summary, encf32(1))) }},
		{simulator.WrongHost, "two environments", func(r *rig) {
			raw := r.sign(invoice, encf31(1))
			r.send(encf31(1), raw)
			a := r.authenticate(strings.Replace(seedURL, "/ecf/", "/testecf/", 1), strings.Replace(tokenURL, "/ecf/", "/testecf/", 1), r.id)
			r.token, _ = a.json(r.t)["token"].(string)
			r.upload(strings.Replace(reception, "/ecf/", "/testecf/", 1), issuer+encf31(1)+".xml", raw)
		}},
		{simulator.WrongHost, "a number of another environment", func(r *rig) {
			must(r.t, r.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error { t.Ranges[0].Amb = "testecf"; return nil }))
			r.send(encf31(1), r.sign(invoice, encf31(1)))
		}},
		{simulator.SmallInvoice, "a small 32 whole", func(r *rig) {
			r.upload(reception, issuer+encf32(1)+".xml", r.sign(invoice, encf32(1), large()[:4]...))
		}},
		{simulator.EarlyDelivery, "before acceptance", func(r *rig) {
			r.token = ""
			r.upload(peerURL, issuer+encf31(1)+".xml", r.sign(invoice, encf31(1)))
		}},
		{simulator.DeliveryOf32, "a consumer invoice", func(r *rig) {
			r.token = ""
			r.upload(peerURL, issuer+encf32(1)+".xml", r.sign(invoice, encf32(1), large()...))
		}},
		{simulator.AfterRefusal, "after a refused delegation", func(r *rig) {
			must(r.t, r.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error { t.Delegates[0].Roles = []string{"approver"}; return nil }))
			r.verdict(r.send(encf31(1), r.sign(invoice, encf31(1))))
			r.send(encf31(2), r.sign(invoice, encf31(2)))
		}},
		{simulator.AfterRefusal, "after a refused token", func(r *rig) {
			must(r.t, r.UpdateTaxpayer(issuer, func(t *simulator.Taxpayer) error { t.Delegates[0].ID = "40200000001"; return nil }))
			token := r.token
			r.token = ""
			if a := r.authenticate(seedURL, tokenURL, r.id); a.status != http.StatusBadRequest || a.body != `"El RNC 00113918205 del certificado no está delegado para realizar transaciones."` {
				r.t.Errorf("%d %s", a.status, a.body)
			}
			r.token = token
			r.send(encf31(1), r.sign(invoice, encf31(1)))
		}},
		{simulator.AlteredBytes, "other bytes than at first", func(r *rig) {
			r.fault(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F05"}, Count: 1})
			r.upload(reception, issuer+encf31(1)+".xml", r.sign(invoice, encf31(1)))
			r.send(encf31(1), r.sign(invoice, encf31(1), "Taladro", "Martillo"))
		}},
		{simulator.UnsignedDocument, "no signature", func(r *rig) {
			r.upload(reception, issuer+encf31(1)+".xml", []byte(strings.ReplaceAll(invoice, "ENCF</eNCF>", encf31(1)+"</eNCF>")))
		}},
		{simulator.ParallelCalls, "nine at once", func(r *rig) {
			r.Freeze()
			r.fault(simulator.Rule{Match: simulator.Match{Service: simulator.Seed}, Action: simulator.Action{Fault: "F01", Delay: simulator.Duration(time.Second)}})
			var wait sync.WaitGroup
			for range 9 {
				wait.Go(func() { r.get(seedURL) })
			}
			for len(r.Violations()) == 0 {
				time.Sleep(time.Millisecond)
			}
			r.Advance(time.Minute)
			wait.Wait()
		}},
	} {
		t.Run(string(c.kind)+" "+c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).login()
			r.noViolations()
			c.do(r)
			if got := r.kinds(); got != string(c.kind) {
				t.Errorf("violations %q, want %q", got, c.kind)
			}
			for _, v := range r.Violations() {
				if v.Detail == "" || v.String() == "" {
					t.Errorf("%+v says nothing", v)
				}
			}
			r.ClearViolations()
			r.noViolations()
		})
	}
}

// What is allowed is no violation.
func TestNoViolation(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(*rig){
		"the same bytes after a lost answer and a look-up": func(r *rig) {
			r.fault(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F02", Store: no()}, Count: 1})
			raw := r.sign(invoice, encf31(1))
			r.upload(reception, issuer+encf31(1)+".xml", raw)
			r.get(trackURL, "rncemisor", issuer, "encf", encf31(1))
			r.send(encf31(1), raw)
		},
		"asking a service that is absent counts": func(r *rig) {
			amb := func(path string) string { return strings.Replace(path, "/ecf/", "/certecf/", 1) }
			a := r.authenticate(amb(seedURL), amb(tokenURL), r.id)
			r.token, _ = a.json(r.t)["token"].(string)
			must(r.t, r.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
			r.fault(simulator.Rule{Action: simulator.Action{Fault: "F02"}, Count: 1})
			raw := r.sign(invoice, encf31(1))
			r.upload(amb(reception), issuer+encf31(1)+".xml", raw)
			if a := r.get(amb(trackURL), "rncemisor", issuer, "encf", encf31(1)); a.status != http.StatusNotFound || a.body != "" {
				r.t.Errorf("%d %q", a.status, a.body)
			}
			r.upload(amb(reception), issuer+encf31(1)+".xml", raw)
		},
		"once more where a look-up says nothing": func(r *rig) {
			r.fault(simulator.Rule{Match: simulator.Match{Service: simulator.Reception}, Action: simulator.Action{Fault: "F02"}, Count: 1})
			r.fault(simulator.Rule{Match: simulator.Match{Service: simulator.TrackIDs}, Action: simulator.Action{Fault: "F12"}})
			raw := r.sign(invoice, encf31(1))
			r.upload(reception, issuer+encf31(1)+".xml", raw)
			r.get(trackURL, "rncemisor", issuer, "encf", encf31(1))
			r.send(encf31(1), raw)
		},
		"a token after half an hour": func(r *rig) { r.clock.advance(31 * time.Minute); r.login() },
		"a token after a 401": func(r *rig) {
			token := r.token
			r.token = "x.y.z"
			r.get(result, "trackid", "x")
			r.token = token
			r.login()
		},
		"delivery after acceptance": func(r *rig) {
			raw := r.sign(invoice, encf31(1))
			r.verdict(r.send(encf31(1), raw))
			r.token = ""
			r.upload("/peer/"+buyer+"/fe/recepcion/api/ecf", issuer+encf31(1)+".xml", raw)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t).login()
			do(r)
			r.noViolations()
		})
	}
}
