package simulator_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The test compares every response, byte by byte, for both wires.
func TestResponsesMatchTheGoldenFiles(t *testing.T) {
	t.Parallel()
	for _, wire := range []simulator.Wire{simulator.Observed, simulator.Documented} {
		t.Run(string(wire), func(t *testing.T) {
			t.Parallel()
			e := newEnv(t, func(o *simulator.Options) { o.Config.Wire, o.Config.StatusKey = wire, "clave" }).login()
			got := allResponses(e)
			path := filepath.Join("testdata", "answers-"+string(wire)+".golden")
			if *update {
				must(t, os.MkdirAll("testdata", 0o755))
				must(t, os.WriteFile(path, []byte(got), 0o644))
			}
			want, err := os.ReadFile(path)
			must(t, err)
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// allResponses calls every service and returns the responses as text.
func allResponses(e *env) string {
	var b strings.Builder
	say := func(what string, a response) {
		body := strings.ReplaceAll(a.body, e.base, "http://HOST")
		// Signatures and tokens depend on keys, which differ from run to run.
		body = regexp.MustCompile(`codigoSeguridad":"[^"]{6}`).ReplaceAllString(body, `codigoSeguridad":"CODIGO`)
		body = regexp.MustCompile(`"token":"[^"]*`).ReplaceAllString(body, `"token":"TOKEN`)
		_, _ = fmt.Fprintf(&b, "# %s\n%d %s\n%s\n\n", what, a.status, a.header.Get("Content-Type"), body)
	}
	amb := func(path, to string) string { return strings.Replace(path, "/ecf/", "/"+to+"/", 1) }
	raw := e.sign(invoice, encf31(1))
	say("seed", e.get(seedURL))
	say("token", e.authenticate(amb(seedURL, "testecf"), amb(tokenURL, "testecf"), e.id))
	say("reception", e.upload(reception, issuer+encf31(1)+".xml", raw))
	id := e.Documents(simulator.Filter{})[0].TrackID
	e.clock.advance(3 * time.Second)
	say("result accepted", e.get(result, "TrackId", id))
	say("result unknown", e.get(result, "trackid", "00000000-0000-4000-8000-000000000000"))
	must(e.t, e.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(time.Hour) }))
	slow := e.send(encf31(2), e.sign(invoice, encf31(2), "<RNCComprador>199000021", "<RNCComprador>199000022"))
	say("result in process", e.get(result, "trackid", slow))
	e.Settle()
	e.clock.advance(3 * time.Second)
	say("result conditional", e.get(result, "trackid", slow))
	must(e.t, e.Configure(func(c *simulator.Config) { c.ValidationDelay = simulator.Fixed(0) }))
	say("result rejected", e.get(result, "trackid", e.send(encf31(3), e.sign(invoice, encf31(3), "31-12-2027", "31-12-2028"))))
	say("state accepted", e.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(1), "rnccomprador", buyer))
	say("state conditional", e.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(2)))
	say("state rejected", e.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(3)))
	say("state unknown", e.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf31(9)))
	say("state without parameters", e.get(stateURL))
	say("trackIds", e.get(trackURL, "rncemisor", issuer, "encf", encf31(1)))
	say("trackIds unknown", e.get(trackURL, "rncemisor", issuer, "encf", encf31(9)))
	for _, q := range [][2]string{{"", encf31(1)}, {issuer, ""}, {"1", encf31(1)}, {issuer, "E31"}, {issuer, "X310000000001"}, {buyer, encf31(1)}} {
		say("trackIds of "+q[0]+" "+q[1], e.get(trackURL, "rncemisor", q[0], "encf", q[1]))
	}
	say("RFCE accepted", e.upload(fc, issuer+encf32(1)+".xml", e.sign(summary, encf32(1))))
	say("RFCE conditional", e.upload(fc, issuer+encf32(2)+".xml", e.sign(summary, encf32(2), "4425.00", "4426.00")))
	say("RFCE rejected", e.upload(fc, issuer+encf32(1)+".xml", e.sign(summary, encf32(1))))
	for n, what := range map[int]string{1: "accepted"} {
		say("RFCE look-up "+what, e.get(fcLookup, "rnc_emisor", issuer, "encf", encf32(n), "cod_seguridad_ecf", "k7Qx+2"))
	}
	say("RFCE look-up unknown", e.get(fcLookup, "rnc_emisor", issuer, "encf", encf32(1), "cod_seguridad_ecf", "xxxxxx"))
	say("RFCE look-up without parameters", e.get(fcLookup))
	say("state of a conditional RFCE", e.get(stateURL, "rncemisor", issuer, "ncfelectronico", encf32(2)))
	say("directory", e.get(directory+"listado"))
	say("directory by RNC", e.get(directory+"ObtenerDirectorioPorRNC", "RNC", buyer))
	say("directory without an entry", e.get(directory+"obtenerdirectorioporrnc", "rnc", issuer))
	say("wrong file name", e.upload(reception, "ecf.xml", raw))
	say("wrong root", e.upload(fc, issuer+encf31(1)+".xml", raw))
	say("annulment", e.annul(encf31(5), encf31(6)))
	say("approval", e.approval(buyer, encf31(1), "4425"))
	say("approval of nothing", e.approval(buyer, encf31(9), "4425.00"))
	for _, what := range []string{"obtenerestatus", "obtenerventanasmantenimiento", "verificarestado?ambiente=2", "verificarestado?ambiente=9"} {
		q := e.request(e.t.Context(), http.MethodGet, "/status-host/api/estatusservicios/"+what, "", nil)
		q.Header.Set("Authorization", "ApiKey clave")
		say(what, e.do(q))
	}
	say("status without a key", e.get("/status-host/api/estatusservicios/obtenerestatus"))
	e.token = ""
	say("no token", e.get(result, "trackid", id))
	return b.String()
}
