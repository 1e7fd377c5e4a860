package simulator

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/xmlsig"
)

const (
	seedLife  = 5 * time.Minute
	tokenLife = time.Hour
	// tokenPause is how long one token is enough.
	tokenPause = 30 * time.Minute

	xsi = "http://www.w3.org/2001/XMLSchema-instance"
	xsd = "http://www.w3.org/2001/XMLSchema"
)

// seedDocument is a seed as DGII writes it: indented, and with the declarations
// in the order that is not the canonical one.
func seedDocument(value string, now time.Time) answer {
	return answer{status: http.StatusOK, kind: kindXML, body: fmt.Appendf(nil,
		"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<SemillaModel xmlns:xsi=%q xmlns:xsd=%q>\n  <valor>%s</valor>\n  <fecha>%s</fecha>\n</SemillaModel>",
		xsi, xsd, value, now.In(zone).Format("2006-01-02T15:04:05.0000000-07:00"))}
}

func (c *call) giveSeed() answer {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	d := newDraw(c.s.state.Seed, "seed", c.amb, c.s.state.next())
	value := base64.StdEncoding.EncodeToString(d[:])
	seeds := c.s.state.Environments[c.amb].Seeds
	forgetSeeds(seeds, c.now)
	seeds[value] = c.now
	return seedDocument(value, c.now)
}

// forgetSeeds keeps the seeds that nobody used from piling up.
func forgetSeeds(seeds map[string]time.Time, now time.Time) {
	if len(seeds) < 1000 {
		return
	}
	for value, at := range seeds {
		if now.Sub(at) > seedLife {
			delete(seeds, value)
		}
	}
}

// signedSeed reads an upload as a signed seed, and returns why it is none.
func (c *call) signedSeed(seeds func() map[string]time.Time) (*xmlsig.Verified, string) {
	up, refused := c.upload()
	if refused != nil {
		return nil, "El multipart no puede estar vacío"
	}
	v, err := xmlsig.Verify(up.raw, xmlsig.SmallLimits())
	if err != nil {
		return nil, "La firma de la semilla no es válida: " + strings.TrimPrefix(err.Error(), "xmlsig: ")
	}
	root := v.Root()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	value := root.Child("valor").Text()
	at, known := seeds()[value]
	if root.Name() != "SemillaModel" || !known || c.now.Sub(at) > seedLife {
		return nil, "La semilla no es válida o ha expirado."
	}
	delete(seeds(), value)
	if err := v.Trusted(c.s.trust, c.now); err != nil {
		return nil, "El certificado no es válido: " + strings.TrimPrefix(err.Error(), "xmlsig: ")
	}
	return v, ""
}

func (c *call) giveToken() answer {
	v, refusal := c.signedSeed(func() map[string]time.Time { return c.s.state.Environments[c.amb].Seeds })
	if refusal != "" {
		return reply(http.StatusBadRequest, refusal)
	}
	person := xmlsig.Person(v.Certificate)
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	st := c.s.state
	delegate := false
	for _, t := range st.Taxpayers {
		delegate = delegate || t.delegated(person, "")
	}
	if !delegate {
		st.Refused[person] = true
		return reply(http.StatusBadRequest, fmt.Sprintf("El RNC %s del certificado no está delegado para realizar transaciones.", person))
	}
	record := c.amb + digestOf(v.Certificate.Raw)
	if last := st.Tokens[record]; last != nil && !last.Cause && c.now.Sub(last.At) < tokenPause {
		c.s.violate(c, TokenAgain, fmt.Sprintf("%s got a token %s ago and nothing had happened to it", person, c.now.Sub(last.At).Round(time.Second)))
	}
	st.Tokens[record] = &tokenRecord{Person: person, At: c.now, Cause: c.spoils()}
	token, answered := newToken(tokenKey(st.Seed, c.amb), person, c.now, c.has("F09") && c.fault.variant() == "past-expiry")
	delete(st.TokenCalls, token) // one of the same second is the same text, and good again
	if c.has("F09") && c.fault.variant() == "expires-after" {
		st.TokenCalls[token] = c.fault.After
	}
	return answered
}

func tokenKey(seed uint64, of string) []byte {
	d := newDraw(seed, "token", of)
	return d[:]
}

// claims are those of DGII's tokens.
type claims struct {
	Name      string `json:"unique_name"` // the cédula of the holder of the certificate
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	Issued    int64  `json:"iat"`
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
}

// newToken makes a token and the answer that gives it.
func newToken(key []byte, person string, now time.Time, past bool) (string, answer) {
	expires := now.Add(tokenLife)
	body, _ := json.Marshal(claims{person, now.Unix(), expires.Unix(), now.Unix(), "DGII.FE", "USUARIOS.DGII.FE"}) // text and numbers
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(body)
	token := text + "." + encode(mac(key, text))
	if past {
		expires = now.Add(-time.Hour)
	}
	return token, reply(http.StatusOK, struct {
		Token    string `json:"token"`
		Expires  string `json:"expira"`
		Issuance string `json:"expedido"`
	}{token, expires.UTC().Format("2006-01-02T15:04:05Z"), now.UTC().Format("2006-01-02T15:04:05Z")})
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// readToken returns whom a bearer token names, also when it has expired, and
// whether it holds.
func readToken(r *http.Request, key []byte, now time.Time) (token, person string, ok bool) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	cut := strings.LastIndexByte(token, '.')
	if !strings.EqualFold(kind, "Bearer") || cut < 0 {
		return "", "", false
	}
	text := token[:cut]
	signature, err := base64.RawURLEncoding.DecodeString(token[cut+1:])
	if err != nil || !hmac.Equal(signature, mac(key, text)) {
		return "", "", false
	}
	_, payload, _ := strings.Cut(text, ".")
	body, err := base64.RawURLEncoding.DecodeString(payload)
	var c claims
	if err != nil || json.Unmarshal(body, &c) != nil {
		return "", "", false
	}
	return token, c.Name, now.Unix() < c.Expires
}

// authorized tells whether the call has a token of its environment.
func (c *call) authorized() bool {
	token, person, ok := readToken(c.r, tokenKey(c.s.seed(), c.amb), c.now)
	c.person = person
	if ok {
		c.s.mu.Lock()
		if left, limited := c.s.state.TokenCalls[token]; limited {
			c.s.state.TokenCalls[token] = left - 1
			ok = left > 0
		}
		c.s.mu.Unlock()
	}
	if !ok {
		c.unauthorized()
	}
	return ok
}

// unauthorized gives the holder of a token, or everybody when it names none, a
// reason to fetch another.
func (c *call) unauthorized() {
	if c.person == "" {
		_, c.person, _ = readToken(c.r, tokenKey(c.s.seed(), c.amb), c.now)
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	for _, record := range c.s.state.Tokens {
		if c.person == "" || record.Person == c.person {
			record.Cause = true
		}
	}
}
