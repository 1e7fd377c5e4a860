package simulation

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/event"
	"github.com/fiscalhub/fiscalhub/internal/simulation/oracle"
	"github.com/fiscalhub/fiscalhub/internal/simulator"
	"github.com/fiscalhub/fiscalhub/internal/webhook"
)

// nowhere is a host that takes every message and does nothing with it.
const nowhere = "nowhere.test"

// RoundTrip brings a request of a buyer to the node that the address names.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Host == nowhere {
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
	}
	var body []byte
	if r.Body != nil {
		defer r.Body.Close()
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	for _, n := range w.nodes {
		if n.name+".test" == r.URL.Host && n.up() {
			answer, err := n.call(r.Method, r.URL.RequestURI(), r.Header, body)
			if err != nil {
				return nil, err
			}
			return answer.Result(), nil
		}
	}
	return nil, errNoAnswer
}

// respond lets the buyer answer a document that the authority has accepted: with its
// signature it approves or rejects it.
func (w *world) respond() {
	var accepted []string
	for _, d := range w.sim.Documents(simulator.Filter{RNC: issuerRNC}) {
		if strings.HasPrefix(d.ENCF, "E31") && d.Verdict.Code == 1 && !w.foreign[d.SHA256] {
			accepted = append(accepted, d.ENCF)
		}
	}
	if len(accepted) == 0 {
		return
	}
	p := simulator.Push{Issuer: issuerRNC, ENCF: accepted[w.draw(len(accepted))], Reject: w.draw(3) == 0}
	w.push(p, w.draw(2) == 0, w.draw(3) == 0, 5)
}

// push sends a response to a node, and again after a while when there is no answer. A
// response that is relayed comes through a source instead of from the buyer.
func (w *world) push(p simulator.Push, authenticates, relays bool, tries int) {
	n := w.anyNode()
	if tries == 0 {
		return // the buyer gives up
	}
	again := func(d time.Duration) { w.after(d, func() { w.push(p, authenticates, relays, tries-1) }) }
	if n == nil {
		again(w.between(time.Second, 5*time.Minute))
		return
	}
	p.URL = "http://" + n.name + ".test"
	if authenticates {
		p.Auth = p.URL
	}
	w.mu.Lock()
	x := oracle.Response{ENCF: p.ENCF, Rejects: p.Reject, Epoch: w.epoch}
	w.mu.Unlock()
	w.spawn(n.group, "buyer "+p.ENCF, func() {
		var status int
		var err error
		if relays {
			status, err = w.relay(n, p)
		} else if pushed, failed := w.sim.SendACECF(n.ctx, buyerRNC, p); failed != nil {
			err = failed
		} else {
			status = pushed.Status
		}
		w.tracef("buyer", "responds to %s: %d", p.ENCF, status)
		x.Answered, x.Ended = err == nil && status < http.StatusBadRequest, w.now()
		w.record(func() { w.run.Responses = append(w.run.Responses, x) })
		if err != nil || status >= http.StatusInternalServerError {
			random := w.source("pause buyer " + p.ENCF)
			again(time.Second + time.Duration(random.Int64N(int64(5*time.Minute))))
		}
	})
}

// relay sends the response of the buyer as a source does, whose messages have an id.
func (w *world) relay(n *node, p simulator.Push) (status int, err error) {
	p.URL, p.Auth = "http://"+nowhere, ""
	written, err := w.sim.SendACECF(n.ctx, buyerRNC, p)
	if err != nil {
		return 0, err
	}
	body, err := json.Marshal(map[string]any{
		"type": event.InboundCommercial, "data": map[string]any{"encf": p.ENCF, "xml_base64": base64.StdEncoding.EncodeToString([]byte(written.XML))},
	})
	if err != nil {
		return 0, err
	}
	id, at := "m-"+p.ENCF+strconv.FormatBool(p.Reject), w.now()
	answer, err := n.call(http.MethodPost, "/v1/events/inbound/"+w.tp.source, http.Header{
		"Content-Type": {"application/json"}, webhook.HeaderID: {id}, webhook.HeaderTimestamp: {strconv.FormatInt(at.Unix(), 10)},
		webhook.HeaderSignature: {webhook.Sign(id, at, body, w.tp.secret)},
	}, body)
	if err != nil {
		return 0, err
	}
	return answer.Code, nil
}
