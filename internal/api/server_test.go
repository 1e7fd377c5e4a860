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

func TestMetricsAreOnlyForTheSameMachine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, peer, forwarded string
		want                  bool
	}{
		{"loopback", "127.0.0.1:1", "", true},
		{"loopback on IPv6", "[::1]:1", "", true},
		{"loopback inside IPv6", "[::ffff:127.0.0.1]:1", "", true},
		{"another machine", "192.0.2.1:1", "", false},
		{"another machine through a proxy here", "127.0.0.1:1", "192.0.2.1", false},
		{"no address", "pipe", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := &http.Request{RemoteAddr: tt.peer, Header: http.Header{}}
			if tt.forwarded != "" {
				r.Header.Set("X-Forwarded-For", tt.forwarded)
			}
			if got := isLocal(r); got != tt.want {
				t.Errorf("isLocal = %v", got)
			}
		})
	}
}
