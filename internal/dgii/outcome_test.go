package dgii

import (
	"io"
	"net"
	"net/http"
	"testing"
)

func TestOnExchangeReportsServiceOutcomeAndDuration(t *testing.T) {
	t.Parallel()
	var seen []Exchange
	s := newEnv(t, nil)
	c := s.client(t, func(o *Options) { o.OnExchange = func(e Exchange) { seen = append(seen, e) } })
	id := signer(t)
	if _, err := c.token(testContext(t), id); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		answer http.HandlerFunc
		want   Outcome
		status int
	}{
		{answer(200, `{"trackId":"t"}`), OutcomeOK, 200},
		{answer(400, `{"mensaje":"no"}`), OutcomeRefused, 400},
		{answer(503, htmlPage), OutcomeServerError, 503},
		{func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			conn, _ := hijack(t, w)
			reset(conn)
		}, OutcomeLost, 0},
		{answer(429, ""), OutcomeRateLimited, 429},
	} {
		seen = nil
		s.respond(tt.answer)
		_, _ = c.Submit(testContext(t), id, shipment())
		if len(seen) != 1 || seen[0].Service != "reception" || seen[0].Outcome != tt.want || seen[0].Status != tt.status {
			t.Errorf("%+v, want %s", seen, tt.want)
		}
	}
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()
	seen = nil
	unreachable := s.client(t, func(o *Options) {
		o.Hosts.ECF = "http://" + closed.Addr().String()
		o.OnExchange = func(e Exchange) { seen = append(seen, e) }
	})
	_, _ = unreachable.Submit(testContext(t), id, shipment())
	if len(seen) != 1 || seen[0].Service != "auth" || seen[0].Outcome != OutcomeNotSent {
		t.Errorf("%+v", seen)
	}
}
