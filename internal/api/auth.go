package api

import (
	"errors"
	"net/http"
	"slices"
	"strings"
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
