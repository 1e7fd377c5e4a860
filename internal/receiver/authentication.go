package receiver

import (
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

var errSeed = errors.New("the seed is none of ours, has expired or was used")

// giveSeed answers with a new seed.
func (rc *Receiver) giveSeed(x *exchange) answer {
	issued := x.now.Truncate(time.Microsecond)
	w := xmlsig.NewWriter("SemillaModel", 1<<10,
		xmlsig.Namespace{Prefix: "xsi", URI: "http://www.w3.org/2001/XMLSchema-instance"},
		xmlsig.Namespace{Prefix: "xsd", URI: "http://www.w3.org/2001/XMLSchema"})
	w.Text("valor", rc.newSeed(issued))
	w.Text("fecha", issued.In(fiscal.Zone()).Format("2006-01-02T15:04:05.0000000-07:00"))
	return answer{status: http.StatusOK, kind: kindXML, body: w.Unsigned()}
}

// giveToken turns a signed seed into a token.
func (rc *Receiver) giveToken(x *exchange) answer {
	limits := xmlsig.SmallLimits()
	raw, err := upload(x.w, x.r, limits.Bytes)
	if err != nil {
		return refuse(http.StatusBadRequest, "No se recibió la semilla firmada.", err)
	}
	v, err := xmlsig.Verify(raw, limits)
	if err != nil {
		return refuse(http.StatusBadRequest, "La firma de la semilla no es válida.", err)
	}
	if err := v.Trusted(rc.Roots, x.now); err != nil {
		return refuse(http.StatusBadRequest, "El certificado no es de confianza.", err)
	}
	expires, digest, ok := rc.signedSeed(v.Root(), x.now)
	if !ok {
		return refuse(http.StatusBadRequest, "La semilla no es válida o ha expirado.", errSeed)
	}
	// Whatever can be wrong with it is looked at before: what is remembered has
	// been used. It is remembered for longer than it is good, because the clocks of
	// two processes may differ.
	fresh, err := rc.Seeds.UseSeed(x.r.Context(), digest, expires.Add(seedLife), x.now)
	switch {
	case err != nil:
		return later(fmt.Errorf("use the seed: %w", err))
	case !fresh:
		return refuse(http.StatusBadRequest, "La semilla no es válida o ha expirado.", errSeed)
	}
	x.note("caller", callerOf(v.Certificate).String())
	return rc.tokenAnswer(x, v)
}

// signedSeed reads a seed that came back: the value and the instant that were
// given, and nothing else. Senders that read the instant may have written it in
// another way.
func (rc *Receiver) signedSeed(root xmlsig.Element, now time.Time) (expires time.Time, digest []byte, ok bool) {
	texts := []string{}
	for e := range root.Children() {
		if len(texts) == 2 || e.Name() != [...]string{"valor", "fecha"}[len(texts)] || e.HasChildren() {
			return time.Time{}, nil, false
		}
		texts = append(texts, strings.TrimSpace(e.Text()))
	}
	if root.Name() != "SemillaModel" || len(texts) != 2 {
		return time.Time{}, nil, false
	}
	issued, digest, ours := rc.readSeed(texts[0])
	said, err := time.Parse(time.RFC3339Nano, texts[1])
	expires = issued.Add(seedLife)
	return expires, digest, ours && err == nil && said.Equal(issued) && now.Before(expires)
}

func (rc *Receiver) tokenAnswer(x *exchange, v *xmlsig.Verified) answer {
	expires := x.now.Add(tokenLife)
	if v.Certificate.NotAfter.Before(expires) {
		expires = v.Certificate.NotAfter
	}
	token := rc.newToken(v.Certificate, xmlsig.Person(v.Certificate), expires)
	until, since := expires.UTC().Format(time.RFC3339), x.now.UTC().Format(time.RFC3339)
	if wantsXML(x.r.Header) {
		w := xmlsig.NewWriter("RespuestaAutenticacion", 1<<10)
		w.Text("token", token)
		w.Text("expira", until)
		w.Text("expedido", since)
		return answer{status: http.StatusOK, kind: kindXML, body: w.Unsigned()}
	}
	return encode(http.StatusOK, struct {
		Token   string `json:"token"`
		Expires string `json:"expira"`
		Issued  string `json:"expedido"`
	}{token, until, since})
}

// wantsXML tells whether XML is wanted more than JSON.
func wantsXML(h http.Header) bool {
	xml, json := 0.0, 0.0
	for _, entry := range strings.Split(strings.Join(h.Values("Accept"), ","), ",") {
		kind, parameters, err := mime.ParseMediaType(entry)
		if err != nil {
			continue
		}
		weight := 1.0
		if q, given := parameters["q"]; given {
			if weight, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		switch kind {
		case "application/xml", "text/xml":
			xml = max(xml, weight)
		case "application/json", "text/json":
			json = max(json, weight)
		}
	}
	return xml > json
}
