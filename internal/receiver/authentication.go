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

var errSeed = errors.New("the seed is unknown, has expired or was used before")

// issueSeed answers with a new seed.
func (rc *Receiver) issueSeed(x *exchange) answer {
	issued := x.now.Truncate(time.Microsecond)
	w := xmlsig.NewWriter("SemillaModel", 1<<10,
		xmlsig.Namespace{Prefix: "xsi", URI: "http://www.w3.org/2001/XMLSchema-instance"},
		xmlsig.Namespace{Prefix: "xsd", URI: "http://www.w3.org/2001/XMLSchema"})
	w.Text("valor", rc.newSeed(issued))
	w.Text("fecha", issued.In(fiscal.Zone()).Format("2006-01-02T15:04:05.0000000-07:00"))
	return answer{status: http.StatusOK, kind: kindXML, body: w.Unsigned()}
}

// issueToken checks a signed seed and answers with a token.
func (rc *Receiver) issueToken(x *exchange) answer {
	limits := xmlsig.SmallLimits()
	raw, err := rc.upload(x, limits.Bytes)
	if err != nil {
		return refuseUpload("No se recibió la semilla firmada.", err)
	}
	v, err := xmlsig.Verify(raw, limits)
	if err != nil {
		return rc.refuseSeed(x, "La firma de la semilla no es válida.", err)
	}
	if err := v.Trusted(rc.o.Roots, x.now); err != nil {
		return rc.refuseSeed(x, "El certificado no es de confianza.", err)
	}
	expires, digest, ok := rc.readSignedSeed(v.Root(), x.now)
	if !ok {
		return rc.refuseSeed(x, "La semilla no es válida o ha expirado.", errSeed)
	}
	// All other checks come first, because UseSeed uses the seed up. The seed is stored
	// for longer than it is valid, because the clocks of two processes may differ.
	fresh, err := rc.o.Seeds.UseSeed(x.r.Context(), digest, expires.Add(seedLife), x.now)
	switch {
	case err != nil:
		return unavailable(fmt.Errorf("use the seed: %w", err))
	case !fresh:
		return rc.refuseSeed(x, "La semilla no es válida o ha expirado.", errSeed)
	}
	x.addToLog("caller", newCaller(v.Certificate).String())
	return rc.tokenAnswer(x, v)
}

// refuseSeed reports a signed seed that is refused, and returns the answer to it.
func (rc *Receiver) refuseSeed(x *exchange, message string, cause error) answer {
	rc.o.OnWrongSeed(x.r)
	return refuse(http.StatusBadRequest, message, cause)
}

// readSignedSeed reads a signed seed. It must have the value and the instant that we
// issued, and no other element. The sender may have written the instant in another
// format. ok is false when the seed is not valid.
func (rc *Receiver) readSignedSeed(root xmlsig.Element, now time.Time) (expires time.Time, digest []byte, ok bool) {
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
	written, err := time.Parse(time.RFC3339Nano, texts[1])
	expires = issued.Add(seedLife)
	return expires, digest, ours && err == nil && written.Equal(issued) && now.Before(expires)
}

// tokenAnswer answers with a token for the certificate of a signed seed, as JSON or XML.
// The token expires with the certificate at the latest.
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

// wantsXML reports whether the header Accept prefers XML to JSON.
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
