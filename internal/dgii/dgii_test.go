package dgii

import (
	"net/http"
	"testing"
	"time"
)

func TestClockOffsetComesFromTheDateHeader(t *testing.T) {
	t.Parallel()
	s := newEnv(t, nil)
	s.respond(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", s.clock.Now().Add(90*time.Second).UTC().Format(http.TimeFormat))
		answer(503, "")(w, r)
	})
	c := s.client(t)
	if _, known := c.Clock(); known {
		t.Error("the offset is known before any response")
	}
	if _, err := c.Result(testContext(t), signer(t), "t"); err == nil {
		t.Error("no error")
	}
	if offset, known := c.Clock(); !known || offset < 88*time.Second || offset > 91*time.Second {
		t.Errorf("%v, %v", offset, known)
	}
}
