package dgii

import (
	"net/http"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// lookups returns every look-up by the name of its service.
func lookups(t *testing.T, c *Client) map[string]func() error {
	t.Helper()
	id := signer(t)
	return map[string]func() error{
		"result":       func() error { _, err := c.Result(testContext(t), id, "t"); return err },
		"state":        func() error { _, err := c.State(testContext(t), id, query()); return err },
		"trackids":     func() error { _, err := c.TrackIDs(testContext(t), id, query()); return err },
		"consultarfce": func() error { _, err := c.SummaryState(testContext(t), id, query()); return err },
		"directory":    func() error { _, _, err := c.BuyerEndpoint(testContext(t), id, "101010101"); return err },
	}
}

// unknownPages are bodies of HTTP 404 that do not come from the authority's service.
var unknownPages = []string{"", htmlPage, "404 page not found", `{"title":"Not Found","status":404}`, `[]`, `{"message":"no Route matched"}`}

// All services exist in production. However often a page says otherwise, it is an
// outage.
func TestUnknownPageIsAnOutageInProduction(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	c := s.client(t, func(o *Options) { o.Hosts.Environment = "ecf" })
	for name, ask := range lookups(t, c) {
		for n := range 2 * failureThreshold {
			s.respond(answer(404, unknownPages[n%len(unknownPages)]))
			s.clock.advance(time.Minute)
			wantError(t, ask(), fiscal.ErrUnavailable)
		}
		for _, service := range c.services {
			if service.name == name && !service.breaker.isOpen() {
				t.Errorf("the circuit of %s is closed", name)
			}
		}
	}
	s.respond(answer(404, htmlPage))
	_, err := c.Submit(testContext(t), signer(t), shipment())
	wantError(t, err, fiscal.ErrInconclusive)
	_, err = c.SubmitSummary(testContext(t), signer(t), shipment())
	wantError(t, err, fiscal.ErrInconclusive)
}

// The documentation says that certecf lacks three services. A page confirms it; an
// outage or an answer does not.
func TestPageConfirmsADocumentedAbsence(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	c := s.client(t, func(o *Options) { o.Hosts.Environment = "certecf" })
	for name, ask := range lookups(t, c) {
		want := fiscal.ErrUnavailable
		switch name {
		case "state", "trackids", "directory":
			want = fiscal.ErrAbsent
		}
		for _, page := range unknownPages[:2] {
			s.respond(answer(404, page))
			wantError(t, ask(), want)
		}
		s.respond(answer(503, htmlPage))
		wantError(t, ask(), fiscal.ErrUnavailable)
	}
}

// What has answered exists, whatever the documentation says: from then on a page is an
// outage, however many of them arrive.
func TestAServiceThatHasAnsweredExists(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"result":       `{"trackId":"t","estado":"Aceptado"}`,
		"state":        `{"codigo":1,"estado":"Aceptado"}`,
		"trackids":     `[{"trackId":"a","estado":"Aceptado"}]`,
		"consultarfce": `{"codigo":"1","estado":"Aceptado"}`,
		"directory":    `{"rnc":"101010101","urlRecepcion":"https://buyer.example"}`,
	}
	for _, environment := range []string{"certecf", "testecf"} {
		s := newEnv(t, nil)
		c := s.client(t, func(o *Options) { o.Hosts.Environment = environment })
		for name, ask := range lookups(t, c) {
			s.respond(answer(200, answers[name]))
			if err := ask(); err != nil {
				t.Fatalf("%s, %s: %v", environment, name, err)
			}
			for n := range 2 * failureThreshold {
				s.respond(answer(404, unknownPages[n%len(unknownPages)]))
				s.clock.advance(time.Minute)
				wantError(t, ask(), fiscal.ErrUnavailable)
			}
		}
	}
}

// The directory has also answered when it says nothing about a taxpayer.
func TestADirectoryThatHasAnsweredExists(t *testing.T) {
	t.Parallel()
	for _, first := range []http.HandlerFunc{answer(200, ""), answer(200, "[]"), answer(404, `{"mensaje":"RNC no encontrado"}`)} {
		s := newEnv(t, nil)
		c := s.client(t, func(o *Options) { o.Hosts.Environment = "certecf" })
		s.respond(first)
		if _, listed, err := c.BuyerEndpoint(testContext(t), signer(t), "101010101"); listed || err != nil {
			t.Fatalf("%v, %v", listed, err)
		}
		s.respond(answer(404, htmlPage))
		_, _, err := c.BuyerEndpoint(testContext(t), signer(t), "101010101")
		wantError(t, err, fiscal.ErrUnavailable)
	}
}

// Where the documentation says nothing, several pages in a row over a minute show
// that the service does not exist.
func TestSeveralPagesShowAnAbsence(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	c := s.client(t)
	for name, ask := range lookups(t, c) {
		t.Run(name, func(t *testing.T) {
			page := func(after time.Duration, want error) {
				t.Helper()
				s.clock.advance(after)
				s.respond(answer(404, htmlPage))
				wantError(t, ask(), want)
			}
			for range 4 {
				page(time.Second, fiscal.ErrUnavailable)
			}
			page(time.Minute, fiscal.ErrAbsent)
			page(0, fiscal.ErrAbsent)
			s.respond(answer(503, "")) // the pages are no longer in a row
			wantError(t, ask(), fiscal.ErrUnavailable)
			page(time.Minute, fiscal.ErrUnavailable)
			page(time.Minute, fiscal.ErrUnavailable)
			page(time.Minute, fiscal.ErrAbsent)
		})
	}
	for _, service := range c.services {
		if service.breaker.isOpen() {
			t.Errorf("the circuit of %s is open", service.name)
		}
	}
}
