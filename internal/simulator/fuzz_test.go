package simulator_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/simulator"
)

// FuzzUpload sends arbitrary uploads and addresses: multipart bodies, XML and queries. No
// input may panic. The state is reset before every input, so that a failure can be
// repeated.
func FuzzUpload(f *testing.F) {
	clock := &fakeClock{at: time.Date(2026, 6, 1, 12, 0, 0, 0, zone)}
	s, err := simulator.New(simulator.Options{Now: clock.now, Config: simulator.Quick(), Fixture: &simulator.Fixture{
		Taxpayers: []simulator.Taxpayer{simulator.Baseline(issuer, person, "2027-12-31"), {RNC: buyer, Receiver: &simulator.Receiver{}}},
	}})
	must(f, err)
	handler := s.Handler()
	const kind = "multipart/form-data; boundary=b"
	form := func(xml string) []byte {
		return []byte("--b\r\nContent-Disposition: form-data; name=xml; filename=" + issuer + encf31(1) + ".xml\r\n\r\n" + xml + "\r\n--b--")
	}
	f.Add(reception, kind, form(`<ECF><Encabezado><IdDoc><eNCF>E310000000001</eNCF></IdDoc><Emisor><RNCEmisor>199000013</RNCEmisor></Emisor></Encabezado></ECF>`))
	f.Add(fc+"?x=%zz&RNC=1", kind, form("<RFCE><Encabezado/></RFCE>"))
	f.Add(tokenURL, kind, form("<SemillaModel><valor>x</valor></SemillaModel>"))
	f.Add(result+"?trackid=%00&TrackID=1", "", []byte{})
	f.Add(peerPath, `multipart/form-data; boundary=""`, []byte("--"))
	f.Fuzz(func(t *testing.T, path, kind string, body []byte) {
		if len(body) > 16<<10 || path == "" || path[0] != '/' {
			t.Skip()
		}
		must(t, s.Reset(nil))
		for _, method := range []string{http.MethodPost, http.MethodGet} {
			// The request has its own context: a call that waits would outlive the input.
			q, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, "http://sim"+path, bytes.NewReader(body))
			if err != nil {
				t.Skip()
			}
			q.Header.Set("Content-Type", kind)
			handler.ServeHTTP(httptest.NewRecorder(), q)
		}
	})
}
