package dgii

import (
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
		"directory":    func() error { _, _, err := c.Receiver(testContext(t), id, "101010101"); return err },
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
	s.respond(answer(200, `[{"trackId":"a","estado":"Aceptado"}]`))
	if list, err := c.TrackIDs(testContext(t), signer(t), query()); err != nil || len(list) != 1 {
		t.Errorf("a service that answers exists: %v, %v", list, err)
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
