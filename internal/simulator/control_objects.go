package simulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func (s *Simulator) controlRules(handle handleFunc) {
	handle("POST /_sim/v1/rules", withBody(func(_ *http.Request, rule Rule) (any, error) {
		id, err := s.AddRule(rule)
		return map[string]string{"id": id}, err
	}))
	handle("GET /_sim/v1/rules", func(*http.Request) (any, error) { return s.Rules(), nil })
	handle("GET /_sim/v1/rules/{id}", func(r *http.Request) (any, error) {
		for _, v := range s.Rules() {
			if v.ID == r.PathValue("id") {
				return v, nil
			}
		}
		return nil, ErrNotFound
	})
	handle("DELETE /_sim/v1/rules", func(*http.Request) (any, error) { s.ClearRules(); return okResponse(nil) })
	handle("DELETE /_sim/v1/rules/{id}", func(r *http.Request) (any, error) { return okResponse(s.RemoveRule(r.PathValue("id"))) })
}

func (s *Simulator) controlTaxpayers(handle handleFunc) {
	handle("POST /_sim/v1/taxpayers", withBody(func(_ *http.Request, t Taxpayer) (any, error) {
		return t, s.AddTaxpayer(t)
	}))
	handle("GET /_sim/v1/taxpayers", func(*http.Request) (any, error) { return s.Taxpayers(), nil })
	handle("PATCH /_sim/v1/taxpayers/{rnc}", withBody(func(r *http.Request, patch json.RawMessage) (any, error) {
		return okResponse(s.UpdateTaxpayer(r.PathValue("rnc"), func(t *Taxpayer) error {
			if err := json.Unmarshal(patch, t); err != nil {
				return fmt.Errorf("simulator: read the body: %w", err)
			}
			return nil
		}))
	}))
	handle("POST /_sim/v1/certificates", withBody(func(_ *http.Request, in CertificateRequest) (any, error) {
		return s.IssueCertificate(in)
	}))
	handle("POST /_sim/v1/peers/{rnc}/send-ecf", withBody(func(r *http.Request, p Push) (any, error) {
		return s.SendECF(r.Context(), r.PathValue("rnc"), p)
	}))
	handle("POST /_sim/v1/peers/{rnc}/send-acecf", withBody(func(r *http.Request, p Push) (any, error) {
		return s.SendACECF(r.Context(), r.PathValue("rnc"), p)
	}))
	handle("GET /_sim/v1/peers/{rnc}/deliveries", func(r *http.Request) (any, error) { return s.Deliveries(r.PathValue("rnc")), nil })
}

// Taxpayers returns the registered taxpayers, ordered by RNC.
func (s *Simulator) Taxpayers() []Taxpayer {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Taxpayer{}
	for _, t := range s.state.Taxpayers {
		all = append(all, *t.clone())
	}
	slices.SortFunc(all, func(a, b Taxpayer) int { return strings.Compare(a.RNC, b.RNC) })
	return all
}

func (s *Simulator) controlDocuments(handle handleFunc) {
	handle("GET /_sim/v1/documents", func(r *http.Request) (any, error) {
		q := r.URL.Query()
		return s.Documents(Filter{Amb: q.Get("amb"), RNC: q.Get("rnc"), ENCF: q.Get("encf")}), nil
	})
	handle("GET /_sim/v1/documents/{id}", func(r *http.Request) (any, error) {
		if found := s.Documents(Filter{ID: r.PathValue("id")}); len(found) > 0 {
			return found[0], nil
		}
		return nil, ErrNotFound
	})
	handle("POST /_sim/v1/documents/{id}/verdict", withBody(func(r *http.Request, v Verdict) (any, error) {
		return okResponse(s.ForceVerdict(r.PathValue("id"), v))
	}))
}
