package simulator_test

import (
	"net/http"
	"testing"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

func TestPathsLeadToServices(t *testing.T) {
	t.Parallel()
	e := newEnv(t).login()
	for path, want := range map[string]int{
		"/ecf-host/ECF/ConsultaResultado/API/Consultas/Estado?TRACKID=x": 200, "/ecf-host/moon/x": 404, "/": 404, "/ecf-host/ecf/nonsense": 404,
		"/fc-host/ecf/recepcionfc/api/recepcion/ecf": 405, "/ecf-host/certecf/consultadirectorio/api/consultas/listado": 404, "/status-host/api/estatusservicios/x": 401,
		"/peer/" + issuer + "/fe/autenticacion/api/semilla": 404, peerSeed: 200,
	} {
		if a := e.get(path); a.status != want {
			t.Errorf("%s: %d, want %d", path, a.status, want)
		}
	}
	if q := e.Requests(); q[len(q)-1].Seq != uint64(len(q)) || len(q) != 11 {
		t.Errorf("the journal has %d requests", len(q))
	}
	q := e.request(t.Context(), http.MethodGet, "/testecf/autenticacion/api/autenticacion/semilla", "", nil)
	q.Host = "ecf.dgii.gov.do"
	if a := e.do(q); a.status != http.StatusOK {
		t.Errorf("with the authority's host name: %d", a.status)
	}
	must(t, e.Configure(func(c *simulator.Config) { c.CertECFFull = true }))
	if a := e.get("/ecf-host/certecf/consultadirectorio/api/consultas/listado"); a.status != http.StatusUnauthorized {
		t.Errorf("certecf in full, with the token of another environment: %d", a.status)
	}
}
