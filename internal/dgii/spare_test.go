package dgii

import (
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
)

// spareEnv counts the look-ups that arrive.
func spareEnv(t *testing.T, body string) (*env, *atomic.Int64) {
	t.Helper()
	var asked atomic.Int64
	return newEnv(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(200, body)(w, r)
	}), &asked
}

const acceptedState = `{"codigo":1,"estado":"Aceptado","rncEmisor":"131256432","ncfElectronico":"E310000000058","montoTotal":1180.00,"rncComprador":"101-01010-1","codigoSeguridad":"abc123"}`

func TestSpareLookUpShowsWhatTheAuthorityHolds(t *testing.T) {
	t.Parallel()
	s, _ := spareEnv(t, acceptedState)
	spare := s.client(t).Spare()
	got, err := spare.State(testContext(t), signer(t), query())
	if err != nil || got.Verdict != fiscal.VerdictAccepted || got.SecurityCode != "abc123" || got.BuyerRNC != "101010101" || got.Total.String() != "1180" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := spare.SummaryState(testContext(t), signer(t), query()); err != nil || got.Verdict != fiscal.VerdictAccepted {
		t.Errorf("%+v, %v", got, err)
	}
}

// A spare look-up does not wait for a slot and does not take one that other calls may
// need: it fails, and nothing is sent.
func TestSpareLookUpYieldsToOtherCalls(t *testing.T) {
	t.Parallel()
	s, asked := spareEnv(t, acceptedState)
	c := s.client(t, func(o *Options) { o.MaxInFlight = 4 })
	spare, id := c.Spare(), signer(t)
	if _, err := spare.State(testContext(t), id, query()); err != nil { // gets the token
		t.Fatal(err)
	}
	var held []func()
	for range 3 {
		free, err := c.reception.slots.acquire(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, free)
	}
	for name, ask := range map[string]func() (fiscal.AuthorityAnswer, error){
		"state":   func() (fiscal.AuthorityAnswer, error) { return spare.State(testContext(t), id, query()) },
		"summary": func() (fiscal.AuthorityAnswer, error) { return spare.SummaryState(testContext(t), id, query()) },
	} {
		_, err := ask()
		if !errors.Is(err, fiscal.ErrOutage) || !errors.Is(err, fiscal.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable and ErrOutage", name, err)
		}
	}
	if _, err := c.State(testContext(t), id, query()); err != nil {
		t.Errorf("a usual look-up: %v", err)
	}
	held[0]()
	if _, err := spare.State(testContext(t), id, query()); err != nil {
		t.Errorf("with half of the slots free: %v", err)
	}
	if got := asked.Load(); got != 3 {
		t.Errorf("%d look-ups arrived, want 3", got)
	}
}

// While a service must not be called, no spare look-up is made. When nothing probes the
// service any more, its open circuit does not stop look-ups for ever.
func TestSpareLookUpWaitsForOpenCircuits(t *testing.T) {
	t.Parallel()
	s, asked := spareEnv(t, acceptedState)
	c := s.client(t)
	spare, id := c.Spare(), signer(t)
	for range failureThreshold {
		c.record(c.reception, failed, false)
	}
	if _, err := spare.State(testContext(t), id, query()); !errors.Is(err, fiscal.ErrOutage) {
		t.Errorf("reception is closed: %v, want ErrOutage", err)
	}
	if got := asked.Load(); got != 0 {
		t.Errorf("%d look-ups arrived", got)
	}
	s.clock.advance(probeInterval + time.Second)
	if _, err := spare.State(testContext(t), id, query()); err != nil {
		t.Errorf("after the time of a probe: %v", err)
	}
}

// ErrOutage tells a service that does not work from a document that cannot be looked up.
func TestLookUpTellsAnOutageFromARefusal(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status int
		body   string
		outage bool
	}{
		"500":                     {500, ``, true},
		"a page":                  {200, htmlPage, true},
		"429":                     {429, ``, true},
		"a sentence":              {400, `"El RNC del token no está autorizado"`, false},
		"another document":        {200, `{"codigo":1,"estado":"Aceptado","rncEmisor":"101010101"}`, false},
		"a contradiction":         {200, `{"codigo":1,"estado":"Rechazado"}`, false},
		"401 again":               {401, ``, false},
		"a 404 that is no answer": {404, htmlPage, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newEnv(t, answer(tt.status, tt.body)).client(t).State(testContext(t), signer(t), query())
			if !errors.Is(err, fiscal.ErrUnavailable) || errors.Is(err, fiscal.ErrOutage) != tt.outage {
				t.Errorf("%v: outage %v, want %v", err, !tt.outage, tt.outage)
			}
		})
	}
	s := newEnv(t, answer(200, acceptedState))
	c := s.client(t)
	s.Close()
	if _, err := c.State(testContext(t), signer(t), query()); !errors.Is(err, fiscal.ErrOutage) {
		t.Errorf("no connection: %v, want ErrOutage", err)
	}
}
