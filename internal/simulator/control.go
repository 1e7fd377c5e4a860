package simulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"
)

// maxControl is the largest body of a call to the control API. Snapshots are large.
const maxControl = 256 << 20

// Control serves the control API, under /_sim/v1.
func (s *Simulator) Control() http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxControl)
			v, err := do(r)
			writeControl(w, v, err)
		})
	}
	s.controlState(handle)
	s.controlRecords(handle)
	s.controlRules(handle)
	s.controlTaxpayers(handle)
	s.controlDocuments(handle)
	mux.HandleFunc("GET /_sim/v1/trust", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-pem-file")
		_, _ = w.Write(s.RootsPEM()) // the client may have gone
	})
	mux.HandleFunc("GET /_sim/v1/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = io.WriteString(w, s.metrics()) // the client may have gone
	})
	return mux
}

type handleFunc func(pattern string, do func(r *http.Request) (any, error))

func writeControl(w http.ResponseWriter, v any, err error) {
	status := http.StatusOK
	var large *http.MaxBytesError
	switch {
	case errors.Is(err, ErrNotFound):
		status = http.StatusNotFound
	case errors.As(err, &large):
		status = http.StatusRequestEntityTooLarge
	case err != nil:
		status = http.StatusBadRequest
	}
	if err != nil {
		v = map[string]string{"error": err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // the client may have gone
}

// decode reads the JSON body of a call into v. An empty body leaves v as it is.
func decode(r *http.Request, v any) error {
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("simulator: read the body: %w", err)
	}
	return nil
}

// withBody makes a handler of a function that gets the JSON body of a call.
func withBody[T any](do func(r *http.Request, body T) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		var body T
		if err := decode(r, &body); err != nil {
			return nil, err
		}
		return do(r, body)
	}
}

// okResponse is the response of calls that return no data.
func okResponse(err error) (any, error) { return map[string]bool{"ok": err == nil}, err }

// A configView is the configuration with the seed and the count of resets.
type configView struct {
	Seed uint64 `json:"seed"`
	Config
	ResetCount int `json:"reset_count"`
}

func (s *Simulator) configView() configView {
	s.mu.Lock()
	defer s.mu.Unlock()
	return configView{s.state.Seed, *s.config.clone(), s.state.ResetCount}
}

func (s *Simulator) controlState(handle handleFunc) {
	handle("GET /_sim/v1/healthz", func(*http.Request) (any, error) { return okResponse(nil) })
	handle("POST /_sim/v1/reset", withBody(func(_ *http.Request, f *Fixture) (any, error) {
		return okResponse(s.Reset(f))
	}))
	handle("GET /_sim/v1/config", func(*http.Request) (any, error) { return s.configView(), nil })
	handle("PUT /_sim/v1/config", func(r *http.Request) (any, error) {
		// Fields that are not in the body keep their values.
		next := s.configView()
		if err := decode(r, &next); err != nil {
			return nil, err
		}
		if err := s.Configure(func(c *Config) { *c = next.Config }); err != nil {
			return nil, err
		}
		s.SetSeed(next.Seed)
		return s.configView(), nil
	})
	handle("POST /_sim/v1/clock", func(r *http.Request) (any, error) {
		var in struct {
			Freeze  *bool     `json:"freeze"`
			Set     time.Time `json:"set"`
			Advance Duration  `json:"advance"`
		}
		if err := decode(r, &in); err != nil {
			return nil, err
		}
		if in.Freeze != nil {
			s.clock.freeze(*in.Freeze)
		}
		if !in.Set.IsZero() {
			s.SetClock(in.Set)
		}
		s.Advance(time.Duration(in.Advance))
		return map[string]any{"now": s.Now(), "frozen": s.clock.isFrozen()}, nil
	})
	handle("POST /_sim/v1/settle", func(*http.Request) (any, error) { s.Settle(); return okResponse(nil) })
	handle("POST /_sim/v1/snapshot", func(*http.Request) (any, error) {
		b, err := s.Snapshot()
		return json.RawMessage(b), err
	})
	handle("POST /_sim/v1/restore", func(r *http.Request) (any, error) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		return okResponse(s.Restore(b))
	})
}

func (s *Simulator) controlRecords(handle handleFunc) {
	handle("GET /_sim/v1/requests", func(r *http.Request) (any, error) {
		since := uint64(0)
		if text := r.URL.Query().Get("since"); text != "" {
			var err error
			if since, err = strconv.ParseUint(text, 10, 64); err != nil {
				return nil, errors.New("simulator: since must be the seq of a request")
			}
		}
		return s.requestsSince(since), nil
	})
	handle("GET /_sim/v1/violations", func(*http.Request) (any, error) { return s.Violations(), nil })
	handle("DELETE /_sim/v1/violations", func(*http.Request) (any, error) { s.ClearViolations(); return okResponse(nil) })
}

// metrics returns counters in the text format of Prometheus.
func (s *Simulator) metrics() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	documents := 0
	for _, e := range s.state.Environments {
		documents += len(e.Documents)
	}
	fired := 0
	for _, rules := range [][]*activeRule{s.state.Rules, s.state.ProfileRules} {
		for _, a := range rules {
			fired += a.Fired
		}
	}
	return fmt.Sprintf("simulator_requests_total %d\nsimulator_submissions_total %d\nsimulator_documents %d\nsimulator_violations %d\nsimulator_faults_total %d\nsimulator_resets_total %d\n",
		s.journal.seq, s.state.Submissions, documents, len(s.state.Violations)+s.state.Overflow, fired, s.state.ResetCount)
}
