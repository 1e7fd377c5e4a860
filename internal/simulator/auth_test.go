package simulator_test

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestSeedIsValidOnceAndForFiveMinutes(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	signed := e.signSeed(e.get(seedURL), e.id)
	if a := e.upload(tokenURL, "semilla.xml", signed); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := e.upload(tokenURL, "semilla.xml", signed); a.status != http.StatusBadRequest {
		t.Errorf("used twice: %d %s", a.status, a.body)
	}
	signed = e.signSeed(e.get(seedURL), e.id)
	e.clock.advance(6 * time.Minute)
	if a := e.upload(tokenURL, "semilla.xml", signed); a.status != http.StatusBadRequest {
		t.Errorf("too late: %d %s", a.status, a.body)
	}
	signed = e.signSeed(e.get(strings.Replace(seedURL, "/ecf/", "/testecf/", 1)), e.id)
	if a := e.upload(tokenURL, "semilla.xml", signed); a.status != http.StatusBadRequest {
		t.Errorf("of another environment: %d %s", a.status, a.body)
	}
	if a := e.upload(tokenURL, "semilla.xml", []byte(e.get(seedURL).body)); a.status != http.StatusBadRequest {
		t.Errorf("not signed: %d %s", a.status, a.body)
	}
	e.login()
	e.clock.advance(59 * time.Minute)
	if a := e.get(result, "trackid", "x"); a.status != http.StatusOK {
		t.Errorf("before it expires: %d", a.status)
	}
	e.clock.advance(time.Minute)
	if a := e.get(result, "trackid", "x"); a.status != http.StatusUnauthorized || a.body != "" {
		t.Errorf("after an hour: %d %q", a.status, a.body)
	}
}
