package api

import (
	"log/slog"
	"net/http"
	"testing"
	"time"
)

func TestServerHasTheTimeoutsAndLimits(t *testing.T) {
	t.Parallel()
	s := NewServer(http.NotFoundHandler(), slog.New(slog.DiscardHandler))
	for name, got := range map[string][2]time.Duration{
		"ReadHeaderTimeout": {s.ReadHeaderTimeout, 5 * time.Second},
		"ReadTimeout":       {s.ReadTimeout, 30 * time.Second},
		"WriteTimeout":      {s.WriteTimeout, 60 * time.Second},
		"IdleTimeout":       {s.IdleTimeout, 120 * time.Second},
	} {
		if got[0] != got[1] {
			t.Errorf("%s is %s, want %s", name, got[0], got[1])
		}
	}
	if s.MaxHeaderBytes+(4<<10) != 16<<10 || s.HTTP2.MaxConcurrentStreams != 128 {
		t.Errorf("headers of %d bytes, %d streams", s.MaxHeaderBytes, s.HTTP2.MaxConcurrentStreams)
	}
}
