package api

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fiscalhub/fiscalhub/internal/access"
	"github.com/fiscalhub/fiscalhub/internal/apikey"
	"github.com/fiscalhub/fiscalhub/internal/fiscal"
	"github.com/fiscalhub/fiscalhub/internal/lang"
	"github.com/fiscalhub/fiscalhub/internal/store"
)

var (
	// errNoCredential has no error code in its challenge, because the request
	// has no credential (RFC 6750 §3.1).
	errNoCredential = unauthorized(`Bearer realm="fh"`, lang.Messagef(
		"a credential is required: send the header Authorization: Bearer <API_KEY>",
		"se requiere una credencial: envíe el encabezado Authorization: Bearer <API_KEY>"))
	errToken = unauthorized(`Bearer realm="fh", error="invalid_token"`, lang.Messagef("the credential is not valid", "la credencial no es válida"))
)

// maxAuthorization is the length in bytes of the longest Authorization header
// that is parsed.
const maxAuthorization = 256

// recheckAfter is how long the result of a check of the credential holds. Together with the
// cache of package access it is less than the 5 seconds within which a revocation or a
// suspension takes effect.
const recheckAfter = time.Second

// stillAllowed checks the credential of a request again after the service has waited: for
// the rest of the body, or for an event. An operator may have revoked or suspended it
// meanwhile. A request without a credential has nothing to check.
func (a *API) stillAllowed(x *exchange) error {
	if !x.authenticated || x.credential.ID == "" || a.o.Now().Sub(x.checkedAt) < recheckAfter {
		return nil
	}
	if err := a.authenticate(x); err != nil {
		return err
	}
	return a.checkSuspension(x)
}

// checkSuspension refuses a credential that is suspended, or whose taxpayer or environment
// is.
func (a *API) checkSuspension(x *exchange) error {
	if x.credential.Suspended == "" {
		return nil
	}
	a.refuse(x, reasonSuspended, x.credential.Prefix, x.credential)
	return suspended(x.credential)
}

// authenticate reads the credential of the request and verifies it.
func (a *API) authenticate(x *exchange) error {
	x.authenticated, x.checkedAt = false, a.o.Now()
	key, err := bearerKey(x.r)
	if err != nil {
		reason := reasonMalformed
		if errors.Is(err, errNoCredential) {
			reason = reasonMissing
		}
		a.refuse(x, reason, "", store.Credential{})
		return a.failedAuthentication(x, err)
	}
	x.credential, err = a.findCredential(x, key)
	if denied := new(access.DeniedError); errors.As(err, &denied) {
		a.refuse(x, denied.Reason, key.Prefix(), denied.Credential)
		return a.failedAuthentication(x, errToken)
	}
	if err != nil {
		return err
	}
	x.authenticated = true
	return nil
}

// failedAuthentication counts a failed request of the client's address. It
// returns err, or 429 once the address has failed too often.
func (a *API) failedAuthentication(x *exchange, err error) error {
	if !a.countAnonymous(x) {
		return a.addressExceeded(x)
	}
	return err
}

// authorize checks the scopes of the operation and the taxpayer of the path.
// It reads nothing from the database, so the answer for another taxpayer is the
// same whether that taxpayer exists or not.
func (a *API) authorize(x *exchange, route *route) error {
	var missing []string
	for _, s := range route.scopes {
		if !x.hasScope(s) {
			missing = append(missing, string(s))
		}
	}
	if len(missing) > 0 {
		return insufficientScope(missing)
	}
	id, ok := parseUUID(x.params["taxpayer_id"])
	switch {
	case !ok && route.named:
		return notFound()
	case !ok:
		return badRequest(lang.Messagef("taxpayer_id in the path must be a UUID", "taxpayer_id en la ruta debe ser un UUID"),
			fiscal.Problem{Field: "taxpayer_id", Code: fiscal.CodeInvalidFormat, Message: lang.Messagef("must be a UUID", "debe ser un UUID")})
	case id != x.credential.TaxpayerID && route.named:
		return notFound()
	case id != x.credential.TaxpayerID:
		return forbidden(lang.Messagef(
			"this credential does not give access to this taxpayer", "esta credencial no da acceso a este contribuyente"))
	}
	x.scope = store.Scope{Environment: a.o.Environment, TaxpayerID: id}
	return nil
}

// hasScope reports whether the credential of the request has a scope.
func (x *exchange) hasScope(s apikey.Scope) bool { return slices.Contains(x.credential.Scopes, s) }

// bearerKey parses the API key of a request. It does not use the database, so a
// malformed key costs little.
func bearerKey(r *http.Request) (apikey.Key, error) {
	lines := r.Header.Values("Authorization")
	if len(lines) > 1 {
		return apikey.Key{}, errToken
	}
	if len(lines) == 0 {
		return apikey.Key{}, errNoCredential
	}
	if len(lines[0]) > maxAuthorization {
		return apikey.Key{}, errToken
	}
	scheme, token, _ := strings.Cut(lines[0], " ")
	token = strings.Trim(token, " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return apikey.Key{}, errNoCredential
	}
	key, err := apikey.Parse(token)
	if err != nil {
		return apikey.Key{}, errToken
	}
	return key, nil
}

// checkClient refuses a client that may not use the credential: its address is not in the
// allowed networks of the credential, or it does not have a client certificate of the
// credential. The request counts against the limit of the address, not of the credential:
// a stolen key must not use up the requests of its owner.
func (a *API) checkClient(x *exchange) error {
	c := x.credential
	if len(c.AllowedNetworks) > 0 {
		if address, known := a.o.Clients.Client(x.r); !known || !c.AllowsAddress(address) {
			return a.refuseClient(x, reasonWrongAddress, lang.Messagef(
				"this credential may not be used from this address", "esta credencial no se puede usar desde esta dirección"))
		}
	}
	if len(c.ClientCertificates) > 0 && !c.AllowsCertificate(clientCertificate(x.r, a.o.Now())) {
		return a.refuseClient(x, reasonWrongCertificate, lang.Messagef(
			"this credential may only be used with its client certificate", "esta credencial se puede usar solo con su certificado de cliente"))
	}
	return nil
}

func (a *API) refuseClient(x *exchange, reason access.Reason, message lang.Message) error {
	a.countAnonymous(x)
	a.refuse(x, reason, x.credential.Prefix, x.credential)
	return forbidden(message)
}

// clientCertificate returns the fingerprint of the client certificate of a connection, or
// an empty text. The handshake has proven that the client has its private key.
func clientCertificate(r *http.Request, now time.Time) string {
	if r.TLS == nil || len(r.TLS.PeerCertificates) == 0 {
		return ""
	}
	leaf := r.TLS.PeerCertificates[0]
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return ""
	}
	digest := sha256.Sum256(leaf.Raw)
	return hex.EncodeToString(digest[:])
}

// lookups are the keys that are being looked up in the database. Requests that come
// with the same key at the same time wait for one look-up. The zero value is ready
// to use.
type lookups struct {
	mu       sync.Mutex
	byPrefix map[string]*lookup
}

// lookup is one look-up.
type lookup struct {
	done chan struct{} // closed at its end
	err  error         // of the database, or because there was no capacity for it
}

// join returns the look-up of a key that is under way, or starts one. The request
// that starts it must call end.
func (l *lookups) join(prefix string) (found *lookup, started bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if found := l.byPrefix[prefix]; found != nil {
		return found, false
	}
	if l.byPrefix == nil {
		l.byPrefix = make(map[string]*lookup)
	}
	made := &lookup{done: make(chan struct{})}
	l.byPrefix[prefix] = made
	return made, true
}

// end ends a look-up.
func (l *lookups) end(prefix string, ended *lookup, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.byPrefix, prefix)
	ended.err = err
	close(ended.done)
}

// findCredential returns the credential of a key. A key that is not in the cache
// is looked up in the database.
func (a *API) findCredential(x *exchange, key apikey.Key) (store.Credential, error) {
	ctx := x.r.Context()
	for !a.auth.Cached(key) {
		current, started := a.lookups.join(key.Prefix())
		if started {
			return a.lookUp(x, key, current)
		}
		select {
		case <-current.done:
		case <-ctx.Done():
			return store.Credential{}, ctx.Err()
		}
		if current.err != nil {
			return store.Credential{}, current.err
		}
	}
	return a.auth.Authenticate(ctx, key)
}

// lookUp looks a key up with a slot of the strangers, because the key may be wrong.
func (a *API) lookUp(x *exchange, key apikey.Key, current *lookup) (found store.Credential, err error) {
	failure := errPanic // unless it returns
	defer func() { a.lookups.end(key.Prefix(), current, failure) }()
	if err = a.takeSlot(x); err == nil {
		found, err = a.auth.Authenticate(x.r.Context(), key)
		x.held.Slot.Release()
		x.held.Slot = nil
	}
	// A wrong secret and a client that has left say nothing about the key of others.
	if failure = err; errors.Is(err, access.ErrDenied) || x.r.Context().Err() != nil {
		failure = nil
	}
	return found, err
}
