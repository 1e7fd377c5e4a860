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
	// minTokenInterval is how long a client should use one token. A new one before
	// that is a violation.
	minTokenInterval = 30 * time.Minute

	xsi = "http://www.w3.org/2001/XMLSchema-instance"
	xsd = "http://www.w3.org/2001/XMLSchema"
)

// seedDocument returns a seed as DGII writes it: indented, and with the namespace
// declarations not in canonical order.
func seedDocument(value string, now time.Time) response {
	return response{status: http.StatusOK, contentType: kindXML, body: fmt.Appendf(nil,
		"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<SemillaModel xmlns:xsi=%q xmlns:xsd=%q>\n  <valor>%s</valor>\n  <fecha>%s</fecha>\n</SemillaModel>",
		xsi, xsd, value, now.In(zone).Format("2006-01-02T15:04:05.0000000-07:00"))}
}

func (c *call) serveSeed() response {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	d := newRandom(c.s.state.Seed, "seed", c.amb, c.s.state.nextCounter())
	value := base64.StdEncoding.EncodeToString(d[:])
	seeds := c.s.state.Environments[c.amb].Seeds
	removeExpiredSeeds(seeds, c.now)
	seeds[value] = c.now
	return seedDocument(value, c.now)
}

// removeExpiredSeeds removes the expired seeds when there are many.
func removeExpiredSeeds(seeds map[string]time.Time, now time.Time) {
	if len(seeds) < 1000 {
		return
	}
	for value, at := range seeds {
		if now.Sub(at) > seedLife {
			delete(seeds, value)
		}
	}
}

// verifySeed verifies an uploaded seed. It returns the reason of the refusal, or "".
func (c *call) verifySeed(seeds func() map[string]time.Time) (*xmlsig.Verified, string) {
	up, refused := c.readUpload()
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

func (c *call) serveToken() response {
	v, refusal := c.verifySeed(func() map[string]time.Time { return c.s.state.Environments[c.amb].Seeds })
	if refusal != "" {
		return jsonResponse(http.StatusBadRequest, refusal)
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
		return jsonResponse(http.StatusBadRequest, fmt.Sprintf("El RNC %s del certificado no está delegado para realizar transaciones.", person))
	}
	record := c.amb + sha256Hex(v.Certificate.Raw)
	if last := st.Tokens[record]; last != nil && !last.Cause && c.now.Sub(last.At) < minTokenInterval {
		c.s.addViolationLocked(c, TokenAgain, fmt.Sprintf("%s got a token %s ago and has no reason to fetch another", person, c.now.Sub(last.At).Round(time.Second)))
	}
	st.Tokens[record] = &tokenRecord{Person: person, At: c.now, Cause: c.losesResponse()}
	token, answered := newToken(tokenKey(st.Seed, c.amb), person, c.now, c.hasFault("F09") && c.fault.variant() == "past-expiry")
	delete(st.TokenCalls, token) // a token of the same second has the same text and is valid again
	if c.hasFault("F09") && c.fault.variant() == "expires-after" {
		st.TokenCalls[token] = c.fault.After
	}
	return answered
}

func tokenKey(seed uint64, of string) []byte {
	d := newRandom(seed, "token", of)
	return d[:]
}

// claims are the claims of DGII's tokens.
type claims struct {
	Name      string `json:"unique_name"` // the cédula of the holder of the certificate
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	Issued    int64  `json:"iat"`
	Issuer    string `json:"iss"`
	Audience  string `json:"aud"`
}

// newToken returns a token and the response that contains it.
func newToken(key []byte, person string, now time.Time, past bool) (string, response) {
	expires := now.Add(tokenLife)
	body, _ := json.Marshal(claims{person, now.Unix(), expires.Unix(), now.Unix(), "DGII.FE", "USUARIOS.DGII.FE"}) // strings and numbers can be encoded
	text := base64URL([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + base64URL(body)
	token := text + "." + base64URL(hmacSHA256(key, text))
	if past {
		expires = now.Add(-time.Hour)
	}
	return token, jsonResponse(http.StatusOK, struct {
		Token    string `json:"token"`
		Expires  string `json:"expira"`
		Issuance string `json:"expedido"`
	}{token, expires.UTC().Format(tokenLayout), now.UTC().Format(tokenLayout)})
}

func base64URL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func hmacSHA256(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// readToken returns the bearer token, the person in it, even when it has expired, and
// whether it is valid.
func readToken(r *http.Request, key []byte, now time.Time) (token, person string, ok bool) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	cut := strings.LastIndexByte(token, '.')
	if !strings.EqualFold(kind, "Bearer") || cut < 0 {
		return "", "", false
	}
	text := token[:cut]
	signature, err := base64.RawURLEncoding.DecodeString(token[cut+1:])
	if err != nil || !hmac.Equal(signature, hmacSHA256(key, text)) {
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

// authorized reports whether the call has a valid token of its environment.
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
		c.allowNewToken()
	}
	return ok
}

// allowNewToken remembers that the person in the token, or every person when there is no
// valid token, has a reason to fetch another.
func (c *call) allowNewToken() {
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
