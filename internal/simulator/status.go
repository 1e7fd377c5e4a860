package simulator

import (
	"crypto/subtle"
	"net/http"
	"strings"
)

// serveStatus reports whether the services work.
func (c *call) serveStatus() response {
	kind, key, _ := strings.Cut(c.r.Header.Get("Authorization"), " ")
	if c.config.StatusKey == "" || !strings.EqualFold(kind, "Apikey") || subtle.ConstantTimeCompare([]byte(key), []byte(c.config.StatusKey)) != 1 {
		return response{status: http.StatusUnauthorized}
	}
	state := "Disponible"
	if c.config.Maintenance || c.s.closedByRule(c) {
		state = "No Disponible"
	}
	const production = "Produccion"
	switch c.rest {
	case "obtenerestatus":
		type shape struct {
			Service string `json:"servicio"`
			State   string `json:"estatus"`
			Amb     string `json:"ambiente"`
		}
		services := []shape{}
		for _, amb := range []string{"PreCertificacion", "Certificacion", production} {
			for _, name := range []string{
				"Autenticación", "Recepción", "Consulta Resultado", "Consulta Estado", "Consulta Directorio",
				"Consulta TrackIds", "Aprobación Comercial", "Anulación Rangos", "Recepción FC",
			} {
				services = append(services, shape{name, state, amb})
			}
		}
		return jsonResponse(http.StatusOK, services)
	case "obtenerventanasmantenimiento":
		type window struct {
			Amb   string   `json:"ambiente"`
			Start string   `json:"horaInicio"`
			End   string   `json:"horaFin"`
			Days  []string `json:"dias"`
		}
		windows := []window{}
		if state != "Disponible" {
			today := c.now.In(zone)
			windows = append(windows, window{production, "12:00 AM", "11:59 PM", []string{today.Format(dateLayout)}})
		}
		return jsonResponse(http.StatusOK, map[string]any{"ventanaMantenimientos": windows})
	case "verificarestado":
		if a := c.query["ambiente"]; a != "1" && a != "2" && a != "3" {
			return jsonResponse(http.StatusBadRequest, "El ambiente no es válido.")
		}
		return jsonResponse(http.StatusOK, map[string]any{"estado": state})
	}
	return response{status: http.StatusNotFound}
}

// closedByRule reports whether a rule with F21 applies now.
func (s *Simulator) closedByRule(c *call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.state.Rules {
		m := a.Match
		if a.Action.Fault == "F21" && (a.Count == 0 || a.Fired < a.Count) && (m.From.IsZero() || !c.now.Before(m.From)) && (m.To.IsZero() || c.now.Before(m.To)) {
			return true
		}
	}
	return false
}
